/* SPDX-License-Identifier: BSD-3-Clause */
/* What jobs in virtual time do: virtual.py has the kinds. Each PE prints what it saw, which depends on the order of all
 * operations, and checks what does not. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TASKS 200
#define BYTES (1 << 20)

static long next_task, sums[2], flag, lock, guarded, table[64];
static char block[BYTES], expected[BYTES];
static int me, n;

static void must(int is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "PE %d: %s\n", me, what);
    exit(3);
}

/* Tasks of different sizes, for the PE that comes first: which PE gets which is a matter of time. */
static void share_tasks(void)
{
    static char buffer[4096];
    long task, mine = 0;
    unsigned long digest = (unsigned long)me;
    while ((task = shmem_long_atomic_fetch_inc(&next_task, 0)) < TASKS) {
        shmem_getmem(buffer, block, (size_t)(task * 37 % 4096), (int)(task % n));
        shmem_long_atomic_add(&sums[0], task, 0);
        digest = digest * 31 + (unsigned long)task;
        mine++;
    }
    shmem_long_atomic_add(&sums[1], mine, 0);
    shmem_barrier_all();
    must(me != 0 || (sums[0] == (long)TASKS * (TASKS - 1) / 2 && sums[1] == TASKS), "tasks were lost or done twice");
    printf("PE %d did %ld tasks, %lx\n", me, mine, digest);
}

/* Each PE writes its parts of all blocks, in an order of its own; the whole is known. */
static void write_parts(void)
{
    const int parts = 256, bytes = BYTES / parts;
    static char part[BYTES / 256];
    unsigned seed = (unsigned)me + 1;
    for (int i = 0; i < parts; i++) {
        int at = (i + me * 7) % parts;
        for (int pe = 0; pe < n && at % n == me; pe++) {
            memset(part, at * 3 + pe + 1, sizeof part);
            shmem_putmem(block + at * bytes, part, (size_t)bytes, (pe + me) % n);
            memset(part, at * 3 + (pe + me) % n + 1, sizeof part);
            shmem_putmem(block + at * bytes, part, (size_t)bytes, (pe + me) % n);
        }
        seed = seed * 1103515245u + 12345u;
        if (seed >> 30 == 0) {
            shmem_set_lock(&lock);
            shmem_long_p(&guarded, shmem_long_g(&guarded, 0) + 1, 0);
            shmem_clear_lock(&lock);
            shmem_long_atomic_inc(&sums[0], 0);
        }
    }
    shmem_barrier_all();
    for (int at = 0; at < parts; at++)
        memset(expected + at * bytes, at * 3 + me + 1, (size_t)bytes);
    must(memcmp(block, expected, BYTES) == 0, "the block is not what was put there");
    must(me != 0 || guarded == sums[0], "the lock does not exclude");
    for (int i = 0; i < 64; i++)
        table[i] = me + i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, table, table, 64);
    for (int i = 0; i < 64; i++)
        must(table[i] == (long)n * (n - 1) / 2 + (long)n * i, "a sum is wrong");
    printf("PE %d is right\n", me);
}

/* PE 0 puts so many bytes and a flag, for which PE 1 waits. */
static void put_once(size_t bytes)
{
    if (me == 0) {
        shmem_putmem(block, expected, bytes, 1);
        shmem_fence();
        shmem_long_p(&flag, 1, 1);
    } else if (me == 1) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
}

/* The same, but PE 1 tests, and PE 0 answers by a plain store. */
static void poll_and_store(void)
{
    long *other = shmem_ptr(&flag, 1 - me);
    if (me == 0) {
        shmem_long_p(&flag, 1, 1);
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 2);
    } else if (me == 1) {
        while (!shmem_long_test(&flag, SHMEM_CMP_EQ, 1))
            ;
        must(other != NULL, "shmem_ptr gives nothing");
        *(volatile long *)other = 2;
    }
}

/* 20 ms of this PE's processor time. */
static void compute(void)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 20000000);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (strcmp(kind, "tasks") == 0)
        share_tasks();
    else if (strcmp(kind, "parts") == 0)
        write_parts();
    else if (strcmp(kind, "put") == 0)
        put_once((size_t)atol(argv[2]));
    else if (strcmp(kind, "poll") == 0)
        poll_and_store();
    else if (strcmp(kind, "compute") == 0)
        compute();
    else if (strcmp(kind, "not-three") == 0)
        must(n != 3, "three PEs are too many");
    else if (strcmp(kind, "late") == 0)
        usleep(2500000);
    else if (strcmp(kind, "plain") == 0 && me == 0)
        while (*(volatile long *)&flag == 0)
            ;
    while (strcmp(kind, "endless") == 0)
        shmem_long_test(&flag, SHMEM_CMP_EQ, 1);
    shmem_finalize();
    return 0;
}
