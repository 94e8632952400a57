/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/still.h"

/* Of the rounds, after which a thread may have been preempted. */
#define SLOW_SHARE 4

uint64_t quoit_still_look(struct quoit_still *still, const struct quoit_pe_shared *shared)
{
    const struct quoit_still now = {
        .round_count = atomic_load_explicit(&shared->polls.round_count, memory_order_relaxed),
        .slow_count = atomic_load_explicit(&shared->polls.slow_count, memory_order_relaxed),
        .met_count = atomic_load_explicit(&shared->polls.met_count, memory_order_relaxed),
    };
    uint64_t rounds = now.round_count - still->round_count, slow = now.slow_count - still->slow_count;
    bool is_waiting = __atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED);
    *still = now;
    still->is_polling = rounds > 0 && slow <= rounds / SLOW_SHARE;
    if (still->is_polling)
        return 2 * now.met_count + 1;
    return is_waiting ? 2 * (atomic_load(&shared->waiting_since_ns) + 1) : 0;
}
