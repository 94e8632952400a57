/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.h - the engine for other hosts of a ring of links.
 *
 * What it is: a neighbour whose segment its window covers is DIRECT: puts are copied through the port into its segment
 * (direct.c). Everything else is cut into requests (relayed.c) in the PE's channels to the proxy (channel.c). With the
 * papers' protocol no peer is DIRECT, nor is one on another ring, or without any: those are reached by the lane of a
 * network. Where a network joins all hosts the PE may have an end of its own for small operations (pe_endpoint.c).
 *
 * Lost links: while the link to a neighbour is down, direct puts use the proxy instead, and so the other direction.
 * Nothing is lost or executed twice, and order is preserved; see docs/design/failover.md.
 */
#ifndef QUOIT_ENGINE_RING_RING_H
#define QUOIT_ENGINE_RING_RING_H

#include "engine/engine.h"
#include "port/port.h"

/* Whether the PE puts and gets by itself where a network joins the hosts: where that is RDMA, never, always. */
enum quoit_pe_endpoint_use { QUOIT_PE_ENDPOINT_AUTO, QUOIT_PE_ENDPOINT_NO, QUOIT_PE_ENDPOINT_YES };

/* Opens both ports. The neighbours' windows must be usable (after boot's barrier). */
QUOIT_MUST_USE enum quoit_status quoit_engine_ring_open(struct quoit_self *self,
                                                        const struct quoit_port_config ports[QUOIT_SIDE_COUNT],
                                                        enum quoit_pe_endpoint_use pe_endpoint_use,
                                                        struct quoit_engine **engine_out);
/* The port of a side, for programs that measure it. Owned by the engine. */
struct quoit_port *quoit_engine_ring_port(struct quoit_engine *engine, enum quoit_side side);

#endif
