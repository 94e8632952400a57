/* SPDX-License-Identifier: BSD-3-Clause */
/* All to all: once all members are inside, each puts its blocks directly into the other members' dests. Over a network
 * small sources travel whole to all hosts instead, in one exchange between the leaders. */
#include "coll/team.h"

#include <string.h>

#define LENT_BYTES 256u
#define LINE_BYTES 64u

static void push(struct quoit_team_state *team, const struct quoit_alltoalls *blocks, uint32_t rank)
{
    ptrdiff_t element_bytes = (ptrdiff_t)blocks->element_bytes;
    struct quoit_strided strided = {
        .offset = blocks->offset_dest + team->rank * blocks->count * (size_t)(blocks->dest_stride * element_bytes),
        .remote_stride = blocks->dest_stride * element_bytes,
        .private_stride = blocks->source_stride * element_bytes,
        .count = blocks->count,
        .element_bytes = blocks->element_bytes,
    };
    const char *from = quoit_coll_address(team->fabric, blocks->offset_source);
    from += (ptrdiff_t)(rank * blocks->count) * strided.private_stride;
    uint32_t pe = quoit_team_pe_of(team, rank);
    bool is_whole = strided.remote_stride == element_bytes && strided.private_stride == element_bytes;
    char *mapped = team->fabric->peers[pe].segment;
    if (is_whole && mapped)
        quoit_team_copy(team, mapped + strided.offset, from, blocks->count * blocks->element_bytes);
    else if (is_whole)
        quoit_fabric_put_nbi(team->fabric, &team->context, strided.offset, from, blocks->count * blocks->element_bytes,
                             pe);
    else
        quoit_fabric_iput(team->fabric, &team->context, &strided, from, pe);
}

/* Each member starts with its own block, so that they do not all target the same member at once. */
void quoit_coll_alltoalls(struct quoit_team_state *team, const struct quoit_alltoalls *blocks, const char *call)
{
    if (blocks->count == 0)
        return;
    quoit_team_enter(team, call, blocks->count * blocks->element_bytes * team->range.size * team->local_count);
    team->open_bytes = 0;
    quoit_team_phase(team, quoit_team_sync_hosts, NULL);
    for (uint32_t i = 0; i < team->range.size; i++)
        push(team, blocks, (team->rank + i) % team->range.size);
    quoit_fabric_quiet(team->fabric, &team->context);
    quoit_team_phase(team, quoit_team_sync_hosts, NULL);
}

/* Bytes that a member lends, in whole cache lines, so no other member writes to them. */
static size_t lent_bytes(const struct quoit_team_state *team, size_t bytes)
{
    return (team->range.size * bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Copies this member's blocks out of what all lend, or gave away. Single words are copied inline: they cost no more
 * than the call of memcpy. */
static void take_lent(const struct quoit_team_state *team, char *dest, const char *lent, size_t stride, size_t bytes)
{
    lent += team->rank * bytes;
    for (uint32_t rank = 0; rank < team->range.size; rank++)
        if (bytes == sizeof(uint64_t))
            memcpy(dest + rank * bytes, lent + rank * stride, sizeof(uint64_t));
        else
            memcpy(dest + rank * bytes, lent + rank * stride, bytes);
}

/* Everything is in the leader's workspace: a member that was just scheduled in finds few of its pages in the TLB. */
static void alltoall_lent(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                          const char *call)
{
    quoit_team_enter(team, call, 0);
    team->open_bytes = 0;
    team->gather_turn++;
    char *lent = quoit_team_lent(team);
    size_t stride = lent_bytes(team, bytes);
    memcpy(lent + team->rank * stride, quoit_coll_address(team->fabric, offset_source), team->range.size * bytes);
    quoit_team_phase(team, NULL, NULL);
    take_lent(team, quoit_coll_address(team->fabric, offset_dest), lent, stride, bytes);
}

/* Bytes of a member's source, all blocks. */
static uint64_t source_bytes(const struct quoit_team_state *team, size_t bytes)
{
    return team->range.size * (uint64_t)bytes;
}

struct gathered {
    uint64_t offset_source;
    uint64_t bytes; /* of each member's source */
};

static void gather_sources(struct quoit_team_state *team, void *arg)
{
    const struct gathered *gathered = arg;
    for (uint32_t host = 0; host < team->host_count; host++)
        team->starts[host] = team->hosts[host].first_rank * gathered->bytes;
    team->starts[team->host_count] = team->range.size * gathered->bytes;
    char *to = team->leader_workspace + quoit_team_gather(team) + team->starts[team->host];
    for (uint32_t i = 0; i < team->local_count; i++, to += gathered->bytes)
        memcpy(to, quoit_team_workspace(team, i) + gathered->offset_source, gathered->bytes);
    quoit_team_exchange(team, quoit_team_gather(team));
}

/* One meeting of the hosts in place of two and the puts between them. Members take their blocks from their leader. */
static void alltoall_gathered(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                              const char *call)
{
    struct gathered gathered = {offset_source, source_bytes(team, bytes)};
    quoit_team_enter(team, call, 0);
    team->open_bytes = 0;
    team->gather_turn++;
    quoit_team_phase(team, gather_sources, &gathered);
    take_lent(team, quoit_coll_address(team->fabric, offset_dest), team->leader_workspace + quoit_team_gather(team),
              gathered.bytes, bytes);
}

/* On one host members lend each other a copy of a small source, so no member waits for its readers. For larger blocks
 * the freshly written lines of the copy cost more than that wait. */
void quoit_coll_alltoall(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t bytes,
                         const char *call)
{
    if (bytes == 0)
        return;
    if (team->host_count == 1 && bytes <= LENT_BYTES &&
        team->range.size * lent_bytes(team, bytes) <= quoit_team_lent_bytes(team)) {
        alltoall_lent(team, offset_dest, offset_source, bytes, call);
        return;
    }
    if (team->host_count > 1 && !team->has_links &&
        team->range.size * source_bytes(team, bytes) <= team->space.gather_bytes) {
        alltoall_gathered(team, offset_dest, offset_source, bytes, call);
        return;
    }
    struct quoit_alltoalls blocks = {.offset_dest = offset_dest,
                                     .offset_source = offset_source,
                                     .dest_stride = 1,
                                     .source_stride = 1,
                                     .count = bytes,
                                     .element_bytes = 1};
    quoit_coll_alltoalls(team, &blocks, call);
}
