/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/run.h"
#include "base/assert.h"
#include "sim/canary.h"
#include "sim/fault.h"
#include "sim/ledger.h"
#include "sim/network.h"

#include <string.h>

#define HOSTS_MOST      11
#define STEPS_MOST      8
#define CHECK_ALL_EVERY 1000
#define HEAP_PAGE       4096u
#define HUGE_PAGE       (2ull << 20)
#define BYTES_MEASURED  (1u << 20)
#define STEPS_MEASURED  5
#define SECOND_ONE_IN   5 /* runs that have a second client */

void sim_plan_default(struct sim_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    sim_model_default(&plan->model);
    plan->pattern = (struct sim_pattern){.hop_count = 1, .sends = "rl"};
}

static uint32_t or_else(uint32_t asked, uint64_t chosen)
{
    return asked ? asked : (uint32_t)chosen;
}

static const struct sim_workload *choose_workload(struct quoit_prng *prng)
{
    const struct sim_workload *workload;
    do
        workload = sim_workloads[quoit_prng_choose(prng, sim_workload_count)];
    while (workload->measures);
    return workload;
}

/* Whether a fault chosen by the seed applies: with a canary no fault may end the run or mask the mistake, and with a
 * fault that ends it no other outage may obscure which links are dead. */
static bool is_fitting(const struct sim_fault *fault, const struct sim_config *config, const struct sim_fault *final)
{
    const struct sim_canary *canary = config->canary;
    if (fault->kind == SIM_FAULT_DELAY || !quoit_job_config_has_failover(&config->job))
        return fault->kind == SIM_FAULT_DELAY;
    return canary ? canary->needs_outage && fault == sim_fault_find("link") : !final || fault == final;
}

static void choose_faults(struct quoit_prng *prng, struct sim_config *config)
{
    const struct sim_fault *chosen[SIM_FAULTS_MAX];
    const struct sim_fault *final = NULL;
    uint32_t chosen_count = 0;
    for (uint32_t i = 0; i < sim_fault_count; i++) {
        const struct sim_fault *fault = &sim_faults[i];
        bool is_needed = config->canary && config->canary->needs_outage && fault == sim_fault_find("link");
        if ((quoit_prng_choose(prng, fault->one_in) != 0 && !is_needed) || chosen_count == SIM_FAULTS_MAX)
            continue;
        chosen[chosen_count++] = fault;
        if (fault->kind == SIM_FAULT_FINAL)
            final = fault;
    }
    for (uint32_t i = 0; i < chosen_count; i++)
        if (is_fitting(chosen[i], config, final))
            config->faults[config->fault_count++] = chosen[i];
}

/* Pieces are at the start of the heap, or where the window into the first segment of a host ends, if a window can end
 * there. */
static void place_pieces(const struct sim_plan *plan, struct quoit_prng *prng, struct sim_config *config)
{
    struct quoit_job_config *job = &config->job;
    uint64_t pieces_bytes = (uint64_t)job->pe_count * SIM_PIECE_BYTES;
    uint64_t back = 8 * quoit_prng_choose(prng, pieces_bytes / 8);
    bool is_far = quoit_prng_choose(prng, 4) == 0;
    config->pieces_start = SIM_PIECES_START;
    if (is_far && !plan->has_own_window) {
        config->model.window_memory_mib = 2 * HUGE_PAGE >> 20; /* the heap starts within the window */
        config->pieces_start = HUGE_PAGE - back;
    }
    uint64_t heap_bytes = config->pieces_start + pieces_bytes;
    uint64_t least_bytes = config->workload->heap_bytes ? config->workload->heap_bytes(job->pe_count) : 0;
    heap_bytes = heap_bytes < least_bytes ? least_bytes : heap_bytes;
    job->heap_bytes = (heap_bytes + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE;
}

/* Every choice is drawn whether needed or not, so that options do not change the other choices. */
static void choose_small(const struct sim_plan *plan, struct quoit_prng *prng, struct sim_config *config)
{
    struct quoit_job_config *job = &config->job;
    config->checks_each_step = true;
    config->check_all_every = CHECK_ALL_EVERY;
    static const uint64_t windows_mib[] = {65536, 65536, 8, 4, 2};
    static const uint64_t slot_counts[8] = {2, 2, 2, 3, 3, 4, 4, 16};
    static const uint64_t dma_bytes[] = {QUOIT_DMA_MEASURED, QUOIT_DMA_NEVER, 1, 1};
    job->host_count = or_else(plan->host_count, 2 + quoit_prng_choose(prng, HOSTS_MOST - 1));
    job->pe_count = or_else(plan->pe_count, job->host_count + quoit_prng_choose(prng, 4));
    job->lane_count = or_else(plan->lane_count, 1u << quoit_prng_choose(prng, 4));
    job->slot_count = or_else(plan->slot_count, slot_counts[quoit_prng_choose(prng, 8)]);
    job->chunk_bytes = or_else(plan->chunk_bytes, 64u << quoit_prng_choose(prng, 7));
    config->step_count = or_else(plan->step_count, 1 + quoit_prng_choose(prng, STEPS_MOST));
    const struct sim_workload *workload = choose_workload(prng);
    config->workload = plan->workload ? plan->workload : workload;
    uint64_t window_mib = windows_mib[quoit_prng_choose(prng, sizeof windows_mib / sizeof windows_mib[0])];
    if (!plan->has_own_window)
        config->model.window_memory_mib = window_mib;
    config->permutes_ties = quoit_prng_choose(prng, 2);
    bool has_direct_puts = quoit_prng_choose(prng, 2);
    config->has_direct_puts = plan->has_own_way ? plan->has_direct_puts : has_direct_puts;
    config->has_posted_puts = plan->has_own_way ? plan->has_posted_puts : !has_direct_puts;
    uint64_t core_count = 1 + quoit_prng_choose(prng, 6);
    if (config->model.core_count > core_count)
        config->model.core_count = core_count;
    if (plan->fault_count == 0 && !plan->has_no_faults)
        choose_faults(prng, config);
    uint64_t from_bytes = dma_bytes[quoit_prng_choose(prng, sizeof dma_bytes / sizeof dma_bytes[0])];
    config->dma_bytes = plan->has_own_dma ? plan->dma_bytes : from_bytes;
    config->is_old = quoit_prng_choose(prng, 2);
    place_pieces(plan, prng, config);
    uint64_t second_seed = quoit_prng_next(prng) | 1;
    bool has_second = quoit_prng_choose(prng, SECOND_ONE_IN) == 0 && !plan->canary && !plan->trace;
    if (plan->client_count ? plan->client_count > 1 : has_second)
        config->second_seed = second_seed;
}

/* The network's constants are those of a job, waking and copies included. */
static void take_network(struct sim_config *config)
{
    struct sim_model *model = &config->model;
    config->job.protocol = QUOIT_PROTOCOL_NETWORK;
    model->wake_call_ns = model->thread_wake_ns = model->sleep_call_ns = model->journal_ps_per_byte = 0;
}

static void take_measured(const struct sim_plan *plan, struct sim_config *config)
{
    struct quoit_job_config *job = &config->job;
    config->workload = plan->workload;
    job->host_count = or_else(plan->host_count, SIM_HOSTS_MEASURED);
    job->pe_count = or_else(plan->pe_count, job->host_count);
    job->lane_count = or_else(plan->lane_count, 1);
    job->slot_count = or_else(plan->slot_count, 16);
    job->chunk_bytes = or_else(plan->chunk_bytes, 32768);
    config->step_count = or_else(plan->step_count, STEPS_MEASURED);
    config->pieces_start = SIM_PIECES_START;
    config->has_direct_puts = plan->has_direct_puts;
    config->has_posted_puts = plan->has_posted_puts;
    config->dma_bytes = plan->dma_bytes;
    config->bytes = plan->bytes ? plan->bytes : BYTES_MEASURED;
    if (plan->workload->is_network)
        take_network(config);
    uint64_t own_bytes = plan->workload->heap_bytes ? plan->workload->heap_bytes(job->pe_count) : 0;
    job->heap_bytes = (own_bytes + 2 * config->bytes + HEAP_PAGE - 1) / HEAP_PAGE * HEAP_PAGE;
}

void sim_config_choose(const struct sim_plan *plan, uint64_t seed, struct sim_config *config_out)
{
    struct quoit_prng prng = {.state = seed};
    memset(config_out, 0, sizeof *config_out);
    config_out->seed = seed;
    config_out->model = plan->model;
    config_out->canary = plan->canary;
    if (plan->canary && plan->canary->register_write_ns)
        config_out->model.register_write_ns = plan->canary->register_write_ns;
    config_out->trace = plan->trace;
    config_out->has_page_dma = plan->has_page_dma;
    config_out->pattern = plan->pattern;
    config_out->job.data_bytes = HEAP_PAGE;
    config_out->job.protocol = plan->protocol;
    config_out->job.barrier = plan->barrier;
    config_out->job.payload = plan->payload;
    config_out->job.schedules = plan->schedules;
    memcpy(config_out->faults, plan->faults, sizeof config_out->faults);
    config_out->fault_count = plan->fault_count;
    if (plan->workload && plan->workload->measures)
        take_measured(plan, config_out);
    else
        choose_small(plan, &prng, config_out);
}

static bool has_outages(const struct sim_config *config)
{
    for (uint32_t i = 0; i < config->fault_count; i++)
        if (config->faults[i]->kind == SIM_FAULT_OUTAGE || config->faults[i]->kind == SIM_FAULT_FINAL)
            return true;
    return false;
}

/* Links that stay dead are the first client's. So are all cuts, if it has any: those of both in turn could keep two
 * links down for longer than the limit after which hosts are cut off. */
bool sim_config_choose_second(const struct sim_plan *plan, const struct sim_config *config,
                              struct sim_config *second_out)
{
    struct sim_plan own = *plan;
    uint32_t kept_count = 0;
    if (config->second_seed == 0)
        return false;
    own.host_count = config->job.host_count;
    own.client_count = 1;
    own.trace = NULL;
    own.canary = NULL;
    sim_config_choose(&own, config->second_seed, second_out);
    for (uint32_t i = 0; i < second_out->fault_count; i++)
        if (!sim_fault_leaves_dead(second_out->faults[i]) &&
            (second_out->faults[i]->kind != SIM_FAULT_OUTAGE || !has_outages(config)))
            second_out->faults[kept_count++] = second_out->faults[i];
    second_out->fault_count = kept_count;
    return true;
}

void sim_run(const struct sim_config *config, const struct sim_config *second, struct sim_result *result_out)
{
    struct sim_world *world = sim_world_new(config, second);
    memset(result_out, 0, sizeof *result_out);
    result_out->is_ok = config->workload->is_network ? sim_network_run(world) : sim_world_run(world);
    if (config->workload->measures && quoit_job_config_traits(&config->job)->has_put_steps)
        sim_measure_put_steps(world);
    result_out->has_canary_sung = sim_canary_was_made(world);
    memcpy(result_out->failure, world->failure, sizeof result_out->failure);
    for (const struct sim_world *client = world; client; client = client->next) {
        result_out->trace_hash ^= client->trace_hash;
        result_out->event_count += client->event_count;
        result_out->request_count += sim_ledger_count(client->ledger);
    }
    result_out->virtual_ns = world->now_ns;
    result_out->is_cut_off = world->is_cut_off;
    result_out->has_lost_client = world->next && world->next->is_gone;
    memcpy(result_out->metrics, world->metrics, SIM_METRICS_MAX * sizeof world->metrics[0]);
    result_out->metric_count = world->metric_count;
    sim_world_free(world);
}
