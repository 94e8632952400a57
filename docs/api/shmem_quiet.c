/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long data, flag;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    int targets[] = {right};

    shmem_long_p(&data, 42, right);
    shmem_fence(); /* to each PE: data before flag */
    shmem_long_p(&flag, 1, right);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    int is_wrong = data != 42;
    shmem_sync_all();

    shmem_long_p(&data, 43, right);
    shmem_quiet(); /* has arrived: any PE that learns of this by another way sees 43 */
    is_wrong |= shmem_long_g(&data, right) != 43;
    shmem_long_p(&data, 44, right);
    shmem_pe_quiet(targets, 1); /* what went to these PEs has arrived */
    is_wrong |= shmem_long_g(&data, right) != 44;
    printf("PE %d: %s\n", me, is_wrong ? "wrong" : "right");
    shmem_finalize();
    return is_wrong;
}
