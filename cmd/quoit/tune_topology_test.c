/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: hwloc and /sys say the same of this machine, and distances are those of machines this one is not. Method: every
 * pair of processors asked of both; machines described to hwloc in its own words (HWLOC_SYNTHETIC). */
#include "tune_topology.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_both_say_the_same(void **state)
{
    (void)state;
    cpu_set_t set;
    void *hwloc = tune_topology_hwloc.open(), *sys = tune_topology_sys.open();
    assert_non_null(hwloc);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (int a = 0; a < CPU_SETSIZE; a++) {
        if (!CPU_ISSET(a, &set))
            continue;
        assert_int_equal(tune_topology_hwloc.cache_bytes(hwloc, a), tune_topology_sys.cache_bytes(sys, a));
        for (int b = 0; b < CPU_SETSIZE; b++)
            if (CPU_ISSET(b, &set))
                assert_int_equal(tune_topology_hwloc.distance(hwloc, a, b), tune_topology_sys.distance(sys, a, b));
    }
    tune_topology_hwloc.close(hwloc);
    tune_topology_sys.close(sys);
}

static void test_distances_of_a_larger_machine(void **state)
{
    (void)state;
    setenv("HWLOC_SYNTHETIC", "package:2 l3:2(size=16777216) l2:2 core:1 pu:1", 1);
    void *hwloc = tune_topology_hwloc.open();
    assert_non_null(hwloc);
    for (int a = 0; a < 8; a++) {
        assert_int_equal(tune_topology_hwloc.cache_bytes(hwloc, a), 16777216);
        for (int b = 0; b < 8; b++)
            assert_int_equal(tune_topology_hwloc.distance(hwloc, a, b), a / 4 != b / 4   ? TUNE_OTHER_SOCKET
                                                                        : a / 2 != b / 2 ? TUNE_OTHER_CACHE
                                                                                         : TUNE_SAME_CACHE);
    }
    tune_topology_hwloc.close(hwloc);
    unsetenv("HWLOC_SYNTHETIC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_say_the_same),
        cmocka_unit_test(test_distances_of_a_larger_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
