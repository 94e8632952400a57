/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: below SHMEM_THREAD_SERIALIZED a wait detects stores made without any routine of the library: by another thread
 * that never calls it, by a signal handler, by a forked child. Method: each stores long after the PE has fallen asleep,
 * and records when; a store that goes undetected hangs the test, and detecting it more than LATE_NS late is an error. A
 * wait for any of several objects, for a signal word, and one that lasts longer are tested likewise. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REST_NS 30000000
#define LONG_NS 400000000
#define LATE_NS 2000000000 /* the bound is an eighth of the wait; other processes compute on this machine too */
#define STORED  7

struct note {
    uint64_t stored_ns; /* time of the store to the flag */
    uint64_t flags[4];
};
static struct note *note; /* symmetric, in the heap, which a forked child shares */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void store(int index)
{
    __atomic_store_n(&note->stored_ns, now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&note->flags[index], STORED, __ATOMIC_RELEASE);
}

static void rest(long ns)
{
    const struct timespec pause = {ns / 1000000000, ns % 1000000000};
    nanosleep(&pause, NULL);
}

static void *store_later(void *ns)
{
    rest((long)(intptr_t)ns);
    store(2);
    return NULL;
}

static void on_alarm(int number)
{
    (void)number;
    store(2);
}

static void begin(void)
{
    memset(note, 0, sizeof *note);
    shmem_barrier_all();
}

static uint64_t end(void)
{
    uint64_t late_ns = now_ns() - note->stored_ns;
    shmem_barrier_all();
    return late_ns;
}

static uint64_t by_thread(long ns)
{
    pthread_t thread;
    begin();
    pthread_create(&thread, NULL, store_later, (void *)(intptr_t)ns);
    shmem_uint64_wait_until(&note->flags[2], SHMEM_CMP_EQ, STORED);
    uint64_t late_ns = end();
    pthread_join(thread, NULL);
    return late_ns;
}

static uint64_t by_thread_any(long ns)
{
    pthread_t thread;
    begin();
    pthread_create(&thread, NULL, store_later, (void *)(intptr_t)ns);
    size_t at = shmem_uint64_wait_until_any(note->flags, 4, NULL, SHMEM_CMP_EQ, STORED);
    CHECK(at == 2, "found at %zu", at);
    uint64_t late_ns = end();
    pthread_join(thread, NULL);
    return late_ns;
}

static uint64_t by_handler(long ns)
{
    const struct itimerval timer = {.it_value = {.tv_usec = ns / 1000}};
    signal(SIGALRM, on_alarm);
    begin();
    setitimer(ITIMER_REAL, &timer, NULL);
    shmem_signal_wait_until(&note->flags[2], SHMEM_CMP_EQ, STORED);
    return end();
}

static uint64_t by_child(long ns)
{
    begin();
    pid_t child = fork();
    if (child == 0) {
        rest(ns);
        store(2);
        _exit(0);
    }
    shmem_uint64_wait_until(&note->flags[2], SHMEM_CMP_EQ, STORED);
    uint64_t late_ns = end();
    waitpid(child, NULL, 0);
    return late_ns;
}

/* The quickest of three counts: in a single one this PE may have been held up. */
static void check(uint64_t (*wait)(long ns), long ns, const char *what)
{
    uint64_t least_ns = UINT64_MAX;
    for (int turn = 0; turn < 3; turn++) {
        uint64_t late_ns = wait(ns);
        least_ns = late_ns < least_ns ? late_ns : least_ns;
    }
    CHECK(least_ns < LATE_NS, "%s: noticed after %llu us", what, (unsigned long long)least_ns / 1000);
}

int main(void)
{
    int provided;
    shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
    me = shmem_my_pe();
    npes = shmem_n_pes();
    note = shmem_calloc(1, sizeof *note);
    check(by_thread, REST_NS, "a thread");
    check(by_thread, LONG_NS, "a thread, after long");
    check(by_thread_any, REST_NS, "a thread, waited for among four");
    check(by_handler, REST_NS, "a signal handler");
    check(by_child, REST_NS, "a forked child");
    return check_end("plain_others");
}
