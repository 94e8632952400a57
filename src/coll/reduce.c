/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions and scans. Small reduction: one member of each host combines the sources of its group in order of rank;
 * the leaders exchange the results, and each combines them in order of host. Large, on one host: each member combines a
 * part of all sources and writes it into all dests. Large, on several hosts: into the leader's dest; the leaders' dests
 * are combined around the ring in chunks, in both directions at once, or, over a network, by halving (choice.h says
 * when); members copy from their leader. Every value is computed once and copied to all, so all have the same bits. */
#include "base/assert.h"
#include "coll/team.h"

#include <string.h>

struct reduce {
    uint64_t offset_dest;
    uint64_t offset_source;
    size_t count;
    size_t element_bytes;
    quoit_combine *combine;
    uint64_t
        offset_own; /* between hosts: where the elements of this one are at first, the leader's dest or its source */
};

/* Combines elements from..from+count of the sources of the first member_count members of the group, in order. */
static void combine_group(const struct quoit_team_state *team, const struct reduce *reduce, void *into, size_t from,
                          size_t count, uint32_t member_count)
{
    uint64_t offset = reduce->offset_source + from * reduce->element_bytes;
    memcpy(into, quoit_team_workspace(team, 0) + offset, count * reduce->element_bytes);
    for (uint32_t i = 1; i < member_count; i++)
        reduce->combine(into, quoit_team_workspace(team, i) + offset, count);
}

/* Combines the blocks of the first host_count hosts in team->partials, in order. */
static void combine_partials(const struct quoit_team_state *team, const struct reduce *reduce, void *into, size_t count,
                             uint32_t host_count)
{
    size_t bytes = count * reduce->element_bytes;
    memcpy(into, team->partials, bytes);
    for (uint32_t host = 1; host < host_count; host++)
        reduce->combine(into, team->partials + host * bytes, count);
}

static void reduce_at_once(struct quoit_team_state *team, void *arg)
{
    const struct reduce *reduce = arg;
    char *result = team->leader_workspace + quoit_team_gather(team);
    combine_group(team, reduce, result, 0, reduce->count, team->local_count);
    if (team->host_count == 1)
        return;
    quoit_team_exchange_partials(team, result, reduce->count * reduce->element_bytes);
    combine_partials(team, reduce, result, reduce->count, team->host_count);
}

/* Combines this member's part, block by block through a private buffer: in place, each element of all sources is read
 * before that of the leader's dest is written, and no other member reads it. */
static void combine_own_part(const struct quoit_team_state *team, const struct reduce *reduce)
{
    struct quoit_part part = quoit_schedule_part(reduce->count, team->local_count, team->local);
    size_t most = QUOIT_SCRATCH_BYTES / reduce->element_bytes;
    for (uint64_t at = part.start; at < part.start + part.count;) {
        uint64_t left = part.start + part.count - at;
        size_t count = left < most ? left : most;
        combine_group(team, reduce, team->scratch, at, count, team->local_count);
        memcpy(team->leader_workspace + reduce->offset_dest + at * reduce->element_bytes, team->scratch,
               count * reduce->element_bytes);
        at += count;
    }
}

/* A run of elements with one chunk per host: what travels in one direction around the ring, or is halved. */
struct travelling {
    uint64_t offset; /* of its first element */
    uint64_t count;
};

static uint64_t start_of(const struct quoit_team_state *team, const struct reduce *reduce, const struct travelling *run,
                         uint32_t chunk)
{
    if (chunk == team->host_count)
        return run->count * reduce->element_bytes;
    return quoit_schedule_part(run->count, team->host_count, chunk).start * reduce->element_bytes;
}

static struct quoit_team_message chunks_of(const struct quoit_team_state *team, const struct reduce *reduce,
                                           const struct travelling *run, uint32_t chunk, uint32_t count)
{
    uint64_t start = start_of(team, reduce, run, chunk);
    return (struct quoit_team_message){.offset = run->offset + start,
                                       .source = quoit_coll_address(team->fabric, run->offset + start),
                                       .bytes = start_of(team, reduce, run, chunk + count) - start};
}

static struct quoit_team_message chunk_of(const struct quoit_team_state *team, const struct reduce *reduce,
                                          const struct travelling *run, uint32_t chunk)
{
    return chunks_of(team, reduce, run, chunk, 1);
}

/* Where this host's elements are at first that belong to `offset` of dest. */
static char *own_at(const struct quoit_team_state *team, const struct reduce *reduce, uint64_t offset)
{
    return quoit_coll_address(team->fabric, offset - reduce->offset_dest + reduce->offset_own);
}

/* Copies those of this message to their place: late, so that they are cached when others are combined into them. */
static void take_own(const struct quoit_team_state *team, const struct reduce *reduce,
                     const struct quoit_team_message *message)
{
    if (reduce->offset_own != reduce->offset_dest)
        memcpy(quoit_coll_address(team->fabric, message->offset), own_at(team, reduce, message->offset),
               message->bytes);
}

/* Combines elements that have come to inbound into this message's. */
static void combine_inbound(const struct quoit_team_state *team, const struct reduce *reduce,
                            const struct quoit_team_message *own, uint64_t inbound)
{
    reduce->combine(quoit_coll_address(team->fabric, own->offset), quoit_coll_address(team->fabric, inbound),
                    own->bytes / reduce->element_bytes);
}

/* Each leader's chunk arrives in one half of the neighbour's inbound buffer; see team.h on rounds. */
static void combine_rounds(struct quoit_team_state *team, const struct reduce *reduce,
                           const struct travelling runs[QUOIT_TRAVEL_COUNT])
{
    for (uint32_t round = 0; round + 1 < team->host_count; round++) {
        struct quoit_team_message messages[QUOIT_TRAVEL_COUNT];
        uint64_t inbound = team->space.inbound + (uint64_t)(round % 2) * QUOIT_TRAVEL_COUNT * team->space.inbound_bytes;
        for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
            uint32_t chunk = quoit_schedule_combine(team->host_count, team->host, round, travel).send;
            messages[travel] = chunk_of(team, reduce, &runs[travel], chunk);
            if (round == 0)
                messages[travel].source = own_at(team, reduce, messages[travel].offset);
            messages[travel].offset = inbound + (uint32_t)travel * team->space.inbound_bytes;
        }
        quoit_team_round(team, (const struct quoit_team_message *[]){&messages[0], &messages[1]});
        for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
            uint32_t chunk = quoit_schedule_combine(team->host_count, team->host, round, travel).receive;
            struct quoit_team_message own = chunk_of(team, reduce, &runs[travel], chunk);
            take_own(team, reduce, &own);
            combine_inbound(team, reduce, &own, inbound + (uint32_t)travel * team->space.inbound_bytes);
        }
    }
}

/* Complete chunks go directly to their places: a neighbour forwarded its own part of a chunk before the complete one
 * can arrive. */
static void gather_rounds(struct quoit_team_state *team, const struct reduce *reduce,
                          const struct travelling runs[QUOIT_TRAVEL_COUNT])
{
    for (uint32_t round = 0; round + 1 < team->host_count; round++) {
        struct quoit_team_message messages[QUOIT_TRAVEL_COUNT];
        for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
            uint32_t chunk = quoit_schedule_gather(team->host_count, team->host, round, travel).send;
            messages[travel] = chunk_of(team, reduce, &runs[travel], chunk);
        }
        quoit_team_round(team, (const struct quoit_team_message *[]){&messages[0], &messages[1]});
    }
}

/* Elements of a piece of which a chunk fits into an inbound buffer. */
static uint64_t around_most(const struct quoit_team_state *team, const struct reduce *reduce)
{
    return team->space.inbound_bytes / reduce->element_bytes * team->host_count * QUOIT_TRAVEL_COUNT;
}

/* Reduces the leaders' dests in pieces. */
static void reduce_around(struct quoit_team_state *team, void *arg)
{
    const struct reduce *reduce = arg;
    uint64_t most = around_most(team, reduce);
    for (uint64_t at = 0; at < reduce->count;) {
        uint64_t count = reduce->count - at < most ? reduce->count - at : most;
        struct travelling runs[QUOIT_TRAVEL_COUNT];
        for (uint32_t travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
            struct quoit_part part = quoit_schedule_part(count, QUOIT_TRAVEL_COUNT, travel);
            runs[travel] =
                (struct travelling){reduce->offset_dest + (at + part.start) * reduce->element_bytes, part.count};
        }
        combine_rounds(team, reduce, runs);
        gather_rounds(team, reduce, runs);
        at += count;
    }
}

/* Elements of a chunk of which all that come in a piece, which are as many as there are other hosts, fit where halving
 * receives. */
static uint64_t halving_chunk(const struct quoit_team_state *team, const struct reduce *reduce)
{
    return team->space.halving_bytes / reduce->element_bytes / (team->host_count - 1);
}

/* The chunks index..index+count-1, counted from this host's own. */
static void parts_of(const struct quoit_team_state *team, const struct reduce *reduce, const struct travelling *run,
                     uint32_t index, uint32_t count, struct quoit_team_message parts[2])
{
    uint32_t chunk = (team->host + index) % team->host_count, left = team->host_count - chunk;
    uint32_t first_count = count < left ? count : left;
    parts[0] = chunks_of(team, reduce, run, chunk, first_count);
    parts[1] = chunks_of(team, reduce, run, 0, count - first_count);
}

static void halve_rounds(struct quoit_team_state *team, const struct reduce *reduce, const struct travelling *run)
{
    uint64_t chunk_bytes = halving_chunk(team, reduce) * reduce->element_bytes;
    uint32_t round_count = quoit_schedule_dissemination_rounds(team->host_count);
    for (uint32_t round = 0; round < round_count; round++) {
        struct quoit_halving halving = quoit_schedule_halve(team->host_count, round);
        uint32_t count = halving.end - halving.first;
        uint64_t inbound = team->space.halving + (team->host_count - halving.end) * chunk_bytes;
        struct quoit_team_message parts[2], own[2];
        parts_of(team, reduce, run, halving.first, count, parts);
        parts_of(team, reduce, run, 0, halving.first, own);
        for (int i = 0; i < 2 && round == 0; i++)
            parts[i].source = own_at(team, reduce, parts[i].offset);
        parts[0].offset = inbound;
        parts[1].offset = inbound + parts[0].bytes;
        quoit_team_halving_round(team, parts, round, false);
        for (int i = 0; i < 2 && round == 0; i++)
            take_own(team, reduce, &own[i]);
        parts_of(team, reduce, run, 0, count, own);
        combine_inbound(team, reduce, &own[0], inbound);
        combine_inbound(team, reduce, &own[1], inbound + own[0].bytes);
    }
}

/* Complete chunks go directly to their places: the leader there has sent its own parts of them, and they were combined.
 */
static void gather_halves(struct quoit_team_state *team, const struct reduce *reduce, const struct travelling *run)
{
    for (uint32_t round = quoit_schedule_dissemination_rounds(team->host_count); round-- > 0;) {
        struct quoit_halving halving = quoit_schedule_halve(team->host_count, round);
        struct quoit_team_message parts[2];
        parts_of(team, reduce, run, 0, halving.end - halving.first, parts);
        quoit_team_halving_round(team, parts, round, true);
    }
}

/* Reduces the leaders' dests by halving, in pieces. */
static void reduce_by_halving(struct quoit_team_state *team, void *arg)
{
    const struct reduce *reduce = arg;
    uint64_t most = halving_chunk(team, reduce) * team->host_count;
    for (uint64_t at = 0; at < reduce->count;) {
        uint64_t count = reduce->count - at < most ? reduce->count - at : most;
        const struct travelling run = {reduce->offset_dest + at * reduce->element_bytes, count};
        team->halving_count++;
        halve_rounds(team, reduce, &run);
        gather_halves(team, reduce, &run);
        at += count;
    }
}

static enum quoit_schedule schedule_of(const struct quoit_team_state *team, const struct reduce *reduce)
{
    const struct quoit_choice choice = quoit_team_choice(team);
    const struct quoit_reduction reduction = {
        .bytes = reduce->count * reduce->element_bytes,
        .element_bytes = reduce->element_bytes,
        .at_once_bytes = team->space.gather_bytes,
        .slice_bytes = quoit_team_slice_bytes(team),
        .around_count = around_most(team, reduce),
        .halving_count = halving_chunk(team, reduce) * team->host_count,
    };
    return quoit_choice_reduce(&choice, &reduction);
}

/* On one host each member writes its part of the result into all dests, block by block: no other member reads the
 * sources of the elements that it writes, which may be dests. */
static void spread_own_part(const struct quoit_team_state *team, const struct reduce *reduce)
{
    struct quoit_part part = quoit_schedule_part(reduce->count, team->local_count, team->local);
    size_t most = QUOIT_SCRATCH_BYTES / reduce->element_bytes;
    for (uint64_t at = part.start; at < part.start + part.count;) {
        uint64_t left = part.start + part.count - at;
        size_t count = left < most ? left : most;
        combine_group(team, reduce, team->scratch, at, count, team->local_count);
        for (uint32_t i = 0; i < team->local_count; i++)
            memcpy(quoit_team_workspace(team, (team->local + i) % team->local_count) + reduce->offset_dest +
                       at * reduce->element_bytes,
                   team->scratch, count * reduce->element_bytes);
        at += count;
    }
}

static void reduce_on_host(struct quoit_team_state *team, const struct reduce *reduce)
{
    quoit_team_phase(team, NULL, NULL); /* all sources are ready, and all dests may be written */
    spread_own_part(team, reduce);
    quoit_team_phase(team, NULL, NULL);
}

static void reduce_between_hosts(struct quoit_team_state *team, struct reduce *reduce, bool is_halved)
{
    bool is_alone = team->local_count == 1;
    char *dest = quoit_coll_address(team->fabric, reduce->offset_dest);
    const char *leader_dest = team->leader_workspace + reduce->offset_dest;
    size_t bytes = reduce->count * reduce->element_bytes;
    reduce->offset_own = is_alone ? reduce->offset_source : reduce->offset_dest;
    if (!is_alone) {
        quoit_team_phase(team, NULL, NULL); /* all sources are ready, and the leader's dest may be written */
        combine_own_part(team, reduce);
    }
    quoit_team_phase(team, is_halved ? reduce_by_halving : reduce_around, reduce);
    if (dest != leader_dest)
        memcpy(dest, leader_dest, bytes);
    quoit_team_phase(team, NULL, NULL); /* no member reads the leader's dest any more */
}

void quoit_coll_reduce(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                       size_t element_bytes, quoit_combine *combine, const char *call)
{
    struct reduce reduce = {.offset_dest = offset_dest,
                            .offset_source = offset_source,
                            .count = count,
                            .element_bytes = element_bytes,
                            .combine = combine};
    size_t bytes = count * element_bytes;
    quoit_assert(element_bytes >= 1);
    quoit_assert(element_bytes <= QUOIT_ELEMENT_BYTES);
    if (count == 0)
        return;
    quoit_team_enter(team, call, bytes * team->local_count);
    team->open_bytes = 0;
    team->gather_turn++;
    bool is_at_once = bytes <= team->space.gather_bytes;
    if (team->host_count > 1) {
        enum quoit_schedule schedule = schedule_of(team, &reduce);
        is_at_once = schedule == QUOIT_SCHEDULE_AT_ONCE;
        if (!is_at_once)
            reduce_between_hosts(team, &reduce, schedule == QUOIT_SCHEDULE_LOG);
    } else if (!is_at_once) {
        reduce_on_host(team, &reduce);
    }
    if (!is_at_once)
        return;
    quoit_team_phase(team, reduce_at_once, &reduce);
    memcpy(quoit_coll_address(team->fabric, offset_dest), team->leader_workspace + quoit_team_gather(team), bytes);
}

/* The combination of the hosts before this one, for elements that begin at reduce->offset_source. */
static void find_prefix(struct quoit_team_state *team, void *arg)
{
    const struct reduce *reduce = arg;
    if (team->host_count == 1)
        return;
    combine_group(team, reduce, team->scratch, 0, reduce->count, team->local_count);
    quoit_team_exchange_partials(team, team->scratch, reduce->count * reduce->element_bytes);
    if (team->host > 0)
        combine_partials(team, reduce, team->leader_workspace + quoit_team_gather(team), reduce->count, team->host);
}

static void scan_chunk(struct quoit_team_state *team, struct reduce *reduce, bool is_inclusive)
{
    uint32_t member_count = team->local + (is_inclusive ? 1 : 0);
    size_t bytes = reduce->count * reduce->element_bytes;
    team->gather_turn++;
    quoit_team_phase(team, find_prefix, reduce);
    if (team->host > 0)
        memcpy(team->scratch, team->leader_workspace + quoit_team_gather(team), bytes);
    else
        memset(team->scratch, 0, bytes);
    for (uint32_t i = 0; i < member_count; i++) {
        const char *source = quoit_team_workspace(team, i) + reduce->offset_source;
        if (i == 0 && team->host == 0)
            memcpy(team->scratch, source, bytes);
        else
            reduce->combine(team->scratch, source, reduce->count);
    }
    quoit_team_phase(team, NULL, NULL); /* all sources, which may be dests, have been read */
    memcpy(quoit_coll_address(team->fabric, reduce->offset_dest), team->scratch, bytes);
}

void quoit_coll_scan(struct quoit_team_state *team, uint64_t offset_dest, uint64_t offset_source, size_t count,
                     size_t element_bytes, quoit_combine *combine, bool is_inclusive, const char *call)
{
    size_t most = (team->host_count == 1 ? QUOIT_SCRATCH_BYTES : team->space.gather_bytes) / element_bytes;
    quoit_assert(element_bytes >= 1);
    quoit_assert(element_bytes <= QUOIT_ELEMENT_BYTES);
    if (count == 0)
        return;
    quoit_team_enter(team, call, 0);
    team->open_bytes = 0;
    for (size_t at = 0; at < count; at += most) {
        struct reduce chunk = {.offset_dest = offset_dest + at * element_bytes,
                               .offset_source = offset_source + at * element_bytes,
                               .count = count - at < most ? count - at : most,
                               .element_bytes = element_bytes,
                               .combine = combine};
        scan_chunk(team, &chunk, is_inclusive);
    }
}
