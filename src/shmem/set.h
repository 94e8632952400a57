/* SPDX-License-Identifier: BSD-3-Clause */
/* set.h - the team behind an active set, so that collectives of active sets are those of teams.
 *
 * On their first call the members of a set synchronise over pSync and agree on a piece of the workspace that none of
 * them uses for another set; each caches the team for later calls, which do not use pSync. A PE that is in more sets
 * than there are such pieces shares the last piece among the others: their teams are made for one call and deleted
 * after it.
 *
 * A member joins once the first one is in its call with the same set. So a program that uses one pSync for several
 * sets, which the specification forbids and --check reports, does not mix them up: their first members, one or several,
 * take the sets in the order of their own calls.
 *
 * Threads: one thread of a PE at a time is in its first call with any set. Errors: lack of memory ends the job.
 */
#ifndef QUOIT_SHMEM_SET_H
#define QUOIT_SHMEM_SET_H

#include "shmem/job.h"

/* Words of pSync. Those of the first member: JOIN counts the members that have come, OPEN says for which set. */
#define QUOIT_SET_RESPONSE_WORD 0
#define QUOIT_SET_JOIN_WORD     1
#define QUOIT_SET_OPEN_WORD     2
#define QUOIT_SET_WORDS         3

struct quoit_set {
    struct quoit_team_range range;
    uint32_t rank;
    uint64_t *sync;       /* this PE's pSync */
    uint64_t offset_sync; /* segment offset */
    const char *call;
    struct quoit_team_state *team; /* while inside */
    bool is_passing;               /* the team exists for this call only */
};

/* Collective over the set: fills in `team`. Waits for the others only if the team must be made. */
void quoit_set_enter(struct quoit_set *set);
void quoit_set_leave(struct quoit_set *set);
/* Part of finalize: completes what the cached teams have sent, while other hosts still acknowledge. */
void quoit_sets_quiet(void);
/* Releases the cached teams. At finalize, after a sync of the world. */
void quoit_sets_end(void);

#endif
