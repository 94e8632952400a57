/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.h - one end of one queue: slots sent and consumed, the bubble, and the pause of transit that lets injection
 * in.
 *
 * Outbound: the neighbour's slots that this host may write. A slot is free again once the neighbour's total says so; a
 *   credit on its way back counts as taken, so the sender never overestimates the room.
 * Bubble: an injection needs two free slots; transit may take the last one. See docs/design/deadlock.md.
 * Pause: continuous transit would take every slot before two are free at once. A refused injection starts the clock
 *   (WAITING); after transit_pause_after_ns the next transit pauses (PAUSED) for transit_pause_ns, or until an
 *   injection succeeds (OPEN). If no injection is retried during the pause, none is waiting any more.
 * Turns: where a link is down the ring is a line, and transit would leave the hosts in the middle little. There, while
 *   both wait, one injection follows `turn` relayed frames, and another `turn` where the last one went before its turn,
 *   as it may while no frame waits. The pause comes with injection's turn there, as soon as a slot is free, and not
 * with time: it leaves single slots until there are two. A ring of hosts has no turns, since injection at par with
 * transit fills a cycle of queues up to its bubbles.
 */
#ifndef QUOIT_RING_CREDIT_H
#define QUOIT_RING_CREDIT_H

#include "ring/ring.h"

enum quoit_ring_transit { QUOIT_RING_OPEN, QUOIT_RING_WAITING, QUOIT_RING_PAUSED, QUOIT_RING_TRANSIT_COUNT };

struct quoit_ring_outbound {
    uint64_t sent_total;
    uint64_t credited_total; /* consumed by the neighbour, as last advertised */
    uint64_t since_ns;       /* WAITING, PAUSED: when this state began */
    enum quoit_ring_transit transit;
    bool is_refused_in_pause;
    bool is_transit_waiting; /* a relayed frame was refused, and stands at the head of its queue */
    uint32_t turn;           /* 0: no turns */
    uint32_t ahead_count;    /* frames to be relayed before it is injection's turn; at most 2 * turn */
};

struct quoit_ring_inbound {
    uint64_t consumed_total;
    uint64_t advertised_total; /* the part of it that was advertised to the neighbour */
    uint32_t in_use;           /* the most recently consumed, which are still being read */
};

/* Slots that the neighbour may write again. */
static inline uint64_t quoit_ring_free_total(const struct quoit_ring_inbound *in)
{
    return in->consumed_total - in->in_use;
}

static inline uint32_t quoit_ring_free_slots(const struct quoit_ring_outbound *out, uint32_t slot_count)
{
    return slot_count - (uint32_t)(out->sent_total - out->credited_total);
}

/* Sets the turns of a new topology, under which nothing waits yet. */
void quoit_ring_set_turn(struct quoit_ring_outbound *out, uint32_t turn);

/* Whether a frame of this host may take a slot now. A refusal starts the clock, so ask only when there is a frame. If
 * it is only transit's turn, *retry_at_ns_out is now_ns; else 0. */
bool quoit_ring_may_inject(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns,
                           uint64_t *retry_at_ns_out);

/* Whether a relayed frame may take a slot now. If only a pause or injection's turn forbids it, *retry_at_ns_out is when
 * that ends; else 0. */
bool quoit_ring_may_transit(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns,
                            uint64_t *retry_at_ns_out);

/* Takes the next slot; its frame carries the new sent_total as sequence. */
void quoit_ring_take_slot(struct quoit_ring_outbound *out, const struct quoit_ring_config *config);

/* The neighbour's total. INVALID if it goes back or exceeds what was sent. */
QUOIT_MUST_USE enum quoit_status quoit_ring_take_credit(struct quoit_ring_outbound *out, uint64_t consumed_total);

bool quoit_ring_is_credit_due(const struct quoit_ring_inbound *in, uint32_t slot_count, bool is_idle);

void quoit_ring_check_outbound(const struct quoit_ring_outbound *out, uint32_t slot_count);
void quoit_ring_check_inbound(const struct quoit_ring_inbound *in, uint32_t slot_count);

#endif
