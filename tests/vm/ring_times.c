/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what one operation costs over the bridges, so that a slow machine is told from a lost wake-up. Method: PE 0
 * times blocking operations on the first PE of each other host, one at a time, then all PEs time barriers. Prints the
 * minimum, the median and the maximum of each, in us.
 *
 * Use: oshrun ... ring_times [ROUNDS] */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS_MAX  1000
#define BLOCK_BYTES 65536

static long word;
static char block[BLOCK_BYTES];
static int64_t times[ROUNDS_MAX];

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void tell(const char *what, int pe, int rounds)
{
    qsort(times, (size_t)rounds, sizeof times[0], compare);
    printf("%-14s PE %2d: min %7.0f us, median %7.0f us, max %7.0f us\n", what, pe, (double)times[0] / 1e3,
           (double)times[rounds / 2] / 1e3, (double)times[rounds - 1] / 1e3);
    fflush(stdout);
}

static void put_quiet(int pe)
{
    shmem_long_p(&word, 1, pe);
    shmem_quiet();
}

static void put_block_quiet(int pe)
{
    static char source[BLOCK_BYTES];
    source[0]++;
    shmem_putmem(block, source, sizeof source, pe);
    shmem_quiet();
}

static void get(int pe)
{
    (void)shmem_long_g(&word, pe);
}

static void add(int pe)
{
    (void)shmem_long_atomic_fetch_add(&word, 1, pe);
}

static void barrier(int pe)
{
    (void)pe;
    shmem_barrier_all();
}

static void measure(const char *what, void (*operation)(int), int pe, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        int64_t begin = now_ns();
        operation(pe);
        times[i] = now_ns() - begin;
    }
    if (shmem_my_pe() == 0)
        tell(what, pe, rounds);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "ring_times: ROUNDS is %d, allowed are 1 to %d\n", rounds, ROUNDS_MAX);
        return 2;
    }
    shmem_init();
    int me = shmem_my_pe(), npes = shmem_n_pes();
    measure("barrier", barrier, 0, rounds);
    for (int pe = 1; pe < npes; pe++) {
        if (me == 0) {
            measure("put, quiet", put_quiet, pe, rounds);
            measure("64 KiB, quiet", put_block_quiet, pe, rounds);
            measure("get", get, pe, rounds);
            measure("fetch_add", add, pe, rounds);
        }
        shmem_barrier_all();
    }
    measure("barrier", barrier, 0, rounds);
    shmem_finalize();
    return 0;
}
