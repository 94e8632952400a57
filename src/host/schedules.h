/* SPDX-License-Identifier: BSD-3-Clause */
/* schedules.h - which schedule each collective takes between the hosts of a network, by size: a table in one word.
 *
 * Each collective has QUOIT_SCHEDULE_SIZES entries: up to 8K, 16K, ..., 2M bytes, and more. An entry is a schedule, or
 * RULE: what coll/choice.h counts. So the word 0 is the built-in rules alone. A table is measured by `quoit tune` for
 * one set of hosts (local/schedules_file.h) and then holds for teams on all of them; or one schedule of a collective is
 * forced for all sizes and teams (--schedules). The bytes are those of a broadcast or reduction, and of an exchange
 * those of all blocks together.
 *
 * All PEs of a job must have the same word, or they would wait for each other's messages in vain: it is in the job
 * config.
 *
 * Threads: any. Errors: none, but for a text, which is described to the user.
 */
#ifndef QUOIT_HOST_SCHEDULES_H
#define QUOIT_HOST_SCHEDULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quoit_collective {
    QUOIT_COLLECTIVE_BROADCAST,
    QUOIT_COLLECTIVE_REDUCE,
    QUOIT_COLLECTIVE_EXCHANGE, /* of a block of each host: barriers, collect, small reductions */
    QUOIT_COLLECTIVE_COUNT
};

enum quoit_schedule {
    QUOIT_SCHEDULE_RULE,
    QUOIT_SCHEDULE_AROUND,  /* from each host to its neighbours */
    QUOIT_SCHEDULE_LOG,     /* log2 of the hosts' rounds: a tree, halving, a dissemination */
    QUOIT_SCHEDULE_AT_ONCE, /* a reduction whose sources all hosts exchange, as far as there is room for them */
    QUOIT_SCHEDULE_COUNT
};

enum quoit_schedules_source { QUOIT_SCHEDULES_BUILT_IN, QUOIT_SCHEDULES_TUNED, QUOIT_SCHEDULES_FORCED };

#define QUOIT_SCHEDULE_SIZES          10u
#define QUOIT_SCHEDULES_PROBLEM_BYTES 160

/* The largest size of an entry; the last one also serves everything larger. */
static inline uint64_t quoit_schedule_size(uint32_t index)
{
    return (uint64_t)8192 << index;
}

static inline unsigned quoit_schedules_shift(enum quoit_collective collective, uint32_t index)
{
    return 2 * ((unsigned)collective * QUOIT_SCHEDULE_SIZES + index);
}
static inline enum quoit_schedules_source quoit_schedules_source(uint64_t schedules)
{
    return (enum quoit_schedules_source)(schedules >> quoit_schedules_shift(QUOIT_COLLECTIVE_COUNT, 0));
}
static inline enum quoit_schedule quoit_schedules_choose(uint64_t schedules, enum quoit_collective collective,
                                                         uint64_t bytes)
{
    uint32_t index = 0;
    while (index + 1 < QUOIT_SCHEDULE_SIZES && bytes > quoit_schedule_size(index))
        index++;
    return (enum quoit_schedule)(schedules >> quoit_schedules_shift(collective, index) & 3);
}

/* Another entry, of a word that has RULE there; another source, of one that is built in. */
static inline uint64_t quoit_schedules_with(uint64_t schedules, enum quoit_collective collective, uint32_t index,
                                            enum quoit_schedule schedule)
{
    return schedules | (uint64_t)schedule << quoit_schedules_shift(collective, index);
}
static inline uint64_t quoit_schedules_from(uint64_t schedules, enum quoit_schedules_source source)
{
    return schedules | (uint64_t)source << quoit_schedules_shift(QUOIT_COLLECTIVE_COUNT, 0);
}

const char *quoit_collective_name(enum quoit_collective collective);
/* NULL: the collective has no such schedule. */
const char *quoit_schedule_name(enum quoit_collective collective, enum quoit_schedule schedule);
/* QUOIT_SCHEDULE_COUNT: the collective has none of that name. */
enum quoit_schedule quoit_schedule_named(enum quoit_collective collective, const char *name, size_t length);

/* The word for --schedules: "rule", or "COLLECTIVE:SCHEDULE", several with commas. False, with the problem described,
 * if the text is nothing of these. */
bool quoit_schedules_force(const char *text, uint64_t *schedules_out, char problem_out[QUOIT_SCHEDULES_PROBLEM_BYTES]);

#endif
