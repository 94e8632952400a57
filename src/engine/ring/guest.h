/* SPDX-License-Identifier: BSD-3-Clause */
/* guest.h - the PE's own end of the network that joins the hosts: small puts and gets without the proxies. Private to
 * engine/ring.
 *
 * What it is: a guest of the network (net/net.h), which the PE opens when it has used other hosts often enough to gain
 * by it, and connects to a host with the first operation there. It carries one small put of a context at a time, and
 * blocking small gets. What it refuses goes through the proxy, with the same guarantees.
 *
 * Order: a put is refused while requests precede a fence, and quoit_guest_complete() of the context comes before what
 * may not pass its put. Workspaces of collectives are refused: their waits are woken by requests alone.
 * Wakes: a put over the network wakes nobody, so a request follows some of them; docs/design/network.md says which.
 *
 * Threads: any. User memory is accessed with no lock held.
 */
#ifndef QUOIT_ENGINE_RING_GUEST_H
#define QUOIT_ENGINE_RING_GUEST_H

#include "engine/ring/ring_engine.h"

/* Once the proxy is ready. Leaves ring->guest NULL where there is nothing to open. */
QUOIT_MUST_USE enum quoit_status quoit_guest_open(struct quoit_ring_engine *ring, enum quoit_guest_use use);
void quoit_guest_close(struct quoit_ring_engine *ring);

/* False: nothing was done. The source may be reused on return; the context counts the put until it has arrived. */
bool quoit_guest_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                     size_t bytes);
/* Returns with the data. False: nothing was done. */
bool quoit_guest_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                     size_t bytes);
/* Returns when the puts of the context have arrived. */
void quoit_guest_complete(struct quoit_ring_engine *ring, struct quoit_context *context);
/* Looks at what is under way, and sends the wakes that are due. Costs a few loads when there is nothing. */
void quoit_guest_progress(struct quoit_ring_engine *ring);
/* Before the PE leaves: sends the others too, and waits for all. */
void quoit_guest_finish(struct quoit_ring_engine *ring);

#endif
