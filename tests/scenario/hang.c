/* SPDX-License-Identifier: BSD-3-Clause */
/* hang KIND: every PE waits, and none is left to end a wait; or, for kinds of long waits, somebody ends it after
 * LONG_S. Each kind is a function that all PEs call. */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LONG_S 15

static long flag, count, locks[2], source[2], target[2];
static uint64_t signal_word;
static int me, last;

/* --- hangs --- */

static void value(void)
{
    if (me == last)
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 7);
    shmem_barrier_all();
}

static void values(void)
{
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1); /* each before it sets that of the next */
    shmem_long_p(&flag, 1, (me + 1) % (last + 1));
}

/* Two calls of one line, as compilers make when they split a loop. */
#define TWICE(call)                                                                                                    \
    do                                                                                                                 \
        if (me == 1) {                                                                                                 \
            __asm__ volatile("nop");                                                                                   \
            call;                                                                                                      \
        } else {                                                                                                       \
            call;                                                                                                      \
        }                                                                                                              \
    while (0)

static void two_calls(void)
{
    TWICE(shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1));
    __asm__ volatile("nop"); /* neither is the last thing that is done here */
}

static void count_short(void)
{
    if (me != last)
        shmem_long_atomic_inc(&count, last);
    else
        shmem_long_wait_until(&count, SHMEM_CMP_GE, last + 1); /* itself included, which does not add */
    shmem_barrier_all();
}

static void no_signal(void)
{
    if (me == 0)
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 0);
    shmem_barrier_all();
}

static void any_of(void)
{
    if (me == 0)
        shmem_long_wait_until_any(target, 2, NULL, SHMEM_CMP_NE, 0);
    shmem_sync_all();
}

static void two_locks(void)
{
    int first = me == 0 ? 0 : 1;
    if (me < 2)
        shmem_set_lock(&locks[first]);
    shmem_barrier_all();
    if (me < 2)
        shmem_set_lock(&locks[1 - first]);
    shmem_barrier_all();
}

static void ring_of_locks(void)
{
    static long each[64]; /* one a PE */
    shmem_set_lock(&each[me]);
    shmem_barrier_all();
    shmem_set_lock(&each[(me + 1) % (last + 1)]);
}

static void kept_lock(void)
{
    if (me == 0)
        shmem_set_lock(locks);
    shmem_barrier_all();
    if (me != 0)
        shmem_set_lock(locks);
    shmem_barrier_all(); /* the first one has not released it */
}

/* Of two PEs, from `first` on, `stride` apart */
static shmem_team_t team_of(int first, int stride)
{
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, first, stride, 2, NULL, 0, &team);
    return team;
}

static void part_of_team(void)
{
    shmem_team_t team = team_of(0, 1);
    if (me == 0)
        shmem_team_sync(team);
    shmem_barrier_all();
}

static void other_order(void)
{
    shmem_team_t team = team_of(0, 2);
    if (me == 0)
        shmem_long_sum_reduce(team, target, source, 2);
    shmem_barrier_all();
    if (me == 2)
        shmem_long_sum_reduce(team, target, source, 2);
}

static void circle_of_teams(void)
{
    shmem_team_t teams[3] = {team_of(0, 1), team_of(1, 1), team_of(0, 2)};
    for (int i = 0; i < 3; i++) /* each begins with another one */
        if (teams[(me + i) % 3] != SHMEM_TEAM_INVALID)
            shmem_team_sync(teams[(me + i) % 3]);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static bool has_work;

static void *work_when_told(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!has_work)
        pthread_cond_wait(&work, &mutex);
    pthread_mutex_unlock(&mutex);
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    return unused;
}

/* A pool of threads to which nobody gives work */
static void pool(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        if (pthread_create(&thread, NULL, work_when_told, NULL) != 0)
            exit(1);
    value();
}

/* --- long waits that end --- */

static void pass_to_others(void)
{
    for (int pe = 0; pe <= last; pe++)
        shmem_long_p(&flag, 1, pe);
}

static void await_flag(void)
{
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

static void sleeps(void)
{
    if (me == 0)
        sleep(LONG_S);
    shmem_barrier_all();
}

static void computes(void)
{
    time_t end = time(NULL) + LONG_S;
    while (me == 0 && time(NULL) < end)
        ;
    shmem_barrier_all();
}

static void reads(void)
{
    char byte;
    if (me == 0 && read(STDIN_FILENO, &byte, 1) == 1)
        pass_to_others();
    await_flag();
}

static void stops(void)
{
    if (me == 0)
        raise(SIGSTOP);
    shmem_barrier_all();
}

static void *store_late(void *unused)
{
    sleep(LONG_S);
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    return unused;
}

static void thread(void)
{
    pthread_t other;
    if (pthread_create(&other, NULL, store_late, NULL) == 0)
        await_flag();
    pthread_join(other, NULL);
}

static void *give_work_late(void *unused)
{
    sleep(LONG_S);
    pthread_mutex_lock(&mutex);
    has_work = true;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Of two threads one sleeps, and gives the idle one work. */
static void chain(void)
{
    pthread_t idle, other;
    if (pthread_create(&idle, NULL, work_when_told, NULL) != 0 ||
        pthread_create(&other, NULL, give_work_late, NULL) != 0)
        exit(1);
    await_flag();
    pthread_join(idle, NULL);
    pthread_join(other, NULL);
}

static void on_alarm(int number)
{
    (void)number;
    __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
}

static void alarms(void)
{
    signal(SIGALRM, on_alarm);
    alarm(LONG_S);
    await_flag();
}

static void child(void)
{
    long *shared = shmem_calloc(1, sizeof *shared); /* a child has variables of its own, and the parent's heap */
    if (!shared)
        exit(1);
    if (fork() == 0) {
        sleep(LONG_S);
        __atomic_store_n(shared, 1, __ATOMIC_RELEASE);
        _exit(0);
    }
    shmem_long_wait_until(shared, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

static void gives_up(void)
{
    time_t end = time(NULL) + LONG_S;
    while (me == 0 && !shmem_long_test(&flag, SHMEM_CMP_EQ, 1))
        if (time(NULL) >= end)
            break;
    shmem_barrier_all();
}

static void trickles(void)
{
    for (int i = 1; i <= LONG_S / 3; i++) {
        if (me == 0)
            sleep(3);
        if (me == 0)
            for (int pe = 1; pe <= last; pe++)
                shmem_long_atomic_inc(&count, pe);
        else
            shmem_long_wait_until(&count, SHMEM_CMP_GE, i);
    }
    shmem_barrier_all();
}

static void commands(void)
{
    char command[32];
    snprintf(command, sizeof command, "sleep %d", LONG_S);
    if (me == 0 && system(command) != 0)
        exit(1);
    shmem_barrier_all();
}

static const struct kind {
    const char *name;
    void (*run)(void);
} kinds[] = {
    {"value", value},
    {"values", values},
    {"two-calls", two_calls},
    {"count-short", count_short},
    {"no-signal", no_signal},
    {"any-of", any_of},
    {"two-locks", two_locks},
    {"ring-of-locks", ring_of_locks},
    {"kept-lock", kept_lock},
    {"part-of-team", part_of_team},
    {"other-order", other_order},
    {"circle-of-teams", circle_of_teams},
    {"pool", pool},
    {"sleeps", sleeps},
    {"computes", computes},
    {"reads", reads},
    {"thread", thread},
    {"chain", chain},
    {"alarms", alarms},
    {"child", child},
    {"gives-up", gives_up},
    {"trickles", trickles},
    {"commands", commands},
    {"stops", stops},
};

int main(int argc, char **argv)
{
    int provided;
    if (argc != 2)
        return 2;
    bool has_threads = strcmp(argv[1], "thread") == 0 || strcmp(argv[1], "chain") == 0;
    shmem_init_thread(has_threads ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    me = shmem_my_pe();
    last = shmem_n_pes() - 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(argv[1], kinds[i].name) == 0)
            kinds[i].run();
    if (me == 0) {
        puts("the wait has ended");
        fflush(stdout);
    }
    shmem_finalize();
    return 0;
}
