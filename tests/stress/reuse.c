/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a source may be changed as soon as a blocking put has returned, and a blocking get has all its bytes, whatever
 * their size and memory. Method: sizes around one chunk, around the limit below which payload is copied, and far above;
 * from the heap, from a variable of the program and from private memory; each form of put, to each PE in turn. The
 * source is overwritten at once, and every byte that arrives is compared with a value that no other put has at that
 * address.
 *
 * Use: reuse CHUNK_BYTES [ROUNDS]
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX (192u << 10)

static int me, npes;
static unsigned char variable[BYTES_MAX]; /* symmetric */
static uint64_t signal_word;              /* symmetric */

enum way { PUT, PUT_CONTEXT, PUT_SIGNAL, IPUT, WAY_COUNT };
static const char *const way_names[] = {"shmem_putmem", "shmem_ctx_putmem", "shmem_putmem_signal", "shmem_uint64_iput"};

static unsigned char value_of(uint64_t round, uint64_t pe, size_t at)
{
    return (unsigned char)((round * 167 + pe * 59 + at * 131 + (at >> 8) * 7) % 251);
}

static void fill(unsigned char *bytes, size_t count, uint64_t round, uint64_t pe)
{
    for (size_t at = 0; at < count; at++)
        bytes[at] = value_of(round, pe, at);
}

static void must_be(const unsigned char *bytes, size_t count, uint64_t round, int pe, const char *what)
{
    for (size_t at = 0; at < count; at++) {
        if (bytes[at] == value_of(round, (uint64_t)pe, at))
            continue;
        fprintf(stderr, "reuse: PE %d, round %llu: %s, %zu bytes from PE %d: byte %zu is %u, not %u\n", me,
                (unsigned long long)round, what, count, pe, at, bytes[at], value_of(round, (uint64_t)pe, at));
        shmem_global_exit(1);
    }
}

static void put(enum way way, shmem_ctx_t context, unsigned char *to, const unsigned char *source, size_t bytes, int pe)
{
    switch (way) {
    case PUT:
        shmem_putmem(to, source, bytes, pe);
        break;
    case PUT_CONTEXT:
        shmem_ctx_putmem(context, to, source, bytes, pe);
        break;
    case PUT_SIGNAL:
        shmem_putmem_signal(to, source, bytes, &signal_word, 1, SHMEM_SIGNAL_ADD, pe);
        break;
    case IPUT:
    case WAY_COUNT:
        shmem_uint64_iput((uint64_t *)(void *)to, (const uint64_t *)(const void *)source, 1, 1, bytes / 8, pe);
        break;
    }
}

int main(int argc, char **argv)
{
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    size_t chunk = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
    uint64_t round_count = argc > 2 ? strtoul(argv[2], NULL, 0) : 2;
    if (chunk < 64) {
        fprintf(stderr, "reuse: CHUNK_BYTES is missing: that of oshrun --chunk\n");
        shmem_global_exit(2);
    }
    const size_t sizes[] = {8,         chunk,     chunk + 8,  4 * chunk,     4 * chunk + 8,
                            5 * chunk, 9 * chunk, 33 * chunk, BYTES_MAX - 8, BYTES_MAX};
    unsigned char *to = shmem_malloc(BYTES_MAX), *heap = shmem_malloc(BYTES_MAX), *private = malloc(BYTES_MAX);
    unsigned char *const sources[] = {heap, variable, private};
    static const char *const source_names[] = {"the heap", "a variable", "private memory"};
    shmem_ctx_t context;
    shmem_ctx_create(0, &context);
    uint64_t turn = 0;
    for (uint64_t round = 0; round < round_count; round++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int i = 0; i < 3; i++, turn++) {
                size_t bytes = sizes[s] < BYTES_MAX ? sizes[s] / 8 * 8 : BYTES_MAX;
                enum way way = (enum way)((turn / 3) % WAY_COUNT);
                int distance = 1 + (int)(turn % (uint64_t)(npes > 1 ? npes - 1 : 1));
                int from = (me + npes - distance % npes) % npes;
                char what[80];
                fill(sources[i], bytes, turn, (uint64_t)me);
                put(way, context, to, sources[i], bytes, (me + distance) % npes);
                memset(sources[i], 0xEE, bytes);
                shmem_ctx_quiet(context);
                shmem_barrier_all();
                snprintf(what, sizeof what, "%s from %s", way_names[way], source_names[i]);
                must_be(to, bytes, turn, from, what);
                /* And back, into the same kinds of memory: complete on return. */
                shmem_getmem(sources[i], to, bytes, (me + distance) % npes);
                snprintf(what, sizeof what, "shmem_getmem into %s", source_names[i]);
                must_be(sources[i], bytes, turn, me, what);
                shmem_barrier_all();
            }
    shmem_ctx_destroy(context);
    free(private);
    if (me == 0)
        printf("reuse: %llu puts and gets by each of %d PEs\n", (unsigned long long)turn, npes);
    shmem_finalize();
    return 0;
}
