/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: beside threads outside the job, which keep the processor for time slices, waits and polls yield during a small
 * part of their time only; a passing disturbance changes nothing, and neither a long stop nor busy threads of the job
 * are taken for such threads. Method: one thread, whose time, sleeps and yields are the test's. */
#include "env/wait.h"
#include "env/primitives.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS    UINT64_C(1000000)
#define SLEEP (MS / 10)

static struct {
    struct quoit_wait_habit habit;
    struct quoit_park park;
    struct quoit_waiter waiter;
    uint64_t now_ns;
    uint64_t yield_ns;          /* how long each yield takes */
    uint64_t short_yield_count; /* of every long yield, so many take a microsecond */
    uint64_t yield_count;
    uint64_t yielding_ns;
    uint64_t sleep_count;
} test;

static uint64_t now_ns(void)
{
    return test.now_ns;
}

static void sleep_ns(uint64_t duration_ns)
{
    test.sleep_count++;
    test.now_ns += duration_ns;
}

static uint32_t pause_all(uint32_t most, bool is_in_vain)
{
    (void)is_in_vain;
    return most;
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    uint64_t took_ns = test.yield_count++ % (test.short_yield_count + 1) == 0 ? test.yield_ns : 1000;
    test.now_ns += took_ns;
    test.yielding_ns += took_ns;
}

static void barrier(void)
{
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    (void)word;
    (void)value;
    (void)timeout_ns;
    sleep_ns(SLEEP);
}

static void wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

static struct quoit_wait_habit *habit(void)
{
    return &test.habit;
}

static const struct quoit_primitives primitives = {.now_ns = now_ns,
                                                   .sleep_ns = sleep_ns,
                                                   .pause = pause_all,
                                                   .yield = yield,
                                                   .barrier = barrier,
                                                   .sleep_on = sleep_on,
                                                   .wake_all = wake_all,
                                                   .habit = habit};

static int start(void **state)
{
    (void)state;
    memset(&test, 0, sizeof test);
    test.now_ns = 1; /* as on a machine that has just started */
    test.waiter = (struct quoit_waiter){.park = &test.park, .policy = quoit_wait_policy_for(8, 2)};
    quoit_primitives = &primitives;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    quoit_primitives = NULL;
    return 0;
}

static bool has_slept(void *unused)
{
    (void)unused;
    return test.sleep_count != 0;
}

static void wait_once(void)
{
    test.sleep_count = 0;
    assert_true(quoit_wait_until(&test.waiter, has_slept, NULL, 0));
}

/* A yield that takes 80 ms is what 16 computing processes on two processors cost. */
static void waits_yield_during_a_small_part_of_their_time(void **state)
{
    (void)state;
    for (uint64_t short_count = 0; short_count < 1000; short_count = 3 * short_count + 1) {
        start(NULL);
        test.yield_ns = 80 * MS;
        test.short_yield_count = short_count;
        while (test.now_ns < 60000 * MS)
            wait_once();
        assert_in_range(test.yielding_ns, 1, 60000 * MS / 10);
    }
}

static void yields_of_callers_become_rests(void **state)
{
    (void)state;
    test.yield_ns = 80 * MS;
    while (test.now_ns < 10000 * MS)
        quoit_wait_yield();
    assert_in_range(test.yielding_ns, 1, 1000 * MS);
    start(NULL);
    test.yield_ns = 80 * MS;
    while (test.now_ns < 10000 * MS)
        quoit_wait_poll(&test.waiter);
    assert_in_range(test.yielding_ns, 1, 1000 * MS);
}

static void a_passing_disturbance_changes_nothing(void **state)
{
    (void)state;
    test.yield_ns = 3 * MS;
    quoit_wait_yield();
    test.yield_ns = 1000;
    for (uint32_t i = 0; i < 100; i++)
        quoit_wait_yield();
    assert_int_equal(test.yield_count, 101);
    assert_int_equal(test.sleep_count, 0);
}

static void yields_return_soon_after_a_long_stop(void **state)
{
    (void)state;
    test.yield_ns = 3600000 * MS;
    quoit_wait_yield();
    test.yield_ns = 1000;
    uint64_t from_ns = test.now_ns;
    while (test.yield_count == 1)
        quoit_wait_yield();
    assert_in_range(test.now_ns - from_ns, 1, 2100 * MS);
}

static void busy_threads_of_the_job_are_not_foreign(void **state)
{
    (void)state;
    test.waiter.busy_ns = 100 * MS;
    test.yield_ns = 80 * MS;
    for (uint32_t i = 0; i < 20; i++)
        wait_once();
    assert_in_range(test.yield_count, 20, 1000);
    assert_int_equal(test.habit.repaid_at_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_yield_during_a_small_part_of_their_time, start, stop),
        cmocka_unit_test_setup_teardown(yields_of_callers_become_rests, start, stop),
        cmocka_unit_test_setup_teardown(a_passing_disturbance_changes_nothing, start, stop),
        cmocka_unit_test_setup_teardown(yields_return_soon_after_a_long_stop, start, stop),
        cmocka_unit_test_setup_teardown(busy_threads_of_the_job_are_not_foreign, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
