/* SPDX-License-Identifier: BSD-3-Clause */
/* emulated.h - an NTB link between two emulated hosts of one machine.
 *
 * What it is: a driver behind port.h. The link's registers (doorbells, masks, vectors, scratchpads, translations, link
 * state) live in a memfd of QUOIT_EMULATED_LINK_BYTES that both ends map: that memfd is "the cable and the chips". The
 * driver alone also holds the peer host's memory (`peer_memory_fd`), as the wires of the bridge do, and makes
 * accessible of it only what the peer has translated or named in a vector. Nothing above the driver may touch either.
 *
 * Posted: a write stores at once, unless a latency is asked for; then it waits in a queue of the opening until its time
 * (posted.c). Either way a cut loses what returned already: it first takes the cable away without either end seeing it,
 * for a while in which all that is sent vanishes and returns as if posted, and then both ends see the link down. With
 * `arrives_on_return` there is no such while, and writers and ringers wait until what they sent has arrived.
 *
 * Weaker than hardware in one point: a thread that the kernel suspends between its look at the link and its stores may
 * store up to 64 KiB (512 bytes where writes are torn) after the link went down or the translation was taken away. The
 * bytes and the mark of a write_marked share one look, up to 4 KiB: so late or not, both arrive or neither does.
 *
 * A process killed at any instant leaves the link usable for the others. An opening does not survive fork().
 *
 * A fresh memfd, all zero, is a link that neither side enabled. Both sides get the same knobs.
 */
#ifndef QUOIT_PORT_EMULATED_EMULATED_H
#define QUOIT_PORT_EMULATED_EMULATED_H

#include "port/driver.h"

#define QUOIT_EMULATED_LINK_BYTES 8192

extern const struct quoit_port_driver quoit_driver_emulated;

#endif
