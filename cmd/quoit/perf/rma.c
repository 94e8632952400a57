/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.c - puts and gets: how long a call takes, how much a stream carries, how many small ones pass, and how much of a
 * transfer is hidden behind computation. The limit of each is the copy of as many bytes, by memcpy, in private memory.
 */
#include "perf.h"

#include <string.h>

#define WINDOW      64 /* non-blocking calls in one quiet */
#define RATE_MAX    4096u
#define OVERLAP_MIN 4096u
#define ROUNDS      9

/* The compiler knows neither which function it is, nor what it does to memory: each call is made. */
static void copy(struct perf *perf, struct perf_row *row, long count)
{
    void *(*volatile hidden)(void *, const void *, size_t) = memcpy;
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->limit_at);
        hidden(perf->copy_to + at, perf->copy_from + at, row->bytes);
    }
}

/* Both sides of a put, and of a get; of private buffers the other side is the heap, which alone can be reached. */
static enum perf_buffers remote_kind(const struct perf_row *row)
{
    return row->buffers == PERF_PRIVATE ? PERF_HEAP : row->buffers;
}

static void put(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *to = perf->to[remote_kind(row)], *from = perf->from[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_putmem(to + at, from + at, row->bytes, perf->peer);
    }
    shmem_quiet();
}

static void put_quiet(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *to = perf->to[remote_kind(row)], *from = perf->from[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_putmem(to + at, from + at, row->bytes, perf->peer);
        shmem_quiet();
    }
}

static void get(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *from = perf->from[remote_kind(row)], *to = perf->to[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_getmem(to + at, from + at, row->bytes, perf->peer);
    }
}

static void put_window(struct perf *perf, struct perf_row *row, long count, int target)
{
    unsigned char *to = perf->to[remote_kind(row)], *from = perf->from[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_putmem_nbi(to + at, from + at, row->bytes, target);
        if (i % WINDOW == WINDOW - 1)
            shmem_quiet();
    }
    shmem_quiet();
}

static void put_stream(struct perf *perf, struct perf_row *row, long count)
{
    put_window(perf, row, count, perf->peer);
}

static void get_stream(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *from = perf->from[remote_kind(row)], *to = perf->to[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_getmem_nbi(to + at, from + at, row->bytes, perf->peer);
        if (i % WINDOW == WINDOW - 1)
            shmem_quiet();
    }
    shmem_quiet();
}

static void begin_both(struct perf *perf, struct perf_row *row)
{
    perf_fill(perf, row);
    row->calls_a_count = row->limit_calls_a_count = 2; /* one each way */
}

static void put_both(struct perf *perf, struct perf_row *row, long count)
{
    put_window(perf, row, count, perf->me == 0 ? perf->peer : 0);
}

/* Each round is a call for each other PE. */
static void begin_fan(struct perf *perf, struct perf_row *row)
{
    perf_fill(perf, row);
    row->calls_a_count = perf->npes - 1;
}

static void put_fan(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *to = perf->to[remote_kind(row)], *from = perf->from[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        for (int pe = 1; pe < perf->npes; pe++)
            shmem_putmem_nbi(to + at, from + at, row->bytes, pe);
        shmem_quiet();
    }
}

/* PE i of the lower half sends to PE i + half; with an odd number the last has no partner. */
static void begin_pairs(struct perf *perf, struct perf_row *row)
{
    perf_fill(perf, row);
    row->calls_a_count = row->limit_calls_a_count = perf->npes / 2;
}

static void put_pairs(struct perf *perf, struct perf_row *row, long count)
{
    int half = perf->npes / 2;
    if (perf->me < half)
        put_window(perf, row, count, perf->me + half);
}

static void copy_pairs(struct perf *perf, struct perf_row *row, long count)
{
    if (perf->me < perf->npes / 2)
        copy(perf, row, count);
}

static void p(struct perf *perf, struct perf_row *row, long count)
{
    long *to = (long *)perf->to[row->buffers], value;
    memcpy(&value, perf->from[row->buffers], sizeof value);
    for (long i = 0; i < count; i++)
        shmem_long_p(to, value, perf->peer);
    shmem_quiet();
}

static void g(struct perf *perf, struct perf_row *row, long count)
{
    long *from = (long *)perf->from[row->buffers];
    volatile long *to = (volatile long *)perf->to[row->buffers];
    for (long i = 0; i < count; i++)
        *to = shmem_long_g(from, perf->peer);
}

/* Computation that takes about `ns` and no memory. `spins` is how often the loop goes round. */
static void compute(long spins)
{
    for (long i = 0; i < spins; i++)
        __asm__ __volatile__("" : "+r"(i));
}

static double spin_ns(void)
{
    double ns[ROUNDS];
    struct perf_stat stat;
    for (int i = 0; i < ROUNDS; i++) {
        double start = perf_now_ns();
        compute(20000);
        ns[i] = (perf_now_ns() - start) / 20000;
    }
    perf_summarise(ns, ROUNDS, &stat);
    return stat.median;
}

/* Computes for as long as the transfer alone takes. PE 0 alone, since the others wait in a barrier. */
static void begin_overlap(struct perf *perf, struct perf_row *row,
                          void (*transfer)(struct perf *, struct perf_row *, long))
{
    double ns[ROUNDS];
    struct perf_stat stat;
    perf_fill(perf, row);
    shmem_barrier_all();
    if (perf->me != 0)
        return;
    for (int i = 0; i < ROUNDS; i++) {
        double start = perf_now_ns();
        transfer(perf, row, 1);
        ns[i] = perf_now_ns() - start;
    }
    perf_summarise(ns, ROUNDS, &stat);
    row->plan = stat.median / spin_ns();
    row->count = ROUNDS;
}

static void begin_put_overlap(struct perf *perf, struct perf_row *row)
{
    begin_overlap(perf, row, put_stream);
}

static void begin_get_overlap(struct perf *perf, struct perf_row *row)
{
    begin_overlap(perf, row, get_stream);
}

static void put_overlap(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *to = perf->to[remote_kind(row)], *from = perf->from[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_putmem_nbi(to + at, from + at, row->bytes, perf->peer);
        compute((long)row->plan);
        shmem_quiet();
    }
}

static void get_overlap(struct perf *perf, struct perf_row *row, long count)
{
    unsigned char *from = perf->from[remote_kind(row)], *to = perf->to[row->buffers];
    for (long i = 0; i < count; i++) {
        size_t at = perf_next(row, &row->at);
        shmem_getmem_nbi(to + at, from + at, row->bytes, perf->peer);
        compute((long)row->plan);
        shmem_quiet();
    }
}

/* The transfer alone takes as long as the computation, so either is the least that both can take. */
static void only_compute(struct perf *perf, struct perf_row *row, long count)
{
    (void)perf;
    for (long i = 0; i < count; i++)
        compute((long)row->plan);
}

static bool verify_put(struct perf *perf, struct perf_row *row)
{
    return perf->me != perf->peer || perf_has_come(perf, row, perf->to[remote_kind(row)], 0);
}

static bool verify_fan(struct perf *perf, struct perf_row *row)
{
    return perf->me == 0 || perf_has_come(perf, row, perf->to[remote_kind(row)], 0);
}

static bool verify_get(struct perf *perf, struct perf_row *row)
{
    return perf->me != 0 || perf_has_come(perf, row, perf->to[row->buffers], perf->peer);
}

static bool verify_both(struct perf *perf, struct perf_row *row)
{
    if (perf->me == 0)
        return perf_has_come(perf, row, perf->to[remote_kind(row)], perf->peer);
    return verify_put(perf, row);
}

static bool verify_pairs(struct perf *perf, struct perf_row *row)
{
    int half = perf->npes / 2;
    return perf->me < half || perf->me >= 2 * half ||
           perf_has_come(perf, row, perf->to[remote_kind(row)], perf->me - half);
}

#define COPY "memcpy of the same size"
#define BOTH "memcpy of the same size, both at once"

const struct perf_test perf_rma_tests[] = {
    {"p", "shmem_long_p to the peer", COPY, PERF_ONE, PERF_CALLS_RATE, 8, 8, false, false, perf_fill, p, copy,
     verify_put},
    {"g", "shmem_long_g from the peer", COPY, PERF_ONE, PERF_CALLS_RATE, 8, 8, false, false, perf_fill, g, copy,
     verify_get},
    {"put", "shmem_putmem to the peer, one after the other", COPY, PERF_ONE, PERF_BYTES_RATE, 1, SIZE_MAX, true, true,
     perf_fill, put, copy, verify_put},
    {"get", "shmem_getmem from the peer, one after the other", COPY, PERF_ONE, PERF_BYTES_RATE, 1, SIZE_MAX, true, true,
     perf_fill, get, copy, verify_get},
    {"put-quiet", "shmem_putmem and shmem_quiet: until the data have arrived", COPY, PERF_ONE, PERF_BYTES_RATE, 1,
     SIZE_MAX, true, false, perf_fill, put_quiet, copy, verify_put},
    {"put-stream", "bandwidth: shmem_putmem_nbi, a quiet after every 64", COPY, PERF_ONE, PERF_BYTES_RATE, 1, SIZE_MAX,
     true, false, perf_fill, put_stream, copy, verify_put},
    {"get-stream", "bandwidth: shmem_getmem_nbi, a quiet after every 64", COPY, PERF_ONE, PERF_BYTES_RATE, 1, SIZE_MAX,
     true, false, perf_fill, get_stream, copy, verify_get},
    {"put-both", "bandwidth of both directions at once, together", BOTH, PERF_TWO, PERF_BYTES_RATE, 1, SIZE_MAX, true,
     false, begin_both, put_both, copy, verify_both},
    {"fan", "shmem_putmem_nbi to each other PE in turn, a quiet after each round", COPY, PERF_ONE, PERF_BYTES_RATE, 1,
     RATE_MAX, true, false, begin_fan, put_fan, copy, verify_fan},
    {"rate", "message rate: PE i puts to PE i + n/2, all pairs together", "memcpy by as many at once", PERF_PAIRS,
     PERF_CALLS_RATE, 1, RATE_MAX, true, false, begin_pairs, put_pairs, copy_pairs, verify_pairs},
    {"put-overlap", "shmem_putmem_nbi, computation as long as it, shmem_quiet", "the computation alone", PERF_ONE,
     PERF_OVERLAP_RATE, OVERLAP_MIN, SIZE_MAX, true, false, begin_put_overlap, put_overlap, only_compute, verify_put},
    {"get-overlap", "shmem_getmem_nbi, computation as long as it, shmem_quiet", "the computation alone", PERF_ONE,
     PERF_OVERLAP_RATE, OVERLAP_MIN, SIZE_MAX, true, false, begin_get_overlap, get_overlap, only_compute, verify_get},
    {NULL, NULL, NULL, PERF_ONE, PERF_NO_RATE, 0, 0, false, false, NULL, NULL, NULL, NULL},
};
