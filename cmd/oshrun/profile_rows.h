/* SPDX-License-Identifier: BSD-3-Clause */
/* profile_rows.h - the records of all PEs as one table, and its forms: a summary, JSON. */
#ifndef OSHRUN_PROFILE_ROWS_H
#define OSHRUN_PROFILE_ROWS_H

#include <stdio.h>

#include "boot/place.h"
#include "job.h"
#include "trace/profile.h"

/* Of one PE in a routine at a line. */
struct profile_cell {
    uint64_t count;
    uint64_t bytes;
    uint64_t timed_count; /* calls that were timed; the others have their time by estimate */
    uint64_t ns;
    uint64_t wait_ns;
    uint64_t most_ns;
    uint64_t last_count; /* collectives to which it came last, of those compared */
    uint64_t held_ns;    /* for how long the others, together, waited for it there */
};

/* A routine, and a line of a program that calls it. */
struct profile_row {
    const char *call;
    const char *object; /* the file that has the call; "": unknown */
    uint64_t address;   /* behind the call, in that file; of several one */
    struct quoit_place place;
    struct profile_cell all;    /* sums; the longest of most_ns */
    uint64_t compared_count;    /* collectives of which it is known when each PE came */
    struct profile_cell *cells; /* [pe_count] */
};

struct profile_table {
    const struct job *job;
    uint32_t pe_count;
    struct quoit_profile **pes; /* [pe_count]; NULL: nothing is known of it */
    struct profile_row *rows;   /* by time, the longest first */
    uint32_t row_count;
    struct profile_cell *cells;
    struct profile_cell *sums; /* [pe_count], over all rows, and what has none */
    int64_t *clock_ns;         /* [host_count], of its machine less that of host 0 */
    uint64_t begin_ns;         /* the first PE's, by the clock of host 0 */
    uint64_t end_ns;           /* the last one's end */
    uint64_t run_ns;           /* sum over the PEs, from shmem_init to the last call */
    uint32_t meeting_step;     /* each n-th collective of a group was compared */
};

/* What the PEs recorded: all but the collectives (profile_meetings.h), the span of time, and the order of the rows.
 * Each site of a record has the index of its row in `unused` then. False: out of memory. */
bool profile_make(struct profile_table *table, const struct job *job);
/* Those two, once the clocks are compared. */
void profile_order(struct profile_table *table);
void profile_free(struct profile_table *table);

/* When the PE began and ended, by the clock of host 0. */
uint64_t profile_begin_ns(const struct profile_table *table, uint32_t pe);
uint64_t profile_run_ns(const struct profile_table *table, uint32_t pe);

/* "heat.c:31"; "in main"; "": unknown. */
const char *profile_line(const struct profile_row *row, char text[2 * QUOIT_PLACE_TEXT_BYTES]);

/* At most 20 lines. */
void profile_print(const struct profile_table *table, FILE *out);
/* docs/profile.md describes it. */
void profile_write_json(const struct profile_table *table, FILE *out);

#endif
