/* SPDX-License-Identifier: BSD-3-Clause */
/* The bare link, and puts over 1, 2 and 3 hops. The papers' measurements are in workload_figures.c. */
#include "base/assert.h"
#include "engine/ring/ring.h"
#include "sim/workload.h"

#include <stdlib.h>

static uint64_t buffer_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap;
}

/* A source in this PE's symmetric memory, after the target of others' puts. */
static char *own_buffer(const struct sim_pe *pe)
{
    return pe->fabric->self.segment + buffer_offset(pe) + pe->world->config.bytes;
}

static double mb_per_s(uint64_t bytes, uint64_t ns)
{
    return ns ? (double)bytes * 1000 / (double)ns : 0;
}

static void run_raw(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    uint64_t bytes = world->config.bytes, at = buffer_offset(pe), word;
    struct quoit_port *port = quoit_engine_ring_port(quoit_fabric_engine(pe->fabric, "ring"), QUOIT_RIGHT);
    if (pe->index != 0)
        return;
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t start_ns = world->now_ns;
        if (quoit_port_write(port, QUOIT_WINDOW_MEMORY, at, own_buffer(pe), bytes) != QUOIT_OK)
            sim_fail(world, "a write failed");
        sim_metric_add(world, "raw programmed copy", "MB/s", mb_per_s(bytes, world->now_ns - start_ns));
        if (quoit_port_read(port, QUOIT_WINDOW_MEMORY, at, &word, sizeof word) != QUOIT_OK)
            sim_fail(world, "a read failed");
        sim_metric_add(world, "raw copy, known to be there", "MB/s", mb_per_s(bytes, world->now_ns - start_ns));
        start_ns = world->now_ns;
        struct quoit_dma_done done;
        if (quoit_port_dma_submit(port, 0, QUOIT_WINDOW_MEMORY, at, own_buffer(pe), bytes, i) != QUOIT_OK)
            sim_fail(world, "a descriptor was refused");
        while (quoit_port_dma_poll(port, 0, &done, 1) == 0)
            sim_spend(world, world->model.poll_ns);
        sim_metric_add(world, "raw DMA", "MB/s", mb_per_s(bytes, world->now_ns - start_ns));
    }
}

const struct sim_workload sim_workload_raw = {
    .name = "raw",
    .sentence = "the bare link to the right: programmed copy and DMA of --bytes",
    .measures = true,
    .run = run_raw,
};

/* The first PE that many hosts to the right; this PE if the ring is too small for that to be the shortest route. */
static uint32_t pe_at(const struct sim_pe *pe, uint32_t hop_count)
{
    const struct quoit_job_config *job = &pe->world->config.job;
    if (hop_count > job->host_count / 2)
        return pe->index;
    return quoit_job_config_first_pe(job, (pe->host->index + hop_count) % job->host_count);
}

/* Consecutive puts, then quiet: the rate at which data arrives. */
#define PUTS_IN_A_ROW 16
static void measure_puts(struct sim_pe *pe, uint32_t to, const char *name, const char *name_one)
{
    struct sim_world *world = pe->world;
    uint64_t bytes = world->config.bytes;
    if (to == pe->index)
        return;
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t start_ns = world->now_ns;
        quoit_fabric_put(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), bytes, to);
        quoit_fabric_quiet(pe->fabric, pe->context);
        sim_metric_add(world, name_one, "us", (double)(world->now_ns - start_ns) / 1000);
    }
    uint64_t start_ns = world->now_ns;
    for (uint32_t i = 0; i < PUTS_IN_A_ROW; i++)
        quoit_fabric_put_nbi(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), bytes, to);
    quoit_fabric_quiet(pe->fabric, pe->context);
    sim_metric_add(world, name, "MB/s", mb_per_s(PUTS_IN_A_ROW * bytes, world->now_ns - start_ns));
}

static void run_bandwidth(struct sim_pe *pe)
{
    if (pe->index != 0)
        return;
    measure_puts(pe, pe_at(pe, 1), "put, 1 hop", "put and quiet, 1 hop");
    measure_puts(pe, pe_at(pe, 2), "put, 2 hops", "put and quiet, 2 hops");
    measure_puts(pe, pe_at(pe, 3), "put, 3 hops", "put and quiet, 3 hops");
}

const struct sim_workload sim_workload_bandwidth = {
    .name = "bandwidth",
    .sentence = "puts of --bytes from one PE over 1, 2 and 3 hops",
    .measures = true,
    .run = run_bandwidth,
};

static void add_words(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)into)[i] += ((const uint64_t *)from)[i];
}

enum { CALL_BARRIER, CALL_REDUCE, CALL_ALLTOALL, CALL_COUNT };

/* As in quoit perf, there is a barrier after so many of the others. */
#define CALLS_MAX 16

static void meet(struct sim_pe *pe, const char *name)
{
    sim_spend(pe->world, pe->world->model.call_ns);
    quoit_fabric_quiet(pe->fabric, pe->context);
    quoit_coll_sync(pe->team, name);
}

static void call(struct sim_pe *pe, int kind, const char *name)
{
    uint64_t dest = buffer_offset(pe), source = dest + pe->world->config.bytes;
    if (kind == CALL_BARRIER) {
        meet(pe, name);
        return;
    }
    sim_spend(pe->world, pe->world->model.call_ns);
    if (kind == CALL_REDUCE)
        quoit_coll_reduce(pe->team, dest, source, 1, 8, add_words, name);
    else
        quoit_coll_alltoall(pe->team, dest, source, 8, name);
}

/* Consecutive collectives of 8 bytes, as in a benchmark; the first ones wake all PEs. */
static void run_calls(struct sim_pe *pe)
{
    static const char *const names[CALL_COUNT] = {"barrier", "reduce", "alltoall"};
    struct sim_world *world = pe->world;
    struct quoit_team_range all = {.start = 0, .stride = 1, .size = world->config.job.pe_count};
    uint32_t count = world->config.step_count;
    pe->team = quoit_team_new(pe->fabric, &all, 0, 0);
    quoit_assert(pe->team != NULL);
    for (int kind = 0; kind < CALL_COUNT; kind++) {
        uint64_t start_ns = 0;
        for (uint32_t i = 0; i < 2 * count; i++) {
            if (i == count)
                start_ns = world->now_ns;
            call(pe, kind, names[kind]);
            world->progress_ns = world->now_ns; /* direct puts are no requests, whose ends count otherwise */
            if (kind != CALL_BARRIER && i % CALLS_MAX == CALLS_MAX - 1)
                meet(pe, "barrier");
        }
        if (pe->index == 0)
            sim_metric_add(world, names[kind], "us", (double)(world->now_ns - start_ns) / 1000 / count);
    }
    quoit_coll_sync(pe->team, "end");
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

const struct sim_workload sim_workload_calls = {
    .name = "calls",
    .sentence = "barrier, reduction and all-to-all of 8 bytes by all PEs, each many times",
    .measures = true,
    .run = run_calls,
};

void sim_measure_put_steps(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->config.job.host_count * world->config.job.lane_count; i++) {
        struct sim_host *host = &world->hosts[i / world->config.job.lane_count];
        const struct quoit_lane_shared *lane =
            quoit_memory_lane(&host->layout, host->memory, i % world->config.job.lane_count);
        double put_count = (double)atomic_load(&lane->put_count);
        for (enum quoit_put_step step = 0; step < QUOIT_PUT_STEP_COUNT && put_count > 0; step++)
            sim_metric_add(world, quoit_put_step_name(step), "us",
                           (double)atomic_load(&lane->put_ns[step]) / put_count / 1000);
    }
}
