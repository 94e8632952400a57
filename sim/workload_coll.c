/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective of coll.h in the same random order on all PEs, results compared with what they must be. */
#include "sim/workload.h"

#include <stdlib.h>

#define BLOCK_BYTES_MAX 1024u
#define ELEMENT_MAX     200u

/* What PE `pe` brings to step `step`: each PE can compute it for all. */
static uint64_t value_of(uint32_t pe, uint32_t step, size_t i)
{
    struct quoit_prng prng = {.state = ((uint64_t)pe << 32) + step * 1000ull + i};
    return quoit_prng_next(&prng);
}

static uint64_t source_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap + SIM_PIECES_START;
}

static uint64_t dest_offset(const struct sim_pe *pe)
{
    return source_offset(pe) + (uint64_t)pe->fabric->self.pe_count * BLOCK_BYTES_MAX;
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
        expect(pe, step, "broadcast", i, words_at(pe, dest_offset(pe))[i], value_of(root, step, i));
}

static void step_collect(struct sim_pe *pe, uint32_t step, size_t count, bool is_equal)
{
    uint32_t pe_count = pe->fabric->self.pe_count;
    size_t own = is_equal ? count : value_of(pe->index, step, 999) % (count + 1);
    fill_source(pe, step, own);
    quoit_coll_collect(pe->team, dest_offset(pe), source_offset(pe), 8 * own, is_equal, "collect");
    size_t at = 0;
    for (uint32_t from = 0; from < pe_count; from++) {
        size_t theirs = is_equal ? count : value_of(from, step, 999) % (count + 1);
        for (size_t i = 0; i < theirs; i++, at++)
            expect(pe, step, "collect", at, words_at(pe, dest_offset(pe))[at], value_of(from, step, i));
    }
}

static void step_alltoall(struct sim_pe *pe, uint32_t step, size_t count)
{
    uint32_t pe_count = pe->fabric->self.pe_count;
    fill_source(pe, step, count * pe_count);
    quoit_coll_alltoall(pe->team, dest_offset(pe), source_offset(pe), 8 * count, "alltoall");
    for (uint32_t from = 0; from < pe_count; from++)
        for (size_t i = 0; i < count; i++)
            expect(pe, step, "alltoall", from * count + i, words_at(pe, dest_offset(pe))[from * count + i],
                   value_of(from, step, pe->index * count + i));
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
        for (uint32_t from = 0; from < pe->fabric->self.pe_count; from++)
            sum += value_of(from, step, i);
        expect(pe, step, "reduce", i, words_at(pe, dest_offset(pe))[i], sum);
    }
}

static void step_scan(struct sim_pe *pe, uint32_t step, size_t count, bool is_inclusive)
{
    fill_source(pe, step, count);
    quoit_coll_scan(pe->team, dest_offset(pe), source_offset(pe), count, 8, add_words, is_inclusive, "scan");
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (uint32_t from = 0; from < pe->index + is_inclusive; from++)
            sum += value_of(from, step, i);
        expect(pe, step, "scan", i, words_at(pe, dest_offset(pe))[i], sum);
    }
}

static void step_agree(struct sim_pe *pe, uint32_t step)
{
    uint64_t all = 0, largest = 0;
    for (uint32_t from = 0; from < pe->fabric->self.pe_count; from++) {
        uint64_t value = value_of(from, step, 0);
        all |= value;
        largest = value > largest ? value : largest;
    }
    expect(pe, step, "agree", 0, quoit_coll_agree(pe->team, value_of(pe->index, step, 0), "agree"), all);
    expect(pe, step, "largest", 0, quoit_coll_largest(pe->team, value_of(pe->index, step, 0), "largest"), largest);
}

/* Each PE counts the syncs it entered in a word that all others see only by them. */
static void step_sync(struct sim_pe *pe, uint32_t step)
{
    struct sim_world *world = pe->world;
    uint64_t entered = ++((uint64_t *)world->workload_state)[pe->index];
    quoit_coll_sync(pe->team, "sync");
    for (uint32_t other = 0; other < pe->fabric->self.pe_count; other++)
        if (((uint64_t *)world->workload_state)[other] < entered)
            sim_fail(world, "PE %u left the sync of step %u before PE %u had come", pe->index, step, other);
}

static void run_collectives(struct sim_pe *pe)
{
    uint32_t pe_count = pe->fabric->self.pe_count;
    struct quoit_team_shape shape = {.start = 0, .stride = 1, .size = pe_count};
    struct quoit_prng common = {.state = pe->world->config.seed};
    pe->team = quoit_team_new(pe->fabric, &shape, 0, 0);
    if (!pe->team)
        sim_fail(pe->world, "PE %u cannot make its team", pe->index);
    for (uint32_t step = 0; step < 2 * pe->world->config.step_count; step++) {
        size_t count =
            quoit_prng_choose(&common, BLOCK_BYTES_MAX / 8 < ELEMENT_MAX ? BLOCK_BYTES_MAX / 8 : ELEMENT_MAX);
        uint64_t kind = quoit_prng_choose(&common, 8);
        bool is_odd = quoit_prng_choose(&common, 2);
        if (kind == 0)
            step_broadcast(pe, step, count, (uint32_t)quoit_prng_choose(&common, pe_count));
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
        else
            step_sync(pe, step);
    }
    quoit_coll_sync(pe->team, "end");
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

static void setup_collectives(struct sim_world *world)
{
    world->workload_state = calloc(world->config.job.pe_count, sizeof(uint64_t));
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
    .sentence = "all collective operations in random order",
    .setup = setup_collectives,
    .run = run_collectives,
    .teardown = teardown_collectives,
};
