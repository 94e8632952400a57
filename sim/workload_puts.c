/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets in fixed patterns: all to all, all to one, and all to their neighbours. */
#include "sim/workload.h"

#include <string.h>

static void run_alltoall(struct sim_pe *pe)
{
    struct sim_pieces *pieces = pe->world->workload_state;
    for (uint32_t step = 0; step < pe->world->config.step_count; step++) {
        for (uint32_t i = 1; i <= pieces->pe_count; i++)
            sim_pieces_put(pe, pieces, (pe->index + i) % pieces->pe_count, false);
        sim_pieces_get(pe, pieces, (uint32_t)quoit_prng_choose(&pe->prng, pieces->pe_count), false);
    }
}

const struct sim_workload sim_workload_alltoall = {
    .name = "alltoall",
    .sentence = "every PE puts to every other PE, again and again",
    .setup = sim_pieces_setup_world,
    .run = run_alltoall,
    .check = sim_pieces_check_world,
    .teardown = sim_pieces_free_world,
};

/* The target PE changes every few steps, so that every queue is the congested one in turn. */
static void run_hotspot(struct sim_pe *pe)
{
    struct sim_pieces *pieces = pe->world->workload_state;
    for (uint32_t step = 0; step < 3 * pe->world->config.step_count; step++) {
        uint32_t hot = step / 8 % pieces->pe_count;
        if (quoit_prng_choose(&pe->prng, 4) == 0)
            sim_pieces_get(pe, pieces, hot, quoit_prng_choose(&pe->prng, 2));
        else
            sim_pieces_put(pe, pieces, hot, quoit_prng_choose(&pe->prng, 2));
    }
}

const struct sim_workload sim_workload_hotspot = {
    .name = "hotspot",
    .sentence = "all PEs put to and get from one PE, which changes every few steps",
    .setup = sim_pieces_setup_world,
    .run = run_hotspot,
    .check = sim_pieces_check_world,
    .teardown = sim_pieces_free_world,
};

/* Halo: rows go to both neighbours with a signal each; a PE continues when both signals have arrived, and knows the
 * expected contents. A row arrives in one of two buffers: the one of two steps ago has been read, since its reader
 * signalled after that. */
#define ROW_BYTES 1536u

static uint64_t row_offset(const struct quoit_fabric *fabric, uint32_t from_side, uint32_t step)
{
    return fabric->self.layout.segment_heap + SIM_PIECES_START + (2ull * from_side + step % 2) * ROW_BYTES;
}

static uint64_t signal_offset(const struct quoit_fabric *fabric, uint32_t from_side)
{
    return fabric->self.layout.segment_heap + 64ull * from_side;
}

static uint32_t make_row(uint64_t seed, uint32_t pe, uint32_t step, uint32_t side, unsigned char *row_out)
{
    struct quoit_prng prng = {.state = seed ^ ((uint64_t)pe << 40) ^ ((uint64_t)step << 8) ^ side};
    uint32_t bytes = 1 + (uint32_t)quoit_prng_choose(&prng, ROW_BYTES);
    sim_fill(&prng, row_out, bytes);
    return bytes;
}

struct signal_wait {
    const uint64_t *word;
    uint64_t value;
};

static bool has_signal(void *arg)
{
    const struct signal_wait *wait = arg;
    return __atomic_load_n(wait->word, __ATOMIC_ACQUIRE) >= wait->value;
}

static void run_halo(struct sim_pe *pe)
{
    struct quoit_fabric *fabric = pe->fabric;
    uint64_t seed = pe->world->config.seed;
    uint32_t pe_count = fabric->self.pe_count;
    uint32_t others[2] = {(pe->index + pe_count - 1) % pe_count, (pe->index + 1) % pe_count};
    unsigned char row[ROW_BYTES];
    for (uint32_t step = 0; step < 2 * pe->world->config.step_count; step++) {
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t bytes = make_row(seed, pe->index, step, side, row);
            struct quoit_signal signal = {.offset = signal_offset(fabric, 1 - side), .value = 1, .op = QUOIT_AMO_ADD};
            quoit_fabric_fence(fabric, pe->context);
            quoit_fabric_put_signal(fabric, pe->context, row_offset(fabric, 1 - side, step), row, bytes, &signal,
                                    others[side], false);
        }
        for (uint32_t side = 0; side < 2; side++) {
            uint64_t offset = signal_offset(fabric, side);
            struct signal_wait wait = {(uint64_t *)(fabric->self.segment + offset), step + 1};
            quoit_self_wait_at(&fabric->self, offset, sizeof(uint64_t), has_signal, &wait, "halo", NULL);
            uint32_t bytes = make_row(seed, others[side], step, 1 - side, row);
            if (memcmp(fabric->self.segment + row_offset(fabric, side, step), row, bytes) != 0)
                sim_fail(pe->world, "PE %u saw the signal of step %u from PE %u before its row", pe->index, step,
                         others[side]);
        }
    }
}

static void check_halo(struct sim_world *world)
{
    for (uint32_t pe = 0; pe < world->config.job.pe_count; pe++) {
        for (uint32_t side = 0; side < 2; side++) {
            uint64_t count;
            memcpy(&count, sim_pe_segment(world, pe) + world->hosts[0].layout.segment_heap + 64ull * side,
                   sizeof count);
            if (count != 2ull * world->config.step_count)
                sim_fail(world, "PE %u was signalled %llu times instead of %u", pe, (unsigned long long)count,
                         2 * world->config.step_count);
        }
    }
}

const struct sim_workload sim_workload_halo = {
    .name = "halo",
    .sentence = "rows with signals to both neighbours, then wait for theirs",
    .run = run_halo,
    .check = check_halo,
};
