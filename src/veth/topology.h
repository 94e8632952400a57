/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.h - this host's view of which links of the ring are up, and the route to a host. Pure.
 *
 * One word per link: a version, and in its lowest bit whether the link is up. The hosts at its ends raise the version
 * when the word differs from what they see; all others keep the newer word. So updates may be late, repeated and
 * reordered, also after a host has restarted. Versions are compared in a circle, as serial numbers (RFC 1982), so that
 * whichever a neighbour sends, the ends of the link can raise it. Link i joins the right side of host i to host i + 1.
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

/* The route of a frame: `hops` hosts by `side`; hops 0: there is none. */
struct quoit_veth_route {
    enum quoit_side side;
    uint32_t hops;
};

/* The link at that side of this host. */
uint32_t quoit_veth_link(const struct quoit_veth_topology *topology, enum quoit_side side);
/* Keeps the newer word of a link; true: it has changed. */
bool quoit_veth_merge(struct quoit_veth_topology *topology, uint32_t link, uint32_t word);
/* Updates the word of a link from an end of it; true: it has changed. */
bool quoit_veth_see(struct quoit_veth_topology *topology, uint32_t link, bool is_up);
/* How many hosts can be reached by that side, at most host_count - 1. */
uint32_t quoit_veth_reach(const struct quoit_veth_topology *topology, enum quoit_side side);
/* The shorter direction in which all links are up; right if both are equally long. */
struct quoit_veth_route quoit_veth_route_to(const struct quoit_veth_topology *topology, uint32_t dest);

#endif
