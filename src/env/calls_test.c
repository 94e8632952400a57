/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each call of the table is found if it is refused, with its errno, for those who need it; no call is refused
 * where nothing is. Method: a seccomp filter in a child for each call and error, and what the child reports. */
#include "env/calls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ALL (QUOIT_CALLS_PE | QUOIT_CALLS_LAUNCHER | QUOIT_CALLS_NETWORK)

enum { FOUND = 10, OTHER, NONE, UNFILTERED };

/* Refuses a call from now on; number -1: none, but under a filter. */
static bool refuse(long number, int error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int look(const char *name, long number, int error, unsigned users)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int found_error = 0;
        if (!refuse(number, error))
            _exit(UNFILTERED);
        const char *found = quoit_calls_refused(users, &found_error);
        if (!found)
            _exit(NONE);
        _exit(strcmp(found, name) == 0 && found_error == error ? FOUND : OTHER);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == UNFILTERED)
        skip(); /* no seccomp here */
    return WEXITSTATUS(status);
}

static void test_nothing_is_refused(void **state)
{
    (void)state;
    int error;
    if (prctl(PR_GET_SECCOMP) == 0)
        assert_null(quoit_calls_refused(ALL, &error));
    assert_int_equal(look("", -1, EPERM, ALL), NONE);
}

static void test_refused_calls(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        long number;
        unsigned users; /* those of them who need it */
    } calls[] = {
        {"accept4", SYS_accept4, QUOIT_CALLS_NETWORK},
        {"getppid", SYS_getppid, QUOIT_CALLS_LAUNCHER},
        {"rt_sigtimedwait", SYS_rt_sigtimedwait, QUOIT_CALLS_LAUNCHER},
        {"rt_sigprocmask", SYS_rt_sigprocmask, ALL},
        {"wait4", SYS_wait4, QUOIT_CALLS_LAUNCHER},
        {"recvmsg", SYS_recvmsg, ALL},
        {"sendmsg", SYS_sendmsg, ALL},
        {"clone", SYS_clone, ALL},
        {"memfd_create", SYS_memfd_create, 0}, /* has a message of its own */
        {"getrandom", SYS_getrandom, QUOIT_CALLS_NETWORK},
        {"membarrier", SYS_membarrier, 0}, /* replaced where it is refused */
    };
    static const int errors[] = {EPERM, ENOSYS, EACCES, EMFILE, EAGAIN};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (size_t j = 0; j < sizeof errors / sizeof errors[0]; j++)
            for (unsigned user = QUOIT_CALLS_PE; user <= QUOIT_CALLS_NETWORK; user <<= 1) {
                int seen = look(calls[i].name, calls[i].number, errors[j], user);
                if (seen != (calls[i].users & user ? FOUND : NONE))
                    fail_msg("%s, errno %d, user %u: %d", calls[i].name, errors[j], user, seen);
            }
}

/* The C library takes clone instead. */
static void test_no_clone3(void **state)
{
    (void)state;
    assert_int_equal(look("clone3", SYS_clone3, ENOSYS, ALL), NONE);
    assert_int_equal(look("clone3", SYS_clone3, EPERM, ALL), FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_is_refused), cmocka_unit_test(test_refused_calls),
                                       cmocka_unit_test(test_no_clone3)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
