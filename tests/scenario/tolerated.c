/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that the library accepts although the program is wrong, or that a PE may make alone: tolerated WHAT. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 1000

static void expect(int is_right, const char *what)
{
    if (!is_right) {
        printf("PE %d: %s\n", shmem_my_pe(), what);
        shmem_global_exit(3);
    }
}

/* The block stays allocated: nothing is put over it later. */
static void free_inside(void)
{
    unsigned char *block = shmem_malloc(BYTES), *other = NULL;
    memset(block, 7, BYTES);
    for (int i = 1; i < 4; i++)
        shmem_free(block + i);
    for (int i = 0; i < 50; i++) {
        other = shmem_malloc(BYTES);
        expect(other != NULL && (other + BYTES <= block || block + BYTES <= other),
               "a block over the one that is kept");
        memset(other, 9, BYTES);
    }
    for (int i = 0; i < BYTES; i++)
        expect(block[i] == 7, "what it holds");
    shmem_free(block);
}

static void align(void)
{
    for (int i = 0; i < 3; i++)
        expect(shmem_align(63, BYTES) == NULL, "an alignment of 63");
    expect(shmem_align(64, BYTES) != NULL, "an alignment of 64");
}

/* No action, so it is no collective call. */
static void free_null(void)
{
    if (shmem_my_pe() == 0)
        shmem_free(NULL);
    shmem_barrier_all();
    if (shmem_my_pe() != 0)
        shmem_free(NULL);
    void *block = shmem_malloc(BYTES);
    expect(block != NULL, "a block after that");
    shmem_free(block);
}

/* One pSync for several active sets, which the specification forbids: each barrier is one all the same. */
static void one_psync(void)
{
    static long psync[SHMEM_BARRIER_SYNC_SIZE], arrived[5];
    const int n = shmem_n_pes(), me = shmem_my_pe(), rounds = 30;
    const int sets[5][3] = {{0, 1, (n + 1) / 2}, {1, 1, n / 2}, {0, 0, n - 1}, {1, 0, n - 1}, {0, 0, n}};
    for (int round = 1; round <= rounds; round++)
        for (int i = 0; i < 5; i++) {
            const int start = sets[i][0], log_stride = sets[i][1], size = sets[i][2], distance = me - start;
            if (distance < 0 || distance % (1 << log_stride) != 0 || distance >> log_stride >= size)
                continue;
            shmem_long_atomic_inc(&arrived[i], start);
            shmem_barrier(start, log_stride, size, psync);
            expect(me != start || shmem_long_atomic_fetch(&arrived[i], me) >= (long)round * size,
                   "a barrier left too early");
        }
}

int main(int argc, char **argv)
{
    shmem_init();
    if (argc == 2 && strcmp(argv[1], "free-inside") == 0)
        free_inside();
    else if (argc == 2 && strcmp(argv[1], "align") == 0)
        align();
    else if (argc == 2 && strcmp(argv[1], "free-null") == 0)
        free_null();
    else if (argc == 2 && strcmp(argv[1], "one-psync") == 0)
        one_psync();
    else
        shmem_global_exit(2);
    shmem_finalize();
    return 0;
}
