/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long lock, counter; /* the lock is 0 at first: static, or of shmem_calloc */

int main(void)
{
    shmem_init();
    shmem_set_lock(&lock); /* one PE of the job at a time */
    shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
    shmem_clear_lock(&lock); /* what was put has arrived before another PE gets the lock */

    while (shmem_test_lock(&lock) != 0) { /* 0: this PE has it now */
        /* something else meanwhile */
    }
    shmem_long_p(&counter, shmem_long_g(&counter, 0) + 1, 0);
    shmem_clear_lock(&lock);

    shmem_barrier_all();
    long seen = shmem_long_g(&counter, 0);
    if (shmem_my_pe() == 0)
        printf("%ld\n", seen);
    int is_wrong = seen != 2 * shmem_n_pes();
    shmem_finalize();
    return is_wrong;
}
