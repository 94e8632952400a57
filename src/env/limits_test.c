/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: limits of the process are reported, and without limits the machine's resources are. Method: a child process sets
 * each limit and compares what is reported. tests/scenario/resources.py tests control groups. */
#include "env/limits.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (1ull << 20)

static bool is_true_in_a_child(bool (*check)(void))
{
    pid_t child = fork();
    int status;
    if (child == 0)
        _exit(check() ? 0 : 1);
    return waitpid(child, &status, 0) == child && status == 0;
}

static bool sees_one_processor(void)
{
    cpu_set_t set;
    int core = 0;
    sched_getaffinity(0, sizeof set, &set);
    while (!CPU_ISSET(core, &set))
        core++;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 && quoit_limits_core_count() == 1;
}

static bool sees_file_size(void)
{
    return setrlimit(RLIMIT_FSIZE, &(struct rlimit){5 * MIB, 5 * MIB}) == 0 && quoit_limits_file_bytes() == 5 * MIB;
}

/* What is left is below the limit and shrinks with each mapping. */
static bool sees_address_space(void)
{
    const uint64_t most = 4096 * MIB, more = 64 * MIB;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true; /* a sanitizer maps more than any such limit and cannot even open a file under it */
#endif
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) != 0)
        return false;
    uint64_t before = quoit_limits_address_bytes();
    void *block = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t after = quoit_limits_address_bytes();
    return block != MAP_FAILED && before < most && after <= before - more && after + 2 * more > before;
}

static void test_limits_are_seen(void **state)
{
    (void)state;
    assert_true(is_true_in_a_child(sees_one_processor));
    assert_true(is_true_in_a_child(sees_file_size));
    assert_true(is_true_in_a_child(sees_address_space));
}

static void test_machine_is_seen(void **state)
{
    (void)state;
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES), page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    assert_true(quoit_limits_memory_bytes() > 0 && quoit_limits_memory_bytes() <= pages * page_bytes);
    assert_true(quoit_limits_free_bytes() <= quoit_limits_memory_bytes());
    assert_true(quoit_limits_core_count() >= 1 && quoit_limits_core_count() <= (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_are_seen),
        cmocka_unit_test(test_machine_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
