/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/state.h"
#include "base/assert.h"
#include "base/observer.h"

#define MOVES(to) (1u << QUOIT_LINK_STATE_##to)

static const struct {
    const char *name;
    uint32_t moves; /* a bit for each state that may follow */
} states[QUOIT_LINK_STATE_COUNT] = {
    [QUOIT_LINK_STATE_IDLE] = {"idle", MOVES(ABSENT)},
    [QUOIT_LINK_STATE_ABSENT] = {"absent", MOVES(PROPOSED) | MOVES(HELD) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_HELD] = {"held down", MOVES(ABSENT) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_PROPOSED] = {"proposed", MOVES(CLEAN) | MOVES(ABSENT) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_CLEAN] = {"clean", MOVES(UP) | MOVES(ABSENT) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_UP] = {"up", MOVES(DRAINING) | MOVES(LOST) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_DRAINING] = {"draining", MOVES(ABSENT) | MOVES(IDLE)},
    [QUOIT_LINK_STATE_LOST] = {"lost", MOVES(IDLE)},
};

const char *quoit_link_state_name(enum quoit_link_state state)
{
    return state < QUOIT_LINK_STATE_COUNT ? states[state].name : "unknown"; /* of a record that others may write */
}

bool quoit_link_may_move(enum quoit_link_state from, enum quoit_link_state to)
{
    quoit_assert(from < QUOIT_LINK_STATE_COUNT);
    quoit_assert(to < QUOIT_LINK_STATE_COUNT);
    return (states[from].moves & (1u << to)) != 0;
}

static void count_outage(struct quoit_link_record *record, enum quoit_link_state to, uint64_t now_ns)
{
    uint64_t down_since_ns = atomic_load_explicit(&record->down_since_ns, memory_order_relaxed);
    if (to == QUOIT_LINK_STATE_DRAINING || to == QUOIT_LINK_STATE_LOST) {
        atomic_fetch_add_explicit(&record->outage_count, 1, memory_order_relaxed);
        atomic_store_explicit(&record->down_since_ns, now_ns, memory_order_relaxed);
    } else if (to == QUOIT_LINK_STATE_UP && down_since_ns != 0) {
        atomic_fetch_add_explicit(&record->outage_ns, now_ns - down_since_ns, memory_order_relaxed);
        atomic_store_explicit(&record->down_since_ns, 0, memory_order_relaxed);
    }
}

void quoit_link_move(struct quoit_link_record *record, enum quoit_link_state to, uint64_t now_ns)
{
    quoit_assert(quoit_link_may_move(quoit_link_state_of(record), to));
    count_outage(record, to, now_ns);
    atomic_store_explicit(&record->since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&record->state, to, memory_order_release);
    quoit_observe(link_moved, record, to);
}
