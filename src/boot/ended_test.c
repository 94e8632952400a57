/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a process that has reported why a job ends does not go on before who reads its standard error has read that, and
 * goes on where nobody reads. Method: a pipe, a socket and a file as standard error of a child, and a reader that is
 * late.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "boot/ended.h"
#include "env/clock.h"

#define MS       1000000u
#define LATE_NS  (600 * MS) /* more than the pause has by itself */
#define LIMIT_NS (UINT64_C(20000) * MS)

/* A child that reports, and goes on. */
static pid_t report(int error, _Atomic int *has_gone_on)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    dup2(error, STDERR_FILENO);
    quoit_ended_line("PE 3 ended [Q0312]");
    quoit_ended_pause();
    atomic_store(has_gone_on, 1);
    _exit(0);
}

static _Atomic int *word(void)
{
    void *shared = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    return shared;
}

static void check_awaited(int ends[2])
{
    static const char line[] = "quoit: PE 3 ended [Q0312]\n";
    char text[sizeof line] = "";
    _Atomic int *has_gone_on = word();
    int status;
    pid_t pid = report(ends[1], has_gone_on);
    quoit_clock_sleep_ns(LATE_NS);
    assert_int_equal(atomic_load(has_gone_on), 0);
    for (size_t got = 0; got < sizeof line - 1;) { /* by pieces: one is not all */
        assert_int_equal(read(ends[0], text + got, 5 < sizeof line - 1 - got ? 5 : sizeof line - 1 - got) > 0, 1);
        got = strlen(text);
    }
    assert_string_equal(text, line);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(has_gone_on), 1);
    munmap((void *)has_gone_on, sizeof(int));
    close(ends[0]);
    close(ends[1]);
}

static void test_awaited(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    check_awaited(ends);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    check_awaited(ends);
}

static void check_goes_on(int error)
{
    _Atomic int *has_gone_on = word();
    int status;
    uint64_t until_ns = quoit_clock_now_ns() + LIMIT_NS;
    pid_t pid = report(error, has_gone_on), ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && quoit_clock_now_ns() < until_ns)
        quoit_clock_sleep_ns(MS);
    if (ended == 0)
        kill(pid, SIGKILL);
    assert_int_equal(ended, pid);
    assert_int_equal(atomic_load(has_gone_on), 1);
    munmap((void *)has_gone_on, sizeof(int));
    close(error);
}

static void test_not_for_ever(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    check_goes_on(ends[1]); /* a reader that is there and does not read */
    close(ends[0]);
    check_goes_on(open("/dev/null", O_WRONLY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_awaited), cmocka_unit_test(test_not_for_ever)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
