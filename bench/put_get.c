/* SPDX-License-Identifier: BSD-3-Clause */
/* put_get.c - the time of puts and gets from PE 0 to another PE, 8 B to 4 MiB, beside a memcpy in this process.
 *
 * Use: put_get TARGET WHERE [SMALLEST]      TARGET is a PE; WHERE is a word for the output; SMALLEST size, in bytes
 * If the target's memory is mapped here, memcpy copies between the very bytes that put does: a copy of 1 MiB between
 * other pages of the same process takes up to a third longer or less, because source and destination just fill a
 * second-level cache of 2 MiB, and which of their lines collide depends on the physical pages. put: consecutive puts,
 * then one quiet. put_nbi: the same with the non-blocking put, which is what bandwidth usually means. put_quiet: each
 * put with its quiet. get: blocking gets. get_nbi: consecutive gets, then one quiet. Buffers are warm. After each size
 * the data is verified; the program uses the standard API alone.
 */
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#include "samples.h"

struct run {
    unsigned char *heap;   /* symmetric: source and target of transfers, on the target PE */
    unsigned char *source; /* symmetric: a proxy reads it in place */
    unsigned char *got;    /* private */
    unsigned char *copied; /* the heap of the target; private where that is not mapped */
    int target;
};

static void put(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++)
        shmem_putmem(run->heap, run->source, bytes, run->target);
    shmem_quiet();
}

static void put_nbi(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++)
        shmem_putmem_nbi(run->heap, run->source, bytes, run->target);
    shmem_quiet();
}

static void put_quiet(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++) {
        shmem_putmem(run->heap, run->source, bytes, run->target);
        shmem_quiet();
    }
}

static void get(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++)
        shmem_getmem(run->got, run->heap + BYTES_MAX, bytes, run->target);
}

static void get_nbi(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++)
        shmem_getmem_nbi(run->got, run->heap + BYTES_MAX, bytes, run->target);
    shmem_quiet();
}

static void copy(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    for (size_t i = 0; i < count; i++) {
        memcpy(run->copied, run->source, bytes);
        __asm__ __volatile__("" ::: "memory"); /* each copy is made */
    }
}

static unsigned char content(int pe, size_t bytes, size_t at)
{
    return (unsigned char)((unsigned)pe * 101 + bytes * 3 + at * 7 + (at >> 8) * 5 + (at >> 16));
}

static void must_be(const unsigned char *bytes, int pe, size_t count, const char *what)
{
    for (size_t at = 0; at < count; at++) {
        if (bytes[at] != content(pe, count, at)) {
            fprintf(stderr, "put_get: %s of %zu bytes: byte %zu is wrong\n", what, count, at);
            shmem_global_exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct subject streams[] = {
        {"put", put}, {"put_nbi", put_nbi}, {"memcpy", copy}, {"get_nbi", get_nbi}};
    static const struct subject calls[] = {{"put_quiet", put_quiet}, {"get", get}};
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "use: put_get TARGET WHERE [SMALLEST]\n");
        return 2;
    }
    shmem_init();
    int me = shmem_my_pe();
    struct run run = {.target = atoi(argv[1])};
    size_t smallest = argc == 4 ? strtoul(argv[3], NULL, 10) : BYTES_MIN;
    run.heap = shmem_malloc(2 * BYTES_MAX);
    run.source = shmem_malloc(BYTES_MAX);
    run.got = malloc(BYTES_MAX);
    unsigned char *private = malloc(BYTES_MAX);
    if (run.heap == NULL || run.source == NULL || run.got == NULL || private == NULL)
        shmem_global_exit(1);
    run.copied = shmem_ptr(run.heap, run.target);
    run.copied = run.copied ? run.copied : private;

    for (size_t bytes = smallest; bytes <= BYTES_MAX; bytes *= 2) {
        for (size_t at = 0; at < bytes; at++) {
            run.source[at] = content(me, bytes, at);
            run.heap[BYTES_MAX + at] = content(me, bytes, at);
        }
        memset(run.heap, 0, bytes);
        memset(run.got, 0, bytes);
        shmem_barrier_all();
        if (me == 0) {
            bench_measure(streams, sizeof streams / sizeof streams[0], &run, bytes, argv[2]);
            bench_measure(calls, sizeof calls / sizeof calls[0], &run, bytes, argv[2]);
            must_be(run.got, run.target, bytes, "get");
        }
        shmem_barrier_all();
        if (me == run.target)
            must_be(run.heap, 0, bytes, "put");
        shmem_barrier_all();
    }
    free(private);
    free(run.got);
    shmem_free(run.source);
    shmem_free(run.heap);
    shmem_finalize();
    return 0;
}
