/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: state, parent and processor time of a process, its end included, and descent. Method: children that stop
 * themselves, sleep, or compute until they are looked at; no time is waited for. */
#include "env/process.h"
#include "env/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS   UINT64_C(60000000000)
#define LOOK_NS    1000000u
#define IDLE_COUNT 3
#define NAME_BYTES 48

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_stopped(void **state)
{
    struct quoit_process process;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "a ) S 1 2 (");
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_true(quoit_process_look(child, &process));
    assert_int_equal(process.state, 'T');
    assert_int_equal(process.parent, getpid());
    assert_false(process.is_exiting);
    assert_true(quoit_process_is_named(child, "a ) S 1 2 ("));
    assert_false(quoit_process_is_named(child, "a ) S 1 2"));
    kill(child, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_true(quoit_process_look(child, &process));
    assert_true(process.is_exiting);
    waitpid(child, NULL, 0);
    assert_false(quoit_process_look(child, &process));
    assert_int_equal(process.state, 0);
}

static void test_processor_time(void **state)
{
    struct quoit_process process = {0};
    (void)state;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            (void)getppid();
    for (uint64_t until_ns = quoit_clock_now_ns() + LIMIT_NS;
         process.busy_ns == 0 && quoit_clock_now_ns() < until_ns;) {
        quoit_clock_sleep_ns(LOOK_NS);
        assert_true(quoit_process_look(child, &process));
    }
    assert_true(process.busy_ns > 0);
    end_child(child);
}

static void test_descent(void **state)
{
    int ends[2];
    pid_t grandchild = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t own = fork();
        if (own > 0 && write(ends[1], &own, sizeof own) != (ssize_t)sizeof own)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &grandchild, sizeof grandchild), sizeof grandchild);
    assert_true(quoit_process_descends(grandchild, getpid()));
    assert_true(quoit_process_descends(grandchild, child));
    assert_true(quoit_process_descends(child, child));
    assert_false(quoit_process_descends(child, grandchild));
    assert_false(quoit_process_descends(getpid(), child));
    assert_false(quoit_process_descends(0, 0));
    kill(grandchild, SIGKILL);
    end_child(child);
    close(ends[0]);
    close(ends[1]);
}

static void on_signal(int number)
{
    (void)number;
}

/* A child that waits in pause() once it has begun as `begin` says. */
static pid_t start_waiting(void (*begin)(void))
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* an assertion that fails leaves none behind */
        begin();
        (void)!write(ends[1], "x", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void begin_plain(void)
{
    signal(SIGTERM, SIG_DFL);
    signal(SIGSEGV, on_signal); /* nobody's wait ends by it */
}

static void begin_alarm(void)
{
    signal(SIGALRM, on_signal);
}

static void begin_child(void)
{
    pid_t own = getpid();
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == own) /* else it has ended before */
            pause();
        _exit(0);
    }
}

static void begin_handled(void)
{
    signal(SIGTERM, on_signal);
}

static void begin_ignored(void)
{
    signal(SIGTERM, SIG_IGN);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void *idle(void *unused)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    return unused;
}

static void *idle_for_long(void *unused)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += LIMIT_NS / 1000000000u;
    pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &limit);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void wake_one(int number)
{
    (void)number;
    pthread_cond_signal(&condition);
}

static void begin_threads(void *(*run)(void *))
{
    pthread_t thread;
    for (int i = 0; i < IDLE_COUNT; i++)
        if (pthread_create(&thread, NULL, run, NULL) != 0)
            _exit(1);
}

static void *name_itself(void *name_out)
{
    snprintf(name_out, NAME_BYTES, "/proc/self/task/%ld", syscall(SYS_gettid));
    return NULL;
}

/* One thread is left, and those that a sanitizer begins with a program's first one. */
static void begin_alone(void)
{
    pthread_t thread;
    char name[NAME_BYTES];
    if (pthread_create(&thread, NULL, name_itself, name) != 0 || pthread_join(thread, NULL) != 0)
        _exit(1);
    while (access(name, F_OK) == 0)
        quoit_clock_sleep_ns(LOOK_NS);
}

static void begin_idle(void)
{
    begin_threads(idle);
    signal(SIGUSR1, wake_one);
}

static void begin_timed(void)
{
    begin_threads(idle_for_long);
}

static uint32_t await_independent(pid_t child, uint32_t wanted, uint64_t *switches_out)
{
    uint64_t end_ns = quoit_clock_now_ns() + LIMIT_NS;
    uint32_t count = quoit_process_independent_threads(child, switches_out);
    while (count != wanted && quoit_clock_now_ns() < end_ns) {
        quoit_clock_sleep_ns(LOOK_NS);
        count = quoit_process_independent_threads(child, switches_out);
    }
    return count;
}

static void test_independent_threads(void **state)
{
    uint64_t switches, later;
    (void)state;
    pid_t single = start_waiting(begin_alone), threaded = start_waiting(begin_idle), timed = start_waiting(begin_timed);
    uint32_t alone = quoit_process_independent_threads(single, &switches);
    assert_in_range(alone, 1, IDLE_COUNT);
    assert_int_equal(await_independent(timed, alone + IDLE_COUNT, &switches), alone + IDLE_COUNT);
    assert_int_equal(await_independent(threaded, alone, &switches), alone);
    assert_int_not_equal(switches, 0);
    assert_int_equal(await_independent(threaded, alone, &later), alone);
    assert_int_equal(later, switches);
    kill(threaded, SIGUSR1); /* one of them runs, and waits again */
    uint64_t end_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (later == switches && quoit_clock_now_ns() < end_ns) {
        quoit_clock_sleep_ns(LOOK_NS);
        quoit_process_independent_threads(threaded, &later);
    }
    assert_int_not_equal(later, switches);
    end_child(single);
    end_child(threaded);
    end_child(timed);
    assert_int_equal(quoit_process_independent_threads(0, &switches), UINT32_MAX); /* nothing is shown of it */
}

static void test_what_may_wake(void **state)
{
    static const struct {
        void (*begin)(void);
        bool may_be_woken, handles;
    } rows[] = {{begin_plain, false, false},
                {begin_alarm, true, false},
                {begin_child, true, false},
                {begin_handled, false, true},
                {begin_ignored, false, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pid_t child = start_waiting(rows[i].begin);
        assert_int_equal(quoit_process_may_be_woken(child), rows[i].may_be_woken);
        assert_int_equal(quoit_process_handles(child, SIGTERM), rows[i].handles);
        uint64_t end_ns = quoit_clock_now_ns() + LIMIT_NS;
        while (!quoit_process_sleeps(child) && quoit_clock_now_ns() < end_ns)
            quoit_clock_sleep_ns(LOOK_NS);
        assert_true(quoit_process_sleeps(child));
        kill(child, SIGSTOP);
        assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
        assert_false(quoit_process_sleeps(child));
        end_child(child);
    }
    assert_true(quoit_process_may_be_woken(0)); /* nothing is shown of it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_processor_time),
        cmocka_unit_test(test_descent),
        cmocka_unit_test(test_what_may_wake),
        cmocka_unit_test(test_independent_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
