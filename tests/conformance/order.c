/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the ordering guarantees (9.8, 9.12): a fence orders the deliveries to each PE, a quiet completes all operations
 * of its context, a signal arrives after its data, and atomics of local and remote PEs on one word lose no update.
 * Method: each PE writes numbered rounds into its part of every PE's memory, in the guaranteed order, while the
 * receiver polls that part without synchronising with the writer; a round must never be seen before its data. Where
 * shmem_ptr returns a pointer, plain stores are mixed with the puts. */
#include "check.h"

#include <string.h>

#define PES    64
#define ROUNDS 60
#define WORDS  300

static long data[PES][WORDS];
static long flags[PES];
static uint64_t signals[PES];
static long taken[PES]; /* written by the reader, read by the writer */
static long total;
static shmem_ctx_t ctxs[2];

static void look(int from, long round, const char *what)
{
    for (int i = 0; i < WORDS; i++)
        CHECK(data[from][i] == round * 1000 + i, "%s: round %ld from %d: word %d is %ld", what, round, from, i,
              data[from][i]);
}

static void fill(long *source, long round)
{
    for (int i = 0; i < WORDS; i++)
        source[i] = round * 1000 + i;
}

enum way { FENCE, CTX_FENCE, QUIET_OF_OTHER, PE_QUIET, STORE, STORE_LATER, SIGNAL, SIGNAL_NBI, SIGNAL_LATER, WAYS };
static const char *const ways[] = {"fence",       "ctx_fence",  "quiet",          "pe_quiet", "store",
                                   "later store", "put_signal", "put_signal_nbi", "signal"};

/* Half of the data by plain stores where possible, half by a put; a fence orders both before the flag. */
static void store_round(const long *source, long round, int to)
{
    long *stored = shmem_ptr(data[me], to);
    size_t half = WORDS / 2;
    shmem_long_put_nbi(data[me] + half, source + half, half, to);
    if (stored)
        memcpy(stored, source, half * sizeof *stored);
    else
        shmem_long_put(data[me], source, half, to);
    shmem_fence();
    shmem_long_p(&flags[me], round, to);
}

/* The flag by a plain store, after puts that a fence orders before it; it ends the wait. */
static void store_flag(const long *source, long round, int to)
{
    long *stored = shmem_ptr(&flags[me], to);
    shmem_long_put_nbi(data[me], source, WORDS, to);
    shmem_fence();
    if (stored)
        *(volatile long *)stored = round;
    else
        shmem_long_p(&flags[me], round, to);
}

/* Two halves of the data, then the round number. */
static void send_round(enum way way, const long *source, long round, int to)
{
    long *dest = data[me];
    size_t half = WORDS / 2;
    switch (way) {
    case FENCE:
        shmem_long_put(dest, source, half, to);
        shmem_long_put_nbi(dest + half, source + half, half, to);
        shmem_fence();
        shmem_long_p(&flags[me], round, to);
        break;
    case CTX_FENCE:
        shmem_ctx_long_put_nbi(ctxs[0], dest, source, half, to);
        shmem_ctx_long_put(ctxs[0], dest + half, source + half, half, to);
        shmem_ctx_fence(ctxs[0]);
        shmem_ctx_long_atomic_set(ctxs[0], &flags[me], round, to);
        break;
    case QUIET_OF_OTHER:
        shmem_ctx_long_put_nbi(ctxs[0], dest, source, half, to);
        shmem_long_put_nbi(dest + half, source + half, half, to);
        shmem_ctx_quiet(ctxs[0]);
        shmem_quiet();
        shmem_ctx_long_p(ctxs[1], &flags[me], round, to);
        break;
    case PE_QUIET:
        shmem_long_put_nbi(dest, source, half, to);
        shmem_ctx_long_put_nbi(ctxs[0], dest + half, source + half, half, to);
        shmem_pe_quiet(&to, 1);
        shmem_ctx_pe_quiet(ctxs[0], &to, 1);
        shmem_ctx_long_p(ctxs[1], &flags[me], round, to);
        break;
    case STORE:
        store_round(source, round, to);
        break;
    case STORE_LATER:
        store_flag(source, round, to);
        break;
    case SIGNAL:
        shmem_long_put(dest, source, half, to);
        shmem_fence();
        shmem_long_put_signal(dest + half, source + half, half, &signals[me], 1, SHMEM_SIGNAL_ADD, to);
        break;
    case SIGNAL_NBI:
        shmem_long_put_signal_nbi(dest, source, WORDS, &signals[me], (uint64_t)round, SHMEM_SIGNAL_SET, to);
        break;
    default:
        shmem_long_put_nbi(dest, source, WORDS, to);
        shmem_fence();
        shmem_signal_set(&signals[me], (uint64_t)round, to);
    }
}

static void await_round(enum way way, long round, int from)
{
    if (way >= SIGNAL)
        shmem_signal_wait_until(&signals[from], SHMEM_CMP_GE, (uint64_t)round);
    else if (round % 2)
        shmem_long_wait_until(&flags[from], SHMEM_CMP_GE, round);
    else /* as a program that lacks the routine would */
        while (shmem_long_atomic_fetch(&flags[from], me) < round)
            ;
}

/* Every PE writes to the PE `distance` after it. */
static void run_rounds(enum way way, int distance)
{
    static long source[2][WORDS];
    int to = (me + distance) % npes, from = (me + npes - distance) % npes;
    flags[from] = taken[to] = 0;
    signals[from] = 0;
    shmem_barrier_all();
    for (long round = 1; round <= ROUNDS; round++) {
        shmem_long_wait_until(&taken[to], SHMEM_CMP_GE, round - 1);
        shmem_quiet(); /* the source buffer of the round before last may be reused */
        fill(source[round % 2], round);
        send_round(way, source[round % 2], round, to);
        if (way == SIGNAL_NBI || way == SIGNAL_LATER)
            shmem_quiet();
        await_round(way, round, from);
        look(from, round, ways[way]);
        shmem_long_p(&taken[me], round, from);
    }
    shmem_barrier_all();
}

/* All PEs update one word of PE 0 by three kinds of atomics, as does its owner. */
static void run_one_word(void)
{
    enum { EACH = 300 };
    for (int i = 0; i < EACH; i++) {
        long old;
        switch ((i + me) % 3) {
        case 0:
            shmem_long_atomic_inc(&total, 0);
            break;
        case 1:
            shmem_long_atomic_fetch_add(&total, 1, 0);
            break;
        default:
            do
                old = shmem_long_atomic_fetch(&total, 0);
            while (shmem_long_atomic_compare_swap(&total, old, old + 1, 0) != old);
        }
    }
    shmem_barrier_all();
    if (me == 0)
        CHECK(total == (long)EACH * npes, "%ld increments of %ld", total, (long)EACH * npes);
}

/* The deprecated routines: shmem_wait returns when the word differs from the given value. */
static void run_wait(void)
{
    static long word = 5;
    shmem_barrier_all();
    shmem_long_p(&word, 6, (me + 1) % npes);
    shmem_wait(&word, 5);
    CHECK(word == 6, "wait went on at %ld", word);
    shmem_barrier_all();
    shmem_long_p(&word, 8, (me + 1) % npes);
    (shmem_wait_until)(&word, SHMEM_CMP_GT, 7); /* the function, not the type-generic macro of that name */
    CHECK(word == 8, "wait_until went on at %ld", word);
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    for (int i = 0; i < 2; i++)
        CHECK(shmem_ctx_create(0, &ctxs[i]) == 0, "no context");
    for (int way = 0; way < WAYS; way++)
        for (int distance = 0; distance < npes && distance < 4; distance++)
            run_rounds((enum way)way, distance);
    run_one_word();
    run_wait();
    for (int i = 0; i < 2; i++)
        shmem_ctx_destroy(ctxs[i]);
    return check_end("order");
}
