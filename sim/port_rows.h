/* SPDX-License-Identifier: BSD-3-Clause */
/* port_rows.h - the simulated port as rows of the contract suite of ports (src/port/port_test.c and port_dma_test.c,
 * with QUOIT_PORT_ROWS).
 *
 * Each test runs in a task of host 0, in a world of two hosts without proxies; its ports are the ends of one link.
 */
#ifndef SIM_PORT_ROWS_H
#define SIM_PORT_ROWS_H

#include "sim/run.h"

#define SIM_ROWS_ARRIVE_NS 20000 /* longer than an interrupt takes */

struct sim_rows_body {
    void (*run)(void *arg);
    void *arg;
    bool has_ended;
};

static inline void sim_rows_enter(void *arg)
{
    struct sim_rows_body *body = arg;
    body->run(body->arg);
    body->has_ended = true;
}

static inline void sim_rows_run(const struct rig_driver *driver, void (*run)(void *arg), void *arg)
{
    struct sim_plan plan;
    struct sim_config config;
    struct sim_rows_body body = {.run = run, .arg = arg};
    if (sim_world_current()) /* left by a test that failed */
        sim_world_free(sim_world_current());
    sim_plan_default(&plan);
    plan.host_count = plan.pe_count = 2;
    plan.workload = sim_workload_find("raw");
    plan.has_direct_puts = driver->knobs.arrives_on_return;
    plan.has_posted_puts = !driver->knobs.arrives_on_return;
    sim_config_choose(&plan, 1, &config);
    struct sim_world *world = sim_world_new(&config, NULL);
    sim_task_start(&world->hosts[0], "test", sim_rows_enter, &body);
    if (!sim_world_quiesce(world))
        fprintf(stderr, "%s\n", world->failure);
    must(body.has_ended);
    sim_world_free(world);
}

static inline struct sim_end *sim_rows_end(uint32_t side)
{
    return sim_world_current()->hosts[side].ends[side == 0 ? QUOIT_RIGHT : QUOIT_LEFT];
}

static inline uint8_t *sim_rows_memory(uint32_t side)
{
    must(sim_world_current()->memory_bytes >= RIG_MEMORY_BYTES);
    return (uint8_t *)sim_world_current()->hosts[side].memory;
}

static inline struct quoit_port_endpoint sim_rows_describe(uint32_t side)
{
    struct quoit_port_endpoint endpoint;
    sim_port_describe(sim_rows_end(side), &endpoint);
    return endpoint;
}

static inline void sim_rows_arrive(struct quoit_port *port)
{
    (void)port;
    quoit_clock_sleep_ns(SIM_ROWS_ARRIVE_NS);
}

static inline void sim_rows_thread(void *arg)
{
    struct rig_thread *thread = arg;
    thread->run(thread->arg);
    thread->has_ended = true;
}

static inline void sim_rows_start(struct rig_thread *thread)
{
    sim_task_start(&sim_world_current()->hosts[0], "thread", sim_rows_thread, thread);
}

static const struct rig_world sim_rows_world = {
    .driver = &sim_port_driver,
    .run = sim_rows_run,
    .memory = sim_rows_memory,
    .describe = sim_rows_describe,
    .arrive = sim_rows_arrive,
    .start = sim_rows_start,
};

static const struct rig_driver rig_drivers[] = {
    {"simulated, posted", "", {.arrives_on_return = 0}, &sim_rows_world, {NULL}, 0, 0},
    {"simulated, arrived", "", {.arrives_on_return = 1}, &sim_rows_world, {NULL}, 0, 0},
};

#endif
