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

/* One of the world's faults, with the event of its next strike. */
struct fault_state {
    struct sim_event event;
    struct sim_world *world;
    const struct sim_fault *fault;
};

static void freeze(struct sim_task *task, uint64_t until_ns)
{
    if (task->frozen_until_ns < until_ns)
        task->frozen_until_ns = until_ns;
}

static void delay_host(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.shape.host_count)];
    uint64_t until_ns = world->now_ns + sim_choose(world, HOST_PAUSE_NS);
    for (uint32_t i = 0; i < host->task_count; i++)
        freeze(host->tasks[i], until_ns);
}

static void stall_lane(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.shape.host_count)];
    struct sim_task *task = host->services[sim_choose(world, world->config.shape.lane_count)].task;
    freeze(task, world->now_ns + sim_choose(world, LANE_PAUSE_NS));
}

/* One direction of a link takes longer, or is mended. */
static void slow_link(struct sim_world *world)
{
    struct sim_host *host = &world->hosts[sim_choose(world, world->config.shape.host_count)];
    struct sim_end *end = host->ends[sim_choose(world, QUOIT_SIDE_COUNT)];
    end->slowness = 1 + sim_choose(world, 2) * sim_choose(world, SLOWNESS_MAX);
    end->extra_latency_ns = sim_choose(world, 2) * sim_choose(world, EXTRA_LATENCY_NS);
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

const struct sim_fault sim_faults[] = {
    {"delay-host", "all of a host stands still for up to 400 us", 300000, delay_host},
    {"stall-lane", "a service thread stands still for up to 200 us", 100000, stall_lane},
    {"slow-link", "a direction of a link gets up to 16 times slower and 20 us longer, or is mended", 100000, slow_link},
    {"late-doorbells", "doorbells interrupt up to 200 us late, and so merge", 0, late_doorbells},
    {"torn-writes", "writes travel in pieces of 8 to 512 bytes", 0, tear_writes},
    {"noise", "all work takes up to 3 us longer", 0, make_noise},
};
const uint32_t sim_fault_count = sizeof sim_faults / sizeof sim_faults[0];

const struct sim_fault *sim_fault_find(const char *name)
{
    for (uint32_t i = 0; i < sim_fault_count; i++)
        if (strcmp(sim_faults[i].name, name) == 0)
            return &sim_faults[i];
    return NULL;
}

static void strike(struct sim_event *event)
{
    struct fault_state *state = (struct fault_state *)event;
    struct sim_world *world = state->world;
    if (world->live_pe_count == 0)
        return;
    state->fault->strike(world);
    if (state->fault->every_ns)
        sim_schedule(world, event, world->now_ns + 1 + sim_choose(world, 2 * state->fault->every_ns));
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
