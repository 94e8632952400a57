/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_get.c - every PE gets from the PE some hops to its right, all at once, 8 B to 512 KiB.
 *
 * Use: ring_get [hops [rounds]]     (1 hop and 200 rounds unless given)
 * Prints for each size the time of one get and the rate of consecutive non-blocking gets, on the slowest PE.
 * Every byte received is checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#define BYTES_MAX (512 << 10)

static unsigned char shelf[BYTES_MAX], basket[BYTES_MAX];

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The contents of PE `pe` at index `i` in the test of one size. */
static unsigned char content(int pe, size_t bytes, size_t i)
{
    return (unsigned char)((unsigned)pe * 31 + bytes * 7 + i * 13 + (i >> 8));
}

static int count_wrong(int pe, size_t bytes)
{
    int wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += basket[i] != content(pe, bytes, i);
    memset(basket, 0, bytes);
    return wrong;
}

static double slowest(double mine)
{
    static double send, received;
    send = mine;
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &received, &send, 1);
    return received;
}

int main(int argc, char **argv)
{
    static int wrong_here, wrong_all;
    int hops = argc > 1 ? atoi(argv[1]) : 1;
    int rounds = argc > 2 ? atoi(argv[2]) : 200;

    shmem_init();
    int me = shmem_my_pe();
    int pe_count = shmem_n_pes();
    int from = ((me + hops) % pe_count + pe_count) % pe_count;
    if (me == 0)
        printf("get, %d PEs, each from the PE %d to its right\n%10s %12s %12s\n", pe_count, hops, "bytes", "us",
               "MB/s");

    for (size_t bytes = 8; bytes <= BYTES_MAX; bytes *= 4) {
        for (size_t i = 0; i < bytes; i++)
            shelf[i] = content(me, bytes, i);
        shmem_barrier_all();

        double start = now_us();
        for (int round = 0; round < rounds; round++)
            shmem_getmem(basket, shelf, bytes, from);
        double one_us = slowest((now_us() - start) / rounds);
        wrong_here += count_wrong(from, bytes);

        shmem_barrier_all();
        start = now_us();
        for (int round = 0; round < rounds; round++)
            shmem_getmem_nbi(basket, shelf, bytes, from);
        shmem_quiet();
        double stream_us = slowest((now_us() - start) / rounds);
        wrong_here += count_wrong(from, bytes);

        if (me == 0)
            printf("%10zu %12.2f %12.1f\n", bytes, one_us, (double)bytes / stream_us);
        shmem_barrier_all();
    }
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong_all, &wrong_here, 1);
    if (me == 0)
        printf(wrong_all == 0 ? "verified\n" : "WRONG: %d bytes differ from what was offered\n", wrong_all);
    shmem_finalize();
    return wrong_all == 0 ? 0 : 1;
}
