/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long left, right;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_long_p(&left, me, (me + 1) % pes);
    shmem_barrier_all(); /* all PEs are here, and everything that they have put has arrived */

    long sum = left + 1;
    shmem_long_p(&right, me, (me + pes - 1) % pes);
    shmem_quiet();                     /* of this PE alone ... */
    shmem_team_sync(SHMEM_TEAM_WORLD); /* ... then a meeting of the team, which completes no puts by itself */
    sum += right;
    shmem_sync_all(); /* the same of all PEs */

    printf("PE %d: %ld\n", me, sum);
    int is_wrong = sum != (me + pes - 1) % pes + 1 + (me + 1) % pes;
    shmem_finalize();
    return is_wrong;
}
