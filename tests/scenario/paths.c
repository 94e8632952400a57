/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of every power of two up to 4 MiB and odd sizes beside it, from heap and globals of the next PE, each
 * byte compared. Prints "paths ok" on PE 0. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)4 << 20)

static unsigned char globals[MOST + 8], mine[MOST + 8];

static unsigned char mark(size_t i, size_t bytes, int pe)
{
    return (unsigned char)((i * 2654435761u >> 13) + bytes + (size_t)pe * 37);
}

static void check(const unsigned char *from, size_t bytes, int pe, const char *what)
{
    for (size_t i = 0; i < bytes; i++)
        if (from[i] != mark(i, bytes, pe)) {
            printf("PE %d: %s of %zu bytes: byte %zu is wrong\n", shmem_my_pe(), what, bytes, i);
            shmem_global_exit(1);
        }
}

static void try(unsigned char *shared, size_t bytes)
{
    int me = shmem_my_pe(), count = shmem_n_pes(), next = (me + 1) % count, previous = (me + count - 1) % count;
    for (size_t i = 0; i < bytes; i++)
        mine[i] = mark(i, bytes, me);
    shared[bytes] = 0x5a; /* must stay */
    shmem_barrier_all();
    shmem_putmem(shared, mine, bytes, next);
    shmem_barrier_all();
    check(shared, bytes, previous, "put");
    shmem_getmem(mine, shared, bytes, next); /* what this PE put there */
    check(mine, bytes, me, "get");
    if (shared[bytes] != 0x5a)
        shmem_global_exit(2);
    shmem_barrier_all();
}

int main(void)
{
    shmem_init();
    unsigned char *heap = shmem_malloc(MOST + 8);
    for (size_t bytes = 1; bytes <= MOST; bytes *= 4)
        for (size_t more = 0; more < 2; more++) {
            try(heap, bytes + more);
            try(globals, bytes + more);
        }
    if (shmem_my_pe() == 0)
        printf("paths ok\n");
    shmem_free(heap);
    shmem_finalize();
    return 0;
}
