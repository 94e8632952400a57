/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_put.c - every PE puts to the PE some hops to its right, all at once, 8 B to 512 KiB.
 *
 * Use: ring_put [hops [rounds]]     (1 hop and 200 rounds unless given)
 * Prints for each size the time until a put has arrived (put and quiet) and the rate of consecutive puts, on the
 * slowest PE. Every byte received is checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <shmem.h>

#define BYTES_MAX (512 << 10)

static unsigned char inbox[BYTES_MAX], outbox[BYTES_MAX];

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* The data that PE `pe` sends at index `i` in the test of one size. */
static unsigned char content(int pe, size_t bytes, size_t i)
{
    return (unsigned char)((unsigned)pe * 31 + bytes * 7 + i * 13 + (i >> 8));
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
    int to = ((me + hops) % pe_count + pe_count) % pe_count;
    int from = ((me - hops) % pe_count + pe_count) % pe_count;
    if (me == 0)
        printf("put, %d PEs, each to the PE %d to its right\n%10s %12s %12s\n", pe_count, hops, "bytes", "us", "MB/s");

    for (size_t bytes = 8; bytes <= BYTES_MAX; bytes *= 4) {
        for (size_t i = 0; i < bytes; i++)
            outbox[i] = content(me, bytes, i);
        shmem_barrier_all();

        double start = now_us();
        for (int round = 0; round < rounds; round++) {
            shmem_putmem(inbox, outbox, bytes, to);
            shmem_quiet();
        }
        double one_us = slowest((now_us() - start) / rounds);

        shmem_barrier_all();
        start = now_us();
        for (int round = 0; round < rounds; round++)
            shmem_putmem_nbi(inbox, outbox, bytes, to);
        shmem_quiet();
        double stream_us = slowest((now_us() - start) / rounds);

        shmem_barrier_all();
        for (size_t i = 0; i < bytes; i++)
            wrong_here += inbox[i] != content(from, bytes, i);
        if (me == 0)
            printf("%10zu %12.2f %12.1f\n", bytes, one_us, (double)bytes / stream_us);
        shmem_barrier_all();
    }
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong_all, &wrong_here, 1);
    if (me == 0)
        printf(wrong_all == 0 ? "verified\n" : "WRONG: %d bytes differ from what was sent\n", wrong_all);
    shmem_finalize();
    return wrong_all == 0 ? 0 : 1;
}
