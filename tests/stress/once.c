/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a put arrives exactly once, whatever links are lost. Method: each PE puts flags with the number of the round
 * into the next PE, which resets each flag to 0 as soon as it sees it, and then acknowledges the round. So a lost put
 * stalls the ring (--timeout), and a put that arrived and is sent again shows an old number.
 *
 * Use: once SECONDS
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FLAGS        16
#define BATCH_ROUNDS 200

static long flags[FLAGS], acknowledged, is_over, told_over;

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void take_flag(int i, long round)
{
    shmem_long_wait_until(&flags[i], SHMEM_CMP_NE, 0);
    long value = __atomic_exchange_n(&flags[i], 0, __ATOMIC_ACQ_REL);
    if (value == round)
        return;
    fprintf(stderr, "once: PE %d: flag %d is %ld again in round %ld\n", shmem_my_pe(), i, value, round);
    shmem_global_exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "use: once SECONDS\n");
        return 2;
    }
    shmem_init();
    int me = shmem_my_pe(), count = shmem_n_pes(), right = (me + 1) % count, left = (me + count - 1) % count;
    if (me == 0) {
        printf("once: %d PEs begin\n", count);
        fflush(stdout);
    }
    double end_s = now_s() + atof(argv[1]);
    for (long round = 1; !told_over; round++) {
        for (int i = 0; i < FLAGS; i++)
            shmem_long_p(&flags[i], round, right);
        for (int i = 0; i < FLAGS; i++)
            take_flag(i, round);
        shmem_long_p(&acknowledged, round, left);
        shmem_long_wait_until(&acknowledged, SHMEM_CMP_EQ, round);
        if (round % BATCH_ROUNDS == 0) {
            is_over = now_s() > end_s;
            shmem_long_broadcast(SHMEM_TEAM_WORLD, &told_over, &is_over, 1, 0);
        }
    }
    shmem_finalize();
    return 0;
}
