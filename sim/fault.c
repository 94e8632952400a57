/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/fault.h"
#include "base/assert.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#define HOST_PAUSE_NS     400000
#define LANE_PAUSE_NS     200000
#define DOORBELL_DELAY_NS 200000
#define NOISE_NS          3000
#define SLOWNESS_MAX      16
#define EXTRA_LATENCY_NS  20000
#define DMA_DELAY_NS      100000
#define DMA_STALL_NS      4000
#define DMA_FAILS_ONE_IN  40
#define SKEW_NS           30000
#define FLAP_NS           20000
#define BLINKS_AT_START   6
#define BLINKS            12

/* One of the world's faults, with the event of its next occurrence. */
struct fault_state {
    struct sim_event event;
    struct sim_world *world;
    const struct sim_fault *fault;
    uint32_t strike_count;
};

static void freeze(struct sim_task *task, uint64_t until_ns)
{
    if (task->frozen_until_ns < until_ns)
        task->frozen_until_ns = until_ns;
}

static void delay_host(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.job.host_count)];
    uint64_t until_ns = world->now_ns + sim_choose(world, HOST_PAUSE_NS);
    for (uint32_t i = 0; i < host->task_count; i++)
        freeze(host->tasks[i], until_ns);
}

static void stall_lane(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.job.host_count)];
    struct sim_task *task = host->services[sim_choose(world, world->config.job.lane_count)].task;
    freeze(task, world->now_ns + sim_choose(world, LANE_PAUSE_NS));
}

/* One direction of a link slows down, or recovers. */
static void slow_link(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.job.host_count)];
    struct sim_end *end = host->ends[sim_choose(world, QUOIT_SIDE_COUNT)];
    end->slowness = 1 + sim_choose(world, 2) * sim_choose(world, SLOWNESS_MAX);
    end->extra_latency_ns = sim_choose(world, 2) * sim_choose(world, EXTRA_LATENCY_NS);
    if (end->other) {
        end->other->slowness = end->slowness;
        end->other->extra_latency_ns = end->extra_latency_ns;
    }
}

static void late_doorbells(struct sim_world *world)
{
    world->doorbell_delay_ns = DOORBELL_DELAY_NS;
}

static void tear_writes(struct sim_world *world)
{
    world->tears_writes = true;
}

static void make_noise(struct sim_world *world)
{
    world->noise_ns = NOISE_NS;
}

static void delay_dma(struct sim_world *world)
{
    world->dma_delay_ns = DMA_DELAY_NS;
}

static void stall_dma(struct sim_world *world)
{
    world->dma_stall_ns = DMA_STALL_NS;
}

static void fail_dma(struct sim_world *world)
{
    world->dma_fails_one_in = DMA_FAILS_ONE_IN;
}

static void skew_ways(struct sim_world *world)
{
    world->skew_ns = SKEW_NS;
}

/* Links: cut at an instant, whatever is in flight. A cable is named by the left of its ends, in the first client's
 * world, where its mending is scheduled. */

static void cut(struct sim_end *end)
{
    for (struct sim_world *world = end->world; world; world = world->next) {
        world->has_outages = true;
        world->cut_count++;
    }
    sim_link_cut(end, true);
}

static void mend(struct sim_event *event)
{
    struct sim_end *end = ((struct sim_mend *)event)->end;
    if (end->is_dead)
        return;
    for (struct sim_world *world = end->world; world; world = world->next)
        world->cut_count--;
    sim_link_cut(end, false);
}

static void cut_for(struct sim_world *world, struct sim_end *end, uint64_t outage_ns)
{
    cut(end);
    end->mend.event = (struct sim_event){.fire = mend, .kind = "mend", .who = end->index};
    sim_schedule(end->world, &end->mend.event, world->now_ns + outage_ns);
}

/* Too short to be detected while the ends are busy with the previous outage, or long enough for all updates. */
static uint64_t choose_outage(struct sim_world *world)
{
    static const uint64_t most_ns[] = {2000, 50000, 500000, 3000000};
    return 1 + sim_choose(world, most_ns[sim_choose(world, sizeof most_ns / sizeof most_ns[0])]);
}

static struct sim_end *choose_link(struct sim_world *world)
{
    return sim_link(world->first, (uint32_t)sim_choose(world, world->config.job.host_count));
}

static void cut_for_a_while(struct sim_world *world, struct sim_end *end)
{
    cut_for(world, end, choose_outage(world));
}

static void cut_any_link(struct sim_world *world)
{
    struct sim_end *end = choose_link(world);
    if (!end->is_cut)
        cut_for_a_while(world, end);
}

static void cut_one_link(struct sim_world *world)
{
    if (world->cut_count == 0)
        cut_any_link(world);
}

/* One and the same, and no other meanwhile: a link that flaps is held down. */
static void flap(struct sim_world *world)
{
    struct sim_end *end = sim_link(world->first, (uint32_t)(world->config.seed % world->config.job.host_count));
    if (world->cut_count == 0)
        cut_for(world, end, 1 + sim_choose(world, FLAP_NS));
}

/* Spread over the start-up; later the managers make few calls, and the interval between two calls is what matters. */
static uint64_t calls_a_blink(const struct sim_world *world)
{
    if (!world->pes)
        return 64;
    return world->current->is_service && !world->current->lane ? 8 : 400;
}

void sim_fault_blink(struct sim_end *end)
{
    struct sim_world *world = end->world;
    struct sim_end *right = end->index % 2 == 0 ? end : end->peer;
    struct sim_end *link = right->world == world->first ? right : right->other;
    bool is_over = world->pes && world->live_pe_count == 0;
    if (is_over || end->is_dead || !world->current || sim_choose(world, calls_a_blink(world)) != 0)
        return;
    world->blinks_left--;
    if (!end->is_cut)
        cut_for_a_while(world, link);
    if (end->is_cut && sim_choose(world, 2) == 0) { /* before any other host sees it, or before its time */
        sim_queue_remove(&link->world->queue, &link->mend.event);
        mend(&link->mend.event);
    }
}

static void start_blinks(struct sim_world *world)
{
    world->blinks_left = BLINKS;
}

static void kill_end(struct sim_end *end)
{
    if (end->is_dead)
        return;
    for (struct sim_end *one = end; one; one = one == end ? end->other : NULL)
        one->is_dead = one->peer->is_dead = true;
    if (!end->is_cut)
        cut(end);
    for (struct sim_world *world = end->world; world; world = world->next)
        if (++world->dead_count == 2)
            world->cut_off_ns = world->now_ns;
}

void sim_link_kill(struct sim_world *world, uint32_t link)
{
    kill_end(sim_link(world->first, link));
}

static void kill_link(struct sim_world *world)
{
    kill_end(choose_link(world));
}

static void kill_two_links(struct sim_world *world)
{
    uint32_t before = world->dead_count;
    while (world->dead_count == before && before < world->config.job.host_count)
        kill_link(world);
}

static void kill_host(struct sim_world *world)
{
    uint32_t index = (uint32_t)sim_choose(world, world->config.job.host_count);
    struct sim_host *host = &world->first->hosts[index];
    for (struct sim_world *client = world->first; client; client = client->next)
        client->hosts[index].is_dead = true;
    kill_end(host->ends[QUOIT_RIGHT]);
    kill_end(host->ends[QUOIT_LEFT]->peer);
}

static void kill_client(struct sim_world *world)
{
    struct sim_world *client = world->first->next;
    if (client && !client->is_gone)
        sim_world_end_client(client);
}

const struct sim_fault sim_faults[] = {
    {"delay-host", "all of a host stands still for up to 400 us", 300000, 0, 4, SIM_FAULT_DELAY, delay_host},
    {"stall-lane", "a service thread stands still for up to 200 us", 100000, 0, 4, SIM_FAULT_DELAY, stall_lane},
    {"slow-link", "a direction of a link gets up to 16 times slower and 20 us longer, or is mended", 100000, 0, 4,
     SIM_FAULT_DELAY, slow_link},
    {"late-doorbells", "doorbells interrupt up to 200 us late, and so merge", 0, 0, 4, SIM_FAULT_DELAY, late_doorbells},
    {"torn-writes", "writes travel in pieces of 8 to 512 bytes", 0, 0, 4, SIM_FAULT_DELAY, tear_writes},
    {"noise", "all work takes up to 3 us longer", 0, 0, 4, SIM_FAULT_DELAY, make_noise},
    {"late-dma", "DMA is known to be done up to 100 us late", 0, 0, 4, SIM_FAULT_DELAY, delay_dma},
    {"slow-dma", "DMA reads its source late, in pieces of 8 to 512 bytes, up to 4 us apart", 0, 0, 4, SIM_FAULT_DELAY,
     stall_dma},
    {"dma-failures", "one piece of DMA in 40 is not read, and its descriptor fails", 0, 0, 4, SIM_FAULT_DELAY,
     fail_dma},
    {"skew", "writes, and each channel of DMA, arrive up to 30 us later than the others", 0, 0, 4, SIM_FAULT_DELAY,
     skew_ways},
    {"link", "a link is cut for up to 3 ms, one at a time", 300000, 12, 3, SIM_FAULT_OUTAGE, cut_one_link},
    {"links", "links are cut for up to 3 ms, any number at a time", 400000, 12, 8, SIM_FAULT_OUTAGE, cut_any_link},
    {"flap", "one link is cut again and again, until it is held down", 60000, 9, 8, SIM_FAULT_OUTAGE, flap},
    {"blink", "a link is cut or mended between two calls of a port, while the proxies start too", 0, 0, 4,
     SIM_FAULT_OUTAGE, start_blinks},
    {"dead-client", "the second client of the links ends; the first one must not notice", 500000, 1, 4, SIM_FAULT_DELAY,
     kill_client},
    {"dead-link", "one link is cut and stays so", 400000, 1, 8, SIM_FAULT_OUTAGE, kill_link},
    {"dead-links", "two links are cut and stay so: every host has to say so, in time", 400000, 2, 24, SIM_FAULT_FINAL,
     kill_two_links},
    {"dead-host", "a host stops, and its links are cut: every other host has to say so, in time", 600000, 1, 24,
     SIM_FAULT_FINAL, kill_host},
};
const uint32_t sim_fault_count = sizeof sim_faults / sizeof sim_faults[0];

const struct sim_fault *sim_fault_find(const char *name)
{
    for (uint32_t i = 0; i < sim_fault_count; i++)
        if (strcmp(sim_faults[i].name, name) == 0)
            return &sim_faults[i];
    return NULL;
}

bool sim_fault_leaves_dead(const struct sim_fault *fault)
{
    return fault->kind == SIM_FAULT_FINAL || fault->strike == kill_link;
}

/* A job does not start on a ring with a dead link, and says so: links die when all clients have started. */
static bool is_too_early(const struct fault_state *state)
{
    const struct sim_world *second = state->world->first->next;
    return sim_fault_leaves_dead(state->fault) && second && second->ready_host_count < second->config.job.host_count;
}

static void strike(struct sim_event *event)
{
    struct fault_state *state = (struct fault_state *)event;
    struct sim_world *world = state->world;
    if (world->live_pe_count == 0)
        return;
    if (is_too_early(state)) {
        sim_schedule(world, event, world->now_ns + 1 + sim_choose(world, 2 * state->fault->every_ns));
        return;
    }
    state->fault->strike(world);
    state->strike_count++;
    if (state->fault->every_ns && state->strike_count != state->fault->strike_max)
        sim_schedule(world, event, world->now_ns + 1 + sim_choose(world, 2 * state->fault->every_ns));
}

void sim_faults_prepare(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->config.fault_count; i++)
        if (world->config.faults[i]->strike == start_blinks)
            world->blinks_left = BLINKS_AT_START;
}

void sim_faults_start(struct sim_world *world)
{
    struct fault_state *states = calloc(SIM_FAULTS_MAX, sizeof *states);
    quoit_assert(states != NULL);
    world->fault_states = states;
    for (uint32_t i = 0; i < world->config.fault_count; i++) {
        const struct sim_fault *fault = world->config.faults[i];
        states[i] = (struct fault_state){
            .event = {.fire = strike, .kind = fault->name, .who = i}, .world = world, .fault = fault};
        sim_schedule(world, &states[i].event,
                     world->now_ns + (fault->every_ns ? sim_choose(world, fault->every_ns) : 0));
    }
}

void sim_faults_end(struct sim_world *world)
{
    free(world->fault_states);
    world->fault_states = NULL;
}
