/* SPDX-License-Identifier: BSD-3-Clause */
/* known ROUNDS LATE_MS: each PE does what its number says, ROUNDS times, and before the last barrier of a round PE
 * LATE sleeps LATE_MS. Prints the nanoseconds between shmem_init and shmem_finalize. The arguments determine counts and
 * bytes in a profile; a line with a comment that begins with a slash and a word is looked for by the test. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LATE 1

static long counter, sum, mine;
static uint64_t sign;
static char room[1 << 16], here[1 << 16];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* To each other PE other than itself, as many bytes as both numbers say. */
static void exchange(int me, int n)
{
    for (int pe = 0; pe < n; pe++) {
        if (pe == me)
            continue;
        shmem_putmem(room, here, (size_t)(100 * me + pe + 1), pe);    /* /put */
        shmem_getmem(here, room, (size_t)(1000 + 100 * me + pe), pe); /* /get */
        for (int i = 0; i <= pe; i++)
            shmem_long_p(&mine, i, pe);      /* /p */
        shmem_long_atomic_inc(&counter, pe); /* /inc */
    }
}

/* In teams of every second PE; the context's PE numbers are those of the team. */
static void exchange_in(shmem_team_t half, shmem_ctx_t ctx)
{
    int size = shmem_team_n_pes(half), next = (shmem_team_my_pe(half) + 1) % size;
    shmem_ctx_int_put_nbi(ctx, (int *)room, (int *)here, 5, next); /* /ctx */
    shmem_ctx_quiet(ctx);
    shmem_team_sync(half); /* /sync */
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    shmem_init();
    uint64_t begin_ns = now_ns();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long rounds = atol(argv[1]), late_ms = atol(argv[2]);
    shmem_team_t half;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &half);
    if (me % 2 == 1)
        half = SHMEM_TEAM_INVALID;
    else
        shmem_team_create_ctx(half, 0, &ctx);
    long *block = shmem_malloc(3 << 20); /* /malloc */
    for (long round = 0; round < rounds; round++) {
        exchange(me, n);
        if (me % 2 == 0)
            exchange_in(half, ctx);
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1);                       /* /reduce */
        shmem_putmem_signal(room, here, 64, &sign, 1, SHMEM_SIGNAL_ADD, (me + 1) % n); /* /signal */
        shmem_signal_wait_until(&sign, SHMEM_CMP_GE, (uint64_t)round + 1);
        if (me == LATE)
            nanosleep(&(struct timespec){late_ms / 1000, late_ms % 1000 * 1000000}, NULL);
        shmem_barrier_all(); /* /late */
    }
    shmem_free(block);
    uint64_t end_ns = now_ns();
    printf("%d %llu\n", me, (unsigned long long)(end_ns - begin_ns));
    shmem_finalize();
    return 0;
}
