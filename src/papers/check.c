/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariants of a lane between two calls of env or port, and its quiescence. */
#include "base/assert.h"
#include "papers/lane.h"

static void check_transfer(const struct quoit_lane *lane, enum quoit_side side)
{
    const struct quoit_papers_lane *papers = lane->state;
    const struct quoit_transfer *transfer = &papers->transfers[side];
    uint64_t read_count = quoit_scratchpad_response(lane, side, QUOIT_RESPONSE_READ);
    const struct quoit_scratchpads *set = &papers->shared->scratchpads[side][quoit_metadata_set(lane, side)];
    bool is_owner = atomic_load(&set->owner) == lane->index + 1;
    bool is_ready = transfer->state == QUOIT_TRANSFER_READY, is_offered = transfer->state == QUOIT_TRANSFER_OFFERED;
    uint64_t placed_count = 0;
    quoit_assert(transfer->count - read_count <= 1);
    if (transfer->state == QUOIT_TRANSFER_FREE)
        quoit_assert(read_count == transfer->count);
    if (transfer->state == QUOIT_TRANSFER_COPYING || (is_ready && !is_owner)) /* an owner may just have rung */
        quoit_assert(read_count < transfer->count);
    quoit_assert(is_owner || !is_offered);
    quoit_assert(!is_owner || is_ready || is_offered);
    for (uint32_t i = 0; i < QUOIT_BYPASS_COUNT; i++) {
        quoit_assert(transfer->placed_count[i] - quoit_scratchpad_response(lane, side, QUOIT_RESPONSE_BYPASS + i) <=
                     QUOIT_BYPASS_DEPTH);
        placed_count += transfer->placed_count[i];
    }
    quoit_assert(placed_count == transfer->count);
}

static void check_arrivals(const struct quoit_arrivals *arrivals)
{
    uint64_t filled_count = 0;
    for (uint32_t i = 0; i < QUOIT_BYPASS_COUNT; i++) {
        quoit_assert(arrivals->filled_count[i] - arrivals->emptied_count[i] <= QUOIT_BYPASS_DEPTH);
        filled_count += arrivals->filled_count[i];
    }
    quoit_assert(filled_count == arrivals->count);
}

void quoit_papers_check(const struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        check_transfer(lane, side);
        check_arrivals(&papers->arrivals[side]);
    }
    const struct quoit_reply_queue *replies = &papers->replies;
    quoit_assert(replies->tail - replies->head <= QUOIT_REPLIES_MAX);
}

static bool is_side_quiescent(const struct quoit_lane *lane, enum quoit_side side)
{
    const struct quoit_papers_lane *papers = lane->state;
    bool is_quiescent = papers->transfers[side].state == QUOIT_TRANSFER_FREE;
    for (uint32_t i = 0; i < QUOIT_BYPASS_COUNT; i++)
        is_quiescent =
            is_quiescent && papers->arrivals[side].filled_count[i] == papers->arrivals[side].emptied_count[i] &&
            quoit_scratchpad_response(lane, side, QUOIT_RESPONSE_BYPASS + i) == papers->transfers[side].placed_count[i];
    return is_quiescent;
}

bool quoit_papers_is_quiescent(const struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    return papers->free_count == papers->open_count && papers->replies.head == papers->replies.tail &&
           is_side_quiescent(lane, QUOIT_LEFT) && is_side_quiescent(lane, QUOIT_RIGHT);
}
