/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/workload.h"
#include "base/assert.h"
#include "host/placement.h"
#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

const struct sim_workload *const sim_workloads[] = {
    &sim_workload_mix,       &sim_workload_alltoall,   &sim_workload_hotspot,     &sim_workload_halo,
    &sim_workload_order,     &sim_workload_atomics,    &sim_workload_collectives, &sim_workload_raw,
    &sim_workload_bandwidth, &sim_workload_links,      &sim_workload_put,         &sim_workload_get,
    &sim_workload_barrier,   &sim_workload_turnaround, &sim_workload_predict,     &sim_workload_reuse,
    &sim_workload_threads,   &sim_workload_stores,     &sim_workload_calls,       &sim_workload_ethernet,
    &sim_workload_burst,     &sim_workload_network,
};
const uint32_t sim_workload_count = sizeof sim_workloads / sizeof sim_workloads[0];

const struct sim_workload *sim_workload_find(const char *name)
{
    for (uint32_t i = 0; i < sim_workload_count; i++)
        if (strcmp(sim_workloads[i]->name, name) == 0)
            return sim_workloads[i];
    return NULL;
}

static void run_pe(void *arg)
{
    struct sim_pe *pe = arg;
    struct sim_world *world = pe->world;
    const struct sim_host *host = pe->host;
    struct quoit_fabric_config config = {.layout = &host->layout,
                                         .memory = host->memory,
                                         .pe_self = pe->index,
                                         .ports = {host->proxy_config.ports[0], host->proxy_config.ports[1]},
                                         .policy = host->proxy_config.machine.policy};
    if (quoit_fabric_open(&config, &pe->fabric) != QUOIT_OK)
        sim_fail(world, "PE %u cannot open its fabric", pe->index);
    if (world->config.workload->is_network)
        sim_network_join(world, pe->fabric);
    pe->context = &pe->fabric->default_context;
    pe->regions.heap = (struct quoit_region){.base = (uintptr_t)pe->fabric->self.segment + host->layout.segment_heap,
                                             .bytes = host->layout.job.heap_bytes,
                                             .segment_offset = host->layout.segment_heap};
    pe->fabric->self.regions = &pe->regions;
    quoit_placement_start_pe(&host->layout, host->memory, pe->index - host->layout.first_pe);
    pe->fabric->self.sees_plain_stores = false; /* a change without its wake must hang the run */
    world->config.workload->run(pe);
    quoit_fabric_quiet(pe->fabric, pe->context);
    quoit_fabric_close(pe->fabric);
    pe->fabric = NULL;
    world->live_pe_count--;
    world->progress_ns = world->now_ns;
}

void sim_pes_start(struct sim_world *world)
{
    const struct quoit_job_config *job = &world->config.job;
    char name[24];
    world->pes = calloc(job->pe_count, sizeof *world->pes);
    quoit_assert(world->pes != NULL);
    for (uint32_t i = 0; i < job->pe_count; i++) {
        struct sim_pe *pe = &world->pes[i];
        pe->world = world;
        pe->host = &world->hosts[quoit_job_config_host_of_pe(job, i)];
        pe->index = i;
        pe->prng.state = quoit_prng_next(&world->chance);
        snprintf(name, sizeof name, "PE %u", i);
        world->live_pe_count++;
        sim_task_start(pe->host, name, run_pe, pe);
    }
}

void sim_pes_free(struct sim_world *world)
{
    for (uint32_t i = 0; world->pes && i < world->config.job.pe_count; i++)
        quoit_fabric_close(world->pes[i].fabric);
    free(world->pes);
}

char *sim_pe_segment(struct sim_world *world, uint32_t pe)
{
    struct sim_host *host = &world->hosts[quoit_job_config_host_of_pe(&world->config.job, pe)];
    return host->memory + quoit_layout_segment(&host->layout, pe - host->layout.first_pe);
}

void sim_fill(struct quoit_prng *prng, void *bytes, size_t count)
{
    unsigned char *to = bytes;
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word = quoit_prng_next(prng);
        memcpy(to + i, &word, count - i < 8 ? count - i : 8);
    }
}

struct sim_pieces *sim_pieces_new(struct sim_world *world, uint32_t piece_bytes)
{
    struct sim_pieces *pieces = calloc(1, sizeof *pieces);
    quoit_assert(pieces != NULL);
    pieces->pe_count = world->config.job.pe_count;
    pieces->piece_bytes = piece_bytes;
    pieces->models = calloc((size_t)pieces->pe_count * pieces->pe_count, piece_bytes);
    quoit_assert(pieces->models != NULL);
    pieces->start = world->config.pieces_start;
    if (pieces->start + (uint64_t)pieces->pe_count * piece_bytes > world->config.job.heap_bytes)
        sim_fail(world, "the heap of %llu bytes is too small for pieces of %u PEs",
                 (unsigned long long)world->config.job.heap_bytes, pieces->pe_count);
    return pieces;
}

void sim_pieces_free(struct sim_pieces *pieces)
{
    if (!pieces)
        return;
    free(pieces->models);
    free(pieces);
}

unsigned char *sim_pieces_model(struct sim_pieces *pieces, uint32_t source, uint32_t destination)
{
    return pieces->models + ((size_t)source * pieces->pe_count + destination) * pieces->piece_bytes;
}

uint64_t sim_pieces_offset(const struct sim_pieces *pieces, const struct quoit_layout *layout, uint32_t source)
{
    return layout->segment_heap + pieces->start + (uint64_t)source * pieces->piece_bytes;
}

void sim_pieces_check(struct sim_world *world, struct sim_pieces *pieces)
{
    for (uint32_t to = 0; to < pieces->pe_count; to++) {
        const char *segment = sim_pe_segment(world, to);
        for (uint32_t from = 0; from < pieces->pe_count; from++) {
            const char *piece = segment + sim_pieces_offset(pieces, &world->hosts[0].layout, from);
            const unsigned char *model = sim_pieces_model(pieces, from, to);
            for (uint32_t i = 0; i < pieces->piece_bytes && memcmp(piece, model, pieces->piece_bytes) != 0; i++)
                if ((unsigned char)piece[i] != model[i])
                    sim_fail(world, "memory of PE %u differs from the reference at byte %u of what PE %u wrote", to, i,
                             from);
        }
    }
}

void sim_pieces_setup_world(struct sim_world *world)
{
    world->workload_state = sim_pieces_new(world, SIM_PIECE_BYTES);
}

void sim_pieces_check_world(struct sim_world *world)
{
    sim_pieces_check(world, world->workload_state);
}

void sim_pieces_free_world(struct sim_world *world)
{
    sim_pieces_free(world->workload_state);
    world->workload_state = NULL;
}

/* Small sizes more often than large ones. */
static size_t choose_bytes(struct quoit_prng *prng, uint32_t piece_bytes)
{
    return quoit_prng_choose(prng, quoit_prng_choose(prng, 2) ? 64 : piece_bytes) + 1;
}

/* For tests/model/moves.py: once it has returned. */
static void trace_call(const struct sim_pe *pe, const char *call)
{
    sim_trace_text(pe->world, call, pe->index, 0, 0);
}

static void fence(struct sim_pe *pe)
{
    quoit_fabric_fence(pe->fabric, pe->context);
    trace_call(pe, "fence");
}

static void quiet(struct sim_pe *pe)
{
    quoit_fabric_quiet(pe->fabric, pe->context);
    trace_call(pe, "quiet");
}

void sim_pieces_put(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t to, bool is_nbi)
{
    unsigned char buffer[SIM_PIECE_BYTES];
    quoit_assert(pieces->piece_bytes <= sizeof buffer);
    size_t bytes = choose_bytes(&pe->prng, pieces->piece_bytes);
    size_t at = quoit_prng_choose(&pe->prng, pieces->piece_bytes - bytes + 1);
    uint64_t offset = sim_pieces_offset(pieces, &pe->host->layout, pe->index) + at;
    sim_fill(&pe->prng, buffer, bytes);
    fence(pe);
    memcpy(sim_pieces_model(pieces, pe->index, to) + at, buffer, bytes);
    if (is_nbi) {
        quoit_fabric_put_nbi(pe->fabric, pe->context, offset, buffer, bytes, to);
        quiet(pe);
    } else {
        quoit_fabric_put(pe->fabric, pe->context, offset, buffer, bytes, to);
    }
}

void sim_pieces_get(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t from, bool is_nbi)
{
    unsigned char buffer[SIM_PIECE_BYTES];
    size_t bytes = choose_bytes(&pe->prng, pieces->piece_bytes);
    size_t at = quoit_prng_choose(&pe->prng, pieces->piece_bytes - bytes + 1);
    uint64_t offset = sim_pieces_offset(pieces, &pe->host->layout, pe->index) + at;
    quiet(pe);
    memset(buffer, 0xee, bytes);
    if (is_nbi) {
        quoit_fabric_get_nbi(pe->fabric, pe->context, buffer, offset, bytes, from);
        quiet(pe);
    } else {
        quoit_fabric_get(pe->fabric, pe->context, buffer, offset, bytes, from);
    }
    if (memcmp(buffer, sim_pieces_model(pieces, pe->index, from) + at, bytes) != 0)
        sim_fail(pe->world, "PE %u got from PE %u other bytes than it had put there", pe->index, from);
}

void sim_metric_add(struct sim_world *world, const char *name, const char *unit, double value)
{
    uint32_t i = 0;
    while (i < world->metric_count && strcmp(world->metrics[i].name, name) != 0)
        i++;
    quoit_assert(i < SIM_METRICS_MAX);
    struct sim_metric *metric = &world->metrics[i];
    if (i == world->metric_count) {
        *metric = (struct sim_metric){.name = name, .unit = unit, .least = value, .largest = value};
        world->metric_count++;
    }
    metric->count++;
    metric->sum += value;
    metric->least = value < metric->least ? value : metric->least;
    metric->largest = value > metric->largest ? value : metric->largest;
}
