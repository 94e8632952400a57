/* SPDX-License-Identifier: BSD-3-Clause */
/* choice.h - which schedule a collective takes between hosts: what a table says (host/schedules.h), or, where it says
 * nothing, what the rules count. Pure. On links the table does not hold: there the rules know what is near.
 *
 * Every member of a team finds the same: all have the same table, and call with the same sizes.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_COLL_CHOICE_H
#define QUOIT_COLL_CHOICE_H

#include "host/schedules.h"

/* Between whom. */
struct quoit_choice {
    uint32_t host_count; /* 1: nothing is chosen */
    bool has_links;
    uint64_t schedules; /* the table, if it is for these hosts; else 0 */
};

/* The table of a job for a team: one that was measured is for the team on all hosts. */
uint64_t quoit_choice_table(uint64_t schedules, uint32_t job_host_count, uint32_t team_host_count);

/* Whether a large broadcast goes to all hosts along a tree; else round them, half of it in each direction. */
bool quoit_choice_takes_tree(const struct quoit_choice *choice, uint64_t bytes);

/* Whether an exchange of `bytes` in all disseminates; else it goes by rounds with both neighbours. */
bool quoit_choice_disseminates(const struct quoit_choice *choice, uint64_t bytes);

/* A reduction of several hosts, and the room for it: bytes that go at once, as a whole and in one slice; elements of a
 * piece round the hosts, and of one that is halved. 0 elements: they are too large for that. */
struct quoit_reduction {
    uint64_t bytes;
    uint64_t element_bytes;
    uint64_t at_once_bytes;
    uint64_t slice_bytes;
    uint64_t around_count;
    uint64_t halving_count;
};
/* AROUND, LOG or AT_ONCE. */
enum quoit_schedule quoit_choice_reduce(const struct quoit_choice *choice, const struct quoit_reduction *reduction);

#endif
