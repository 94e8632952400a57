/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), is_wrong = 0;
    long *from = shmem_malloc(2 * pes * sizeof(long)), *to = shmem_malloc(2 * pes * sizeof(long));
    for (int i = 0; i < 2 * pes; i++)
        from[i] = 100 * me + i;
    shmem_barrier_all();

    shmem_long_broadcast(SHMEM_TEAM_WORLD, to, from, 2, 0); /* two elements of PE 0, to all */
    is_wrong |= to[1] != 1;
    shmem_broadcastmem(SHMEM_TEAM_WORLD, to, from, 2 * sizeof(long), 0);

    shmem_long_fcollect(SHMEM_TEAM_WORLD, to, from, 2); /* two of each, one behind the other */
    is_wrong |= to[2 * pes - 1] != 100 * (pes - 1) + 1;
    shmem_fcollectmem(SHMEM_TEAM_WORLD, to, from, 2 * sizeof(long));

    shmem_long_collect(SHMEM_TEAM_WORLD, to, from, me % 2 + 1); /* as many as each PE likes */
    is_wrong |= to[0] != 0;
    shmem_collectmem(SHMEM_TEAM_WORLD, to, from, sizeof(long));

    shmem_long_alltoall(SHMEM_TEAM_WORLD, to, from, 1); /* element i to PE i */
    is_wrong |= to[pes - 1] != 100 * (pes - 1) + me;
    printf("PE %d has %ld of the last PE\n", me, to[pes - 1]);
    shmem_alltoallmem(SHMEM_TEAM_WORLD, to, from, sizeof(long));
    shmem_long_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 1, 1); /* every second place there */
    is_wrong |= to[2 * (pes - 1)] != 100 * (pes - 1) + me;
    shmem_alltoallsmem(SHMEM_TEAM_WORLD, to, from, 1, 1, sizeof(long));
    shmem_free(to);
    shmem_free(from);
    shmem_finalize();
    return is_wrong;
}
