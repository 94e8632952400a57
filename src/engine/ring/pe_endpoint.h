/* SPDX-License-Identifier: BSD-3-Clause */
/* pe_endpoint.h - the PE's own end of the network that joins the hosts: small operations without the own proxy. Private
 * to engine/ring.
 *
 * What it is: a PE endpoint of the network (net/net.h), which the PE opens when it has used other hosts often enough to
 * gain by it, and connects to a host with the first operation there. It carries one small put of a context at a time,
 * puts with a signal, atomics, and blocking small gets. What it refuses goes through the proxy, with the same
 * guarantees; so do workspaces of collectives.
 *
 * How: gets, and over RDMA puts, are gets and puts of the network. All else is a frame to the other host's proxy, which
 * executes it as it does those of the proxies, and responds.
 * Order: frames to a host keep theirs. All but gets are refused while requests of the context are outstanding. Puts of
 * the network arrive before quoit_pe_endpoint_fence() returns; requests after it wait in quoit_pe_endpoint_keep_fence()
 * for frames before it, and atomics and signals without a fence too, so that those of a context to a PE keep their
 * order. Wakes: a put of the network wakes nobody, so a request follows some of them; docs/design/network.md says
 * which.
 *
 * Threads: any. User memory is accessed with no lock held.
 */
#ifndef QUOIT_ENGINE_RING_PE_ENDPOINT_H
#define QUOIT_ENGINE_RING_PE_ENDPOINT_H

#include "engine/ring/ring_engine.h"

/* Once the proxy is ready. Leaves ring->pe_endpoint NULL where there is nothing to open. */
QUOIT_MUST_USE enum quoit_status quoit_pe_endpoint_open(struct quoit_ring_engine *ring, enum quoit_pe_endpoint_use use);
void quoit_pe_endpoint_close(struct quoit_ring_engine *ring);

/* False: nothing was done. The source may be reused on return; the context counts the put until it has arrived. */
bool quoit_pe_endpoint_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                           const void *source, size_t bytes);
/* The same; `bytes` may be 0. */
bool quoit_pe_endpoint_put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                                  const void *source, size_t bytes, const struct quoit_signal *signal);
/* result_out NULL: as a put; else returns with the old value. False: nothing was done. */
bool quoit_pe_endpoint_amo(struct quoit_context *context, const struct quoit_peer *peer,
                           const struct quoit_atomic *atomic, void *result_out);
/* Returns with the data. False: nothing was done. */
bool quoit_pe_endpoint_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination,
                           uint64_t offset, size_t bytes);
/* What the context begins from now on does not pass what it has begun. */
void quoit_pe_endpoint_fence(struct quoit_ring_engine *ring, struct quoit_context *context);
/* Before a request is submitted; keep_order: of an atomic or signal. */
void quoit_pe_endpoint_keep_order(struct quoit_ring_engine *ring, struct quoit_context *context);
void quoit_pe_endpoint_keep_fence(struct quoit_ring_engine *ring, struct quoit_context *context);
/* Returns when all that the context counts has arrived. */
void quoit_pe_endpoint_complete(struct quoit_ring_engine *ring, struct quoit_context *context);
/* Looks at what is under way, and sends the wakes that are due. Costs a few loads when there is nothing. */
void quoit_pe_endpoint_progress(struct quoit_ring_engine *ring);
/* Before the PE leaves: sends the others too, and waits for all. */
void quoit_pe_endpoint_finish(struct quoit_ring_engine *ring);

#endif
