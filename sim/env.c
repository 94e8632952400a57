/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of src/env/ in virtual time. Linked with --wrap: the production code's calls come here, and go on to
 * the real function when no world runs. */
#include "env/clock.h"
#include "env/park.h"
#include "env/wait.h"
#include "sim/world.h"

#define LOOKS_AFTER_CHANGE 2 /* a lane that took a credit in a look can only use it in the next */

uint64_t __real_quoit_clock_now_ns(void);
void __real_quoit_clock_sleep_ns(uint64_t duration_ns);
void __real_quoit_park_setup(void);
uint32_t __real_quoit_park_prepare(struct quoit_park *park);
void __real_quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
void __real_quoit_park_wake_sleepers(struct quoit_park *park);
bool __real_quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

uint64_t __wrap_quoit_clock_now_ns(void);
void __wrap_quoit_clock_sleep_ns(uint64_t duration_ns);
void __wrap_quoit_park_setup(void);
uint32_t __wrap_quoit_park_prepare(struct quoit_park *park);
void __wrap_quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
void __wrap_quoit_park_wake_sleepers(struct quoit_park *park);
bool __wrap_quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

uint64_t __wrap_quoit_clock_now_ns(void)
{
    struct sim_world *world = sim_world_current();
    return world ? world->now_ns : __real_quoit_clock_now_ns();
}

void __wrap_quoit_clock_sleep_ns(uint64_t duration_ns)
{
    struct sim_world *world = sim_world_current();
    if (!world) {
        __real_quoit_clock_sleep_ns(duration_ns);
        return;
    }
    sim_block(world, world->now_ns + duration_ns);
}

void __wrap_quoit_park_setup(void)
{
    if (!sim_world_current())
        __real_quoit_park_setup();
}

uint32_t __wrap_quoit_park_prepare(struct quoit_park *park)
{
    struct sim_world *world = sim_world_current();
    if (!world)
        return __real_quoit_park_prepare(park);
    uint32_t key = atomic_load(&park->epoch);
    atomic_fetch_add(&park->sleeper_count, 1);
    sim_spend(world, world->model.sleep_call_ns);
    return key;
}

void __wrap_quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns)
{
    struct sim_world *world = sim_world_current();
    if (!world) {
        __real_quoit_park_sleep(park, key, timeout_ns);
        return;
    }
    if (atomic_load(&park->epoch) == key) {
        world->current->park = park;
        sim_block(world, timeout_ns ? world->now_ns + timeout_ns : UINT64_MAX);
    }
    atomic_fetch_sub(&park->sleeper_count, 1);
}

/* Called by tasks, and by interrupts between tasks. */
void __wrap_quoit_park_wake_sleepers(struct quoit_park *park)
{
    struct sim_world *world = sim_world_current();
    if (!world) {
        __real_quoit_park_wake_sleepers(park);
        return;
    }
    atomic_fetch_add(&park->epoch, 1);
    for (uint32_t i = 0; i < world->task_count; i++) {
        struct sim_task *task = world->tasks[i];
        if (task->park == park) {
            task->park = NULL;
            sim_task_wake(task, world->model.thread_wake_ns);
        }
    }
    if (world->current)
        sim_spend(world, world->model.wake_call_ns);
}

struct looking {
    struct sim_world *world;
    bool (*is_done)(void *arg);
    void *arg;
    uint64_t leave_count; /* the task's, when the last look in vain ended */
    bool has_looked;
};

/* Looks up to `count` times, step_ns apart, giving way to others before each look when is_yielding. */
static bool look(struct looking *looking, uint32_t count, uint64_t step_ns, bool is_yielding)
{
    struct sim_world *world = looking->world;
    struct sim_task *task = world->current;
    uint32_t since_change = 0;
    while (count > 0) {
        bool is_fruitless = looking->has_looked && task->leave_count == looking->leave_count;
        uint32_t most = since_change < LOOKS_AFTER_CHANGE ? 1 : count;
        uint32_t passed = sim_idle(world, step_ns, most, is_fruitless);
        if (is_yielding)
            sim_yield(world);
        since_change = most > 1 && passed < most ? 0 : since_change + 1;
        count -= passed;
        looking->leave_count = task->leave_count;
        looking->has_looked = true;
        if (looking->is_done(looking->arg))
            return true;
    }
    return false;
}

/* As src/env/wait.c: spins, yields, sleeps, and starts over. */
bool __wrap_quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns)
{
    struct sim_world *world = sim_world_current();
    if (!world)
        return __real_quoit_wait_until(waiter, is_done, arg, timeout_ns);
    uint64_t deadline_ns = timeout_ns ? world->now_ns + timeout_ns : 0;
    struct looking looking = {.world = world, .is_done = is_done, .arg = arg};
    for (;;) {
        if (is_done(arg) || look(&looking, waiter->policy.spin_count, world->model.poll_ns, false) ||
            look(&looking, waiter->policy.yield_count, world->model.yield_ns, true))
            return true;
        uint64_t left_ns = 0;
        if (deadline_ns) {
            if (world->now_ns >= deadline_ns)
                return false;
            left_ns = deadline_ns - world->now_ns;
        }
        uint32_t key = quoit_park_prepare(waiter->park);
        if (waiter->arm)
            waiter->arm(waiter->arm_arg);
        if (is_done(arg)) {
            quoit_park_cancel(waiter->park);
            return true;
        }
        waiter->sleep_count++;
        quoit_park_sleep(waiter->park, key, left_ns);
        looking.has_looked = false;
    }
}
