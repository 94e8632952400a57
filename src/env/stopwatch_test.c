/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: time that the process did not run, or that the job was stopped, is not counted; all other time is. */
#include "env/stopwatch.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define MS    UINT64_C(1000000)
#define START (1234 * MS) /* of the monotonic clock; its reading is the same */

static void test_work_and_sleeps_count(void **state)
{
    (void)state;
    struct quoit_stopwatch watch;
    quoit_stopwatch_start(&watch, START);
    quoit_stopwatch_mark(&watch, START + 100 * MS, 0);            /* work */
    quoit_stopwatch_mark(&watch, START + 1100 * MS, 1000 * MS);   /* a sleep to its end */
    quoit_stopwatch_mark(&watch, START + 1150 * MS, 1000 * MS);   /* one that an event has ended */
    quoit_stopwatch_mark(&watch, START + 90000 * MS, UINT64_MAX); /* one without an end */
    assert_int_equal(quoit_stopwatch_read(&watch, START + 90001 * MS), START + 90001 * MS);
}

static void test_a_stop_does_not_count(void **state)
{
    (void)state;
    struct quoit_stopwatch watch;
    quoit_stopwatch_start(&watch, START);
    quoit_stopwatch_mark(&watch, START + 10100 * MS, 100 * MS); /* asleep for 100 ms, and stopped for 10 s */
    assert_int_equal(quoit_stopwatch_read(&watch, START + 10100 * MS), START + 100 * MS + QUOIT_STOPWATCH_SLACK_NS);
    quoit_stopwatch_mark(&watch, START + 30100 * MS, 0); /* stopped for 20 s at work */
    assert_int_equal(quoit_stopwatch_read(&watch, START + 30200 * MS), START + 200 * MS + 2 * QUOIT_STOPWATCH_SLACK_NS);
}

/* A stop counts for the slack at most, and a sleep that is late by as much counts. */
static void test_slack(void **state)
{
    (void)state;
    struct quoit_stopwatch watch;
    quoit_stopwatch_start(&watch, START);
    quoit_stopwatch_mark(&watch, START + QUOIT_STOPWATCH_SLACK_NS, 0);
    assert_int_equal(quoit_stopwatch_read(&watch, START + QUOIT_STOPWATCH_SLACK_NS), START + QUOIT_STOPWATCH_SLACK_NS);
    quoit_stopwatch_mark(&watch, START + 2 * QUOIT_STOPWATCH_SLACK_NS + 1, 0);
    assert_int_equal(quoit_stopwatch_read(&watch, START + 2 * QUOIT_STOPWATCH_SLACK_NS + 1),
                     START + 2 * QUOIT_STOPWATCH_SLACK_NS);
}

/* Not even when a piece of work, in which it was read, turns out to have been long. */
static void test_it_never_goes_back(void **state)
{
    (void)state;
    struct quoit_stopwatch watch;
    struct quoit_prng prng = {36};
    uint64_t now_ns = START, read_ns = START;
    quoit_stopwatch_start(&watch, START);
    for (int i = 0; i < 100000; i++) {
        uint64_t deed = quoit_prng_choose(&prng, 5);
        now_ns += quoit_prng_choose(&prng, 2) * quoit_prng_choose(&prng, 600) * MS;
        if (deed == 0)
            quoit_stopwatch_mark(&watch, now_ns, 0);
        else if (deed == 1)
            quoit_stopwatch_mark(&watch, now_ns, quoit_prng_choose(&prng, 300) * MS);
        else if (deed == 2)
            quoit_stopwatch_hold(&watch, now_ns, quoit_prng_choose(&prng, 2) == 0);
        assert_true(quoit_stopwatch_read(&watch, now_ns) >= read_ns);
        read_ns = quoit_stopwatch_read(&watch, now_ns);
        assert_true(read_ns <= now_ns);
    }
}

static void test_held(void **state)
{
    (void)state;
    struct quoit_stopwatch watch;
    quoit_stopwatch_start(&watch, START);
    quoit_stopwatch_hold(&watch, START + 5 * MS, true);
    quoit_stopwatch_mark(&watch, START + 50 * MS, 50 * MS);
    quoit_stopwatch_hold(&watch, START + 60 * MS, true);
    assert_int_equal(quoit_stopwatch_read(&watch, START + 70 * MS), START + 5 * MS);
    quoit_stopwatch_mark(&watch, START + 5000 * MS, 50 * MS); /* stopped, too: counted as neither */
    quoit_stopwatch_hold(&watch, START + 9005 * MS, false);
    assert_int_equal(quoit_stopwatch_read(&watch, START + 9006 * MS), START + 6 * MS);
    quoit_stopwatch_hold(&watch, START + 9007 * MS, false);
    assert_int_equal(quoit_stopwatch_read(&watch, START + 9007 * MS), START + 7 * MS);
    quoit_stopwatch_hold(&watch, START + 9010 * MS, true);
    quoit_stopwatch_hold(&watch, START + 9510 * MS, false);
    assert_int_equal(quoit_stopwatch_read(&watch, START + 9510 * MS), START + 10 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_and_sleeps_count),
        cmocka_unit_test(test_a_stop_does_not_count),
        cmocka_unit_test(test_slack),
        cmocka_unit_test(test_it_never_goes_back),
        cmocka_unit_test(test_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
