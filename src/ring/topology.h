/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.h - link state of the ring: which links are up, as far as this host knows, and what it must advertise.
 *
 * A link has two ends, each with a state, a number that only grows and that only its own host changes: 2 e while it is
 * up in epoch e, 2 e + 1 after it went down. A host keeps the vector of the states of all ends; two vectors merge by
 * the larger state of each end, so updates may come twice, late and in any order, and all hosts end with the same
 * vector. The sum of the vector numbers the topology: it grows with every change, at every host.
 *
 * Updates: a host that changes or learns a state advertises it to both neighbours, including the one that it came from,
 * for which this is the acknowledgement. When a link comes up, all states are pending for its neighbour, since whatever
 * was in flight is lost.
 */
#ifndef QUOIT_RING_TOPOLOGY_H
#define QUOIT_RING_TOPOLOGY_H

#include "ring/ring.h"

struct quoit_ring_end {
    uint32_t state;
    bool is_pending[QUOIT_SIDE_COUNT]; /* for the neighbour of that side */
};

/* This host's end of one side's link. */
struct quoit_ring_link {
    bool is_confirmed;      /* the neighbour has advertised our own state: it knows that we are up */
    uint32_t adopted;       /* since link_up: the topology version that the neighbour advertised to have adopted */
    uint32_t pending_count; /* updates for the neighbour */
    uint32_t pending_next;  /* where the search for the next one begins */
    uint32_t reach;         /* hops out of this side before the first link that is not up */
};

struct quoit_ring_links {
    struct quoit_ring_end *ends; /* [2 * host_count] */
    uint32_t host_count;
    uint32_t host_self;
    uint32_t topology_version;
    bool is_quiesced;
    bool is_cut;        /* two links or more are down: the ring is in pieces */
    uint32_t cut_count; /* how often that began */
    struct quoit_ring_link links[QUOIT_SIDE_COUNT];
};

void quoit_ring_links_init(struct quoit_ring_links *links, struct quoit_ring_end *ends, uint32_t host_count,
                           uint32_t host_self);
void quoit_ring_links_down(struct quoit_ring_links *links, enum quoit_side side);
void quoit_ring_links_up(struct quoit_ring_links *links, enum quoit_side side, uint32_t epoch);
/* Merges a TOPOLOGY frame from the neighbour of `side`. is_new_out: the topology version has grown. INVALID if it
 * claims of one of our ends what we never advertised. */
QUOIT_MUST_USE enum quoit_status quoit_ring_links_learn(struct quoit_ring_links *links, enum quoit_side side,
                                                        const struct quoit_frame *frame, bool *is_new_out);
/* Moves pending updates for the neighbour of a side, which must have some, to a frame that has none: as many as fit. */
void quoit_ring_links_advertise(struct quoit_ring_links *links, enum quoit_side side, struct quoit_frame *frame_out);
void quoit_ring_links_describe(const struct quoit_ring_links *links, struct quoit_ring_topology *topology_out);

bool quoit_ring_links_is_up(const struct quoit_ring_links *links, enum quoit_side side);
/* Whether frames other than link-state updates may leave: both ends of the link are up. */
bool quoit_ring_links_is_open(const struct quoit_ring_links *links, enum quoit_side side);
/* Hosts that can be reached out of `side` where a link is down, so that the ring is a line; 0 where none is. */
uint32_t quoit_ring_links_reach_on_line(const struct quoit_ring_links *links, enum quoit_side side);
/* Whether payload may land: the neighbour knows that this end is up, and so waits for our updates before it executes.
 */
bool quoit_ring_links_may_land(const struct quoit_ring_links *links, enum quoit_side side);
/* The side towards a host: `preferred`, unless a link in that direction is down and none in the other. False: both are
 * cut. */
bool quoit_ring_links_side_to(const struct quoit_ring_links *links, enum quoit_side preferred, uint32_t host,
                              enum quoit_side *side_out);

void quoit_ring_check_links(const struct quoit_ring_links *links);

#endif
