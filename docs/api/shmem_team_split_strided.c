/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long value;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), is_wrong = 0;

    /* Every second PE. All PEs of the parent call; those outside get SHMEM_TEAM_INVALID. */
    shmem_team_t even, row, column;
    shmem_team_config_t config = {.num_contexts = 1}, seen;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &even);
    if (even != SHMEM_TEAM_INVALID) {
        shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &seen);
        int in_world = shmem_team_translate_pe(even, shmem_team_my_pe(even), SHMEM_TEAM_WORLD);
        printf("PE %d is %d of %d even ones\n", me, shmem_team_my_pe(even), shmem_team_n_pes(even));
        long *own = shmem_team_ptr(even, &value, shmem_team_my_pe(even));
        is_wrong = in_world != me || seen.num_contexts != 1 || own != &value;
        shmem_team_destroy(even);
    }

    /* A grid that is two PEs wide: a team for each row and each column. */
    int width = pes < 2 ? 1 : 2;
    shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column);
    is_wrong |= shmem_team_my_pe(row) != me % width || shmem_team_my_pe(column) != me / width;
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    shmem_finalize();
    return is_wrong;
}
