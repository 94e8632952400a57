/* SPDX-License-Identifier: BSD-3-Clause */
/* emulated.h - an NTB link between two emulated hosts of one machine.
 *
 * What it is: a driver behind port.h. The link's registers (doorbells, masks, vectors, scratchpads, translations, link
 * state) live in a memfd of QUOIT_EMULATED_LINK_BYTES that both ends map: that memfd stands for the bridge hardware.
 * The driver alone also maps the peer host's memory (`peer_memory_fd`), and makes accessible only the ranges that the
 * peer has translated or named in a vector, as a bridge does. Nothing above the driver may access either.
 *
 * Posted: a write stores at once, or with a configured latency waits in a queue of the opening until it is due
 * (posted.c). In both cases a cut loses writes that have returned: for an interval neither end detects the cut, writes
 * return as if posted and vanish, and then both ends see the link down. With `arrives_on_return` there is no such
 * interval, and a write or ring returns when it has arrived.
 *
 * Weaker than hardware in one point: a thread that the kernel suspends between its check of the link and its stores may
 * store up to 64 KiB (512 bytes where writes are torn) after the link went down or the translation was taken away. The
 * bytes and the mark of a write_marked share one check, up to 4 KiB, so both arrive or neither does.
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
