/* SPDX-License-Identifier: BSD-3-Clause */
/* The primitives of src/env/ in virtual time: the waiting code above them is the production code. */
#include "env/primitives.h"
#include "sim/canary.h"
#include "sim/world.h"

#define LOOKS_AFTER_CHANGE 2 /* a check may change the result of the next one, for instance by taking a credit */

static uint64_t now_ns(void)
{
    return sim_world_current()->now_ns;
}

static void sleep_ns(uint64_t duration_ns)
{
    struct sim_world *world = sim_world_current();
    sim_block(world, world->now_ns + duration_ns);
}

/* Idles for up to `count` checks; returns how many have passed. is_in_vain: the task has only checked since it last
 * ran. */
static uint32_t idle(struct sim_task *task, uint64_t step_ns, uint32_t count, bool is_in_vain)
{
    bool is_fruitless = is_in_vain && task->leave_count == task->idle_leave_count;
    uint32_t passed = sim_idle(task->world, step_ns, count, is_fruitless);
    task->idle_leave_count = task->leave_count;
    return passed;
}

static uint32_t pause_task(uint32_t most, bool is_in_vain)
{
    struct sim_world *world = sim_world_current();
    struct sim_task *task = world->current;
    if (!is_in_vain)
        task->looks_since_change = 0;
    uint32_t count = task->looks_since_change < LOOKS_AFTER_CHANGE ? 1 : most;
    uint32_t passed = idle(task, world->model.poll_ns, count, is_in_vain);
    task->looks_since_change = passed < count ? 0 : task->looks_since_change + 1;
    return passed;
}

static void yield(bool is_in_vain)
{
    struct sim_world *world = sim_world_current();
    struct sim_task *task = world->current;
    uint64_t cost_ns = world->model.yield_ns + (task->lane ? world->model.look_ns : 0);
    if (is_in_vain)
        idle(task, cost_ns, 1, true);
    else
        sim_spend(world, cost_ns);
    sim_yield(world, is_in_vain);
    task->idle_leave_count = task->leave_count;
}

static void barrier(void)
{
    struct sim_world *world = sim_world_current();
    sim_canary_announced(world);
    sim_spend(world, world->model.sleep_call_ns);
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct sim_world *world = sim_world_current();
    if (atomic_load(word) != value)
        return;
    world->current->sleeps_on = word;
    sim_block(world, timeout_ns ? world->now_ns + timeout_ns : UINT64_MAX);
}

/* Called by tasks, and by interrupts between tasks. */
static void wake_all(_Atomic uint32_t *word)
{
    struct sim_world *world = sim_world_current();
    const struct sim_host *host = &world->hosts[(uint64_t)((char *)word - world->memory) / world->memory_bytes];
    for (uint32_t i = 0; i < host->task_count; i++) {
        struct sim_task *task = host->tasks[i];
        if (task->sleeps_on == word) {
            task->sleeps_on = NULL;
            sim_task_wake(task, world->model.thread_wake_ns);
        }
    }
    if (world->current)
        sim_spend(world, world->model.wake_call_ns);
}

static struct quoit_wait_habit *habit(void)
{
    return &sim_world_current()->current->habit;
}

/* Threads place themselves only where hosts share processors. */
static bool processor_is_free(cpu_set_t *allowed_out)
{
    const struct sim_world *world = sim_world_current();
    CPU_ZERO(allowed_out);
    for (uint64_t i = 0; world->shared_cores && i < world->model.shared_core_count; i++)
        CPU_SET(i, allowed_out);
    return world->shared_cores != NULL;
}

static int processor_own(void)
{
    const struct sim_world *world = sim_world_current();
    return world->shared_cores ? (int)(world->current->cores - world->shared_cores) : -1;
}

static bool processor_go(int processor)
{
    sim_task_go(sim_world_current(), (uint32_t)processor);
    return true;
}

const struct quoit_primitives sim_primitives = {
    .now_ns = now_ns,
    .sleep_ns = sleep_ns,
    .pause = pause_task,
    .yield = yield,
    .barrier = barrier,
    .sleep_on = sleep_on,
    .wake_all = wake_all,
    .habit = habit,
    .processor_is_free = processor_is_free,
    .processor_own = processor_own,
    .processor_go = processor_go,
};
