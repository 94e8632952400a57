/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long table[4];

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    long row[4], words[4], bytes[4], later[4], rest[8];
    for (int i = 0; i < 4; i++)
        table[i] = 10 * me + i;
    shmem_barrier_all(); /* everybody has filled it */

    long one = shmem_long_g(&table[3], right);       /* one value */
    shmem_long_get(row, table, 4, right);            /* four elements */
    shmem_get64(words, table, 4, right);             /* the same by the size of an element */
    shmem_getmem(bytes, table, sizeof table, right); /* the same in bytes */
    shmem_long_get_nbi(later, table, 4, right);      /* there after the next quiet */
    shmem_get64_nbi(rest, table, 4, right);
    shmem_getmem_nbi(rest + 4, table, sizeof table, right);
    shmem_quiet();

    printf("PE %d has read %ld of PE %d\n", me, one, right);
    int is_wrong = one != 10 * right + 3 || row[0] != 10 * right || words[1] != 10 * right + 1 ||
                   bytes[2] != 10 * right + 2 || later[3] != 10 * right + 3 || rest[7] != 10 * right + 3;
    shmem_finalize();
    return is_wrong;
}
