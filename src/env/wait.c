/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/wait.h"
#include "env/clock.h"

#include <sched.h>

/* A core for each thread: a wake across cores costs 36 us, so wait about as long, but look every 2 us whether somebody
 * else needs this core after all. */
#define SPIN_COUNT_ALONE  80
#define YIELD_COUNT_ALONE 20
/* The other PE needs this core: a cache line's journey and no more. */
#define SPIN_COUNT_SHARED  4
#define YIELD_COUNT_SHARED 50
/* A yield that lasts longer gave the core to a stranger that computes; every further one might cost as much. A sleeper
 * that is woken goes before such a stranger, so for the next waits sleep at once. */
#define YIELD_LONG_NS    200000u
#define HASTY_WAIT_COUNT 100

/* Of this thread: how many waits are still to be hasty. */
static _Thread_local uint32_t hasty_count;

struct quoit_wait_policy quoit_wait_policy_for(uint32_t thread_count, uint32_t core_count)
{
    if (thread_count <= core_count)
        return (struct quoit_wait_policy){SPIN_COUNT_ALONE, YIELD_COUNT_ALONE};
    return (struct quoit_wait_policy){SPIN_COUNT_SHARED, YIELD_COUNT_SHARED};
}

uint32_t quoit_wait_core_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}

void quoit_wait_yield(void)
{
    sched_yield();
}

/* Looks for a while without sleeping. */
static bool look(const struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg)
{
    for (uint32_t i = 0;; i++) {
        for (uint32_t j = 0; j <= waiter->policy.spin_count; j++) {
            if (is_done(arg))
                return true;
            quoit_pause();
        }
        if (hasty_count > 0) {
            hasty_count--;
            return false;
        }
        if (i > waiter->policy.yield_count)
            return false;
        uint64_t before_ns = quoit_clock_now_ns();
        sched_yield();
        if (quoit_clock_now_ns() - before_ns > YIELD_LONG_NS)
            hasty_count = HASTY_WAIT_COUNT;
    }
}

bool quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns)
{
    uint64_t deadline_ns = timeout_ns ? quoit_clock_now_ns() + timeout_ns : 0;
    for (;;) {
        if (look(waiter, is_done, arg))
            return true;
        uint64_t left_ns = 0;
        if (deadline_ns) {
            uint64_t now_ns = quoit_clock_now_ns();
            if (now_ns >= deadline_ns)
                return false;
            left_ns = deadline_ns - now_ns;
        }
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
    }
}
