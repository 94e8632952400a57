/* SPDX-License-Identifier: BSD-3-Clause */
/* route.c - the shorter direction around the ring. */
#include "ring/route.h"

#include "base/assert.h"

uint32_t quoit_ring_hops(uint32_t host_count, enum quoit_side side, uint32_t from, uint32_t to)
{
    uint32_t ahead = side == QUOIT_RIGHT ? to : from;
    uint32_t behind = side == QUOIT_RIGHT ? from : to;
    return ahead >= behind ? ahead - behind : ahead + host_count - behind;
}

uint32_t quoit_ring_neighbour(uint32_t host_count, enum quoit_side side, uint32_t host)
{
    if (side == QUOIT_RIGHT)
        return host + 1 == host_count ? 0 : host + 1;
    return host == 0 ? host_count - 1 : host - 1;
}

enum quoit_side quoit_ring_route(uint32_t host_self, uint32_t host_count, uint32_t dest_host, uint32_t spread)
{
    quoit_assert(host_self < host_count);
    quoit_assert(dest_host < host_count);
    quoit_assert(host_self != dest_host);
    uint32_t right = quoit_ring_hops(host_count, QUOIT_RIGHT, host_self, dest_host);
    uint32_t left = host_count - right;
    if (right != left)
        return right < left ? QUOIT_RIGHT : QUOIT_LEFT;
    return spread % 2 == 0 ? QUOIT_RIGHT : QUOIT_LEFT;
}

bool quoit_ring_is_on_route(uint32_t host_count, uint32_t host, enum quoit_side heading,
                            const struct quoit_frame *frame)
{
    uint32_t gone = quoit_ring_hops(host_count, heading, frame->source_host, host);
    uint32_t whole = quoit_ring_hops(host_count, heading, frame->source_host, frame->dest_host);
    return gone >= 1 && gone <= whole;
}
