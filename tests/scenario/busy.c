/* SPDX-License-Identifier: BSD-3-Clause */
/* busy [ROUNDS]: every PE puts to every other, adds to a counter of its neighbour, and enters barriers; for ever
 * without an argument. Prints a line when it has started. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES 20000

static char here[BYTES], there[BYTES];
static long counter;

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    long rounds = argc > 1 ? atol(argv[1]) : -1;
    char *heap = shmem_malloc(BYTES);
    shmem_barrier_all();
    if (me == 0) {
        printf("begun\n");
        fflush(stdout);
    }
    for (long round = 0; round != rounds; round++) {
        for (int pe = 0; pe < pe_count; pe++)
            shmem_putmem(pe % 2 ? there : heap, here, BYTES, pe);
        shmem_long_atomic_inc(&counter, (me + 1) % pe_count);
        shmem_barrier_all();
        if (counter != round + 1) {
            printf("PE %d: counter is %ld in round %ld\n", me, counter, round);
            return 1;
        }
        shmem_barrier_all();
    }
    shmem_finalize();
    return 0;
}
