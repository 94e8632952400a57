/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.h - messages of collectives over TCP connections between the PEs themselves, where the network that joins
 * the hosts is TCP. Private to engine/ring.
 *
 * What it is: a PE that has sent another one messages through the proxies for a while invites it (net/sockets.h), by
 * its rendezvous slot (host/rendezvous_slot.h). Once they are connected both send by themselves. What a PE waits for
 * with messages it receives itself, so no proxy has to run, and payload crosses no memory in between. Order: messages
 * to a PE keep theirs; the first of a context that goes by a connection waits until all that the context has sent
 * through the proxy has arrived. Loss: as of an end of the PE's own (pe_endpoint.h): the proxies' verdict ends the job.
 *
 * Threads: any.
 */
#ifndef QUOIT_ENGINE_RING_MESSAGES_H
#define QUOIT_ENGINE_RING_MESSAGES_H

#include "engine/ring/ring_engine.h"

/* Once the proxy is ready. Leaves ring->messages NULL where there are no such connections. */
QUOIT_MUST_USE enum quoit_status quoit_messages_open(struct quoit_ring_engine *ring, enum quoit_pe_endpoint_use use);
void quoit_messages_close(struct quoit_ring_engine *ring);

/* False: nothing was done, and the message goes through the proxy. See struct quoit_engine_ops. */
bool quoit_messages_send(struct quoit_context *context, const struct quoit_peer *peer,
                         const struct quoit_message *message, bool *is_direct);
/* Takes what has come: connection requests, connections, messages. */
void quoit_messages_receive(struct quoit_ring_engine *ring);
/* Sleeps until something has come by any connection, or a message to the peer that waits may go on, at most limit_ns.
 * False: there is no connection with the peer. */
bool quoit_messages_await(const struct quoit_peer *peer, uint64_t limit_ns);
/* Before the PE leaves: waits for what it has sent by the proxy. */
void quoit_messages_finish(struct quoit_ring_engine *ring);

#endif
