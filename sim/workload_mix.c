/* SPDX-License-Identifier: BSD-3-Clause */
/* All kinds of operations at random; and puts with fences, whose order is checked. */
#include "base/assert.h"
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#define COUNTERS    4
#define COUNTERS_AT 0    /* words in the heap that all PEs add to */
#define SIGNALS_AT  1024 /* a word for each source PE */

static void put_strided(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t to)
{
    unsigned char buffer[SIM_PIECE_BYTES], back[SIM_PIECE_BYTES];
    unsigned char *model = sim_pieces_model(pieces, pe->index, to);
    uint32_t element_bytes = 1u << quoit_prng_choose(&pe->prng, 5);
    ptrdiff_t remote = (ptrdiff_t)(element_bytes * (1 + quoit_prng_choose(&pe->prng, 3)));
    ptrdiff_t own = (ptrdiff_t)(element_bytes * (1 + quoit_prng_choose(&pe->prng, 2)));
    struct quoit_strided strided = {.offset = sim_pieces_offset(pieces, &pe->host->layout, pe->index),
                                    .remote_stride = remote,
                                    .private_stride = own,
                                    .count = 1 + quoit_prng_choose(&pe->prng, SIM_PIECE_BYTES / 48),
                                    .element_bytes = element_bytes};
    sim_fill(&pe->prng, buffer, strided.count * (size_t)own);
    quoit_fabric_fence(pe->fabric, pe->context);
    quoit_fabric_iput(pe->fabric, pe->context, &strided, buffer, to);
    for (size_t i = 0; i < strided.count; i++)
        memcpy(model + (ptrdiff_t)i * remote, buffer + (ptrdiff_t)i * own, element_bytes);
    quoit_fabric_quiet(pe->fabric, pe->context);
    quoit_fabric_iget(pe->fabric, pe->context, &strided, back, to);
    for (size_t i = 0; i < strided.count; i++)
        if (memcmp(back + (ptrdiff_t)i * own, buffer + (ptrdiff_t)i * own, element_bytes) != 0)
            sim_fail(pe->world, "PE %u got strided elements from PE %u that differ from what it put", pe->index, to);
}

static void add(struct sim_pe *pe, uint32_t to)
{
    uint64_t offset = pe->fabric->self.layout.segment_heap + COUNTERS_AT + 8 * quoit_prng_choose(&pe->prng, COUNTERS);
    if (quoit_prng_choose(&pe->prng, 2))
        quoit_fabric_amo(pe->fabric, pe->context, QUOIT_AMO_ADD, 8, offset, 1, to);
    else
        quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_ADD, 8, offset, 1, 0, to);
    pe->world->added++;
}

static void put_signal(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t to)
{
    unsigned char buffer[SIM_PIECE_BYTES], back[SIM_PIECE_BYTES];
    size_t bytes = 1 + quoit_prng_choose(&pe->prng, SIM_PIECE_BYTES);
    uint64_t piece = sim_pieces_offset(pieces, &pe->host->layout, pe->index);
    struct quoit_signal signal = {
        .offset = pe->fabric->self.layout.segment_heap + SIGNALS_AT + 8 * pe->index, .value = 1, .op = QUOIT_AMO_ADD};
    sim_fill(&pe->prng, buffer, bytes);
    quoit_fabric_fence(pe->fabric, pe->context);
    memcpy(sim_pieces_model(pieces, pe->index, to), buffer, bytes);
    uint64_t before = quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, to);
    quoit_fabric_put_signal(pe->fabric, pe->context, piece, buffer, bytes, &signal, to, false);
    while (quoit_fabric_amo_fetch(pe->fabric, pe->context, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, to) != before + 1)
        sim_spend(pe->world, pe->world->model.poll_ns);
    quoit_fabric_get(pe->fabric, pe->context, back, piece, bytes, to);
    if (memcmp(back, buffer, bytes) != 0)
        sim_fail(pe->world, "the signal of PE %u came to PE %u before its data", pe->index, to);
}

static void run_mix(struct sim_pe *pe)
{
    struct sim_pieces *pieces = pe->world->workload_state;
    for (uint32_t step = 0; step < 4 * pe->world->config.step_count; step++) {
        uint32_t to = (uint32_t)quoit_prng_choose(&pe->prng, pieces->pe_count);
        switch (quoit_prng_choose(&pe->prng, 8)) {
        case 0:
        case 1:
        case 2:
            sim_pieces_put(pe, pieces, to, quoit_prng_choose(&pe->prng, 2));
            break;
        case 3:
        case 4:
            sim_pieces_get(pe, pieces, to, quoit_prng_choose(&pe->prng, 2));
            break;
        case 5:
            put_strided(pe, pieces, to);
            break;
        case 6:
            put_signal(pe, pieces, to);
            break;
        default:
            add(pe, to);
        }
    }
}

static void check_mix(struct sim_world *world)
{
    uint64_t sum = 0;
    sim_pieces_check(world, world->workload_state);
    for (uint32_t pe = 0; pe < world->config.job.pe_count; pe++) {
        uint64_t counters[COUNTERS];
        memcpy(counters, sim_pe_segment(world, pe) + world->hosts[0].layout.segment_heap + COUNTERS_AT,
               sizeof counters);
        for (int i = 0; i < COUNTERS; i++)
            sum += counters[i];
    }
    if (sum != world->added)
        sim_fail(world, "the counters add up to %llu instead of %llu", (unsigned long long)sum,
                 (unsigned long long)world->added);
}

const struct sim_workload sim_workload_mix = {
    .name = "mix",
    .sentence = "puts, gets, strided, signals and atomics to random PEs",
    .setup = sim_pieces_setup_world,
    .run = run_mix,
    .check = check_mix,
    .teardown = sim_pieces_free_world,
};

/* Order: a PE puts n into a block of words on another, adds 1 to the block's first word by an atomic, fences, and puts
 * n into a flag; a PE that sees n in the flag must see at least n in the whole block, and, since the next step starts
 * with a fence too, at most n + 1. Puts to neighbours are direct and atomics use the proxy, so the fence must order
 * both ways; a quarter of the flags are set by atomics too. */
#define BLOCK_WORDS 96u

static uint64_t word_offset(const struct quoit_fabric *fabric, uint32_t source)
{
    return fabric->self.layout.segment_heap + 8ull * source;
}

static uint64_t block_offset(const struct quoit_fabric *fabric, uint32_t source)
{
    return fabric->self.layout.segment_heap + SIM_PIECES_START + (uint64_t)source * BLOCK_WORDS * 8;
}

static void look_at(struct sim_pe *pe, uint32_t source, uint64_t *seen)
{
    const char *segment = pe->fabric->self.segment;
    uint64_t word = __atomic_load_n((const uint64_t *)(segment + word_offset(pe->fabric, source)), __ATOMIC_ACQUIRE);
    if (word < *seen)
        sim_fail(pe->world, "PE %u saw the word of PE %u go back from %llu to %llu", pe->index, source,
                 (unsigned long long)*seen, (unsigned long long)word);
    *seen = word;
    for (uint32_t i = 0; i < BLOCK_WORDS; i++) {
        uint64_t value;
        memcpy(&value, segment + block_offset(pe->fabric, source) + 8ull * i, sizeof value);
        if (value < word || value > word + 1)
            sim_fail(pe->world, "PE %u saw a fence of PE %u broken: the flag is %llu, word %u of the block %llu",
                     pe->index, source, (unsigned long long)word, i, (unsigned long long)value);
    }
}

static void run_order(struct sim_pe *pe)
{
    struct quoit_fabric *fabric = pe->fabric;
    uint32_t pe_count = fabric->self.pe_count;
    uint64_t *seen = (uint64_t *)pe->world->workload_state + (size_t)pe->index * pe_count;
    uint64_t block[BLOCK_WORDS];
    for (uint64_t step = 1; step <= pe->world->config.step_count; step++) {
        for (uint32_t i = 0; i < pe_count; i++) {
            uint32_t to = (pe->index + i) % pe_count;
            uint32_t source = (uint32_t)quoit_prng_choose(&pe->prng, pe_count);
            for (uint32_t w = 0; w < BLOCK_WORDS; w++)
                block[w] = step;
            quoit_fabric_fence(fabric, pe->context);
            quoit_fabric_put(fabric, pe->context, block_offset(fabric, pe->index) + 8, block + 1, sizeof block - 8, to);
            quoit_fabric_amo(fabric, pe->context, QUOIT_AMO_ADD, 8, block_offset(fabric, pe->index), 1, to);
            quoit_fabric_fence(fabric, pe->context);
            if (quoit_prng_choose(&pe->prng, 4) == 0)
                quoit_fabric_amo_fetch(fabric, pe->context, QUOIT_AMO_SWAP, 8, word_offset(fabric, pe->index), step, 0,
                                       to);
            else
                quoit_fabric_put(fabric, pe->context, word_offset(fabric, pe->index), &step, 8, to);
            look_at(pe, source, &seen[source]);
        }
    }
}

static void setup_order(struct sim_world *world)
{
    size_t pe_count = world->config.job.pe_count;
    world->workload_state = calloc(pe_count * pe_count, sizeof(uint64_t));
    quoit_assert(world->workload_state != NULL);
}

static void check_order(struct sim_world *world)
{
    uint32_t pe_count = world->config.job.pe_count;
    for (uint32_t pe = 0; pe < pe_count; pe++) {
        const char *heap = sim_pe_segment(world, pe) + world->hosts[0].layout.segment_heap;
        for (uint32_t source = 0; source < pe_count; source++) {
            uint64_t word;
            memcpy(&word, heap + 8ull * source, sizeof word);
            if (word != world->config.step_count)
                sim_fail(world, "the word of PE %u at PE %u ended as %llu", source, pe, (unsigned long long)word);
        }
    }
}

static void teardown_order(struct sim_world *world)
{
    free(world->workload_state);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_order = {
    .name = "order",
    .sentence = "data, fence, flag, by different ways; every PE watches the others' flags",
    .setup = setup_order,
    .run = run_order,
    .check = check_order,
    .teardown = teardown_order,
};
