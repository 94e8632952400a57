/* SPDX-License-Identifier: BSD-3-Clause */
/* habit.h - whether an acquire updates a copy or drops it, learned from the program's use of the page. Pure.
 *
 * An update costs a copy of the page; a copy that is dropped and used again costs a fault too, about ten times as much.
 * A page that was used after two notices in a row is updated at the next LEAST ones. Then it is dropped once, which
 * shows whether it is still in use. If so, twice as many updates follow, up to MOST; if not, it starts anew. */
#ifndef QUOIT_DSM_HABIT_H
#define QUOIT_DSM_HABIT_H

#include <stdbool.h>
#include <stdint.h>

#define QUOIT_DSM_HABIT_LEAST 4
#define QUOIT_DSM_HABIT_MOST  64

/* Of one page on one PE; all zero at first. */
struct quoit_dsm_habit {
    uint32_t dropped_at; /* the acquire that dropped the copy last */
    uint8_t updates;     /* still to be made before the next drop */
    uint8_t next_updates;
};

/* Of an open copy that is noticed: whether it is to be updated. was_used: since it was fetched. */
static inline bool quoit_dsm_habit_updates(const struct quoit_dsm_habit *habit, bool was_used)
{
    return was_used && habit->updates > 0;
}

/* What happened at a notice: the copy will be updated, or was dropped, or there was none. `acquire` numbers the acquire
 * that applies the notice; several notices of a page may belong to one acquire, of which the first update counts. */
void quoit_dsm_habit_updated(struct quoit_dsm_habit *habit);
void quoit_dsm_habit_dropped(struct quoit_dsm_habit *habit, bool was_used, uint32_t acquire);
void quoit_dsm_habit_absent(struct quoit_dsm_habit *habit, uint32_t acquire);

#endif
