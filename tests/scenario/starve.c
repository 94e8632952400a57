/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates blocks of the symmetric heap until it is exhausted (at most argv[1] MiB), writes every page of each, frees
 * them, and allocates the first again. All PEs must have got as many as the one that got fewest. Prints "starve: N
 * MiB". "starve words": a million blocks of one word, for which the library needs private memory. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)4 << 20)
#define BLOCKS_MAX  1024
#define WORD_COUNT  1000000

static long count, least, most;

int main(int argc, char **argv)
{
    static char *blocks[BLOCKS_MAX];
    shmem_init();
    int me = shmem_my_pe();
    if (argc > 1 && strcmp(argv[1], "words") == 0)
        for (long i = 0; i < WORD_COUNT && shmem_malloc(sizeof(long)); i++)
            ;
    long limit = argc > 1 ? atol(argv[1]) >> 2 : BLOCKS_MAX;
    while (count < limit && (blocks[count] = shmem_malloc(BLOCK_BYTES)) != NULL) {
        memset(blocks[count], me + 1, BLOCK_BYTES);
        count++;
    }
    for (long i = 0; i < count; i++)
        for (size_t at = 0; at < BLOCK_BYTES; at += 4096)
            if (blocks[i][at] != (char)(me + 1))
                shmem_global_exit(3);
    shmem_long_min_reduce(SHMEM_TEAM_WORLD, &least, &count, 1);
    shmem_long_max_reduce(SHMEM_TEAM_WORLD, &most, &count, 1);
    if (least != most)
        shmem_global_exit(4);
    for (long i = 0; i < count; i++)
        shmem_free(blocks[i]);
    if (count > 0 && !shmem_malloc(BLOCK_BYTES))
        shmem_global_exit(5);
    if (me == 0)
        printf("starve: %ld MiB\n", count << 2);
    shmem_finalize();
    return 0;
}
