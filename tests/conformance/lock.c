/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: set_lock, test_lock, clear_lock (9.13). Method: all PEs increment a non-atomic counter on PE 0 under the lock;
 * several locks at once; test_lock returns 1 while another PE holds the lock. */
#include "check.h"

#define ROUNDS 40

static long locks[3], counters[3], free_lock, stage;

int main(void)
{
    check_begin();
    for (int round = 0; round < ROUNDS; round++) {
        int i = round % 3;
        if (round % 4 == 3)
            while (shmem_test_lock(&locks[i]))
                ;
        else
            shmem_set_lock(&locks[i]);
        long value = shmem_long_g(&counters[i], 0);
        shmem_long_p(&counters[i], value + 1, 0);
        shmem_clear_lock(&locks[i]);
    }
    shmem_barrier_all();
    long sum = counters[0] + counters[1] + counters[2];
    CHECK(me != 0 || sum == (long)npes * ROUNDS, "%d PEs raised the counters %d times each to %ld", npes, ROUNDS, sum);

    if (me == 0) {
        CHECK(shmem_test_lock(&free_lock) == 0, "a free lock was not taken");
        for (int pe = 0; pe < npes; pe++)
            shmem_long_p(&stage, 1, pe);
    }
    shmem_long_wait_until(&stage, SHMEM_CMP_EQ, 1);
    if (me != 0)
        CHECK(shmem_test_lock(&free_lock) == 1, "a lock was taken twice");
    shmem_barrier_all();
    if (me == 0)
        shmem_clear_lock(&free_lock);
    shmem_barrier_all();
    if (me == npes - 1) {
        CHECK(shmem_test_lock(&free_lock) == 0, "a cleared lock was not taken");
        shmem_clear_lock(&free_lock);
    }
    return check_end("lock");
}
