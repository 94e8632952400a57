/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: processes that share their processors find the same name for them, whatever namespaces they are in, and
 * processes that do not find another. Method: children of this process, of which one is bound to a single processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "env/processor.h"

/* What a child finds, bound to the first allowed processor or not. */
static uint64_t pool_of_child(bool is_bound)
{
    int pair[2];
    uint64_t pool = 0;
    assert_int_equal(pipe(pair), 0);
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t allowed, one;
        CPU_ZERO(&one);
        if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
            CPU_SET(quoit_processor_nth(&allowed, 0), &one);
        bool is_done = !is_bound || sched_setaffinity(0, sizeof one, &one) == 0;
        pool = quoit_processor_pool();
        _exit(is_done && write(pair[1], &pool, sizeof pool) == (ssize_t)sizeof pool ? 0 : 1);
    }
    int status = -1;
    close(pair[1]);
    assert_int_equal(read(pair[0], &pool, sizeof pool), sizeof pool);
    close(pair[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return pool;
}

static void test_a_pool_has_one_name(void **state)
{
    (void)state;
    cpu_set_t allowed;
    if (access("/proc/sys/kernel/random/boot_id", R_OK) != 0)
        skip();
    assert_int_not_equal(quoit_processor_pool(), 0);
    assert_int_equal(pool_of_child(false), quoit_processor_pool());
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    if (CPU_COUNT(&allowed) > 1)
        assert_int_not_equal(pool_of_child(true), quoit_processor_pool());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_pool_has_one_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
