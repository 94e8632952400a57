/* SPDX-License-Identifier: BSD-3-Clause */
/* route.h - who is where on the ring. Pure arithmetic on host numbers. quoit_ring_route() is in ring.h. */
#ifndef QUOIT_RING_ROUTE_H
#define QUOIT_RING_ROUTE_H

#include "ring/ring.h"

static inline enum quoit_side quoit_ring_opposite(enum quoit_side side)
{
    return side == QUOIT_LEFT ? QUOIT_RIGHT : QUOIT_LEFT;
}

/* Hops from one host to another when all of them go out of `side`. */
uint32_t quoit_ring_hops(uint32_t host_count, enum quoit_side side, uint32_t from, uint32_t to);

uint32_t quoit_ring_neighbour(uint32_t host_count, enum quoit_side side, uint32_t host);

/* The side out of which a frame leaves each host of its way. A reply goes back the way its request came. */
enum quoit_side quoit_ring_heading(const struct quoit_frame *frame);

/* Whether a frame that follows its heading may arrive at `host`: it has left its source and has not passed its
 * destination. A frame that passes this at each hop cannot circle. */
bool quoit_ring_is_on_way(uint32_t host_count, uint32_t host, const struct quoit_frame *frame);

#endif
