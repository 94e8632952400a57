/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of a lane whenever it is between two calls of env or port. For the simulator and tests. */
#include "base/assert.h"
#include "proxy/scratchpad_lane.h"

static void check_transfer(const struct quoit_lane *lane, enum quoit_side side)
{
    const struct quoit_scratchpad_lane *own = lane->scratchpad;
    const struct quoit_transfer *transfer = &own->transfers[side];
    uint64_t read_count = quoit_scratchpad_answered(lane, side, QUOIT_ANSWER_READ),
             freed_count = quoit_scratchpad_answered(lane, side, QUOIT_ANSWER_FREED);
    const struct quoit_scratchpads *set = &own->proxy->scratchpads[side][lane->index % QUOIT_METADATA_SETS];
    bool is_owner = atomic_load(&set->owner) == lane->index + 1;
    bool is_ready = transfer->state == QUOIT_TRANSFER_READY, is_offered = transfer->state == QUOIT_TRANSFER_OFFERED;
    uint64_t placed_count = 0;
    quoit_assert(freed_count <= read_count);
    quoit_assert(read_count <= transfer->count);
    quoit_assert(transfer->count - freed_count <= 1);
    if (transfer->state == QUOIT_TRANSFER_FREE)
        quoit_assert(freed_count == transfer->count);
    if (transfer->state == QUOIT_TRANSFER_COPYING || (is_ready && !is_owner)) /* an owner may just have rung */
        quoit_assert(read_count < transfer->count);
    quoit_assert(is_owner || !is_offered);
    quoit_assert(!is_owner || is_ready || is_offered);
    for (uint32_t i = 0; i < QUOIT_BYPASS_COUNT; i++) {
        quoit_assert(transfer->placed_count[i] - quoit_scratchpad_answered(lane, side, QUOIT_ANSWER_BYPASS + i) <=
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

void quoit_lane_check_invariants(const struct quoit_lane *lane)
{
    if (lane->ring) {
        quoit_ring_check_invariants(lane->ring);
        return;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        check_transfer(lane, side);
        check_arrivals(&lane->scratchpad->arrivals[side]);
    }
    const struct quoit_reply_queue *replies = &lane->scratchpad->replies;
    quoit_assert(replies->tail - replies->head <= QUOIT_REPLIES_MAX);
}

static bool side_rests(const struct quoit_lane *lane, enum quoit_side side)
{
    const struct quoit_scratchpad_lane *own = lane->scratchpad;
    bool rests = own->transfers[side].state == QUOIT_TRANSFER_FREE && !own->arrivals[side].owes_bit;
    for (uint32_t i = 0; i < QUOIT_BYPASS_COUNT; i++)
        rests = rests && own->arrivals[side].filled_count[i] == own->arrivals[side].emptied_count[i] &&
                quoit_scratchpad_answered(lane, side, QUOIT_ANSWER_BYPASS + i) == own->transfers[side].placed_count[i];
    return rests;
}

bool quoit_lane_is_quiescent(const struct quoit_lane *lane)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    if (lane->barrier.state != QUOIT_BARRIER_IDLE ||
        atomic_load(&header->barrier_arrived_count) != atomic_load(&header->barrier_released_count))
        return false;
    if (lane->ring)
        return quoit_ring_is_quiescent(lane->ring);
    for (uint32_t i = 0; i < lane->layout->local_count * QUOIT_REQUESTS_A_CHANNEL; i++)
        if (lane->scratchpad->open[i].is_open)
            return false;
    return lane->scratchpad->replies.head == lane->scratchpad->replies.tail && side_rests(lane, QUOIT_LEFT) &&
           side_rests(lane, QUOIT_RIGHT);
}
