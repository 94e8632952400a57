/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table in a word holds what was put into it, each size finds its own entry, and --schedules is understood or
 * refused. Method: random tables beside arrays; sizes around each border; texts with one mistake each. */
#include "host/schedules.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_entries_do_not_mix(void **state)
{
    (void)state;
    struct quoit_prng prng = {5};
    for (int turn = 0; turn < 1000; turn++) {
        enum quoit_schedule wanted[QUOIT_COLLECTIVE_COUNT][QUOIT_SCHEDULE_SIZES];
        uint64_t word = 0;
        for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
            for (uint32_t j = 0; j < QUOIT_SCHEDULE_SIZES; j++) {
                wanted[i][j] = (enum quoit_schedule)quoit_prng_choose(&prng, QUOIT_SCHEDULE_COUNT);
                word = quoit_schedules_with(word, i, j, wanted[i][j]);
            }
        enum quoit_schedules_source source = (enum quoit_schedules_source)quoit_prng_choose(&prng, 3);
        word = quoit_schedules_from(word, source);
        assert_int_equal(quoit_schedules_source(word), source);
        for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
            for (uint32_t j = 0; j < QUOIT_SCHEDULE_SIZES; j++) {
                uint64_t most = quoit_schedule_size(j), least = j == 0 ? 0 : quoit_schedule_size(j - 1) + 1;
                assert_int_equal(quoit_schedules_choose(word, i, least), wanted[i][j]);
                assert_int_equal(quoit_schedules_choose(word, i, most), wanted[i][j]);
            }
        assert_int_equal(quoit_schedules_choose(word, QUOIT_COLLECTIVE_REDUCE, UINT64_MAX),
                         wanted[QUOIT_COLLECTIVE_REDUCE][QUOIT_SCHEDULE_SIZES - 1]);
    }
    assert_int_equal(quoit_schedule_size(0), 8192);
    assert_int_equal(quoit_schedule_size(QUOIT_SCHEDULE_SIZES - 1), 4u << 20);
}

static void test_names(void **state)
{
    (void)state;
    int count = 0;
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
        for (enum quoit_schedule j = 0; j < QUOIT_SCHEDULE_COUNT; j++) {
            const char *name = quoit_schedule_name(i, j);
            if (!name)
                continue;
            count++;
            assert_int_equal(quoit_schedule_named(i, name, strlen(name)), j);
            assert_int_equal(quoit_schedule_named(i, name, strlen(name) - 1), QUOIT_SCHEDULE_COUNT);
        }
    assert_int_equal(count, 10);
    assert_int_equal(quoit_schedule_named(QUOIT_COLLECTIVE_BROADCAST, "halving", 7), QUOIT_SCHEDULE_COUNT);
}

/* Each collective has this schedule for every size. */
static void check(uint64_t word, enum quoit_schedule broadcast, enum quoit_schedule reduce,
                  enum quoit_schedule exchange)
{
    const enum quoit_schedule wanted[] = {broadcast, reduce, exchange};
    assert_int_equal(quoit_schedules_source(word), QUOIT_SCHEDULES_FORCED);
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
        for (uint64_t bytes = 1; bytes <= 16u << 20; bytes *= 2)
            assert_int_equal(quoit_schedules_choose(word, i, bytes), wanted[i]);
}

static void test_forced(void **state)
{
    (void)state;
    uint64_t word = 7;
    char problem[QUOIT_SCHEDULES_PROBLEM_BYTES];
    assert_true(quoit_schedules_force("rule", &word, problem));
    check(word, QUOIT_SCHEDULE_RULE, QUOIT_SCHEDULE_RULE, QUOIT_SCHEDULE_RULE);
    assert_true(quoit_schedules_force("reduce:at-once", &word, problem));
    check(word, QUOIT_SCHEDULE_RULE, QUOIT_SCHEDULE_AT_ONCE, QUOIT_SCHEDULE_RULE);
    assert_true(quoit_schedules_force("exchange:dissemination,broadcast:tree,reduce:around", &word, problem));
    check(word, QUOIT_SCHEDULE_LOG, QUOIT_SCHEDULE_AROUND, QUOIT_SCHEDULE_LOG);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "rules",
                                        "broadcast",
                                        "broadcast:",
                                        "broadcast:halving",
                                        "exchange:at-once",
                                        "collect:tree",
                                        "broadcast:tree,",
                                        ",broadcast:tree",
                                        "broadcast:tree,broadcast:around",
                                        "broadcast:tree:around",
                                        "broadcast:treee",
                                        "Broadcast:tree",
                                        "an-absurdly-long-name-of-a-collective-that-nobody-has-ever-seen:tree"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint64_t word = 7;
        char problem[QUOIT_SCHEDULES_PROBLEM_BYTES] = "";
        assert_false(quoit_schedules_force(texts[i], &word, problem));
        assert_int_equal(word, 7);
        assert_non_null(strstr(problem, "each once"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_do_not_mix),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_forced),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
