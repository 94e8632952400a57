/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.h - which links of the ring are up, as far as this host knows, and the way to a host. Pure.
 *
 * A word for each link: a version, and in its lowest bit whether the link is up. The hosts at its ends raise the
 * version whenever the word says something else than they see; everybody else takes the greater word, so updates that
 * come late, twice or in any order do no harm, also after hosts began anew. Link i joins host i, at its right, to host
 * i + 1.
 *
 * Threads: merges are serialised by the caller; any thread may read.
 */
#ifndef QUOIT_VETH_TOPOLOGY_H
#define QUOIT_VETH_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/route.h"
#include "veth/frame.h"

struct quoit_veth_topology {
    uint32_t host;
    uint32_t host_count;
    _Atomic uint32_t links[QUOIT_VETH_HOSTS_MAX];
};

/* The way of a frame: `hops` hosts by `side`; hops 0: there is none. */
struct quoit_veth_route {
    enum quoit_side side;
    uint32_t hops;
};

/* The link at that side of this host. */
uint32_t quoit_veth_link(const struct quoit_veth_topology *topology, enum quoit_side side);
/* Takes the greater word of a link; true: the word has changed. */
bool quoit_veth_merge(struct quoit_veth_topology *topology, uint32_t link, uint32_t word);
/* What an end of the link sees; true: the word has changed. */
bool quoit_veth_see(struct quoit_veth_topology *topology, uint32_t link, bool is_up);
/* How many hosts can be reached by that side, at most host_count - 1. */
uint32_t quoit_veth_reach(const struct quoit_veth_topology *topology, enum quoit_side side);
/* The shorter way on which all links are up; to the right if both are as long. */
struct quoit_veth_route quoit_veth_route_to(const struct quoit_veth_topology *topology, uint32_t dest);

#endif
