/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_barrier.c - the time of a barrier around the ring: alone, and after each PE has put some data to its neighbour.
 *
 * Use: ring_barrier [rounds]     (200 unless given)
 * A barrier also completes the puts before it: after each, every PE verifies its neighbour's data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <shmem.h>

#define LONGS_MAX ((512 << 10) / sizeof(long))

static long inbox[LONGS_MAX], outbox[LONGS_MAX];

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
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
    int rounds = argc > 1 ? atoi(argv[1]) : 200;

    shmem_init();
    int me = shmem_my_pe();
    int pe_count = shmem_n_pes();
    int right = (me + 1) % pe_count;
    int left = (me + pe_count - 1) % pe_count;
    if (me == 0)
        printf("barrier, %d PEs, after puts of some bytes\n%10s %12s\n", pe_count, "bytes", "us");

    long step = 0;
    for (size_t count = 0; count <= LONGS_MAX; count = count == 0 ? 1 : count * 8) {
        double total_us = 0;
        for (int round = 0; round < rounds; round++) {
            step++;
            if (count > 0) { /* the first and the last element tell whether all have arrived */
                outbox[0] = me + step;
                outbox[count - 1] = me + step;
                shmem_long_put(inbox, outbox, count, right);
            }
            double start = now_us();
            shmem_barrier_all();
            total_us += now_us() - start;
            if (count > 0)
                wrong_here += inbox[0] != left + step || inbox[count - 1] != left + step;
            shmem_sync_all(); /* all PEs have checked before the next round writes */
        }
        double one_us = slowest(total_us / rounds);
        if (me == 0)
            printf("%10zu %12.2f\n", count * sizeof(long), one_us);
    }
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &wrong_all, &wrong_here, 1);
    if (me == 0)
        printf(wrong_all == 0 ? "verified\n" : "WRONG: %d barriers let go before the data was there\n", wrong_all);
    shmem_finalize();
    return wrong_all == 0 ? 0 : 1;
}
