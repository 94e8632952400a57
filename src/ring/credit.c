/* SPDX-License-Identifier: BSD-3-Clause */
/* credit.c - counting slots. */
#include "ring/credit.h"

#include "base/assert.h"

/* Allowed moves of `transit`, from row to column. */
static const bool transit_moves[QUOIT_RING_TRANSIT_COUNT][QUOIT_RING_TRANSIT_COUNT] = {
    [QUOIT_RING_OPEN] = {[QUOIT_RING_WAITING] = true},
    [QUOIT_RING_WAITING] = {[QUOIT_RING_OPEN] = true, [QUOIT_RING_PAUSED] = true},
    [QUOIT_RING_PAUSED] = {[QUOIT_RING_OPEN] = true, [QUOIT_RING_WAITING] = true},
};

static void move_transit(struct quoit_ring_outbound *out, enum quoit_ring_transit to, uint64_t now_ns)
{
    quoit_assert(transit_moves[out->transit][to]);
    out->transit = to;
    out->since_ns = now_ns;
    out->is_refused_in_pause = false;
}

void quoit_ring_set_turn(struct quoit_ring_outbound *out, uint32_t turn)
{
    out->turn = turn;
    out->ahead_count = turn;
    out->is_transit_waiting = false;
    out->transit = QUOIT_RING_OPEN;
    out->is_refused_in_pause = false;
}

/* The next injection's turn comes after as many relayed frames. Having gone before its turn counts against it, once. */
static void end_turn(struct quoit_ring_outbound *out)
{
    uint32_t left_count = out->ahead_count < out->turn ? out->ahead_count : out->turn;
    out->ahead_count = left_count + out->turn;
}

bool quoit_ring_may_inject(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns,
                           uint64_t *retry_at_ns_out)
{
    bool has_room = quoit_ring_free_slots(out, config->slot_count) >= 2;
    *retry_at_ns_out = 0;
    if (has_room && (!out->is_transit_waiting || out->ahead_count == 0)) {
        if (out->transit != QUOIT_RING_OPEN)
            move_transit(out, QUOIT_RING_OPEN, now_ns);
        end_turn(out);
        return true;
    }
    if (has_room)
        *retry_at_ns_out = now_ns;
    if (out->transit == QUOIT_RING_OPEN)
        move_transit(out, QUOIT_RING_WAITING, now_ns);
    else if (out->transit == QUOIT_RING_PAUSED)
        out->is_refused_in_pause = true;
    return false;
}

static bool is_pause_due(const struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns)
{
    if (out->transit != QUOIT_RING_WAITING)
        return false;
    if (out->turn == 0)
        return now_ns - out->since_ns >= config->transit_pause_after_ns;
    /* with one free slot injection waits for a second, which transit would take again and again */
    return out->ahead_count == 0 && quoit_ring_free_slots(out, config->slot_count) > 0;
}

/* How long transit must yield to an injection that may come; 0: not at all. */
static uint64_t pause_until(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns)
{
    if (is_pause_due(out, config, now_ns))
        move_transit(out, QUOIT_RING_PAUSED, now_ns);
    if (out->transit == QUOIT_RING_PAUSED) {
        if (now_ns - out->since_ns < config->transit_pause_ns)
            return out->since_ns + config->transit_pause_ns;
        move_transit(out, out->is_refused_in_pause ? QUOIT_RING_WAITING : QUOIT_RING_OPEN, now_ns);
    }
    return 0;
}

bool quoit_ring_may_transit(struct quoit_ring_outbound *out, const struct quoit_ring_config *config, uint64_t now_ns,
                            uint64_t *retry_at_ns_out)
{
    bool is_full = quoit_ring_free_slots(out, config->slot_count) == 0;
    uint64_t until_ns = pause_until(out, config, now_ns);
    *retry_at_ns_out = is_full ? 0 : until_ns; /* a full queue waits for a credit, not for the passage of time */
    out->is_transit_waiting = out->turn != 0 && (is_full || until_ns != 0);
    if (is_full || until_ns != 0)
        return false;
    if (out->ahead_count > 0)
        out->ahead_count--;
    return true;
}

void quoit_ring_take_slot(struct quoit_ring_outbound *out, const struct quoit_ring_config *config)
{
    quoit_assert(quoit_ring_free_slots(out, config->slot_count) >= 1);
    out->sent_total++;
}

enum quoit_status quoit_ring_take_credit(struct quoit_ring_outbound *out, uint64_t consumed_total)
{
    if (consumed_total < out->credited_total || consumed_total > out->sent_total)
        return QUOIT_INVALID;
    out->credited_total = consumed_total;
    return QUOIT_OK;
}

bool quoit_ring_is_credit_due(const struct quoit_ring_inbound *in, uint32_t slot_count, bool is_idle)
{
    uint64_t unadvertised = quoit_ring_free_total(in) - in->advertised_total;
    uint32_t quarter = slot_count / 4 > 0 ? slot_count / 4 : 1;
    return unadvertised >= (is_idle ? 1 : quarter);
}

void quoit_ring_check_outbound(const struct quoit_ring_outbound *out, uint32_t slot_count)
{
    quoit_assert(out->credited_total <= out->sent_total);
    quoit_assert(out->sent_total - out->credited_total <= slot_count);
    quoit_assert(out->transit < QUOIT_RING_TRANSIT_COUNT);
    quoit_assert(out->transit == QUOIT_RING_PAUSED || !out->is_refused_in_pause);
    quoit_assert(out->ahead_count <= 2 * out->turn);
}

void quoit_ring_check_inbound(const struct quoit_ring_inbound *in, uint32_t slot_count)
{
    quoit_assert(in->advertised_total <= in->consumed_total);
    quoit_assert(in->in_use <= in->consumed_total - in->advertised_total);
    quoit_assert(in->consumed_total - in->advertised_total <= slot_count);
}
