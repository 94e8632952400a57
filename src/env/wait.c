/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/wait.h"
#include "env/clock.h"
#include "env/primitives.h"

#include <sched.h>

/* A core per thread: yield every 2 us in case another thread needs the core after all. */
#define SPIN_COUNT_ALONE 80
/* Shared cores: the thread waited for needs this core, so yield at once; five pauses would add a third to its
 * turnaround. */
#define SPIN_COUNT_SHARED 0
/* A sleep costs the sleeper 10 us and the waker 10 us per thread, and several woken threads may share one core for
 * milliseconds afterwards. So a wait sleeps only once it is long compared with that. */
#define AWAKE_NS 200000u
/* A longer yield gave the processor to a thread outside the job, and each further one may cost as much: the kernel
 * charges a thread that yields for the rest of its time slice, so that all others run first. A woken sleeper is
 * scheduled ahead of them. So a thread pays for long yields with a time without yields, this many times as long, once
 * they add up to more than a passing disturbance. */
#define YIELD_LONG_NS    500000u
#define NO_YIELD_SHARE   16u
#define LONG_YIELDS_FREE 4000000u
#define NO_YIELD_NS_MAX  2000000000u /* also after a job was stopped during a yield */
#define NO_YIELD_FREE_NS ((uint64_t)NO_YIELD_SHARE * LONG_YIELDS_FREE)
/* In place of a yield where there is nothing to sleep on. */
#define REST_NS 20000u

static _Thread_local struct quoit_wait_habit own;

struct quoit_wait_policy quoit_wait_policy_for(uint32_t thread_count, uint32_t core_count)
{
    return (struct quoit_wait_policy){.spin_count = thread_count <= core_count ? SPIN_COUNT_ALONE : SPIN_COUNT_SHARED,
                                      .awake_ns = AWAKE_NS};
}

static void yield(bool is_in_vain)
{
    if (QUOIT_HAS_PRIMITIVES)
        quoit_primitives->yield(is_in_vain);
    else
        sched_yield();
}

static struct quoit_wait_habit *habit_of_thread(void)
{
    return QUOIT_HAS_PRIMITIVES ? quoit_primitives->habit() : &own;
}

/* Pauses up to `most` times; returns how many passed. */
static inline uint32_t pause_up_to(uint32_t most, bool is_in_vain)
{
    if (QUOIT_HAS_PRIMITIVES)
        return quoit_primitives->pause(most, is_in_vain);
    quoit_pause();
    return 1;
}

static bool are_yields_too_long(const struct quoit_wait_habit *habit, uint64_t now_ns)
{
    return habit->repaid_at_ns > now_ns + NO_YIELD_FREE_NS;
}

/* Yields; returns the time afterwards. */
static uint64_t yield_from(struct quoit_wait_habit *habit, uint64_t now_ns, uint64_t busy_ns, bool is_in_vain)
{
    yield(is_in_vain);
    uint64_t after_ns = quoit_clock_now_ns(), lost_ns = after_ns - now_ns;
    if (lost_ns <= YIELD_LONG_NS + busy_ns)
        return after_ns;
    uint64_t last_ns = after_ns + NO_YIELD_FREE_NS + NO_YIELD_NS_MAX;
    uint64_t from_ns = habit->repaid_at_ns > after_ns ? habit->repaid_at_ns : after_ns;
    lost_ns = lost_ns < NO_YIELD_NS_MAX ? lost_ns : NO_YIELD_NS_MAX;
    habit->repaid_at_ns = from_ns + NO_YIELD_SHARE * lost_ns < last_ns ? from_ns + NO_YIELD_SHARE * lost_ns : last_ns;
    return after_ns;
}

/* Yields, or rests where yields take too long; whether it yielded. */
static bool yield_or_rest(struct quoit_wait_habit *habit)
{
    uint64_t now_ns = quoit_clock_now_ns();
    if (are_yields_too_long(habit, now_ns)) {
        quoit_clock_sleep_ns(REST_NS);
        return false;
    }
    yield_from(habit, now_ns, 0, false);
    return true;
}

void quoit_wait_yield(void)
{
    yield_or_rest(habit_of_thread());
}

static void place_at_times(const struct quoit_waiter *waiter, struct quoit_wait_habit *habit)
{
    if (waiter->place && ++habit->yield_count % waiter->place_yields == 0)
        waiter->place(waiter->arm_arg);
}

void quoit_wait_poll(const struct quoit_waiter *waiter)
{
    struct quoit_wait_habit *habit = habit_of_thread();
    if (yield_or_rest(habit))
        place_at_times(waiter, habit);
}

/* Spins and yields, without sleeping; true once is_done. */
static bool look(const struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg)
{
    struct quoit_wait_habit *habit = NULL;
    uint64_t now_ns = 0, until_ns = 0;
    bool is_in_vain = false;
    for (;;) {
        if (is_done(arg))
            return true;
        for (uint32_t left = waiter->policy.spin_count; left > 0; is_in_vain = true) {
            left -= pause_up_to(left, is_in_vain);
            if (is_done(arg))
                return true;
        }
        if (!habit)
            habit = habit_of_thread();
        if (now_ns == 0) {
            now_ns = quoit_clock_now_ns();
            until_ns = now_ns + waiter->policy.awake_ns + waiter->busy_ns;
        }
        if (now_ns >= until_ns || are_yields_too_long(habit, now_ns))
            return false;
        now_ns = yield_from(habit, now_ns, waiter->busy_ns, is_in_vain);
        is_in_vain = true;
        place_at_times(waiter, habit);
    }
}

/* How long to sleep before the next look, after `slept_ns` of sleep; 0: until woken. */
static uint64_t nap_ns(const struct quoit_waiter *waiter, uint64_t slept_ns)
{
    if (!waiter->sees_plain_stores)
        return 0;
    uint64_t share_ns = slept_ns / QUOIT_WAIT_NAP_SHARE;
    return share_ns < QUOIT_WAIT_NAP_LEAST_NS  ? QUOIT_WAIT_NAP_LEAST_NS
           : share_ns < QUOIT_WAIT_NAP_MOST_NS ? share_ns
                                               : QUOIT_WAIT_NAP_MOST_NS;
}

/* Sleeps, already announced, until woken, until deadline_ns (0: none), or until is_done, which returns true. Checks
 * need no barrier: the sleeper stays announced. */
static bool sleep_announced(const struct quoit_waiter *waiter, uint32_t key, bool (*is_done)(void *arg), void *arg,
                            uint64_t begin_ns, uint64_t deadline_ns)
{
    uint64_t now_ns = begin_ns;
    while (deadline_ns == 0 || now_ns < deadline_ns) {
        uint64_t limit_ns = nap_ns(waiter, now_ns - begin_ns);
        if (deadline_ns && (limit_ns == 0 || limit_ns > deadline_ns - now_ns))
            limit_ns = deadline_ns - now_ns;
        if (limit_ns == 0 || !waiter->nap || !waiter->nap(waiter->arm_arg, limit_ns))
            quoit_park_nap(waiter->park, key, limit_ns);
        if (limit_ns == 0 || quoit_park_was_woken(waiter->park, key))
            return false;
        if (is_done(arg))
            return true;
        now_ns = quoit_clock_now_ns();
    }
    return false;
}

bool quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns)
{
    uint64_t deadline_ns = timeout_ns ? quoit_clock_now_ns() + timeout_ns : 0;
    for (;;) {
        if (look(waiter, is_done, arg))
            return true;
        uint64_t now_ns = deadline_ns || waiter->sees_plain_stores ? quoit_clock_now_ns() : 0;
        if (deadline_ns && now_ns >= deadline_ns)
            return false;
        uint32_t key = quoit_park_prepare_at(waiter->park, waiter->watch_from, waiter->watch_to);
        if (waiter->arm)
            waiter->arm(waiter->arm_arg);
        bool done = is_done(arg);
        if (!done) {
            waiter->sleep_count++;
            done = sleep_announced(waiter, key, is_done, arg, now_ns, deadline_ns);
        }
        quoit_park_cancel(waiter->park);
        if (waiter->disarm)
            waiter->disarm(waiter->arm_arg);
        if (done)
            return true;
    }
}
