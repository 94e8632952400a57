/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/topology.h"

#include <stdatomic.h>

#define UP_BIT      1u
#define VERSION_ONE 2u          /* the least: a word of version 0 that is down would be 0, which is unknown */
#define HALF        0x80000000u /* of the circle */

uint32_t quoit_veth_link(const struct quoit_veth_topology *topology, enum quoit_side side)
{
    return side == QUOIT_RIGHT ? topology->host
                               : quoit_ring_neighbour(topology->host_count, QUOIT_LEFT, topology->host);
}

/* 0 is older than any other word. Of two that stand opposite each other one must be newer, on every host. */
static bool is_newer(uint32_t word, uint32_t than)
{
    uint32_t ahead = word - than;
    return word == 0 || than == 0 || ahead == HALF ? word > than : ahead != 0 && ahead < HALF;
}

bool quoit_veth_merge(struct quoit_veth_topology *topology, uint32_t link, uint32_t word)
{
    if (!is_newer(word, atomic_load_explicit(&topology->links[link], memory_order_relaxed)))
        return false;
    atomic_store_explicit(&topology->links[link], word, memory_order_relaxed);
    return true;
}

bool quoit_veth_see(struct quoit_veth_topology *topology, uint32_t link, bool is_up)
{
    uint32_t word = atomic_load_explicit(&topology->links[link], memory_order_relaxed);
    if (word != 0 && ((word & UP_BIT) != 0) == is_up)
        return false;
    uint32_t version = (word & ~UP_BIT) + VERSION_ONE;
    return quoit_veth_merge(topology, link, (version != 0 ? version : VERSION_ONE) | (is_up ? UP_BIT : 0));
}

/* 0: unknown, and tried as if it were up. */
static bool is_down(const struct quoit_veth_topology *topology, uint32_t link)
{
    uint32_t word = atomic_load_explicit(&topology->links[link], memory_order_relaxed);
    return word != 0 && (word & UP_BIT) == 0;
}

uint32_t quoit_veth_reach(const struct quoit_veth_topology *topology, enum quoit_side side)
{
    uint32_t link = quoit_veth_link(topology, side), reach = 0;
    while (reach < topology->host_count - 1 && !is_down(topology, link)) {
        link = quoit_ring_neighbour(topology->host_count, side, link);
        reach++;
    }
    return reach;
}

struct quoit_veth_route quoit_veth_route_to(const struct quoit_veth_topology *topology, uint32_t dest)
{
    struct quoit_veth_route route = {.hops = 0};
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t hops = quoit_ring_hops(topology->host_count, side, topology->host, dest);
        bool is_shorter = route.hops == 0 || hops < route.hops || (hops == route.hops && side == QUOIT_RIGHT);
        if (is_shorter && hops <= quoit_veth_reach(topology, side))
            route = (struct quoit_veth_route){.side = side, .hops = hops};
    }
    return route;
}
