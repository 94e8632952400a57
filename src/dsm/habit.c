/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/habit.h"

#include "base/assert.h"

static void start_anew(struct quoit_dsm_habit *habit)
{
    habit->updates = habit->next_updates = 0;
}

void quoit_dsm_habit_updated(struct quoit_dsm_habit *habit)
{
    quoit_assert(habit->updates > 0);
    habit->updates--;
}

void quoit_dsm_habit_dropped(struct quoit_dsm_habit *habit, bool was_used, uint32_t acquire)
{
    habit->dropped_at = acquire;
    if (!was_used) {
        start_anew(habit);
        return;
    }
    habit->updates = habit->next_updates;
    habit->next_updates =
        habit->next_updates < QUOIT_DSM_HABIT_LEAST ? QUOIT_DSM_HABIT_LEAST : (uint8_t)(2 * habit->next_updates);
    if (habit->next_updates > QUOIT_DSM_HABIT_MOST)
        habit->next_updates = QUOIT_DSM_HABIT_MOST;
}

/* Another notice of the acquire that dropped the copy says nothing: the program has not run in between. */
void quoit_dsm_habit_absent(struct quoit_dsm_habit *habit, uint32_t acquire)
{
    if (habit->dropped_at != acquire)
        start_anew(habit);
}
