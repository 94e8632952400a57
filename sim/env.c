/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of src/env/ in virtual time. Linked with --wrap: the production code's calls come here, and go on to
 * the real function when no world runs. */
#include "env/clock.h"
#include "env/park.h"
#include "env/wait.h"
#include "sim/world.h"

#define LOOKS_AFTER_CHANGE 2 /* a look may have changed what the next one finds, as when it took in a credit */

uint64_t __real_quoit_clock_now_ns(void);
void __real_quoit_clock_sleep_ns(uint64_t duration_ns);
void __real_quoit_park_setup(void);
void __real_quoit_wait_yield(void);
uint32_t __real_quoit_park_prepare(struct quoit_park *park);
void __real_quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
void __real_quoit_park_wake_sleepers(struct quoit_park *park);
void __real_quoit_park_wake_watchers(struct quoit_park *park, uint64_t at, uint64_t bytes);
bool __real_quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

uint64_t __wrap_quoit_clock_now_ns(void);
void __wrap_quoit_clock_sleep_ns(uint64_t duration_ns);
void __wrap_quoit_park_setup(void);
void __wrap_quoit_wait_yield(void);
uint32_t __wrap_quoit_park_prepare(struct quoit_park *park);
void __wrap_quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
void __wrap_quoit_park_wake_sleepers(struct quoit_park *park);
void __wrap_quoit_park_wake_watchers(struct quoit_park *park, uint64_t at, uint64_t bytes);
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
    const struct sim_host *host = &world->hosts[(uint64_t)((char *)park - world->memory) / world->memory_bytes];
    for (uint32_t i = 0; i < host->task_count; i++) {
        struct sim_task *task = host->tasks[i];
        if (task->park == park) {
            task->park = NULL;
            sim_task_wake(task, world->model.thread_wake_ns);
        }
    }
    if (world->current)
        sim_spend(world, world->model.wake_call_ns);
}

/* Apart from wake_sleepers(), since --wrap does not reach calls within a file. */
void __wrap_quoit_park_wake_watchers(struct quoit_park *park, uint64_t at, uint64_t bytes)
{
    if (!sim_world_current())
        __real_quoit_park_wake_watchers(park, at, bytes);
    else if (quoit_park_is_watched(park, at, bytes))
        quoit_park_wake_sleepers(park);
}

struct looking {
    struct sim_world *world;
    bool (*is_done)(void *arg);
    void *arg;
    uint64_t leave_count;  /* the task's, when it last came back from idling */
    bool has_idled;        /* in this wait */
    uint32_t since_change; /* looks in vain since something changed */
};

/* Idles up to `count` steps; returns how many have passed. What the task did before is in vain if it only looked. */
static uint32_t idle(struct looking *looking, uint64_t step_ns, uint32_t count)
{
    struct sim_task *task = looking->world->current;
    bool is_fruitless = looking->has_idled && task->leave_count == looking->leave_count;
    uint32_t passed = sim_idle(looking->world, step_ns, count, is_fruitless);
    looking->leave_count = task->leave_count;
    looking->has_idled = true;
    return passed;
}

/* Looks `count` times and once more. */
static bool look(struct looking *looking, uint32_t count)
{
    for (;;) {
        if (looking->is_done(looking->arg))
            return true;
        if (count == 0)
            return false;
        uint32_t most = looking->since_change < LOOKS_AFTER_CHANGE ? 1 : count;
        uint32_t passed = idle(looking, looking->world->model.poll_ns, most);
        looking->since_change = passed < most ? 0 : looking->since_change + 1;
        count -= passed;
    }
}

static void yield(struct looking *looking)
{
    idle(looking, looking->world->model.yield_ns, 1);
    sim_yield(looking->world);
    looking->leave_count = looking->world->current->leave_count;
}

/* Looks for a while without sleeping. */
static bool look_awake(struct looking *looking, const struct quoit_waiter *waiter)
{
    uint64_t until_ns = 0;
    for (;;) {
        if (look(looking, waiter->policy.spin_count))
            return true;
        if (until_ns == 0)
            until_ns = looking->world->now_ns + waiter->policy.awake_ns + waiter->busy_ns;
        if (looking->world->now_ns >= until_ns)
            return false;
        yield(looking);
    }
}

void __wrap_quoit_wait_yield(void)
{
    struct sim_world *world = sim_world_current();
    if (!world) {
        __real_quoit_wait_yield();
        return;
    }
    sim_spend(world, world->model.yield_ns);
    sim_yield(world);
}

/* As src/env/wait.c: spins and yields, sleeps, and starts over; there are no strangers here. */
bool __wrap_quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns)
{
    struct sim_world *world = sim_world_current();
    if (!world)
        return __real_quoit_wait_until(waiter, is_done, arg, timeout_ns);
    uint64_t deadline_ns = timeout_ns ? world->now_ns + timeout_ns : 0;
    struct looking looking = {.world = world, .is_done = is_done, .arg = arg};
    for (;;) {
        if (look_awake(&looking, waiter))
            return true;
        uint64_t left_ns = 0;
        if (deadline_ns) {
            if (world->now_ns >= deadline_ns)
                return false;
            left_ns = deadline_ns - world->now_ns;
        }
        quoit_park_watch(waiter->park, waiter->watch_from, waiter->watch_to);
        uint32_t key = quoit_park_prepare(waiter->park);
        if (waiter->arm)
            waiter->arm(waiter->arm_arg);
        if (is_done(arg)) {
            quoit_park_cancel(waiter->park);
            if (waiter->disarm)
                waiter->disarm(waiter->arm_arg);
            return true;
        }
        waiter->sleep_count++;
        quoit_park_sleep(waiter->park, key, left_ns);
        if (waiter->disarm)
            waiter->disarm(waiter->arm_arg);
        looking.has_idled = false;
        looking.since_change = 0;
    }
}
