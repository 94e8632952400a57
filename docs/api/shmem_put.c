/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

static long one, table[4], words[4], bytes[4], later[4], rest[8];

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes, left = (me + pes - 1) % pes;
    long row[4] = {me, me, me, me};

    shmem_long_p(&one, me, right);               /* one value */
    shmem_long_put(table, row, 4, right);        /* four elements */
    shmem_put64(words, row, 4, right);           /* the same by the size of an element */
    shmem_putmem(bytes, row, sizeof row, right); /* the same in bytes */
    row[0] = -1;                                 /* `row` may be used again at once ... */
    row[0] = me;
    shmem_long_put_nbi(later, row, 4, right); /* ... but here only after the next quiet or barrier */
    shmem_put64_nbi(rest, row, 4, right);
    shmem_putmem_nbi(rest + 4, row, sizeof row, right);
    shmem_barrier_all(); /* everything of all PEs has arrived */

    printf("PE %d has %ld of PE %d\n", me, one, left);
    int is_wrong =
        one != left || table[3] != left || words[3] != left || bytes[0] != left || later[0] != left || rest[7] != left;
    shmem_finalize();
    return is_wrong;
}
