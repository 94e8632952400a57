/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes marks that encode their place and their PE, waits for all PEs, then PE 1 (PE 0 if alone) crashes. Most of its
 * heap and variables is never touched. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char untouched[64 << 20];
static char variable[64];

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe();
    char *block = shmem_malloc(1 << 20);
    memset(block, 1, 1 << 20);
    sprintf(block + 4096, "in the heap of PE %d", me);
    sprintf(variable, "in a variable of PE %d", me);
    shmem_barrier_all();
    if (me == shmem_n_pes() - 1)
        *(volatile char *)(argc > 100 ? untouched : NULL) = argv[0][0];
    shmem_barrier_all();
    return 0;
}
