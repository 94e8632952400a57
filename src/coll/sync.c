/* SPDX-License-Identifier: BSD-3-Clause */
/* Sync, and agreement on a word. */
#include "coll/team.h"

void quoit_coll_sync(struct quoit_team_state *team, const char *call)
{
    quoit_team_enter(team, call, 0);
    team->open_bytes = 0;
    quoit_team_phase(team, quoit_team_sync_hosts, NULL);
}

static void combine_or(void *into, const void *from, size_t count)
{
    uint64_t *all = into;
    const uint64_t *other = from;
    for (size_t i = 0; i < count; i++)
        all[i] |= other[i];
}

static void combine_largest(void *into, const void *from, size_t count)
{
    uint64_t *largest = into;
    const uint64_t *other = from;
    for (size_t i = 0; i < count; i++)
        largest[i] = largest[i] < other[i] ? other[i] : largest[i];
}

/* The posted word is symmetric, so it is reduced in place. */
static uint64_t agree(struct quoit_team_state *team, uint64_t value, quoit_combine *combine, const char *call)
{
    uint64_t offset = team->space.start + offsetof(struct quoit_team_flags, posted);
    uint64_t *posted = quoit_coll_address(team->fabric, offset);
    posted[0] = value;
    quoit_coll_reduce(team, offset, offset, 1, sizeof value, combine, call);
    return posted[0];
}

uint64_t quoit_coll_agree(struct quoit_team_state *team, uint64_t value, const char *call)
{
    return agree(team, value, combine_or, call);
}

uint64_t quoit_coll_largest(struct quoit_team_state *team, uint64_t value, const char *call)
{
    return agree(team, value, combine_largest, call);
}
