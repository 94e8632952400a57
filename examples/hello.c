/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c - each PE greets its right neighbour by one put into a static variable, which every PE has. */
#include <stdio.h>

#include <shmem.h>

int main(void)
{
    static int greeted_by = -1;

    shmem_init();
    int me = shmem_my_pe();
    int pe_count = shmem_n_pes();

    shmem_int_p(&greeted_by, me, (me + 1) % pe_count);
    shmem_barrier_all();
    printf("hello from PE %d of %d, greeted by PE %d\n", me, pe_count, greeted_by);

    shmem_finalize();
    return greeted_by == (me + pe_count - 1) % pe_count ? 0 : 1;
}
