/* SPDX-License-Identifier: BSD-3-Clause */
/* Each collective over a network, by one PE of each host: small, and of config.bytes. All begin together; the time ends
 * with the last PE. A broadcast is STEPS calls and a barrier, divided by STEPS, as quoit perf has it: a root goes on
 * before the others have its data. Then each is called once more, and one PE enters late: until then nobody may write
 * into its destination. Every result is compared with what the sources make it. */
#include "base/assert.h"
#include "base/prng.h"
#include "coll/team.h"
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#define GATE_NS       1000
#define SMALL_BYTES   8u
#define BARRIER_STEPS 4
#define STEPS         16
#define LATE_MESSAGES 4          /* as long as so many take one after the other */
#define LATE_BYTES    (1u << 20) /* each of all bytes, up to here */
#define UNTOUCHED     0xee

struct meeting {
    uint32_t arrived_count; /* ever */
    uint64_t start_ns;
    uint64_t end_ns; /* of the last PE */
};

enum kind { KIND_BARRIER, KIND_BROADCAST, KIND_REDUCE, KIND_COLLECT, KIND_ALLTOALL };

struct measured {
    const char *name;
    enum kind kind;
    bool is_large;
};

static const struct measured rows[] = {
    {"barrier", KIND_BARRIER, false},         {"broadcast 8 B", KIND_BROADCAST, false},
    {"reduce 8 B", KIND_REDUCE, false},       {"fcollect 8 B", KIND_COLLECT, false},
    {"alltoall 8 B", KIND_ALLTOALL, false},   {"broadcast, large", KIND_BROADCAST, true},
    {"reduce, large", KIND_REDUCE, true},     {"fcollect, large", KIND_COLLECT, true},
    {"alltoall, large", KIND_ALLTOALL, true},
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

static bool has_blocks(const struct measured *row)
{
    return row->kind == KIND_COLLECT || row->kind == KIND_ALLTOALL;
}

/* Large blocks are a part of `bytes` for each PE, so that memory does not grow with the square of the hosts. */
static uint64_t block_bytes(const struct sim_pe *pe, const struct measured *row)
{
    uint64_t bytes = row->is_large ? pe->world->config.bytes : SMALL_BYTES;
    if (row->is_large && has_blocks(row))
        bytes /= pe->fabric->self.pe_count;
    return bytes / sizeof(uint64_t) * sizeof(uint64_t);
}

static uint64_t heap_bytes(uint32_t pe_count)
{
    return 2 * (uint64_t)pe_count * SMALL_BYTES;
}

/* Two buffers of so many bytes are in the heap: destination and source. */
static uint64_t buffer_bytes(const struct sim_pe *pe)
{
    uint64_t small_bytes = (uint64_t)pe->fabric->self.pe_count * SMALL_BYTES;
    return pe->world->config.bytes > small_bytes ? pe->world->config.bytes : small_bytes;
}

/* No sum of some PEs is that of others. */
static uint64_t factor_of(uint32_t pe)
{
    struct quoit_prng prng = {.state = pe};
    return quoit_prng_next(&prng);
}

/* What a PE gives: word `index` of its source. */
static uint64_t word_of(uint32_t pe, uint64_t index)
{
    return factor_of(pe) * (index + 1);
}

static void add_words(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)into)[i] += ((const uint64_t *)from)[i];
}

static void call(struct sim_pe *pe, const struct measured *row, uint64_t bytes)
{
    uint64_t dest = pe->fabric->self.layout.segment_heap, source = dest + buffer_bytes(pe);
    switch (row->kind) {
    case KIND_BARRIER:
        quoit_coll_sync(pe->team, row->name);
        break;
    case KIND_BROADCAST:
        quoit_coll_broadcast(pe->team, dest, source, bytes, 0, true, row->name);
        break;
    case KIND_REDUCE:
        quoit_coll_reduce(pe->team, dest, source, bytes / 8, 8, add_words, row->name);
        break;
    case KIND_COLLECT:
        quoit_coll_collect(pe->team, dest, source, bytes, true, row->name);
        break;
    case KIND_ALLTOALL:
        quoit_coll_alltoall(pe->team, dest, source, bytes, row->name);
        break;
    }
}

/* Word `index` of the result at this PE; factors: the sum of all. */
static uint64_t result_of(const struct sim_pe *pe, const struct measured *row, uint64_t bytes, uint64_t index,
                          uint64_t factors)
{
    uint64_t block_words = bytes / sizeof(uint64_t);
    switch (row->kind) {
    case KIND_BARRIER:
        break;
    case KIND_BROADCAST:
        return word_of(0, index);
    case KIND_REDUCE:
        return factors * (index + 1);
    case KIND_COLLECT:
        return word_of((uint32_t)(index / block_words), index % block_words);
    case KIND_ALLTOALL:
        return word_of((uint32_t)(index / block_words), pe->index * block_words + index % block_words);
    }
    return 0;
}

/* Of the destination that a call writes at each PE. */
static uint64_t result_bytes(const struct sim_pe *pe, const struct measured *row, uint64_t bytes)
{
    return row->kind == KIND_BARRIER ? 0 : bytes * (has_blocks(row) ? pe->fabric->self.pe_count : 1);
}

static void check_result(struct sim_pe *pe, const struct measured *row, uint64_t bytes)
{
    const uint64_t *words = quoit_coll_address(pe->fabric, pe->fabric->self.layout.segment_heap);
    uint64_t count = result_bytes(pe, row, bytes) / sizeof(uint64_t);
    uint64_t factors = 0;
    for (uint32_t from = 0; from < pe->fabric->self.pe_count; from++)
        factors += factor_of(from);
    for (uint64_t i = 0; i < count; i++)
        if (words[i] != result_of(pe, row, bytes, i, factors))
            sim_fail(pe->world, "%s over %u hosts: word %llu at PE %u is wrong", row->name, pe->fabric->self.pe_count,
                     (unsigned long long)i, pe->index);
}

/* All PEs are here, at one instant. */
static void meet(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    struct meeting *meeting = world->workload_state;
    uint32_t count = pe->world->config.job.pe_count;
    uint32_t turn = meeting->arrived_count++ / count;
    if (meeting->arrived_count == (turn + 1) * count)
        meeting->start_ns = world->now_ns + 2 * GATE_NS;
    while (meeting->arrived_count < (turn + 1) * count)
        sim_block(world, world->now_ns + GATE_NS);
    sim_block(world, meeting->start_ns);
}

/* Late is the PE opposite the root, so that of four and more it is not a neighbour of it. */
static void call_late(struct sim_pe *pe, const struct measured *row, uint64_t bytes)
{
    const struct sim_model *model = &pe->world->model;
    uint32_t late_pe = pe->fabric->self.pe_count / 2;
    unsigned char *dest = quoit_coll_address(pe->fabric, pe->fabric->self.layout.segment_heap);
    uint64_t dest_bytes = result_bytes(pe, row, bytes);
    uint64_t bytes_ns = sim_model_time(model->network_ps_per_byte, dest_bytes < LATE_BYTES ? dest_bytes : LATE_BYTES);
    memset(dest, UNTOUCHED, dest_bytes);
    meet(pe);
    if (pe->index == late_pe)
        sim_block(pe->world, pe->world->now_ns + LATE_MESSAGES * (model->network_latency_ns + bytes_ns));
    for (uint64_t i = 0; i < dest_bytes && pe->index == late_pe; i++)
        if (dest[i] != UNTOUCHED)
            sim_fail(pe->world, "%s over %u hosts: byte %llu at PE %u is written before it calls", row->name,
                     pe->fabric->self.pe_count, (unsigned long long)i, pe->index);
    call(pe, row, bytes);
    check_result(pe, row, bytes);
    meet(pe);
}

static void measure(struct sim_pe *pe, const struct measured *row)
{
    struct sim_world *world = pe->world;
    struct meeting *meeting = world->workload_state;
    uint64_t bytes = block_bytes(pe, row), buffer = buffer_bytes(pe);
    uint32_t steps = row->kind == KIND_BROADCAST ? STEPS : row->kind == KIND_BARRIER ? BARRIER_STEPS : 1;
    char *dest = quoit_coll_address(pe->fabric, pe->fabric->self.layout.segment_heap);
    uint64_t *source = (uint64_t *)(void *)(dest + buffer);
    uint64_t words = bytes / 8 * (row->kind == KIND_ALLTOALL ? pe->fabric->self.pe_count : 1);
    for (uint64_t i = 0; i < words; i++)
        source[i] = word_of(pe->index, i);
    memset(dest, UNTOUCHED, result_bytes(pe, row, bytes));
    meet(pe);
    for (uint32_t i = 0; i < steps; i++)
        call(pe, row, bytes);
    if (row->kind == KIND_BROADCAST)
        quoit_coll_sync(pe->team, row->name);
    meeting->end_ns = world->now_ns;
    check_result(pe, row, bytes);
    uint64_t begin_ns = meeting->start_ns;
    meet(pe);
    if (pe->index == 0)
        sim_metric_add(world, row->name, "us", (double)(meeting->end_ns - begin_ns) / 1000 / steps);
}

static void run_network(struct sim_pe *pe)
{
    struct quoit_team_range job = {.start = 0, .stride = 1, .size = pe->fabric->self.pe_count};
    meet(pe); /* all have their engines */
    pe->team = quoit_team_new(pe->fabric, &job, 0, 0);
    if (!pe->team)
        sim_fail(pe->world, "PE %u cannot make its team", pe->index);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].kind != KIND_BARRIER && block_bytes(pe, &rows[i]) == 0)
            continue;
        measure(pe, &rows[i]);
        call_late(pe, &rows[i], block_bytes(pe, &rows[i]));
    }
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

static void setup_network(struct sim_world *world)
{
    world->workload_state = calloc(1, sizeof(struct meeting));
    quoit_assert(world->workload_state != NULL);
}

static void teardown_network(struct sim_world *world)
{
    free(world->workload_state);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_network = {
    .name = "network",
    .sentence = "collectives over an ordinary network, by one PE of each host",
    .measures = true,
    .is_network = true,
    .heap_bytes = heap_bytes,
    .setup = setup_network,
    .run = run_network,
    .teardown = teardown_network,
};
