/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world.h"
#include "base/assert.h"
#include "sim/canary.h"
#include "sim/fault.h"
#include "sim/ledger.h"
#include "sim/workload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINK_TIMEOUT_NS   1000000000u
#define NO_PROGRESS_NS    10000000000u /* of virtual time, with the PEs at work */
#define NO_PROGRESS_STEPS 50000000u    /* or so many events */

/* The functions that replace those of env/ have no argument to hand it in. */
static struct sim_world *current_world;

struct sim_world *sim_world_current(void)
{
    return current_world;
}

void sim_fail(struct sim_world *world, const char *format, ...)
{
    if (!world->has_failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(world->failure, sizeof world->failure, format, args);
        va_end(args);
        world->has_failed = true;
    }
    if (world->current)
        swapcontext(&world->current->context, &world->main_context); /* never resumed */
    siglongjmp(world->escape, 1);
}

uint64_t sim_choose(struct sim_world *world, uint64_t n)
{
    return quoit_prng_choose(&world->chance, n);
}

void sim_schedule(struct sim_world *world, struct sim_event *event, uint64_t at_ns)
{
    uint64_t tie = world->config.permutes_ties ? quoit_prng_next(&world->chance) : 0;
    sim_queue_add(&world->queue, event, at_ns > world->now_ns ? at_ns : world->now_ns, tie);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 31);
}

void sim_trace(struct sim_world *world, const char *kind, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t hash = mix(world->trace_hash, world->now_ns);
    for (const char *letter = kind; *letter; letter++)
        hash = mix(hash, (unsigned char)*letter);
    world->trace_hash = mix(mix(mix(hash, a), b), c);
    if (world->config.trace)
        fprintf(world->config.trace, "%" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIx64 " %" PRIx64 "\n",
                world->event_count, world->now_ns, kind, a, b, c);
}

const struct quoit_lane *sim_task_lane(const struct sim_task *task)
{
    const struct sim_host *host = task->host;
    for (uint32_t lane = 0; host->node && lane < host->world->config.shape.lane_count; lane++)
        if (host->services[lane].task == task)
            return quoit_node_lane(host->node, lane);
    return NULL;
}

/* Nodes: the first lane's task brings the links up and closes at the end, as quoit_node_run() does. */

static void serve(void *arg)
{
    struct sim_service *service = arg;
    struct sim_host *host = service->host;
    enum quoit_status status = quoit_node_serve(host->node, service->lane);
    if (status != QUOIT_OK)
        sim_fail(host->world, "lane %u of host %u ended: %s", service->lane, host->index, quoit_status_text(status));
}

static void run_node(void *arg)
{
    struct sim_host *host = arg;
    struct sim_world *world = host->world;
    char name[24];
    if (quoit_node_open(&host->node_config, &host->node) != QUOIT_OK)
        sim_fail(world, "the node of host %u cannot start", host->index);
    for (uint32_t lane = 1; lane < world->config.shape.lane_count; lane++) {
        snprintf(name, sizeof name, "host %u lane %u", host->index, lane);
        host->services[lane].task = sim_task_start(host, name, serve, &host->services[lane]);
    }
    if (++world->ready_host_count == world->config.shape.host_count) {
        sim_pes_start(world);
        sim_faults_start(world);
        sim_canary_start(world);
    }
    serve(&host->services[0]);
}

static void init_host(struct sim_world *world, uint32_t index)
{
    struct sim_host *host = &world->hosts[index];
    const struct quoit_shape *shape = &world->config.shape;
    host->world = world;
    host->index = index;
    host->free_core_count = (uint32_t)world->model.core_count;
    quoit_assert(quoit_layout_make(shape, index, &host->layout) == QUOIT_OK);
    host->memory = mmap(NULL, host->layout.total_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    quoit_assert(host->memory != MAP_FAILED);
    uint32_t thread_count = host->layout.local_count + shape->lane_count;
    host->node_config = (struct quoit_node_config){
        .layout = &host->layout,
        .memory = host->memory,
        .policy = quoit_wait_policy_for(thread_count, host->free_core_count),
        .link_timeout_ns = LINK_TIMEOUT_NS,
        .dma_bytes = world->config.dma_bytes,
    };
    for (uint32_t lane = 0; lane < shape->lane_count; lane++)
        host->services[lane] = (struct sim_service){.host = host, .lane = lane};
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        host->ends[side] = calloc(1, sizeof *host->ends[side]);
        quoit_assert(host->ends[side] != NULL);
        host->port_configs[side].end = host->ends[side];
        host->node_config.ports[side] =
            (struct quoit_port_config){.driver = &sim_port_driver,
                                       .memory = {.base = host->memory, .bytes = host->layout.total_bytes},
                                       .driver_config = &host->port_configs[side]};
    }
}

struct sim_world *sim_world_new(const struct sim_config *config)
{
    uint32_t host_count = config->shape.host_count;
    struct sim_world *world = calloc(1, sizeof *world);
    quoit_assert(world != NULL);
    quoit_assert(current_world == NULL);
    world->config = *config;
    world->model = config->model;
    world->chance.state = config->seed;
    world->trace_hash = config->seed;
    world->hosts = calloc(host_count, sizeof *world->hosts);
    world->metrics = calloc(SIM_METRICS_MAX, sizeof *world->metrics);
    quoit_assert(world->hosts != NULL && world->metrics != NULL);
    for (uint32_t i = 0; i < host_count; i++)
        init_host(world, i);
    for (uint32_t i = 0; i < host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        struct sim_host *right = &world->hosts[(i + 1) % host_count];
        sim_end_init(host->ends[QUOIT_RIGHT], host, right->ends[QUOIT_LEFT], 2 * i);
        sim_end_init(right->ends[QUOIT_LEFT], right, host->ends[QUOIT_RIGHT], 2 * i + 1);
    }
    world->ledger = sim_ledger_new(world);
    current_world = world;
    return world;
}

static void start_nodes(struct sim_world *world)
{
    char name[24];
    for (uint32_t i = 0; i < world->config.shape.host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        snprintf(name, sizeof name, "host %u lane 0", i);
        host->services[0].task = sim_task_start(host, name, run_node, host);
    }
}

void sim_world_free(struct sim_world *world)
{
    if (world->config.workload->teardown && world->workload_state)
        world->config.workload->teardown(world);
    sim_pes_free(world);
    sim_canary_end(world);
    sim_faults_end(world);
    sim_ledger_free(world->ledger);
    for (uint32_t i = 0; i < world->config.shape.host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        quoit_node_close(host->node);
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
            sim_end_free(host->ends[side]);
            free(host->ends[side]);
        }
        munmap(host->memory, host->layout.total_bytes);
        free(host->tasks);
    }
    for (uint32_t i = 0; i < world->task_count; i++)
        sim_task_free(world->tasks[i]);
    free(world->tasks);
    free(world->hosts);
    free(world->metrics);
    sim_queue_free(&world->queue);
    current_world = NULL;
    free(world);
}

static void check_all_lanes(struct sim_world *world)
{
    for (uint32_t host = 0; host < world->config.shape.host_count; host++)
        for (uint32_t lane = 0; world->hosts[host].node && lane < world->config.shape.lane_count; lane++)
            quoit_lane_check_invariants(quoit_node_lane(world->hosts[host].node, lane));
}

static const char *state_text(const struct sim_task *task)
{
    static const char *const texts[] = {"is at work", "is looking", "waits for a core", "is asleep", "has ended"};
    return texts[task->state];
}

/* Who has not ended, and what they do; of lanes only when with_lanes. Returns how many. */
static uint32_t list_tasks(const struct sim_world *world, bool with_lanes, char *list, size_t bytes)
{
    size_t at = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->task_count; i++) {
        const struct sim_task *task = world->tasks[i];
        if (task->state == SIM_TASK_ENDED || (!with_lanes && sim_task_lane(task)))
            continue;
        count++;
        if (at < bytes - 40)
            at += (size_t)snprintf(list + at, bytes - at, "%s%s %s", at ? ", " : "", task->name, state_text(task));
    }
    return count;
}

static void fail_stuck(struct sim_world *world)
{
    char list[SIM_FAILURE_BYTES / 2] = "";
    list_tasks(world, true, list, sizeof list);
    sim_fail(world, "no PE has got anywhere since %llu us: %s", (unsigned long long)(world->progress_ns / 1000), list);
}

static void check_progress(struct sim_world *world, uint64_t *last_progress_ns, uint64_t *last_event)
{
    if (*last_progress_ns != world->progress_ns) {
        *last_progress_ns = world->progress_ns;
        *last_event = world->event_count;
    }
    if (world->live_pe_count > 0 &&
        (world->now_ns - world->progress_ns > NO_PROGRESS_NS || world->event_count - *last_event > NO_PROGRESS_STEPS))
        fail_stuck(world);
}

static void run_events(struct sim_world *world)
{
    uint64_t every = world->config.check_all_every;
    uint64_t last_progress_ns = 0, last_event = 0;
    struct sim_event *event;
    while (!world->has_failed && (event = sim_queue_next(&world->queue)) != NULL) {
        quoit_assert(event->at_ns >= world->now_ns);
        world->now_ns = event->at_ns;
        world->event_count++;
        sim_trace(world, event->kind, event->who, 0, 0);
        event->fire(event);
        if (every && world->event_count % every == 0)
            check_all_lanes(world);
        check_progress(world, &last_progress_ns, &last_event);
    }
}

/* Nothing will happen any more: everybody must have come to the end. */
static void check_nobody_waits(struct sim_world *world, bool is_end)
{
    char list[SIM_FAILURE_BYTES / 2] = "";
    if (list_tasks(world, is_end, list, sizeof list) > 0)
        sim_fail(world, "%s: %s", is_end ? "some tasks do not stop" : "nothing moves any more", list);
    if (world->ready_host_count < world->config.shape.host_count)
        sim_fail(world, "only %u hosts came up", world->ready_host_count);
}

static void check_quiet(struct sim_world *world)
{
    check_all_lanes(world);
    sim_ledger_check_end(world->ledger);
    for (uint32_t host = 0; host < world->config.shape.host_count; host++)
        for (uint32_t lane = 0; lane < world->config.shape.lane_count; lane++)
            if (!quoit_lane_is_quiescent(quoit_node_lane(world->hosts[host].node, lane)))
                sim_fail(world, "lane %u of host %u does not come to rest: a credit, a request or a reply is missing",
                         lane, host);
    if (world->config.workload->check)
        world->config.workload->check(world);
}

bool sim_world_settle(struct sim_world *world)
{
    if (sigsetjmp(world->escape, 0) != 0)
        return false;
    run_events(world);
    return !world->has_failed;
}

bool sim_world_run(struct sim_world *world)
{
    if (sigsetjmp(world->escape, 0) != 0)
        return false;
    if (world->config.workload->setup)
        world->config.workload->setup(world);
    start_nodes(world);
    run_events(world);
    if (world->has_failed)
        return false;
    check_nobody_waits(world, false);
    check_quiet(world);
    for (uint32_t host = 0; host < world->config.shape.host_count; host++)
        quoit_node_stop(&world->hosts[host].layout, world->hosts[host].memory);
    run_events(world);
    if (world->has_failed)
        return false;
    check_nobody_waits(world, true);
    return true;
}
