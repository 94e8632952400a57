/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective of coll.h in the same random order on all PEs, results compared with the expected ones: in the team
 * of all, and in teams of some, which run concurrently. */
#include "sim/workload.h"

#include <stdlib.h>

#define TINY_WORDS  16u
#define SMALL_WORDS 128u
/* Larger than the sizes from which operations work in pieces. */
#define LARGE_BLOCK_WORDS    400u  /* of one of the blocks of a collect or alltoall */
#define LARGE_VECTOR_WORDS   1500u /* of a broadcast, reduction or scan */
#define SIDE_BYTES(pe_count) ((uint64_t)(pe_count)*LARGE_BLOCK_WORDS * 8 + LARGE_VECTOR_WORDS * 8)

/* The contribution of PE `pe` to step `step`: each PE can compute it for all. */
static uint64_t value_of(uint32_t pe, uint32_t step, size_t i)
{
    struct quoit_prng prng = {.state = ((uint64_t)pe << 32) + step * 1000ull + i};
    return quoit_prng_next(&prng);
}

/* The contribution of the PE with that rank in the team. */
static uint64_t value_in_team(const struct sim_pe *pe, uint32_t rank, uint32_t step, size_t i)
{
    return value_of(pe->range.start + rank * pe->range.stride, step, i);
}

static uint64_t source_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap + SIM_PIECES_START;
}

static uint64_t dest_offset(const struct sim_pe *pe)
{
    return source_offset(pe) + SIDE_BYTES(pe->fabric->self.pe_count);
}

static uint64_t *words_at(const struct sim_pe *pe, uint64_t offset)
{
    return quoit_coll_address(pe->fabric, offset);
}

static void expect(const struct sim_pe *pe, uint32_t step, const char *what, size_t i, uint64_t got, uint64_t wanted)
{
    if (got != wanted)
        sim_fail(pe->world, "%s of step %u gave PE %u %llx instead of %llx as word %zu", what, step, pe->index,
                 (unsigned long long)got, (unsigned long long)wanted, i);
}

static void fill_source(const struct sim_pe *pe, uint32_t step, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words_at(pe, source_offset(pe))[i] = value_of(pe->index, step, i);
}

static void step_broadcast(struct sim_pe *pe, uint32_t step, size_t count, uint32_t root)
{
    fill_source(pe, step, count);
    quoit_coll_broadcast(pe->team, dest_offset(pe), source_offset(pe), 8 * count, root, true, "broadcast");
    for (size_t i = 0; i < count; i++)
        expect(pe, step, "broadcast", i, words_at(pe, dest_offset(pe))[i], value_in_team(pe, root, step, i));
}

/* Small ones from one root, separated only by some members' own work, more than there are slots for. */
#define BROADCASTS_IN_A_ROW 40

static void step_broadcasts(struct sim_pe *pe, uint32_t step, uint32_t root)
{
    const uint64_t *dest = words_at(pe, dest_offset(pe));
    for (uint32_t turn = 0; turn < BROADCASTS_IN_A_ROW; turn++) {
        uint32_t number = step * BROADCASTS_IN_A_ROW + turn;
        size_t count = 1 + (size_t)(value_in_team(pe, root, number, 999) % SMALL_WORDS);
        fill_source(pe, number, count);
        if (quoit_prng_choose(&pe->prng, 8) == 0)
            sim_spend(pe->world, quoit_prng_choose(&pe->prng, 200000));
        quoit_coll_broadcast(pe->team, dest_offset(pe), source_offset(pe), 8 * count, root, true, "broadcast");
        for (size_t i = 0; i < count; i++)
            expect(pe, number, "broadcast in a row", i, dest[i], value_in_team(pe, root, number, i));
    }
}

static void step_collect(struct sim_pe *pe, uint32_t step, size_t count, bool is_equal)
{
    uint32_t pe_count = pe->range.size;
    size_t own = is_equal ? count : value_of(pe->index, step, 999) % (count + 1);
    fill_source(pe, step, own);
    quoit_coll_collect(pe->team, dest_offset(pe), source_offset(pe), 8 * own, is_equal, "collect");
    size_t at = 0;
    for (uint32_t from = 0; from < pe_count; from++) {
        size_t theirs = is_equal ? count : value_in_team(pe, from, step, 999) % (count + 1);
        for (size_t i = 0; i < theirs; i++, at++)
            expect(pe, step, "collect", at, words_at(pe, dest_offset(pe))[at], value_in_team(pe, from, step, i));
    }
}

static void step_alltoall(struct sim_pe *pe, uint32_t step, size_t count)
{
    uint32_t pe_count = pe->range.size;
    fill_source(pe, step, count * pe_count);
    quoit_coll_alltoall(pe->team, dest_offset(pe), source_offset(pe), 8 * count, "alltoall");
    for (uint32_t from = 0; from < pe_count; from++)
        for (size_t i = 0; i < count; i++)
            expect(pe, step, "alltoall", from * count + i, words_at(pe, dest_offset(pe))[from * count + i],
                   value_in_team(pe, from, step, pe->rank * count + i));
}

static void add_words(void *into, const void *from, size_t count)
{
    uint64_t *to = into;
    const uint64_t *more = from;
    for (size_t i = 0; i < count; i++)
        to[i] += more[i];
}

static void step_reduce(struct sim_pe *pe, uint32_t step, size_t count)
{
    fill_source(pe, step, count);
    quoit_coll_reduce(pe->team, dest_offset(pe), source_offset(pe), count, 8, add_words, "reduce");
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (uint32_t from = 0; from < pe->range.size; from++)
            sum += value_in_team(pe, from, step, i);
        expect(pe, step, "reduce", i, words_at(pe, dest_offset(pe))[i], sum);
    }
}

static void step_scan(struct sim_pe *pe, uint32_t step, size_t count, bool is_inclusive)
{
    fill_source(pe, step, count);
    quoit_coll_scan(pe->team, dest_offset(pe), source_offset(pe), count, 8, add_words, is_inclusive, "scan");
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (uint32_t from = 0; from < pe->rank + is_inclusive; from++)
            sum += value_in_team(pe, from, step, i);
        expect(pe, step, "scan", i, words_at(pe, dest_offset(pe))[i], sum);
    }
}

static void step_agree(struct sim_pe *pe, uint32_t step)
{
    uint64_t all = 0, largest = 0;
    for (uint32_t from = 0; from < pe->range.size; from++) {
        uint64_t value = value_in_team(pe, from, step, 0);
        all |= value;
        largest = value > largest ? value : largest;
    }
    expect(pe, step, "agree", 0, quoit_coll_agree(pe->team, value_of(pe->index, step, 0), "agree"), all);
    expect(pe, step, "largest", 0, quoit_coll_largest(pe->team, value_of(pe->index, step, 0), "largest"), largest);
}

/* Teams: of all PEs; of every second or third one; of two halves; of all hosts but the first or the last, and of that
 * one; of each host. A PE is in one of each kind. */
enum team_kind { TEAM_WORLD, TEAM_STRIDED, TEAM_HALF, TEAM_MOST, TEAM_HOST, TEAM_KIND_COUNT };

struct teams {
    struct quoit_team_state *states[TEAM_KIND_COUNT];
    struct quoit_team_range ranges[TEAM_KIND_COUNT];
};

/* Two teams: of the PEs before `border`, and of the others. */
static struct quoit_team_range side_of(const struct sim_pe *pe, uint32_t border)
{
    uint32_t pe_count = pe->fabric->self.pe_count;
    return pe->index < border ? (struct quoit_team_range){.start = 0, .stride = 1, .size = border}
                              : (struct quoit_team_range){.start = border, .stride = 1, .size = pe_count - border};
}

static struct quoit_team_range shape_of(const struct sim_pe *pe, enum team_kind kind)
{
    const struct quoit_job_config *job = &pe->world->config.job;
    const struct quoit_layout *layout = &pe->host->layout;
    uint32_t pe_count = pe->fabric->self.pe_count, self = pe->index;
    bool is_odd = pe->world->config.seed % 2;
    uint32_t stride = is_odd ? 3 : 2;
    if (kind == TEAM_STRIDED)
        return (struct quoit_team_range){
            .start = self % stride, .stride = stride, .size = (pe_count - self % stride + stride - 1) / stride};
    if (kind == TEAM_HALF)
        return side_of(pe, pe_count / 2);
    if (kind == TEAM_MOST)
        return side_of(pe, quoit_job_config_first_pe(job, is_odd ? job->host_count - 1 : 1));
    if (kind == TEAM_HOST)
        return (struct quoit_team_range){.start = layout->first_pe, .stride = 1, .size = layout->local_count};
    return (struct quoit_team_range){.start = 0, .stride = 1, .size = pe_count};
}

static void make_team(struct sim_pe *pe, struct teams *teams, enum team_kind kind, uint64_t first_flag)
{
    teams->ranges[kind] = shape_of(pe, kind);
    teams->states[kind] = quoit_team_new(pe->fabric, &teams->ranges[kind], kind, first_flag);
    if (!teams->states[kind])
        sim_fail(pe->world, "PE %u cannot make its team", pe->index);
}

/* Each PE counts the syncs that it has entered, of each team, in a word that the others see only through them. */
static void sync_team(struct sim_pe *pe, enum team_kind kind, const char *what)
{
    struct sim_world *world = pe->world;
    uint64_t *entered = (uint64_t *)world->workload_state + (size_t)kind * pe->fabric->self.pe_count;
    uint64_t own = ++entered[pe->index];
    quoit_coll_sync(pe->team, what);
    for (uint32_t rank = 0; rank < pe->range.size; rank++) {
        uint32_t other = pe->range.start + rank * pe->range.stride;
        if (entered[other] < own)
            sim_fail(world, "PE %u left sync %llu of its team %u, %s, before PE %u had come", pe->index,
                     (unsigned long long)own, kind, what, other);
    }
}

/* All members of the team may reuse their buffers. */
static void use_team(struct sim_pe *pe, const struct teams *teams, enum team_kind kind)
{
    bool is_other = pe->team != teams->states[kind];
    pe->team = teams->states[kind];
    pe->range = teams->ranges[kind];
    pe->rank = (pe->index - pe->range.start) / pe->range.stride;
    if (is_other)
        sync_team(pe, kind, "use");
}

/* A later team on the same piece, as after shmem_team_destroy: created when all members know that the piece is free. */
static void renew_team(struct sim_pe *pe, struct teams *teams, enum team_kind kind)
{
    use_team(pe, teams, kind);
    sync_team(pe, kind, "renew");
    uint64_t next_flag = quoit_team_next_flag(pe->team);
    quoit_team_delete(pe->team);
    teams->states[kind] = NULL;
    use_team(pe, teams, TEAM_WORLD);
    make_team(pe, teams, kind, quoit_coll_largest(pe->team, next_flag, "renew"));
}

#define STEP_KINDS 9

static void run_kind(struct sim_pe *pe, struct quoit_prng *common, uint32_t step, enum team_kind team, uint64_t kind)
{
    uint64_t root = quoit_prng_next(common), size = quoit_prng_choose(common, 4);
    bool is_odd = quoit_prng_choose(common, 2), has_blocks = kind == 1 || kind == 2;
    const uint32_t large = has_blocks ? LARGE_BLOCK_WORDS : LARGE_VECTOR_WORDS;
    size_t count = quoit_prng_choose(common, size == 0 ? large : size == 1 ? TINY_WORDS : SMALL_WORDS);
    if (kind == 0)
        step_broadcast(pe, step, count, (uint32_t)(root % pe->range.size));
    else if (kind == 1)
        step_collect(pe, step, count, is_odd);
    else if (kind == 2)
        step_alltoall(pe, step, count);
    else if (kind == 3)
        step_reduce(pe, step, count);
    else if (kind == 4)
        step_scan(pe, step, count, is_odd);
    else if (kind == 5)
        step_agree(pe, step);
    else if (kind == 6)
        step_broadcasts(pe, step, (uint32_t)(root % pe->range.size));
    else
        sync_team(pe, team, "sync");
}

/* In the team of a host, which needs no link, one of each kind. */
static void run_step(struct sim_pe *pe, struct quoit_prng *common, uint32_t step, enum team_kind team)
{
    uint64_t chosen = quoit_prng_choose(common, STEP_KINDS);
    for (uint32_t kind = 0; kind < STEP_KINDS; kind++)
        if (kind == chosen || team == TEAM_HOST)
            run_kind(pe, common, step * STEP_KINDS + kind, team, kind);
}

static void run_collectives(struct sim_pe *pe)
{
    struct quoit_prng common = {.state = pe->world->config.seed};
    struct teams teams = {0};
    for (enum team_kind kind = 0; kind < TEAM_KIND_COUNT; kind++)
        make_team(pe, &teams, kind, 0);
    for (uint32_t step = 0; step < 3 * pe->world->config.step_count; step++) {
        uint64_t choice = quoit_prng_choose(&common, 2 * TEAM_KIND_COUNT);
        enum team_kind kind = choice < TEAM_KIND_COUNT ? (enum team_kind)choice : TEAM_WORLD;
        if (quoit_prng_choose(&common, 8) == 0 && kind != TEAM_WORLD)
            renew_team(pe, &teams, kind);
        use_team(pe, &teams, kind);
        run_step(pe, &common, step, kind);
    }
    for (enum team_kind kind = 0; kind < TEAM_KIND_COUNT; kind++) {
        use_team(pe, &teams, kind);
        sync_team(pe, kind, "end");
    }
    for (enum team_kind kind = 0; kind < TEAM_KIND_COUNT; kind++)
        quoit_team_delete(teams.states[kind]);
    pe->team = NULL;
}

static uint64_t heap_of_collectives(uint32_t pe_count)
{
    return SIM_PIECES_START + 2 * SIDE_BYTES(pe_count);
}

static void setup_collectives(struct sim_world *world)
{
    world->workload_state = calloc((size_t)TEAM_KIND_COUNT * world->config.job.pe_count, sizeof(uint64_t));
    if (!world->workload_state)
        sim_fail(world, "out of memory");
}

static void teardown_collectives(struct sim_world *world)
{
    free(world->workload_state);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_collectives = {
    .name = "collectives",
    .sentence = "all collective operations in random order, in teams of all and of some",
    .heap_bytes = heap_of_collectives,
    .setup = setup_collectives,
    .run = run_collectives,
    .teardown = teardown_collectives,
};
