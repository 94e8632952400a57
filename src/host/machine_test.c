/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: processors and memory are shared among the threads and PEs of the same machine, and no others. Method: job
 * configs of emulated hosts and of hosts with machines of their own, on as many processors as there are threads, and on
 * one fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "host/machine.h"

static void assert_shares_below(const struct quoit_job_config *job, uint32_t host, bool is_one_machine,
                                uint32_t thread_count)
{
    assert_false(quoit_wait_shares(quoit_machine_of(job, host, is_one_machine, thread_count).policy));
    assert_true(quoit_wait_shares(quoit_machine_of(job, host, is_one_machine, thread_count - 1).policy));
}

static void test_one_host(void **state)
{
    (void)state;
    const struct quoit_job_config job = {.host_count = 1, .pe_count = 8, .lane_count = 2};
    assert_int_equal(quoit_machine_of(&job, 0, true, 8).pe_count, 8);
    assert_shares_below(&job, 0, true, 8); /* no proxy, no lanes */
    assert_shares_below(&job, 0, false, 8);
}

static void test_emulated_hosts_share_the_machine(void **state)
{
    (void)state;
    const struct quoit_job_config job = {.host_count = 3, .pe_count = 8, .lane_count = 2};
    for (uint32_t host = 0; host < 3; host++) {
        assert_int_equal(quoit_machine_of(&job, host, true, 8).pe_count, 8);
        assert_shares_below(&job, host, true, 8 + 3 * 2);
    }
}

static void test_hosts_with_machines_of_their_own_share_nothing(void **state)
{
    (void)state;
    const struct quoit_job_config job = {.host_count = 3, .pe_count = 8, .lane_count = 2};
    const uint32_t pe_counts[] = {3, 3, 2};
    for (uint32_t host = 0; host < 3; host++) {
        assert_int_equal(quoit_machine_of(&job, host, false, 8).pe_count, pe_counts[host]);
        assert_shares_below(&job, host, false, pe_counts[host] + 2);
    }
}

static void test_some_hosts_share_a_machine(void **state)
{
    (void)state;
    const struct quoit_job_config job = {.host_count = 3, .pe_count = 8, .lane_count = 1};
    const uint32_t thread_count = 5 + 2; /* PEs and lanes of two hosts */
    assert_int_equal(quoit_machine_with(&job, 2, 5, thread_count).pe_count, 5);
    assert_int_equal(quoit_machine_with(&job, 2, 5, thread_count).core_count, thread_count);
    assert_false(quoit_wait_shares(quoit_machine_with(&job, 2, 5, thread_count).policy));
    assert_true(quoit_wait_shares(quoit_machine_with(&job, 2, 5, thread_count - 1).policy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_emulated_hosts_share_the_machine),
        cmocka_unit_test(test_hosts_with_machines_of_their_own_share_nothing),
        cmocka_unit_test(test_some_hosts_share_a_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
