/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.h - which links are up, as far as this host was told, and what the neighbours must be told.
 *
 * A link has two ends, each with a state of one number that only grows and that only its own host changes: 2 i while it
 * is up in incarnation i, 2 i + 1 after it went down. What a host knows is the vector of the states of all ends; two
 * vectors are merged by the larger state of each end, so news may come twice, late, and in any order, and all hosts end
 * with the same vector. Its sum is the generation: it grows with every change, at every host.
 *
 * News: whoever changes or learns a state owes it to both neighbours, also to the one it came from, whom this tells
 * that it has arrived. When a link comes up, each end owes its neighbour all states, since what was under way is lost.
 */
#ifndef QUOIT_RING_TOPOLOGY_H
#define QUOIT_RING_TOPOLOGY_H

#include "ring/ring.h"

struct quoit_ring_end {
    uint32_t state;
    bool is_owed[QUOIT_SIDE_COUNT]; /* to the neighbour of that side */
};

/* The own end of the link of one side. */
struct quoit_ring_link {
    bool is_confirmed;   /* the neighbour has told us our own state: it knows that we are up */
    uint32_t heard;      /* since link_up: the generation that the neighbour has adopted, as it told */
    uint32_t owed_count; /* news for the neighbour */
    uint32_t owed_next;  /* where to look for the next */
    uint32_t reach;      /* hops out of this side before the first link that is not up */
};

struct quoit_ring_links {
    struct quoit_ring_end *ends; /* [2 * host_count] */
    uint32_t host_count;
    uint32_t host_self;
    uint32_t generation;
    bool is_settled;
    struct quoit_ring_link links[QUOIT_SIDE_COUNT];
};

void quoit_ring_links_init(struct quoit_ring_links *links, struct quoit_ring_end *ends, uint32_t host_count,
                           uint32_t host_self);
void quoit_ring_links_down(struct quoit_ring_links *links, enum quoit_side side);
void quoit_ring_links_up(struct quoit_ring_links *links, enum quoit_side side, uint32_t incarnation);
/* A TOPOLOGY frame from the neighbour of `side`. True in is_new_out: the generation has grown. INVALID if it says of an
 * own end what we never said. */
QUOIT_MUST_USE enum quoit_status quoit_ring_links_learn(struct quoit_ring_links *links, enum quoit_side side,
                                                        const struct quoit_frame *news, bool *is_new_out);
/* Takes the next news for the neighbour of a side, which is owed some: fills token and operand. */
void quoit_ring_links_tell(struct quoit_ring_links *links, enum quoit_side side, struct quoit_frame *news_out);
void quoit_ring_links_describe(const struct quoit_ring_links *links, struct quoit_ring_topology *topology_out);

bool quoit_ring_links_is_up(const struct quoit_ring_links *links, enum quoit_side side);
/* Whether frames other than news may leave: both ends of the link are up. */
bool quoit_ring_links_is_open(const struct quoit_ring_links *links, enum quoit_side side);
/* Whether payload may land: the neighbour knows that this end is up, and so waits for our news before it executes. */
bool quoit_ring_links_may_land(const struct quoit_ring_links *links, enum quoit_side side);
/* The side to a host: `preferred` unless a link on that way is down and none on the other. False: both ways are cut. */
bool quoit_ring_links_way(const struct quoit_ring_links *links, enum quoit_side preferred, uint32_t host,
                          enum quoit_side *side_out);

void quoit_ring_check_links(const struct quoit_ring_links *links);

#endif
