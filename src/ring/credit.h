/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.h - one end of one queue: what was sent and consumed, the bubble, and the rest that keeps injection alive.
 *
 * Outbound: slots of the neighbour that this host may write. A slot is free again when the neighbour's total says so;
 *   what is on its way back counts as taken, so the sender never believes in more room than there is.
 * Bubble: an injection takes a slot only where two are free; transit takes the last one. See docs/design/deadlock.md.
 * Rest: transit that never pauses would take every slot before two are free at once. A refused injection starts the
 *   clock (WAITING); after transit_pause_after_ns the next transit rests (PAUSED) for transit_pause_ns, or until the
 * injection got in (OPEN). Nobody who came back during the rest: nobody waits any more.
 */
#ifndef QUOIT_RING_CREDIT_H
#define QUOIT_RING_CREDIT_H

#include "ring/ring.h"

enum quoit_ring_transit { QUOIT_RING_OPEN, QUOIT_RING_WAITING, QUOIT_RING_PAUSED, QUOIT_RING_TRANSIT_COUNT };

struct quoit_ring_outbound {
    uint64_t sent_total;
    uint64_t credited_total; /* consumed by the neighbour, as far as it told */
    uint64_t since_ns;       /* WAITING, PAUSED: when this state began */
    enum quoit_ring_transit transit;
    bool is_refused_in_pause;
};

struct quoit_ring_inbound {
    uint64_t consumed_total;
    uint64_t told_total; /* what the neighbour was told of it */
    uint32_t in_use;     /* of the consumed: the last ones, which are still being read */
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

/* Whether a frame of this host may take a slot now. A refusal is remembered, so ask only when there is a frame. */
bool quoit_ring_may_inject(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns);

/* Whether a frame that passes through may take a slot now. If it may not only because transit rests, until when; else
 * 0. */
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
