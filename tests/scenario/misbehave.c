/* SPDX-License-Identifier: BSD-3-Clause */
/* misbehave PE DEED [ARGUMENT]: that PE misbehaves, the others wait in a barrier. */
#include <shmem.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>

static char *volatile nowhere;
static long flag;

static void __attribute__((noinline)) solve(void)
{
    *(volatile char *)nowhere = 1; /* the line that the test looks for */
}

static void __attribute__((noinline)) copy_from_nowhere(int pe)
{
    static char target[4096];
    shmem_putmem(target, nowhere + 64, sizeof target, pe);
    printf("not reached\n");
}

static void __attribute__((noinline)) wait_for_flag(void)
{
    shmem_long_wait_until(&flag, SHMEM_CMP_NE, 0);
}

static int signed_flag = -3;
static uint32_t words[8] = {1, 0, 0, 0, 0, 0, 4000000000u};
static long held_lock;
static long *heap_place;

/* PE `leaver` returns from main; the others poll in vain, in one of the ways that programs do, or at work. */
static void poll_without(int leaver, const char *how)
{
    static long locks[2];
    int me = shmem_my_pe(), other = me == 0 ? 1 : 0;
    if (me == leaver)
        exit(0);
    for (long i = 1;; i++) {
        if (strcmp(how, "test") == 0)
            shmem_long_test(&flag, SHMEM_CMP_EQ, 1);
        else if (strcmp(how, "g") == 0)
            shmem_long_g(&flag, leaver);
        else if (strcmp(how, "signal") == 0)
            shmem_signal_fetch((uint64_t *)&flag);
        else if (strcmp(how, "trylock") == 0)
            (void)(me == 0 && i == 1 ? (shmem_set_lock(locks), 0) : shmem_test_lock(me == 0 ? &flag : locks));
        else if (strcmp(how, "talk") == 0) { /* PE 0 and 1 answer each other */
            if (me == 0)
                shmem_long_p(&flag, i, other);
            while (!shmem_long_test(&flag, SHMEM_CMP_EQ, i))
                ;
            if (me == 1)
                shmem_long_p(&flag, i, other);
        } else { /* "work" */
            for (volatile int k = 0; k < 20000; k++)
                ;
            shmem_long_test(&flag, SHMEM_CMP_EQ, 1);
        }
    }
}

/* PE `leaver` returns from main. A token goes round the others many times, each of which waits or polls for it; the
 * first one is late: it passes it on once the test has made the file that SCENARIO_GO names. */
static void pass_token(int leaver)
{
    int me = shmem_my_pe(), count = shmem_n_pes(), first = leaver == 0 ? 1 : 0, next = me;
    printf("PE %d is process %d\n", me, (int)getpid());
    fflush(stdout);
    if (me == leaver)
        exit(0);
    do
        next = (next + 1) % count;
    while (next == leaver);
    while (me == first && access(getenv("SCENARIO_GO"), F_OK) != 0)
        usleep(10000);
    for (long i = 1; i <= 500; i++) {
        if (me == first)
            shmem_long_p(&flag, i, next);
        if (me == count - 1 - (leaver == count - 1)) /* the last one */
            while (!shmem_long_test(&flag, SHMEM_CMP_EQ, i))
                ;
        else
            shmem_long_wait_until(&flag, SHMEM_CMP_EQ, i);
        if (me != first)
            shmem_long_p(&flag, i, next);
    }
    exit(0);
}

/* PE `leaver` returns from main. Another one polls for a number in its own memory, to which a third one adds now and
 * then, between polls of its own that are in vain; it takes more than half a minute. */
static void count_slowly(int leaver)
{
    static long number, never;
    const int wanted = 20, apart_s = 2;
    int me = shmem_my_pe(), adder = leaver == 0 ? 1 : 0, counter = leaver == 2 ? 1 : 2;
    time_t last = time(NULL);
    for (int done = 0; me == adder && done < wanted;) {
        shmem_long_test(&never, SHMEM_CMP_NE, 0);
        if (time(NULL) - last < apart_s)
            continue;
        last += apart_s;
        done++;
        shmem_long_atomic_inc(&number, counter);
    }
    while (me == counter && !shmem_long_test(&number, SHMEM_CMP_GE, wanted))
        ;
    exit(0);
}

/* PE `leaver` returns from main. Another one sends much to a third one, which polls for it, and answers. */
static void put_much(int leaver)
{
    static char much[10 << 20];
    static long answer;
    int me = shmem_my_pe(), sender = leaver == 0 ? 1 : 0, receiver = leaver == 2 ? 1 : 2;
    if (me == sender) {
        shmem_putmem_signal_nbi(much, much, sizeof much, (uint64_t *)&flag, 1, SHMEM_SIGNAL_SET, receiver);
        while (!shmem_long_test(&answer, SHMEM_CMP_EQ, 1))
            ;
    } else if (me == receiver) {
        while (!shmem_long_test(&flag, SHMEM_CMP_EQ, 1))
            ;
        shmem_long_p(&answer, 1, sender);
    }
    exit(0);
}

/* One passes shmem_finalize by a barrier of the others, who go on. */
static void pass_alone(int leaver)
{
    if (shmem_my_pe() == leaver) {
        shmem_finalize();
        exit(0);
    }
    shmem_barrier_all();
    wait_for_flag();
}

static void __attribute__((noinline)) compute_for_ever(void)
{
    for (volatile long i = 0;; i++) /* the line that the test looks for */
        ;
}

static void wait_in_vain(const char *deed)
{
    if (strcmp(deed, "signed") == 0)
        shmem_int_wait_until(&signed_flag, SHMEM_CMP_EQ, 5);
    else if (strcmp(deed, "part") == 0)
        shmem_uint32_wait_until(&words[6], SHMEM_CMP_LT, 0);
    else if (strcmp(deed, "several") == 0)
        shmem_uint32_wait_until_all(words, 3, NULL, SHMEM_CMP_EQ, 1);
    else
        shmem_long_wait_until(heap_place, SHMEM_CMP_GE, 7);
}

/* PE `holder` never releases the lock that the others wait for. */
static void hold_lock(int holder)
{
    if (shmem_my_pe() == holder)
        shmem_set_lock(&held_lock);
    shmem_barrier_all();
    if (shmem_my_pe() != holder)
        shmem_set_lock(&held_lock);
}

/* PE `holder` is killed while it holds the lock and another PE waits for it. */
static void die_with_lock(int holder)
{
    static long lock;
    if (shmem_my_pe() == holder) {
        shmem_set_lock(&lock);
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            shmem_long_p(&flag, 1, pe);
        sleep(1);
        raise(SIGKILL);
    }
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_set_lock(&lock);
}

static int mine[64], others[64];

/* Closes all descriptors, including the library's, and reuses their numbers for sockets of its own. */
static void close_all(void)
{
    int ends[2];
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < 64 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0; i++) {
        mine[i] = ends[0];
        others[i] = ends[1];
    }
}

static void exit_slowly(void)
{
    sleep(3);
}

/* The sockets must not have received anything. */
static void check_sockets(void)
{
    char bytes[4096];
    for (int i = 0; i < 64; i++)
        if (recv(mine[i], bytes, sizeof bytes, MSG_DONTWAIT) >= 0 ||
            recv(others[i], bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
            printf("somebody wrote into my sockets\n");
}

/* Deeds in which PE `leaver` returns from main while the others go on. False: it is another one. */
static bool has_left_others(const char *deed, int leaver)
{
    if (strncmp(deed, "poll-", 5) == 0)
        poll_without(leaver, deed + 5);
    else if (strcmp(deed, "token") == 0)
        pass_token(leaver);
    else if (strcmp(deed, "put-much") == 0)
        put_much(leaver);
    else if (strcmp(deed, "count-slowly") == 0)
        count_slowly(leaver);
    else if (strcmp(deed, "pass") == 0)
        pass_alone(leaver);
    else
        return false;
    return true;
}

static void misbehave(const char *deed, int argument)
{
    int next = (shmem_my_pe() + 1) % shmem_n_pes();
    if (strcmp(deed, "null") == 0)
        solve();
    else if (strcmp(deed, "put-null") == 0)
        copy_from_nowhere(next);
    else if (strcmp(deed, "abort") == 0)
        abort();
    else if (strcmp(deed, "exit") == 0)
        exit(argument);
    else if (strcmp(deed, "_exit") == 0)
        _exit(argument);
    else if (strcmp(deed, "kill") == 0)
        raise(argument);
    else if (strcmp(deed, "slow-exit") == 0) {
        atexit(exit_slowly);
        shmem_global_exit(argument);
    } else if (strcmp(deed, "global-exit") == 0)
        shmem_global_exit(argument);
    else if (strcmp(deed, "bad-pe") == 0) {
        usleep((unsigned)(1000 * argument * shmem_my_pe())); /* one after another */
        shmem_long_p(&flag, 1, 1000);
    } else if (strcmp(deed, "flag") == 0)
        wait_for_flag();
    else if (strcmp(deed, "finalize") == 0) {
        shmem_finalize();
        exit(argument);
    } else if (strcmp(deed, "lock") == 0)
        die_with_lock(argument);
    else if (strcmp(deed, "desert") == 0) {
        if (shmem_my_pe() == argument)
            exit(0);
        wait_for_flag();
    } else if (strcmp(deed, "keep") == 0) {
        hold_lock(argument);
        exit(0);
    } else if (has_left_others(deed, argument)) {
        return;
    } else if (strcmp(deed, "exec") == 0) {
        execlp("sleep", "sleep", "1000", (char *)NULL);
    } else if (strcmp(deed, "hold") == 0)
        hold_lock(argument);
    else if (strcmp(deed, "compute-on") == 0)
        compute_for_ever();
    else if (strcmp(deed, "compute") == 0)
        compute_for_ever();
    else if (strcmp(deed, "nap") == 0) {
        sleep(100);
        printf("woke up\n");
        fflush(stdout);
    } else if (strcmp(deed, "signed") == 0 || strcmp(deed, "part") == 0 || strcmp(deed, "several") == 0 ||
               strcmp(deed, "heap") == 0)
        wait_in_vain(deed);
    else if (strcmp(deed, "linger") == 0) {
        close_all();
        shmem_barrier_all();
        shmem_finalize();
        sleep((unsigned)argument);
        exit(0);
    } else if (strncmp(deed, "close-all", 9) == 0) {
        close_all();
        if (deed[9])
            misbehave(deed + 10, argument);
        shmem_barrier_all();
        shmem_finalize();
        check_sockets();
        exit(argument);
    } else if (strcmp(deed, "sleep") == 0)
        sleep((unsigned)argument);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    int who = atoi(argv[1]), argument = argc > 3 ? atoi(argv[3]) : 0;
    shmem_init();
    heap_place = shmem_malloc(2 * sizeof *heap_place);
    if (!heap_place)
        return 2;
    *heap_place = 2;
    shmem_barrier_all();
    int me = shmem_my_pe();
    if (strcmp(argv[2], "compute-on") == 0 && me != who)
        exit(0);
    if (who == -1 || me == who)
        misbehave(argv[2], argument);
    shmem_barrier_all();
    if (strcmp(argv[2], "exit-late") == 0 && me == who)
        exit(argument);
    int is_late = strcmp(argv[2], "return") == 0 && me == who;
    shmem_finalize();
    if (strcmp(argv[2], "again") == 0) { /* it waits in another shmem_init for the others, which sleep */
        printf("finalized\n");
        fflush(stdout);
        if (me == who)
            shmem_init();
        sleep((unsigned)argument);
    }
    return is_late ? argument : 0;
}
