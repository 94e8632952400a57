/* SPDX-License-Identifier: BSD-3-Clause */
#include "papers/barrier.h"
#include "base/assert.h"

static const bool allowed[QUOIT_BARRIER_STATE_COUNT][QUOIT_BARRIER_STATE_COUNT] = {
    [QUOIT_BARRIER_IDLE][QUOIT_BARRIER_START_AWAITED] = true,
    [QUOIT_BARRIER_START_AWAITED][QUOIT_BARRIER_END_AWAITED] = true,
    [QUOIT_BARRIER_START_AWAITED][QUOIT_BARRIER_IDLE] = true, /* host 0 */
    [QUOIT_BARRIER_END_AWAITED][QUOIT_BARRIER_IDLE] = true,
};

bool quoit_papers_barrier_may_move(enum quoit_papers_barrier_state from, enum quoit_papers_barrier_state to)
{
    quoit_assert(from < QUOIT_BARRIER_STATE_COUNT);
    quoit_assert(to < QUOIT_BARRIER_STATE_COUNT);
    return allowed[from][to];
}

static void move_to(struct quoit_papers_barrier *barrier, enum quoit_papers_barrier_state state)
{
    quoit_assert(quoit_papers_barrier_may_move(barrier->state, state));
    barrier->state = state;
}

struct quoit_papers_barrier_move quoit_papers_barrier_step(struct quoit_papers_barrier *barrier, bool has_come,
                                                           uint32_t signals)
{
    struct quoit_papers_barrier_move move = {.is_move = false};
    bool is_first = barrier->host == 0, is_last = barrier->host + 1 == barrier->host_count;
    if (barrier->state == QUOIT_BARRIER_IDLE && has_come) {
        move.is_move = true;
        move.sent = is_first ? QUOIT_BARRIER_START : 0;
        move_to(barrier, QUOIT_BARRIER_START_AWAITED);
    } else if (barrier->state == QUOIT_BARRIER_START_AWAITED && (signals & QUOIT_BARRIER_START)) {
        move.is_move = true;
        move.is_released = is_first;
        move.taken = QUOIT_BARRIER_START;
        move.sent = is_first ? QUOIT_BARRIER_END : QUOIT_BARRIER_START;
        move_to(barrier, is_first ? QUOIT_BARRIER_IDLE : QUOIT_BARRIER_END_AWAITED);
    } else if (barrier->state == QUOIT_BARRIER_END_AWAITED && (signals & QUOIT_BARRIER_END)) {
        move.is_move = true;
        move.is_released = true;
        move.taken = QUOIT_BARRIER_END;
        move.sent = is_last ? 0 : QUOIT_BARRIER_END;
        move_to(barrier, QUOIT_BARRIER_IDLE);
    }
    return move;
}
