/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

int main(void)
{
    int provided, level, is_initialized;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided < SHMEM_THREAD_MULTIPLE)
        shmem_global_exit(1); /* ends the job on all PEs, with this status */
    shmem_query_thread(&level);
    shmem_query_initialized(&is_initialized);
    printf("PE %d of %d, thread level %d\n", shmem_my_pe(), shmem_n_pes(), level);
    shmem_finalize();

    shmem_init(); /* again, with the level SHMEM_THREAD_SINGLE */
    shmem_finalize();
    return !is_initialized;
}
