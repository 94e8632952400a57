/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmem.h>
#include <stdio.h>

#define SIDE 4

static long grid[SIDE][SIDE], row[SIDE], blocks[2 * SIDE];

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes, left = (me + pes - 1) % pes;
    for (int i = 0; i < SIDE; i++)
        row[i] = 10 * me + i;

    /* A row of mine into column 0 of my right neighbour: a stride of SIDE there, of 1 here. */
    shmem_long_iput(&grid[0][0], row, SIDE, 1, SIDE, right);
    shmem_iput64(&grid[0][1], row, SIDE, 1, SIDE, right); /* the same by the size of an element, into column 1 */
    shmem_barrier_all();

    /* Column 0 of my right neighbour, which is what I put there; every second block of two. */
    long column[SIDE], pairs[4];
    shmem_long_iget(column, &grid[0][0], 1, SIDE, SIDE, right);
    shmem_iget64(column, &grid[0][1], 1, SIDE, SIDE, right);
    shmem_long_ibput(blocks, row, 4, 2, 2, 2, right); /* two blocks of two, four apart there */
    shmem_ibput64(blocks + 2, row, 4, 2, 2, 2, right);
    shmem_barrier_all();
    shmem_long_ibget(pairs, blocks, 2, 4, 2, 2, right);
    shmem_ibget64(pairs, blocks, 2, 4, 2, 2, right);

    printf("PE %d: column 0 begins with %ld\n", me, grid[0][0]);
    int is_wrong = grid[3][0] != 10 * left + 3 || column[2] != 10 * me + 2 || pairs[3] != 10 * me + 3;
    shmem_finalize();
    return is_wrong;
}
