/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long mine[2], all[2];
static unsigned long bits, seen;

int main(void)
{
    shmem_init();
    long me = shmem_my_pe(), pes = shmem_n_pes();
    int is_wrong = 0;
    mine[0] = me + 1;
    mine[1] = 10 * (me + 1);

    /* Element by element over the PEs of a team; every PE has the result. */
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all, mine, 2);
    is_wrong |= all[1] != 5 * pes * (pes + 1);
    if (me == 0)
        printf("sum %ld\n", all[0]);
    shmem_long_min_reduce(SHMEM_TEAM_WORLD, all, mine, 2);
    is_wrong |= all[0] != 1;
    shmem_long_max_reduce(SHMEM_TEAM_WORLD, all, mine, 2);
    is_wrong |= all[0] != pes;
    shmem_long_prod_reduce(SHMEM_TEAM_WORLD, all, mine, 1);
    is_wrong |= pes == 4 && all[0] != 24;

    /* Prefix sums: up to this PE, and before it. */
    shmem_long_sum_inscan(SHMEM_TEAM_WORLD, all, mine, 1);
    is_wrong |= all[0] != (me + 1) * (me + 2) / 2;
    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, all, mine, 1);
    is_wrong |= all[0] != me * (me + 1) / 2;

    bits = 1ul << me;
    shmem_ulong_or_reduce(SHMEM_TEAM_WORLD, &seen, &bits, 1);
    is_wrong |= seen != (1ul << pes) - 1;
    shmem_ulong_xor_reduce(SHMEM_TEAM_WORLD, &seen, &bits, 1);
    is_wrong |= seen != (1ul << pes) - 1;
    shmem_ulong_and_reduce(SHMEM_TEAM_WORLD, &seen, &bits, 1);
    is_wrong |= seen != (pes == 1);
    shmem_finalize();
    return is_wrong;
}
