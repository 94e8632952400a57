/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long counter;

int main(void)
{
    shmem_init();
    shmem_long_inc(&counter, 0);    /* today: shmem_long_atomic_inc */
    shmem_long_add(&counter, 9, 0); /* today: shmem_long_atomic_add */
    shmem_barrier_all();
    long seen = shmem_long_fetch(&counter, 0); /* today: shmem_long_atomic_fetch */
    if (shmem_my_pe() == 0)
        printf("%ld\n", seen);
    int is_wrong = seen != 10 * shmem_n_pes();
    shmem_finalize();
    return is_wrong;
}
