/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a PE that crashes leaves a correct record and dies of its own signal. Method: children that crash in known ways
 * (a fault in the program, one inside libc, abort, a signal from outside, a stack overflow, a forked grandchild); the
 * record in shared memory is compared with what the child was made to do. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "boot/crash.h"

static const char *call_name = "shmem_test_call";
static void *call_from = (void *)0x1234;
static char *volatile nowhere;

/* These faults are intended; a sanitizer must not catch them first. */
#define MEANT __attribute__((noinline, no_sanitize("address", "undefined", "thread")))

static MEANT void store_to_null(void)
{
    *(volatile char *)(nowhere + 8) = 1;
}

static MEANT void copy_to_null(void)
{
    static const char source[4096] = "x";
    memcpy(nowhere + 16, source, sizeof source - (size_t)(getpid() % 2));
    nowhere = NULL; /* so that memcpy returns here and not to our caller */
}

static MEANT int overflow(volatile char *above, int depth)
{
    volatile char here[4096];
    here[0] = above ? above[0] : 0;
    if (depth > 0)
        here[1] = (char)overflow(here, depth - 1);
    return here[1];
}

static void overflow_stack(void)
{
    overflow(NULL, 1 << 20);
}

static void signal_self(void)
{
    kill(getpid(), SIGBUS);
    pause();
}

static void crash_in_grandchild(void)
{
    if (fork() == 0)
        store_to_null();
    wait(NULL);
    _exit(0);
}

static void own_handler(int signal_number)
{
    _exit(signal_number);
}

static void with_own_handler(void)
{
    raise(SIGSEGV);
}

/* Runs `deed` in a child with handlers installed; returns its wait status. */
static int run(void (*deed)(void), struct quoit_pe_shared *shared)
{
    memset(shared, 0, sizeof *shared);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, 1 << 20});
        static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (size_t i = 0; i < 5; i++) /* cmocka and sanitizers have handlers of their own */
            signal(signals[i], SIG_DFL);
        if (deed == with_own_handler)
            signal(SIGSEGV, own_handler);
        quoit_crash_install(shared, &call_name, &call_from);
        deed();
        _exit(77);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void assert_near(uint64_t instruction, void (*function)(void))
{
    uint64_t start = (uint64_t)(uintptr_t)function;
    assert_true(instruction >= start && instruction < start + 1024);
}

static void test_crashes(void **state)
{
    struct quoit_pe_shared *shared = *state;
    int status = run(store_to_null, shared);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(shared->crash.signal, SIGSEGV);
    assert_int_equal(shared->crash.fault_address, 8);
    assert_int_equal(shared->crash.is_inside, 0);
    assert_int_equal(shared->crash.call_from, 0x1234);
    assert_string_equal(shared->crash.call, "shmem_test_call");
    assert_near(shared->crash.instruction, store_to_null);

    status = run(copy_to_null, shared);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(shared->crash.signal, SIGSEGV);
    assert_near(shared->crash.instruction, copy_to_null);

    status = run(abort, shared);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(shared->crash.signal, SIGABRT);
    assert_int_equal(shared->crash.is_inside, 1);

    status = run(signal_self, shared);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    assert_int_equal(shared->crash.signal, SIGBUS);

    status = run(overflow_stack, shared);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(shared->crash.signal, SIGSEGV);
}

static void test_what_must_not_be_recorded(void **state)
{
    struct quoit_pe_shared *shared = *state;
    int status = run(crash_in_grandchild, shared);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(shared->crash.signal, 0);

    status = run(with_own_handler, shared);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SIGSEGV);
    assert_int_equal(shared->crash.signal, 0);

    status = run(quoit_crash_remove, shared);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
}

static int make_shared(void **state)
{
    *state = mmap(NULL, sizeof(struct quoit_pe_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *state == MAP_FAILED ? -1 : 0;
}

static int drop_shared(void **state)
{
    return munmap(*state, sizeof(struct quoit_pe_shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_crashes, make_shared, drop_shared),
        cmocka_unit_test_setup_teardown(test_what_must_not_be_recorded, make_shared, drop_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
