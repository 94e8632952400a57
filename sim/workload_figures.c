/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ring papers measured, for `quoit figures`: one link and all links by DMA; a put, its steps, a get, over one
 * and two hops; a barrier after puts; and the turnaround when all hosts send. */
#include "base/assert.h"
#include "engine/ring/ring.h"
#include "sim/workload.h"

#define DELAY_MAX_NS  4000 /* hosts are not in step with each other */
#define PUTS_IN_A_ROW 16

static uint64_t buffer_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap;
}

static char *own_buffer(const struct sim_pe *pe)
{
    return pe->fabric->self.segment + buffer_offset(pe) + pe->world->config.bytes;
}

static double us_since(const struct sim_world *world, uint64_t start_ns)
{
    return (double)(world->now_ns - start_ns) / 1000;
}

static double mb_per_s(uint64_t bytes, double us)
{
    return us > 0 ? (double)bytes / us : 0;
}

/* One link alone, and all. */

static void send(struct sim_pe *pe)
{
    struct quoit_port *port = quoit_engine_ring_port(quoit_fabric_engine(pe->fabric, "ring"), QUOIT_RIGHT);
    struct quoit_dma_done done;
    if (quoit_port_dma_submit(port, 0, QUOIT_WINDOW_MEMORY, buffer_offset(pe), own_buffer(pe), pe->world->config.bytes,
                              0) != QUOIT_OK)
        sim_fail(pe->world, "a descriptor was refused");
    while (quoit_port_dma_poll(port, 0, &done, 1) == 0)
        sim_spend(pe->world, pe->world->model.poll_ns);
}

static void run_links(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        sim_spend(world, 1 + quoit_prng_choose(&pe->prng, DELAY_MAX_NS));
        uint64_t start_ns = world->now_ns;
        send(pe);
        sim_metric_add(world, "link", "MB/s", mb_per_s(world->config.bytes, us_since(world, start_ns)));
    }
}

static void run_link(struct sim_pe *pe)
{
    if (pe->index == 0)
        run_links(pe);
}

const struct sim_workload sim_workload_link = {
    .name = "link",
    .sentence = "host 0 sends --bytes to the right by DMA",
    .measures = true,
    .run = run_link,
};

const struct sim_workload sim_workload_links = {
    .name = "links",
    .sentence = "all hosts send --bytes to the right by DMA",
    .measures = true,
    .run = run_links,
};

/* Steps of puts, as the proxy counts them in the papers' protocol. */

static uint64_t step_ns(const struct sim_pe *pe, enum quoit_put_step step)
{
    uint64_t sum = 0;
    for (uint32_t lane = 0; lane < pe->fabric->self.layout.job.lane_count; lane++)
        sum += atomic_load(&quoit_memory_lane(&pe->fabric->self.layout, pe->fabric->self.memory, lane)->put_ns[step]);
    return sum;
}

static uint64_t put_ns(const struct sim_pe *pe)
{
    uint64_t sum = 0;
    for (enum quoit_put_step step = 0; step < QUOIT_PUT_TURNAROUND; step++)
        sum += step_ns(pe, step);
    return sum;
}

/* The papers' put returns after its last step; ours returned already. */
static void await_steps(struct sim_pe *pe, uint64_t before_ns)
{
    struct sim_world *world = pe->world;
    while (world->config.job.protocol == QUOIT_PROTOCOL_SCRATCHPAD && step_ns(pe, QUOIT_PUT_DOORBELL) == before_ns)
        sim_spend(world, world->model.poll_ns);
}

/* A put lasts until its source may be used again. In the papers' protocol that is when the last of its steps is done;
 * ours returns then. */
static void measure_put(struct sim_pe *pe, uint32_t hop_count, const char *name)
{
    struct sim_world *world = pe->world;
    const struct quoit_job_config *job = &world->config.job;
    bool is_papers = job->protocol == QUOIT_PROTOCOL_SCRATCHPAD;
    uint32_t to = quoit_job_config_first_pe(job, (pe->host->index + hop_count) % job->host_count);
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t start_ns = is_papers ? put_ns(pe) : world->now_ns;
        if (is_papers)
            quoit_fabric_put_nbi(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, to);
        else
            quoit_fabric_put(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, to);
        double call_us = us_since(world, start_ns);
        quoit_fabric_quiet(pe->fabric, pe->context);
        sim_metric_add(world, name, "us", is_papers ? (double)(put_ns(pe) - start_ns) / 1000 : call_us);
    }
}

/* The data come so many hops to the right. */
static void measure_get(struct sim_pe *pe, uint32_t hop_count, const char *name)
{
    struct sim_world *world = pe->world;
    const struct quoit_job_config *job = &world->config.job;
    uint32_t from = (pe->host->index + job->host_count - hop_count) % job->host_count;
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t start_ns = world->now_ns;
        quoit_fabric_get(pe->fabric, pe->context, own_buffer(pe), buffer_offset(pe), world->config.bytes,
                         quoit_job_config_first_pe(job, from));
        sim_metric_add(world, name, "us", us_since(world, start_ns));
    }
}

static void run_put_get(struct sim_pe *pe)
{
    if (pe->index != 0)
        return;
    measure_put(pe, 1, "put, 1 hop");
    measure_put(pe, 2, "put, 2 hops");
    measure_get(pe, 1, "get, 1 hop");
    measure_get(pe, 2, "get, 2 hops");
}

const struct sim_workload sim_workload_put_get = {
    .name = "put-get",
    .sentence = "puts and gets of --bytes from one PE over 1 and 2 hops, one after the other",
    .measures = true,
    .run = run_put_get,
};

/* Puts in a row to the right. */
static void run_stream(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    const struct quoit_job_config *job = &world->config.job;
    uint64_t bytes = world->config.bytes;
    uint32_t to = quoit_job_config_first_pe(job, (pe->host->index + 1) % job->host_count);
    if (pe->index != 0)
        return;
    uint64_t start_ns = world->now_ns;
    for (uint32_t i = 0; i < PUTS_IN_A_ROW; i++)
        quoit_fabric_put_nbi(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), bytes, to);
    quoit_fabric_quiet(pe->fabric, pe->context);
    sim_metric_add(world, "put", "MB/s", mb_per_s(PUTS_IN_A_ROW * bytes, us_since(world, start_ns)));
}

const struct sim_workload sim_workload_stream = {
    .name = "stream",
    .sentence = "puts of --bytes in a row from one PE to its neighbour",
    .measures = true,
    .run = run_stream,
};

static void open_team(struct sim_pe *pe)
{
    struct quoit_team_shape all = {.start = 0, .stride = 1, .size = pe->world->config.job.pe_count};
    pe->team = quoit_team_new(pe->fabric, &all, 0, 0);
    quoit_assert(pe->team != NULL);
    quoit_coll_sync(pe->team, "start");
}

static void close_team(struct sim_pe *pe)
{
    quoit_coll_sync(pe->team, "end");
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

/* Everybody has put to the right; how long until everybody knows that all is there. */
static void run_barrier(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    const struct quoit_job_config *job = &world->config.job;
    uint32_t to = quoit_job_config_first_pe(job, (pe->host->index + 1) % job->host_count);
    open_team(pe);
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t before_ns = step_ns(pe, QUOIT_PUT_DOORBELL);
        quoit_fabric_put(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, to);
        await_steps(pe, before_ns);
        uint64_t start_ns = world->now_ns;
        quoit_fabric_quiet(pe->fabric, pe->context);
        quoit_coll_sync(pe->team, "barrier");
        sim_metric_add(world, "barrier", "us", us_since(world, start_ns));
    }
    close_team(pe);
}

const struct sim_workload sim_workload_barrier = {
    .name = "barrier",
    .sentence = "all PEs put --bytes to the right and come to a barrier",
    .measures = true,
    .run = run_barrier,
};

/* Each PE has this many puts under way to its neighbour, on contexts of their own, so that they spread over all lanes.
 */
static void run_turnaround(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    const struct quoit_job_config *job = &world->config.job;
    uint32_t right = (pe->host->index + 1) % job->host_count;
    uint32_t left = (pe->host->index + job->host_count - 1) % job->host_count;
    /* Two and four lanes get as many puts to the left as to the right, as where threads take what comes first. */
    static const bool is_to_left[SIM_TURNAROUND_PUTS] = {false, true, true, false, true, false, false, true};
    struct quoit_context contexts[SIM_TURNAROUND_PUTS];
    for (uint32_t i = 0; i < SIM_TURNAROUND_PUTS; i++)
        quoit_context_init(&contexts[i], i);
    open_team(pe);
    for (uint32_t step = 0; step < world->config.step_count; step++) {
        quoit_coll_sync(pe->team, "turnaround");
        sim_spend(world, 1 + quoit_prng_choose(&pe->prng, DELAY_MAX_NS));
        uint64_t start_ns = world->now_ns;
        for (uint32_t i = 0; i < SIM_TURNAROUND_PUTS; i++)
            quoit_fabric_put_nbi(pe->fabric, &contexts[i], buffer_offset(pe), own_buffer(pe), world->config.bytes,
                                 quoit_job_config_first_pe(job, is_to_left[i] ? left : right));
        for (uint32_t i = 0; i < SIM_TURNAROUND_PUTS; i++)
            quoit_fabric_quiet(pe->fabric, &contexts[i]);
        sim_metric_add(world, "turnaround", "us", us_since(world, start_ns));
    }
    close_team(pe);
}

const struct sim_workload sim_workload_turnaround = {
    .name = "turnaround",
    .sentence = "all PEs put --bytes to both neighbours, several at once, and wait until all are there",
    .measures = true,
    .run = run_turnaround,
};
