/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

/* Work space of all collectives of active sets; those of teams need none: shmem_long_sum_reduce(SHMEM_TEAM_WORLD, ...).
 */
static long pSync[SHMEM_REDUCE_SYNC_SIZE] = {SHMEM_SYNC_VALUE}, pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long mine, all;

int main(void)
{
    shmem_init();
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    mine = shmem_my_pe() + 1;
    shmem_barrier_all();                                                     /* pSync is ready everywhere */
    shmem_long_sum_to_all(&all, &mine, 1, 0, 0, shmem_n_pes(), pWrk, pSync); /* from PE 0 on, each one */
    if (shmem_my_pe() == 0)
        printf("sum %ld\n", all);
    int is_wrong = all != (long)shmem_n_pes() * (shmem_n_pes() + 1) / 2;
    shmem_finalize();
    return is_wrong;
}
