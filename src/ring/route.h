/* SPDX-License-Identifier: BSD-3-Clause */
/* route.h - positions on the ring. Pure arithmetic on host numbers. quoit_ring_route() is in ring.h. */
#ifndef QUOIT_RING_ROUTE_H
#define QUOIT_RING_ROUTE_H

#include "ring/ring.h"

static inline enum quoit_side quoit_ring_opposite(enum quoit_side side)
{
    return side == QUOIT_LEFT ? QUOIT_RIGHT : QUOIT_LEFT;
}

/* Hops from one host to another if all of them leave by `side`. */
uint32_t quoit_ring_hops(uint32_t host_count, enum quoit_side side, uint32_t from, uint32_t to);

uint32_t quoit_ring_neighbour(uint32_t host_count, enum quoit_side side, uint32_t host);

/* The side that names the frame's flow: where its request leaves while all links are up. */
static inline enum quoit_side quoit_ring_flow_side(const struct quoit_frame *frame)
{
    return frame->flags & QUOIT_FRAME_RIGHT ? QUOIT_RIGHT : QUOIT_LEFT;
}

/* Whether a frame that leaves each host by `heading` may arrive at `host`: it has left its source and has not passed
 * its destination. A frame never reverses, so one that passes this check at each hop cannot circle. */
bool quoit_ring_is_on_route(uint32_t host_count, uint32_t host, enum quoit_side heading,
                            const struct quoit_frame *frame);

#endif
