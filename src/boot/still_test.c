/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a PE that sleeps in a routine, or does nothing but poll in vain, is seen to wait; one that computes between
 * polls, or finds what it polls for, is not, or is seen to move. */
#include "boot/still.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void polls(struct quoit_pe_shared *shared, uint64_t rounds, uint64_t slow, uint64_t met)
{
    shared->polls.round_count += rounds;
    shared->polls.slow_count += slow;
    shared->polls.met_count += met;
}

static void test_sleep(void **state)
{
    (void)state;
    static struct quoit_pe_shared shared;
    struct quoit_still still = {0};
    assert_int_equal(quoit_still_look(&still, &shared), 0);
    strcpy(shared.waiting_in, "shmem_quiet");
    shared.waiting_since_ns = 1000;
    uint64_t first = quoit_still_look(&still, &shared);
    assert_int_not_equal(first, 0);
    assert_int_equal(quoit_still_look(&still, &shared), first);
    shared.waiting_since_ns = 2000;
    assert_int_not_equal(quoit_still_look(&still, &shared), first);
    shared.waiting_in[0] = '\0';
    assert_int_equal(quoit_still_look(&still, &shared), 0);
}

static void test_polls(void **state)
{
    (void)state;
    static struct quoit_pe_shared shared;
    struct quoit_still still = {0};
    polls(&shared, 1000, 100, 0); /* preempted now and then */
    uint64_t first = quoit_still_look(&still, &shared);
    assert_int_not_equal(first, 0);
    assert_true(still.is_polling);
    polls(&shared, 1, 0, 0);
    assert_int_equal(quoit_still_look(&still, &shared), first);
    polls(&shared, 1000, 0, 1); /* it found what it polled for */
    assert_int_not_equal(quoit_still_look(&still, &shared), first);
    assert_int_equal(quoit_still_look(&still, &shared), 0); /* it has not polled since */
    assert_false(still.is_polling);
    polls(&shared, 1000, 900, 0); /* it computes between polls */
    assert_int_equal(quoit_still_look(&still, &shared), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_polls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
