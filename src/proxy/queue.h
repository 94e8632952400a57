/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - the engine of our queues: descriptors and payload in the window. Private to proxy and the simulator.
 *
 * It turns the verdicts of its ring into copies and stores: it owns the inbound queues of its number on both sides
 * (reads slots, returns credits), the outbound ones (writes slots), and moves large payload by DMA (mover.h).
 *
 * Links: a write that finds the link down is a frame lost in flight; the ring retransmits it after the link_down()
 * that must follow.
 */
#ifndef QUOIT_PROXY_QUEUE_H
#define QUOIT_PROXY_QUEUE_H

#include "lane/lane.h"
#include "proxy/mover.h"
#include "ring/ring.h"

/* A frame whose payload is being moved by DMA. Its header is written when the payload has arrived. */
struct quoit_departure {
    struct quoit_frame frame;
    enum quoit_side side;
    uint64_t slot_at; /* in the window SLOTS */
    /* The inbound slot that the payload is read from, which the neighbour must not write meanwhile; sequence 0: none */
    enum quoit_side from_side;
    enum quoit_class from_class;
    uint64_t from_sequence;
    uint64_t begin_ns; /* when its DMA began; 0: nothing is traced */
};
_Static_assert(QUOIT_MOVES_MAX <= QUOIT_TRACE_DMAS_MAX, "each DMA under way has a track");

/* The engine's state of a lane. */
struct quoit_queue_lane {
    struct quoit_ring *ring;
    struct quoit_mover *mover;                          /* of the group's */
    struct quoit_departure departures[QUOIT_MOVES_MAX]; /* by the mover's index */
    bool keeps_slots; /* departures read inbound slots, or did at the last quoit_ring_keep_slots() */
    uint64_t landing_bytes[QUOIT_SIDE_COUNT]; /* how much of the neighbour's segments its window covers */
    bool must_ring[QUOIT_SIDE_COUNT];
    bool has_link_update; /* the ring may know more of the links than the lane has reported */
};

extern const struct quoit_lane_engine quoit_queue_engine;

/* NULL: another engine runs the lane. */
static inline struct quoit_queue_lane *quoit_queue_of(const struct quoit_lane *lane)
{
    return lane->engine == &quoit_queue_engine ? lane->state : NULL;
}

#endif
