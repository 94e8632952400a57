/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the order guaranteed by a fence, a put with signal and a flag, while large puts are split over lanes and small
 * ones are not. Method: each PE writes the same addresses on another PE repeatedly, small over large and large over
 * small, with a fence between; the bytes at the end, and the bytes when a flag is seen, must be those written last.
 * Then many messages of all sizes at once, each with its own signal, in each form that orders the data before the
 * signal: every byte of a message's buffer is compared when its signal is seen.
 *
 * Use: order [ROUNDS]
 */
#include "base/prng.h"

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE       (96u << 10)
#define SMALL       900
#define SMALL_COUNT 24
#define LETTERS     8

static int me, npes;
static uint64_t flag_count; /* symmetric: number of messages that have arrived */

static void must_be(const unsigned char *bytes, size_t count, unsigned char value, const char *what, int round)
{
    for (size_t at = 0; at < count; at++) {
        if (bytes[at] == value)
            continue;
        fprintf(stderr, "order: PE %d, round %d: %s: byte %zu is %u, not %u\n", me, round, what, at, bytes[at], value);
        shmem_global_exit(1);
    }
}

/* Places of the small puts, spread over the large one. */
static size_t place(int i)
{
    return (size_t)i * (LARGE - SMALL) / (SMALL_COUNT - 1);
}

struct buffers {
    unsigned char *to;     /* symmetric: targets of other PEs' puts */
    unsigned char *shared; /* symmetric: sources that the proxy reads in place */
    unsigned char *own;    /* private */
};

/* A large put, which may be split, directly after small ones that use one lane and are still queued in it. */
static void large_over_small(const struct buffers *b, int pe, int round)
{
    memset(b->own, 1, SMALL);
    memset(b->shared, 2, LARGE);
    for (int i = 0; i < SMALL_COUNT; i++)
        shmem_putmem_nbi(b->to + place(i), b->own, SMALL, pe);
    shmem_fence();
    shmem_putmem_nbi(b->to, b->shared, LARGE, pe);
    shmem_quiet();
    shmem_getmem(b->own, b->to, LARGE, pe);
    must_be(b->own, LARGE, 2, "a large put after a fence", round);
}

static void small_over_large(const struct buffers *b, int pe, int round)
{
    static unsigned char small[SMALL];
    memset(small, 4, SMALL);
    memset(b->shared, 3, LARGE);
    shmem_putmem_nbi(b->to, b->shared, LARGE, pe);
    shmem_fence();
    for (int i = 0; i < SMALL_COUNT; i++)
        shmem_putmem_nbi(b->to + place(i), small, SMALL, pe);
    shmem_quiet();
    shmem_getmem(b->own, b->to, LARGE, pe);
    for (int i = 0; i < SMALL_COUNT; i++)
        must_be(b->own + place(i), SMALL, 4, "a small put after a fence", round);
}

/* Data, then a flag: by a fence and an atomic, or in one call. The owner checks the data once it sees the flag. */
static void data_then_flag(const struct buffers *b, int pe, int round)
{
    unsigned char value = (unsigned char)(10 + round % 200);
    memset(b->shared, value, LARGE);
    if (round % 3 == 0) {
        shmem_putmem_nbi(b->to, b->shared, LARGE, pe);
        shmem_fence();
        shmem_uint64_atomic_inc(&flag_count, pe);
    } else if (round % 3 == 1) {
        shmem_putmem_signal(b->to, b->shared, LARGE, &flag_count, 1, SHMEM_SIGNAL_ADD, pe);
    } else {
        shmem_putmem_signal_nbi(b->to, b->shared, LARGE, &flag_count, 1, SHMEM_SIGNAL_ADD, pe);
    }
    shmem_uint64_wait_until(&flag_count, SHMEM_CMP_EQ, (uint64_t)round + 1);
    must_be(b->to, LARGE, value, "data behind a flag", round);
    shmem_quiet();
}

/* The contents of message `number` of a round from PE `from`; queue sizes and chunk boundaries are among the lengths.
 */
struct letter {
    size_t at, bytes;
    struct quoit_prng prng; /* of the contents */
};

static struct letter letter_of(int from, int number, int round)
{
    struct quoit_prng prng = {.state = (uint64_t)round * 1000003u + (uint64_t)(from * LETTERS + number) * 97};
    size_t limit = (size_t)1 << quoit_prng_choose(&prng, 18);
    size_t bytes =
        quoit_prng_choose(&prng, 3) == 0 ? limit + quoit_prng_choose(&prng, 3) : quoit_prng_choose(&prng, limit + 1);
    bytes = bytes < LARGE ? bytes : LARGE;
    return (struct letter){quoit_prng_choose(&prng, LARGE - bytes + 1), bytes, prng};
}

static void write_letter(struct letter *letter, unsigned char *to)
{
    uint64_t key = quoit_prng_next(&letter->prng);
    for (size_t i = 0; i < letter->bytes; i++)
        to[i] = (unsigned char)((key >> (i % 8 * 8)) ^ (i * 131 + i / 256));
}

static uint64_t signals[LETTERS]; /* symmetric */

struct places {
    unsigned char *to;     /* symmetric: [LETTERS][LARGE] */
    unsigned char *shared; /* likewise, sources */
    unsigned char *own;    /* private sources */
    unsigned char *model;  /* private: the expected contents of `to` */
};

static void send_letter(const struct places *p, int number, int pe, int round)
{
    struct letter letter = letter_of(me, number, round);
    size_t place = (size_t)number * LARGE;
    unsigned char *source = (round + number) % 2 ? p->shared + place : p->own + place, *to = p->to + place + letter.at;
    write_letter(&letter, source);
    switch ((round / 2 + number) % 3) {
    case 0:
        shmem_putmem_signal(to, source, letter.bytes, &signals[number], (uint64_t)round, SHMEM_SIGNAL_SET, pe);
        break;
    case 1:
        shmem_putmem_signal_nbi(to, source, letter.bytes, &signals[number], (uint64_t)round, SHMEM_SIGNAL_SET, pe);
        break;
    default:
        shmem_putmem_nbi(to, source, letter.bytes, pe);
        shmem_fence();
        shmem_signal_set(&signals[number], (uint64_t)round, pe);
    }
}

static void letters(const struct places *p, int distance, int round)
{
    int from = (me + npes - distance) % npes;
    for (int number = 0; number < LETTERS; number++)
        send_letter(p, number, (me + distance) % npes, round);
    for (int i = 0; i < LETTERS; i++) {
        int number = (i * 3 + round) % LETTERS;
        struct letter letter = letter_of(from, number, round);
        unsigned char *model = p->model + (size_t)number * LARGE, *there = p->to + (size_t)number * LARGE;
        write_letter(&letter, model + letter.at);
        shmem_signal_wait_until(&signals[number], SHMEM_CMP_EQ, (uint64_t)round);
        for (size_t at = 0; at < LARGE; at++)
            if (there[at] != model[at]) {
                fprintf(stderr,
                        "order: PE %d, round %d: letter %d from PE %d, %zu bytes at %zu: byte %zu is %u, not %u\n", me,
                        round, number, from, letter.bytes, letter.at, at, there[at], model[at]);
                shmem_global_exit(1);
            }
    }
    shmem_barrier_all();
}

static void many_letters(int round_count)
{
    struct places p = {.to = shmem_calloc(LETTERS, LARGE), .shared = shmem_malloc(LETTERS * LARGE)};
    p.own = malloc(LETTERS * LARGE);
    p.model = calloc(LETTERS, LARGE);
    if (!p.to || !p.shared || !p.own || !p.model)
        shmem_global_exit(1);
    for (int round = 1; round <= round_count; round++)
        letters(&p, 1 + round / 6 % (npes - 1), round);
    free(p.model);
    free(p.own);
    shmem_free(p.shared);
    shmem_free(p.to);
}

int main(int argc, char **argv)
{
    int round_count = argc > 1 ? atoi(argv[1]) : 30;
    struct buffers b;
    shmem_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    b.to = shmem_malloc(LARGE);
    b.shared = shmem_malloc(LARGE);
    b.own = malloc(LARGE);
    if (!b.to || !b.shared || !b.own)
        shmem_global_exit(1);
    for (int round = 0; round < round_count; round++) {
        int pe =
            (me + 1 + round / 3 % (npes - 1)) % npes; /* the same distance for all PEs, so each target has one writer */
        large_over_small(&b, pe, round);
        small_over_large(&b, pe, round);
        shmem_barrier_all();
        data_then_flag(&b, pe, round);
        shmem_barrier_all();
    }
    many_letters(round_count);
    if (me == 0)
        printf("order: %d PEs, %d rounds: verified\n", npes, round_count);
    free(b.own);
    shmem_free(b.shared);
    shmem_free(b.to);
    shmem_finalize();
    return 0;
}
