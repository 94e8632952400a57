/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

int main(void)
{
    shmem_init();
    /* Collective: every PE calls the same with the same sizes. */
    long *table = shmem_malloc(100 * sizeof(long)); /* not cleared */
    long *zeros = shmem_calloc(100, sizeof(long));
    double *vector = shmem_align(64, 8 * sizeof(double));
    long *counters = shmem_malloc_with_hints(8 * sizeof(long), SHMEM_MALLOC_ATOMICS_REMOTE);
    if (!table || !zeros || !vector || !counters) /* NULL on all PEs alike */
        shmem_global_exit(1);

    table[0] = shmem_my_pe();
    table = shmem_realloc(table, 200 * sizeof(long)); /* keeps what was in it */
    printf("PE %d: %ld, %ld\n", shmem_my_pe(), table[0], zeros[0]);
    int is_wrong = table[0] != shmem_my_pe() || zeros[99] != 0;

    shmem_free(counters);
    shmem_free(vector);
    shmem_free(zeros);
    shmem_free(table);
    shmem_finalize();
    return is_wrong;
}
