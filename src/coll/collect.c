/* SPDX-License-Identifier: BSD-3-Clause */
/* Collect and fcollect. All members arrive, and the one that works in the phase adds up the sizes. A small result is
 * assembled in the leader's workspace; over a network a host's few bytes travel with their number, so that one exchange
 * does it. A large one: on one host every member reads all sources; with several hosts
 * members write into their leader's dest, leaders exchange their hosts' parts, and members copy from their leader. */
#include "coll/team.h"

#include <string.h>

#define EAGER_BYTES                                                                                                    \
    256u /* of a host's part of an exchange of sizes: a message of so many takes as long as one of 8                   \
          */

struct collect {
    uint64_t offset_dest;
    uint64_t offset_source;
    size_t bytes; /* this member's bytes */
    bool is_equal;
};

static uint64_t bytes_of_local(const struct quoit_team_state *team, const struct collect *collect, uint32_t local)
{
    return collect->is_equal ? collect->bytes : quoit_team_flags_of(team, local)->posted[0];
}

/* Where the bytes of member `local` begin among those of the group. */
static uint64_t start_of_local(const struct quoit_team_state *team, const struct collect *collect, uint32_t local)
{
    uint64_t start = 0;
    for (uint32_t i = 0; i < local; i++)
        start += bytes_of_local(team, collect, i);
    return start;
}

static void copy_sources(const struct quoit_team_state *team, const struct collect *collect, char *to)
{
    for (uint32_t i = 0; i < team->local_count; i++) {
        uint64_t bytes = bytes_of_local(team, collect, i);
        if (bytes != 0) {
            uint64_t offset_source =
                collect->is_equal ? collect->offset_source : quoit_team_flags_of(team, i)->posted[1];
            quoit_team_copy(team, to, quoit_team_workspace(team, i) + offset_source, bytes);
        }
        to += bytes;
    }
}

/* Bytes of a host that have room behind their number in the exchange of the numbers, which they make no slower. */
static size_t eager_bytes(const struct quoit_team_state *team)
{
    size_t most = quoit_team_slice_bytes(team) < EAGER_BYTES ? quoit_team_slice_bytes(team) : EAGER_BYTES;
    return team->has_links ? 0 : most - sizeof(uint64_t);
}

static size_t partial_bytes(const struct quoit_team_state *team)
{
    return sizeof(uint64_t) + eager_bytes(team);
}

/* Tells the other leaders how many bytes the group has, and which, if they are few. */
static void exchange_sizes(struct quoit_team_state *team, const struct collect *collect, uint64_t group_bytes)
{
    memcpy(team->scratch, &group_bytes, sizeof group_bytes);
    if (group_bytes <= eager_bytes(team))
        copy_sources(team, collect, team->scratch + sizeof group_bytes);
    quoit_team_exchange_partials(team, team->scratch, partial_bytes(team));
}

/* Fills in the starts of all hosts. */
static void find_starts(struct quoit_team_state *team, const struct collect *collect)
{
    uint64_t group_bytes = start_of_local(team, collect, team->local_count);
    if (!collect->is_equal && team->host_count > 1)
        exchange_sizes(team, collect, group_bytes);
    team->starts[0] = 0;
    for (uint32_t host = 0; host < team->host_count; host++) {
        uint64_t bytes = group_bytes;
        if (collect->is_equal)
            bytes = team->hosts[host].member_count * collect->bytes;
        else if (team->host_count > 1)
            memcpy(&bytes, team->partials + host * partial_bytes(team), sizeof bytes);
        team->starts[host + 1] = team->starts[host] + bytes;
    }
}

/* The bytes of all hosts have come with their numbers. False: of some they have not. */
static bool take_eager(struct quoit_team_state *team, const struct collect *collect)
{
    if (collect->is_equal || team->host_count == 1)
        return false;
    for (uint32_t host = 0; host < team->host_count; host++)
        if (team->starts[host + 1] - team->starts[host] > eager_bytes(team))
            return false;
    char *gather = team->leader_workspace + quoit_team_gather(team);
    for (uint32_t host = 0; host < team->host_count; host++)
        memcpy(gather + team->starts[host], team->partials + host * partial_bytes(team) + sizeof(uint64_t),
               team->starts[host + 1] - team->starts[host]);
    return true;
}

/* All members of the group are inside. */
static void begin(struct quoit_team_state *team, void *arg)
{
    const struct collect *collect = arg;
    find_starts(team, collect);
    uint64_t base = team->starts[team->host], total = team->starts[team->host_count];
    team->flags->collect_base = base;
    team->flags->collect_total = total;
    if (total <= team->space.gather_bytes && take_eager(team, collect))
        return;
    if (total <= team->space.gather_bytes) {
        copy_sources(team, collect, team->leader_workspace + quoit_team_gather(team) + base);
        if (team->host_count > 1)
            quoit_team_exchange(team, quoit_team_gather(team));
    } else if (team->host_count > 1 && collect->is_equal) {
        quoit_team_before_exchange(team); /* of sizes that differ the exchange has done what this does */
    }
}

static void exchange_dests(struct quoit_team_state *team, void *arg)
{
    const struct collect *collect = arg;
    quoit_team_exchange(team, collect->offset_dest);
}

static void collect_large(struct quoit_team_state *team, struct collect *collect)
{
    char *dest = quoit_coll_address(team->fabric, collect->offset_dest);
    quoit_team_enter(team, team->call, team->flags->collect_total * team->local_count);
    if (team->host_count == 1) {
        copy_sources(team, collect, dest);
    } else {
        char *leader_dest = team->leader_workspace + collect->offset_dest;
        uint64_t start = team->flags->collect_base + start_of_local(team, collect, team->local);
        quoit_team_copy(team, leader_dest + start, quoit_coll_address(team->fabric, collect->offset_source),
                        collect->bytes);
        quoit_team_phase(team, exchange_dests, collect);
        if (dest != leader_dest)
            quoit_team_copy(team, dest, leader_dest, team->flags->collect_total);
    }
    quoit_team_phase(team, NULL, NULL); /* no member reads another's source or dest any more */
}

bool quoit_coll_collect(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                        bool is_equal, const char *call)
{
    struct collect collect = {offset_dest, offset_source, bytes, is_equal};
    if (is_equal && bytes == 0)
        return true;
    quoit_team_enter(team, call, 0);
    team->open_bytes = 0;
    team->gather_turn++;
    quoit_team_flags_of(team, team->local)->posted[0] = bytes;
    quoit_team_flags_of(team, team->local)->posted[1] = offset_source;
    quoit_team_phase(team, begin, &collect);
    if (team->flags->collect_total == 0)
        return true;
    if (offset_dest == QUOIT_COLL_NOWHERE)
        return false;
    if (team->flags->collect_total <= team->space.gather_bytes)
        memcpy(quoit_coll_address(team->fabric, offset_dest), team->leader_workspace + quoit_team_gather(team),
               team->flags->collect_total);
    else
        collect_large(team, &collect);
    return true;
}
