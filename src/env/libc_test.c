/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what stands for functions of newer C libraries does as they do. Method: names of signals against sigabbrev_np
 * where there is one; descriptors of a child with gaps between them, closed with and without close_range (which a
 * filter of system calls refuses), against what fcntl shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/libc.h"

#define FIRST 300
#define END   900

static void names(void **state)
{
    (void)state;
#if __GLIBC_PREREQ(2, 32)
    for (int number = -1; number <= 70; number++) {
        const char *expected = sigabbrev_np(number);
        assert_string_equal(quoit_signal_name(number), expected ? expected : "?");
    }
#endif
    assert_string_equal(quoit_signal_name(SIGKILL), "KILL");
}

static void *thread_id(void *arg)
{
    *(pid_t *)arg = quoit_thread_id();
    return NULL;
}

static void threads(void **state)
{
    pthread_t thread;
    pid_t other;
    (void)state;
    assert_int_equal(quoit_thread_id(), getpid());
    assert_int_equal(pthread_create(&thread, NULL, thread_id, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_not_equal(other, getpid());
}

/* From now on close_range fails, as before Linux 5.9. */
static int refuse_close_range(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 436, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Every seventh is open. 0: those below FIRST are open still, and no other. */
static int close_some(int is_old)
{
    for (int fd = FIRST - 100; fd < END; fd++)
        if (fd % 7 != 0)
            close(fd);
        else if (dup2(STDERR_FILENO, fd) != fd)
            return 1;
    if (is_old && !refuse_close_range())
        return 77;
    quoit_close_from(FIRST);
    for (int fd = FIRST - 100; fd < END; fd++)
        if ((fcntl(fd, F_GETFD) >= 0) != (fd < FIRST && fd % 7 == 0))
            return 2;
    return 0;
}

static void descriptors(void **state)
{
    (void)state;
    for (int is_old = 0; is_old < 2; is_old++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(close_some(is_old));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip(); /* no filters of system calls */
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(threads),
        cmocka_unit_test(descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
