/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world.h"
#include "base/assert.h"
#include "ring/route.h"
#include "sim/age.h"
#include "sim/cache.h"
#include "sim/canary.h"
#include "sim/fault.h"
#include "sim/ledger.h"
#include "sim/observe.h"
#include "sim/workload.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LINK_TIMEOUT_NS   1000000000u
#define START_SPREAD_NS   3000000u
#define LINK_LIMIT_NS     20000000u   /* limit for two dead links */
#define LINK_SLACK_NS     25000000u   /* after that, for updates and the managers */
#define REST_LIMIT_NS     1000000000u /* from the end of the last PE until everything is quiescent */
#define NO_PROGRESS_NS    500000000u  /* of virtual time, with the PEs at work */
#define NO_PROGRESS_STEPS 50000000u   /* or so many events */

/* Primitives and observers have no argument to pass it in. */
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
        if (world != world->first && !world->first->has_failed) {
            snprintf(world->first->failure, sizeof world->first->failure, "the second client: %.*s",
                     SIM_FAILURE_BYTES - 32, world->failure);
            world->first->has_failed = true;
        }
    }
    if (world->current)
        sim_task_leave(world); /* never resumed */
    _longjmp(world->first->escape, 1);
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
    sim_trace_text(world, kind, a, b, c);
}

void sim_trace_text(struct sim_world *world, const char *kind, uint64_t a, uint64_t b, uint64_t c)
{
    if (world->config.trace)
        fprintf(world->config.trace, "%" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIx64 " %" PRIx64 "\n",
                world->event_count, world->now_ns, kind, a, b, c);
}

/* Proxies: the first lane's task brings the links up, as quoit_proxy_run() does. */

static void serve(void *arg)
{
    struct sim_service *service = arg;
    struct sim_host *host = service->host;
    host->world->current->lane = quoit_proxy_lane(host->proxy, service->lane);
    enum quoit_status status = quoit_proxy_serve(host->proxy, service->lane);
    if (status != QUOIT_OK)
        sim_fail(host->world, "lane %u of host %u ended: %s", service->lane, host->index, quoit_status_text(status));
}

static void manage(void *arg)
{
    struct sim_host *host = arg;
    enum quoit_status status = quoit_proxy_manage(host->proxy);
    if (status != QUOIT_OK)
        sim_fail(host->world, "the manager of host %u ended: %s", host->index, quoit_status_text(status));
}

static struct sim_task *start_service(struct sim_host *host, const char *name, void (*run)(void *arg), void *arg)
{
    struct sim_task *task = sim_task_start(host, name, run, arg);
    task->is_service = true;
    task->process = host->index;
    return task;
}

static void run_proxy(void *arg)
{
    struct sim_host *host = arg;
    struct sim_world *world = host->world;
    char name[24];
    if (world->blinks_left > 0) /* links may come up at one end long before that host's other link does */
        sim_block(world, world->now_ns + sim_choose(world, START_SPREAD_NS));
    if (quoit_proxy_open(&host->proxy_config, &host->proxy) != QUOIT_OK)
        sim_fail(world, "the proxy of host %u cannot start", host->index);
    if (world->config.is_old)
        sim_host_age(host);
    for (uint32_t lane = 1; lane < world->config.job.lane_count; lane++) {
        snprintf(name, sizeof name, "host %u lane %u", host->index, lane);
        host->services[lane].task = start_service(host, name, serve, &host->services[lane]);
    }
    snprintf(name, sizeof name, "host %u links", host->index);
    start_service(host, name, manage, host);
    if (++world->ready_host_count == world->config.job.host_count) {
        sim_pes_start(world);
        sim_faults_start(world);
        sim_canary_start(world);
    }
    serve(&host->services[0]);
}

/* A proxy reports two dead links. The first report would end the job; here all live hosts must report. */
static void hear_cut_off(void *arg, uint32_t first, uint32_t second)
{
    struct sim_host *host = arg;
    struct sim_world *world = host->world;
    sim_trace(world, "cut off", host->index, first, second);
    if (first >= second || second >= world->config.job.host_count || !sim_link(world, first)->is_dead ||
        !sim_link(world, second)->is_dead)
        sim_fail(world, "host %u says that links %u and %u are dead, which they are not", host->index, first, second);
    if (world->now_ns < world->cut_off_ns + LINK_LIMIT_NS)
        sim_fail(world, "host %u says too early that two links are dead", host->index);
    host->has_told = true;
    world->is_cut_off = true;
    for (uint32_t i = 0; i < world->config.job.host_count; i++)
        world->is_cut_off &= world->hosts[i].has_told || world->hosts[i].is_dead;
}

static void init_host(struct sim_world *world, uint32_t index)
{
    struct sim_host *host = &world->hosts[index];
    const struct quoit_job_config *job = &world->config.job;
    host->world = world;
    host->index = index;
    uint32_t shared_count = (uint32_t)world->model.shared_core_count;
    host->own_cores.free_count = (uint32_t)world->model.core_count;
    quoit_assert(quoit_layout_make(job, index, &host->layout) == QUOIT_OK);
    quoit_assert(host->layout.total_bytes <= world->memory_bytes);
    host->memory = world->memory + index * world->memory_bytes;
    host->proxy_config = (struct quoit_proxy_config){
        .layout = &host->layout,
        .memory = host->memory,
        .machine = quoit_machine_of(job, index, shared_count != 0,
                                    shared_count ? shared_count : (uint32_t)world->model.core_count),
        .link_timeout_ns = LINK_TIMEOUT_NS,
        .link_limit_ns = LINK_LIMIT_NS,
        .on_cut_off = hear_cut_off,
        .on_ready_arg = host,
        .dma_bytes = world->config.dma_bytes,
    };
    for (uint32_t lane = 0; lane < job->lane_count; lane++)
        host->services[lane] = (struct sim_service){.host = host, .lane = lane};
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        host->ends[side] = calloc(1, sizeof *host->ends[side]);
        quoit_assert(host->ends[side] != NULL);
        sim_port_describe(host->ends[side], &host->port_endpoints[side]);
        host->proxy_config.ports[side] =
            (struct quoit_port_config){.driver = &sim_port_driver,
                                       .memory = {.base = host->memory, .bytes = host->layout.total_bytes},
                                       .endpoint = &host->port_endpoints[side]};
    }
}

/* The first host has the most PEs. One mapping, so that an address identifies its host. */
static void map_memory(struct sim_world *world)
{
    const struct quoit_job_config *job = &world->config.job;
    struct quoit_layout layout;
    quoit_assert(quoit_layout_make(job, 0, &layout) == QUOIT_OK);
    world->memory_bytes = layout.total_bytes;
    world->memory = mmap(NULL, job->host_count * world->memory_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    quoit_assert(world->memory != MAP_FAILED);
}

static void share_cores(struct sim_world *world)
{
    if (world->model.shared_core_count == 0)
        return;
    world->shared_cores = calloc(world->model.shared_core_count, sizeof *world->shared_cores);
    quoit_assert(world->shared_cores != NULL);
    for (uint64_t i = 0; i < world->model.shared_core_count; i++)
        world->shared_cores[i].free_count = 1;
    if (world->model.cache_bytes != 0)
        world->cache = sim_cache_new(world);
}

static struct sim_world *new_client(const struct sim_config *config)
{
    uint32_t host_count = config->job.host_count;
    struct sim_world *world = calloc(1, sizeof *world);
    quoit_assert(world != NULL);
    world->first = world;
    world->config = *config;
    world->model = config->model;
    world->chance.state = config->seed;
    world->trace_hash = config->seed;
    world->hosts = calloc(host_count, sizeof *world->hosts);
    world->metrics = calloc(SIM_METRICS_MAX, sizeof *world->metrics);
    quoit_assert(world->hosts != NULL && world->metrics != NULL);
    map_memory(world);
    share_cores(world);
    for (uint32_t i = 0; i < host_count; i++)
        init_host(world, i);
    for (uint32_t i = 0; i < host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        struct sim_host *right = &world->hosts[quoit_ring_neighbour(host_count, QUOIT_RIGHT, i)];
        sim_end_init(host->ends[QUOIT_RIGHT], host, right->ends[QUOIT_LEFT], 2 * i);
        sim_end_init(right->ends[QUOIT_LEFT], right, host->ends[QUOIT_RIGHT], 2 * i + 1);
    }
    world->ledger = sim_ledger_new(world);
    return world;
}

struct sim_world *sim_world_new(const struct sim_config *config, const struct sim_config *second)
{
    quoit_assert(current_world == NULL);
    struct sim_world *world = new_client(config);
    if (second) {
        quoit_assert(second->job.host_count == config->job.host_count);
        world->next = new_client(second);
        world->next->first = world;
        for (uint32_t i = 0; i < config->job.host_count; i++)
            for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
                sim_end_share(world->hosts[i].ends[side], world->next->hosts[i].ends[side]);
    }
    current_world = world;
    quoit_primitives = &sim_primitives;
    quoit_observer = &sim_observer;
    return world;
}

static void start_proxies(struct sim_world *world)
{
    char name[24];
    for (uint32_t i = 0; i < world->config.job.host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        snprintf(name, sizeof name, "host %u lane 0", i);
        host->services[0].task = start_service(host, name, run_proxy, host);
    }
}

static void free_client(struct sim_world *world)
{
    current_world = world;
    if (world->config.workload->teardown && world->workload_state)
        world->config.workload->teardown(world);
    sim_pes_free(world);
    sim_ledger_free(world->ledger);
    for (uint32_t i = 0; i < world->config.job.host_count; i++)
        quoit_proxy_close(world->hosts[i].proxy); /* which the neighbours' ends see */
    for (uint32_t i = 0; i < world->config.job.host_count; i++) {
        struct sim_host *host = &world->hosts[i];
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
            sim_end_free(host->ends[side]);
            free(host->ends[side]);
        }
        free(host->tasks);
    }
    sim_canary_end(world); /* after what takes its events out of the queue, where these still are */
    sim_faults_end(world);
    munmap(world->memory, world->config.job.host_count * world->memory_bytes);
    for (uint32_t i = 0; i < world->task_count; i++)
        sim_task_free(world->tasks[i]);
    free(world->tasks);
    free(world->hosts);
    free(world->shared_cores);
    sim_cache_free(world->cache);
    free(world->metrics);
    sim_queue_free(&world->queue);
    free(world);
}

void sim_world_free(struct sim_world *world)
{
    for (uint32_t i = 0; world->next && i < world->config.job.host_count; i++)
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            world->hosts[i].ends[side]->other = NULL;
    if (world->next)
        free_client(world->next);
    free_client(world);
    quoit_primitives = NULL;
    quoit_observer = NULL;
    current_world = NULL;
}

void sim_world_end_client(struct sim_world *client)
{
    client->is_gone = true;
    client->live_pe_count = 0;
    sim_trace(client, "client ends", 0, 0, 0);
    for (uint32_t i = 0; i < client->config.job.host_count; i++)
        client->hosts[i].is_dead = true;
    for (uint32_t i = 0; i < client->config.job.host_count; i++)
        sim_end_close(sim_link(client, i));
}

static void check_all_lanes(struct sim_world *world)
{
    for (uint32_t host = 0; host < world->config.job.host_count; host++)
        for (uint32_t lane = 0; world->hosts[host].proxy && lane < world->config.job.lane_count; lane++)
            quoit_lane_check_invariants(quoit_proxy_lane(world->hosts[host].proxy, lane));
}

static const char *state_text(const struct sim_task *task)
{
    static const char *const texts[] = {"is at work", "is looking", "waits for a core", "is asleep", "has ended"};
    return texts[task->state];
}

/* Tasks that have not ended, and what they do; threads of proxies only with with_services. Returns how many. */
static uint32_t list_tasks(const struct sim_world *world, bool with_services, char *list, size_t bytes)
{
    size_t at = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->task_count; i++) {
        const struct sim_task *task = world->tasks[i];
        if (task->state == SIM_TASK_ENDED || task->host->is_dead || (!with_services && task->is_service))
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

static void check_progress(struct sim_world *world)
{
    if (world->seen_progress_ns != world->progress_ns) {
        world->seen_progress_ns = world->progress_ns;
        world->seen_progress_event = world->event_count;
    }
    if (world->live_pe_count > 0 && !world->is_cut_off &&
        (world->now_ns - world->progress_ns > NO_PROGRESS_NS ||
         world->event_count - world->seen_progress_event > NO_PROGRESS_STEPS))
        fail_stuck(world);
}

/* PEs of any client are at work, so links may still be cut. */
static bool has_live_pes(const struct sim_world *world)
{
    return world->first->live_pe_count > 0 || (world->first->next && world->first->next->live_pe_count > 0);
}

/* Two dead links must be reported in time; and once the PEs have ended everything must become quiescent. */
static void check_deadlines(struct sim_world *world)
{
    uint32_t silent = 0;
    if (has_live_pes(world) || !world->pes)
        world->rest_since_ns = world->now_ns;
    if (world->now_ns - world->rest_since_ns > REST_LIMIT_NS)
        sim_fail(world, "the PEs have ended, but links and lanes do not come to rest");
    if (world->dead_count < 2 || world->live_pe_count == 0 ||
        world->now_ns <= world->cut_off_ns + LINK_LIMIT_NS + LINK_SLACK_NS || world->is_cut_off)
        return;
    while (world->hosts[silent].has_told || world->hosts[silent].is_dead)
        silent++;
    sim_fail(world, "two links are dead, and host %u has not said so in time", silent);
}

static bool is_patient_manager(const struct sim_event *event)
{
    const struct sim_task *task = (const struct sim_task *)event;
    return event->fire == sim_task_fire && task->is_service && !task->lane && task->sleeps_on != NULL;
}

static bool links_are_up(const struct sim_world *world)
{
    for (uint32_t i = 0; i < world->config.job.host_count; i++) {
        const struct sim_host *host = &world->hosts[i];
        const struct quoit_host_header *header = (const struct quoit_host_header *)host->memory;
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            if (!host->ends[side]->is_dead && quoit_link_state_of(&header->links[side]) != QUOIT_LINK_STATE_UP)
                return false;
    }
    return true;
}

/* Only managers of links still run, which check for changes. */
static bool is_at_rest(const struct sim_world *world)
{
    if (world->is_gone || world->is_cut_off)
        return true;
    for (uint32_t i = 1; i <= world->queue.count; i++)
        if (!is_patient_manager(world->queue.heap[i]))
            return false;
    return (world->dead_count < 2 || world->live_pe_count == 0) && links_are_up(world);
}

/* The client with the next event; NULL: nothing will happen any more. */
static struct sim_world *next_to_run(struct sim_world *first)
{
    const struct sim_queue *one = &first->queue, *two = first->next ? &first->next->queue : NULL;
    if (!two || two->count == 0)
        return one->count > 0 ? first : NULL;
    if (one->count == 0)
        return first->next;
    if (one->heap[1]->at_ns == two->heap[1]->at_ns)
        return sim_choose(first, 2) ? first->next : first;
    return one->heap[1]->at_ns < two->heap[1]->at_ns ? first : first->next;
}

static void run_event(struct sim_world *world, bool is_ending)
{
    uint64_t every = world->config.check_all_every;
    struct sim_event *event = sim_queue_next(&world->queue);
    quoit_assert(event->at_ns >= world->now_ns);
    for (struct sim_world *client = world->first; client; client = client->next)
        client->now_ns = event->at_ns;
    current_world = world;
    world->event_count++;
    sim_trace(world, event->kind, event->who, 0, 0);
    event->fire(event);
    if (every && world->event_count % every == 0)
        check_all_lanes(world);
    check_progress(world);
    if (!is_ending)
        check_deadlines(world);
}

/* Until nothing more happens; is_ending: until every task has stopped. */
static void run_events(struct sim_world *first, bool is_ending)
{
    struct sim_world *world;
    while (!first->has_failed && (world = next_to_run(first)) != NULL) {
        if (!is_ending && is_at_rest(first) && (!first->next || is_at_rest(first->next)))
            return;
        run_event(world, is_ending);
    }
}

/* Nothing more happens: every task must have ended. */
static void check_nobody_waits(struct sim_world *world, bool is_end)
{
    char list[SIM_FAILURE_BYTES / 2] = "";
    if (list_tasks(world, is_end, list, sizeof list) > 0)
        sim_fail(world, "%s: %s", is_end ? "some tasks do not stop" : "nothing moves any more", list);
    if (world->ready_host_count < world->config.job.host_count)
        sim_fail(world, "only %u hosts came up", world->ready_host_count);
}

/* Updates about every link have arrived everywhere: a working link that is considered dead would be noticed only when
 * another one fails. */
static void check_knowledge(struct sim_world *world, const struct quoit_lane *lane)
{
    struct quoit_ring_topology topology;
    quoit_ring_topology(quoit_queue_of(lane)->ring, &topology);
    if (topology.dead_count != world->dead_count)
        sim_fail(world, "lane %u of host %u holds %u links for dead, and %u are", lane->index, lane->layout->host,
                 topology.dead_count, world->dead_count);
}

static void check_quiet(struct sim_world *world)
{
    check_all_lanes(world);
    sim_ledger_check_end(world->ledger);
    for (uint32_t host = 0; host < world->config.job.host_count && world->dead_count < 2; host++)
        for (uint32_t index = 0; index < world->config.job.lane_count; index++) {
            const struct quoit_lane *lane = quoit_proxy_lane(world->hosts[host].proxy, index);
            if (!quoit_lane_is_quiescent(lane))
                sim_fail(world, "lane %u of host %u does not come to rest: a credit, a request or a reply is missing",
                         index, host);
            if (quoit_queue_of(lane))
                check_knowledge(world, lane);
        }
    if (world->config.workload->check)
        world->config.workload->check(world);
}

bool sim_world_quiesce(struct sim_world *world)
{
    if (_setjmp(world->escape) != 0)
        return false;
    run_events(world, false);
    return !world->has_failed;
}

static void start_client(struct sim_world *world)
{
    current_world = world;
    if (world->config.workload->setup)
        world->config.workload->setup(world);
    sim_faults_prepare(world);
    start_proxies(world);
}

/* A client that is at rest; then its threads are told to stop. */
static void stop_client(struct sim_world *world)
{
    if (world->is_gone || world->is_cut_off)
        return;
    current_world = world;
    check_nobody_waits(world, false);
    check_quiet(world);
    for (uint32_t host = 0; host < world->config.job.host_count; host++)
        quoit_proxy_stop(&world->hosts[host].layout, world->hosts[host].memory);
}

bool sim_world_run(struct sim_world *world)
{
    struct sim_world *const first = world;
    if (_setjmp(first->escape) != 0)
        return false;
    bool is_cut_off = false;
    for (world = first; world; world = world->next)
        start_client(world);
    run_events(first, false);
    for (world = first; world && !first->has_failed; world = world->next) {
        stop_client(world);
        is_cut_off |= world->is_cut_off;
    }
    if (first->has_failed || is_cut_off)
        return !first->has_failed;
    run_events(first, true);
    for (world = first; world && !first->has_failed; world = world->next)
        if (!world->is_gone)
            check_nobody_waits(world, true);
    return !first->has_failed;
}
