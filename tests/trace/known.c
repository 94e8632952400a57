/* SPDX-License-Identifier: BSD-3-Clause */
/* known ROUNDS BYTES: PE 0 alone puts BYTES to every other PE, gets as many from it and adds to its counter, ROUNDS
 * times, with a quiet after each; then the data is verified. The arguments determine what a trace of it must contain.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long counter;

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    shmem_init();
    long rounds = atol(argv[1]);
    size_t bytes = (size_t)atol(argv[2]);
    char *remote = shmem_calloc(bytes, 1), *here = malloc(bytes), *back = malloc(bytes);
    int is_wrong = 0;
    shmem_barrier_all();
    for (long round = 0; round < rounds && shmem_my_pe() == 0; round++)
        for (int pe = 1; pe < shmem_n_pes(); pe++) {
            memset(here, (int)(round + pe), bytes);
            shmem_putmem(remote, here, bytes, pe);
            shmem_quiet();
            shmem_getmem(back, remote, bytes, pe);
            is_wrong |= memcmp(here, back, bytes) != 0;
            is_wrong |= shmem_long_atomic_fetch_add(&counter, 1, pe) != round;
        }
    shmem_barrier_all();
    free(here);
    free(back);
    shmem_free(remote);
    shmem_finalize();
    if (is_wrong)
        printf("the data is wrong\n");
    return is_wrong;
}
