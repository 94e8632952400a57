/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a default heap is never larger than the PEs and the limits of the process allow, and else as the machine gives;
 * a process under Valgrind allows little. Method: both defaults, with limits around that of the machine, under ulimit
 * -f, and with LD_PRELOAD as Valgrind sets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "boot/heap_default.h"

#define DATA_BYTES (1u << 20)
#define MIB        (1ull << 20)

static void test_most(void **state)
{
    uint64_t machine = quoit_heap_default_bytes(4, 2, 3, DATA_BYTES, UINT64_MAX);
    (void)state;
    assert_in_range(machine, 4 * MIB, UINT64_MAX);
    const uint64_t limits[] = {2 * MIB, machine - 1, machine};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        assert_int_equal(quoit_heap_default_bytes(4, 2, 3, DATA_BYTES, limits[i]), limits[i]);
    assert_int_equal(quoit_heap_default_bytes(4, 2, 3, DATA_BYTES, machine + 1), machine);
}

/* Two PEs share three quarters of what a file may have. Where that is too little for what comes before their heaps,
 * each heap has the least size nevertheless, and making the file fails with a message. */
static void test_size_of_files(void **state)
{
    struct rlimit before, limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 400 * MIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    uint64_t some = quoit_heap_default_bytes(4, 2, 3, DATA_BYTES, UINT64_MAX);
    limit.rlim_cur = 4 * MIB;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    uint64_t least = quoit_heap_default_bytes(4, 2, 3, DATA_BYTES, UINT64_MAX);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_in_range(some, 64 * MIB, 150 * MIB - DATA_BYTES);
    assert_int_equal(least, MIB);
}

static void test_under_valgrind(void **state)
{
    (void)state;
    unsetenv("LD_PRELOAD");
    assert_int_equal(quoit_heap_most_bytes(), UINT64_MAX);
    assert_in_range(quoit_heap_default_alone_bytes(DATA_BYTES), 65 * MIB, UINT64_MAX);
    setenv("LD_PRELOAD", "/usr/libexec/valgrind/vgpreload_core-amd64-linux.so:other.so", 1);
    assert_int_equal(quoit_heap_most_bytes(), 64 * MIB);
    assert_int_equal(quoit_heap_default_alone_bytes(DATA_BYTES), 64 * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_size_of_files),
        cmocka_unit_test(test_under_valgrind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
