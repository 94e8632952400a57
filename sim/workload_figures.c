/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of the ring papers, for `quoit figures`: links by DMA; puts and their steps; gets; a barrier after
 * puts; and the turnaround when all hosts send. struct sim_pattern says which hosts send, how far, and how puts follow
 * each other. */
#include "base/assert.h"
#include "engine/ring/ring.h"
#include "sim/workload.h"

#include <string.h>

#define DELAY_MAX_NS 4000 /* hosts are not synchronised */

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

static bool is_sender(const struct sim_pe *pe)
{
    const struct sim_pattern *pattern = &pe->world->config.pattern;
    return pattern->has_all_senders || pe->host->index == pattern->sender;
}

/* The first PE that many hosts to the right; negative: to the left. */
static uint32_t pe_at(const struct sim_pe *pe, int64_t distance)
{
    const struct quoit_job_config *job = &pe->world->config.job;
    int64_t host = ((int64_t)pe->host->index + distance) % job->host_count;
    return quoit_job_config_first_pe(job, (uint32_t)(host < 0 ? host + job->host_count : host));
}

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

/* One metric for each of the first links, so that each can be plotted, and one for all. */
static void run_links(struct sim_pe *pe)
{
    static const char *const names[] = {"link 0", "link 1", "link 2", "link 3", "link 4"};
    struct sim_world *world = pe->world;
    for (uint32_t i = 0; i < world->config.step_count && is_sender(pe); i++) {
        sim_spend(world, 1 + quoit_prng_choose(&pe->prng, DELAY_MAX_NS));
        uint64_t start_ns = world->now_ns;
        send(pe);
        double rate = (double)world->config.bytes / us_since(world, start_ns);
        sim_metric_add(world, "link", "MB/s", rate);
        if (pe->host->index < sizeof names / sizeof names[0])
            sim_metric_add(world, names[pe->host->index], "MB/s", rate);
    }
}

const struct sim_workload sim_workload_links = {
    .name = "links",
    .sentence = "hosts send --bytes to the right by DMA, each link for itself",
    .measures = true,
    .run = run_links,
};

/* Doorbell time of puts at this host: it grows with the last step of each put at the source. */
static uint64_t doorbell_ns(const struct sim_pe *pe)
{
    uint64_t sum = 0;
    for (uint32_t lane = 0; lane < pe->fabric->self.layout.job.lane_count; lane++)
        sum += atomic_load(
            &quoit_memory_lane(&pe->fabric->self.layout, pe->fabric->self.memory, lane)->put_ns[QUOIT_PUT_DOORBELL]);
    return sum;
}

/* The papers' put returns after its last step at the source; ours returned already. */
static void await_steps(struct sim_pe *pe, uint64_t before_ns)
{
    struct sim_world *world = pe->world;
    bool has_steps = quoit_job_config_traits(&world->config.job)->has_put_steps;
    if (has_steps && world->config.bytes > world->config.job.chunk_bytes)
        sim_fail(world, "a put of the papers' protocol is one transfer, but --chunk is less than --bytes");
    while (has_steps && doorbell_ns(pe) == before_ns)
        sim_spend(world, world->model.poll_ns);
}

/* "put" ends when the call of a blocking put returns; "put, there" when all are known to have arrived, per put. */
static void run_put(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    const struct sim_pattern *pattern = &world->config.pattern;
    uint32_t count = world->config.step_count, to = pe_at(pe, pattern->hop_count);
    if (!is_sender(pe))
        return;
    sim_spend(world, 1 + quoit_prng_choose(&pe->prng, DELAY_MAX_NS));
    uint64_t begin_ns = world->now_ns;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t start_ns = world->now_ns, before_ns = doorbell_ns(pe);
        if (quoit_job_config_traits(&world->config.job)->has_put_steps || pattern->issue == SIM_ISSUE_TOGETHER)
            quoit_fabric_put_nbi(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, to);
        else
            quoit_fabric_put(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, to);
        sim_spend(world, world->model.call_ns);
        if (pattern->issue == SIM_ISSUE_TOGETHER)
            continue;
        await_steps(pe, before_ns);
        sim_metric_add(world, "put", "us", us_since(world, start_ns));
        if (pattern->issue == SIM_ISSUE_QUIET) {
            quoit_fabric_quiet(pe->fabric, pe->context);
            sim_spend(world, world->model.call_ns);
        }
    }
    quoit_fabric_quiet(pe->fabric, pe->context);
    sim_metric_add(world, "put, there", "us", us_since(world, begin_ns) / count);
}

const struct sim_workload sim_workload_put = {
    .name = "put",
    .sentence = "puts of --bytes over --hops to the right",
    .measures = true,
    .run = run_put,
};

/* The data travel that many hops to the right. */
static void run_get(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    uint32_t from = pe_at(pe, -(int64_t)world->config.pattern.hop_count);
    for (uint32_t i = 0; i < world->config.step_count && is_sender(pe); i++) {
        uint64_t start_ns = world->now_ns;
        quoit_fabric_get(pe->fabric, pe->context, own_buffer(pe), buffer_offset(pe), world->config.bytes, from);
        sim_spend(world, world->model.call_ns);
        sim_metric_add(world, "get", "us", us_since(world, start_ns));
    }
}

const struct sim_workload sim_workload_get = {
    .name = "get",
    .sentence = "gets of --bytes, which come over --hops to the right",
    .measures = true,
    .run = run_get,
};

static void open_team(struct sim_pe *pe)
{
    struct quoit_team_range all = {.start = 0, .stride = 1, .size = pe->world->config.job.pe_count};
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

/* All PEs have put to the right; the time until every PE knows that everything has arrived. */
static void run_barrier(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    open_team(pe);
    for (uint32_t i = 0; i < world->config.step_count; i++) {
        uint64_t before_ns = doorbell_ns(pe);
        quoit_fabric_put(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), world->config.bytes, pe_at(pe, 1));
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

/* Each PE has this many puts outstanding to its neighbours, on separate contexts, so that they spread over all lanes;
 * pattern.sends selects the neighbour of each. */
static void run_turnaround(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    const char *sends = world->config.pattern.sends;
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
                                 pe_at(pe, sends[i % strlen(sends)] == 'l' ? -1 : 1));
        for (uint32_t i = 0; i < SIM_TURNAROUND_PUTS; i++)
            quoit_fabric_quiet(pe->fabric, &contexts[i]);
        sim_metric_add(world, "turnaround", "us", us_since(world, start_ns));
    }
    close_team(pe);
}

const struct sim_workload sim_workload_turnaround = {
    .name = "turnaround",
    .sentence = "all PEs have 8 puts of --bytes under way to their neighbours, as --sends says, and wait for all",
    .measures = true,
    .run = run_turnaround,
};
