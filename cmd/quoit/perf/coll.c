/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c - every collective with data, over all PEs. bytes is what one PE gives: to all (broadcast, reduce, collect,
 * fcollect), or to each (alltoall, alltoalls). The time is that of the slowest PE.
 *
 * By teams where the library has them (1.5), else by active sets. After CALLS_MAX calls there is a barrier, as the work
 * arrays of active sets want it, in both, so that both do the same. The limit is the meeting that all need, and the
 * copy of what each PE receives from others, made by all at once. */
#include "perf.h"

#include <string.h>

#define CALLS_MAX 16
#define BYTES_MAX (1u << 20)

#if !PERF_HAS_1_5
#define SYNC_SIZE  1024 /* at least every SHMEM_*_SYNC_SIZE, which need not be constants of the compiler */
#define WORK_WORDS ((BYTES_MAX) / 8 + 1024)
#define SET        0, 0, perf->npes
static long syncs[CALLS_MAX][SYNC_SIZE]; /* symmetric */
static long work[WORK_WORDS];            /* symmetric */
#endif

/* 64-bit words of the heap buffers. */
struct words {
    uint64_t *to, *from;
    size_t count;
};

static struct words words_of(const struct perf *perf, const struct perf_row *row)
{
    return (struct words){(uint64_t *)perf->to[PERF_HEAP], (uint64_t *)perf->from[PERF_HEAP], row->bytes / 8};
}

#if PERF_HAS_1_5
static void one_broadcast(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    shmem_uint64_broadcast(SHMEM_TEAM_WORLD, w.to, w.from, w.count, 0);
}
static void one_reduce(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, (long *)w.to, (long *)w.from, w.count);
}
static void one_collect(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    shmem_uint64_collect(SHMEM_TEAM_WORLD, w.to, w.from, w.count);
}
static void one_fcollect(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    shmem_uint64_fcollect(SHMEM_TEAM_WORLD, w.to, w.from, w.count);
}
static void one_alltoall(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    shmem_uint64_alltoall(SHMEM_TEAM_WORLD, w.to, w.from, w.count);
}
static void one_alltoalls(const struct perf *perf, struct words w, long i)
{
    (void)perf, (void)i;
    /* Every second word of twice as many. */
    shmem_uint64_alltoalls(SHMEM_TEAM_WORLD, w.to, w.from, 2, 2, w.count);
}
#else
static void one_broadcast(const struct perf *perf, struct words w, long i)
{
    shmem_broadcast64(w.to, w.from, w.count, 0, SET, syncs[i % CALLS_MAX]);
}
static void one_reduce(const struct perf *perf, struct words w, long i)
{
    shmem_long_sum_to_all((long *)w.to, (long *)w.from, (int)w.count, SET, work, syncs[i % CALLS_MAX]);
}
static void one_collect(const struct perf *perf, struct words w, long i)
{
    shmem_collect64(w.to, w.from, w.count, SET, syncs[i % CALLS_MAX]);
}
static void one_fcollect(const struct perf *perf, struct words w, long i)
{
    shmem_fcollect64(w.to, w.from, w.count, SET, syncs[i % CALLS_MAX]);
}
static void one_alltoall(const struct perf *perf, struct words w, long i)
{
    shmem_alltoall64(w.to, w.from, w.count, SET, syncs[i % CALLS_MAX]);
}
static void one_alltoalls(const struct perf *perf, struct words w, long i)
{
    shmem_alltoalls64(w.to, w.from, 2, 2, w.count, SET, syncs[i % CALLS_MAX]);
}
#endif

static void repeat(struct perf *perf, struct perf_row *row, long count,
                   void (*one)(const struct perf *perf, struct words w, long i))
{
    struct words w = words_of(perf, row);
    for (long i = 0; i < count; i++) {
        one(perf, w, i);
        if (i % CALLS_MAX == CALLS_MAX - 1 || i == count - 1)
            shmem_barrier_all();
    }
}

static void broadcast(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_broadcast);
}

static void reduce(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_reduce);
}

static void collect(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_collect);
}

static void fcollect(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_fcollect);
}

static void alltoall(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_alltoall);
}

static void alltoalls(struct perf *perf, struct perf_row *row, long count)
{
    repeat(perf, row, count, one_alltoalls);
}

static void begin_words(struct perf *perf, struct perf_row *row, size_t factor)
{
    size_t bytes = row->bytes / 8 * 8 * (size_t)perf->npes * factor;
    perf_fill_given(perf->from[PERF_HEAP], bytes, perf->me, row);
    perf_fill_empty(perf->to[PERF_HEAP], bytes + PERF_GUARD_BYTES);
    row->limit_base_ns = perf_meeting_ns(perf);
#if !PERF_HAS_1_5
    for (int i = 0; i < CALLS_MAX; i++)
        for (int at = 0; at < SYNC_SIZE; at++)
            syncs[i][at] = SHMEM_SYNC_VALUE;
#endif
}

static void begin(struct perf *perf, struct perf_row *row)
{
    begin_words(perf, row, 1);
}

static void begin_strided(struct perf *perf, struct perf_row *row)
{
    begin_words(perf, row, 2);
}

static void copy_bytes(struct perf *perf, size_t bytes, long count)
{
    void *(*volatile hidden)(void *, const void *, size_t) = memcpy;
    for (long i = 0; i < count; i++)
        hidden(perf->copy_to, perf->copy_from, bytes);
}

static void copy_one(struct perf *perf, struct perf_row *row, long count)
{
    copy_bytes(perf, row->bytes, count);
}

static void copy_unless_root(struct perf *perf, struct perf_row *row, long count)
{
    copy_bytes(perf, perf->me == 0 ? 0 : row->bytes, count);
}

static void copy_all(struct perf *perf, struct perf_row *row, long count)
{
    copy_bytes(perf, row->bytes * (size_t)(perf->npes - 1), count);
}

static bool is_word(const struct perf *perf, const struct perf_row *row, size_t at, uint64_t should)
{
    uint64_t is = words_of(perf, row).to[at];
    if (is == should)
        return true;
    fprintf(stderr, "perf: %s of %zu bytes: word %zu at PE %d is %#llx and should be %#llx\n", row->test->name,
            row->bytes, at, perf->me, (unsigned long long)is, (unsigned long long)should);
    return false;
}

/* The bytes after the result are unchanged. */
static bool is_rest_empty(const struct perf *perf, const struct perf_row *row, size_t words)
{
    size_t all = row->bytes / 8 * (size_t)perf->npes;
    return perf_is_empty(perf, row, perf->to[PERF_HEAP] + words * 8, (all - words) * 8 + PERF_GUARD_BYTES);
}

/* The root's own destination is written with teams, and not with active sets. */
static bool verify_broadcast(struct perf *perf, struct perf_row *row)
{
    size_t count = row->bytes / 8;
    for (size_t at = 0; at < count && (PERF_HAS_1_5 || perf->me != 0); at++)
        if (!is_word(perf, row, at, perf_given_word(0, row, at)))
            return false;
    return is_rest_empty(perf, row, count);
}

static bool verify_reduce(struct perf *perf, struct perf_row *row)
{
    size_t count = row->bytes / 8;
    for (size_t at = 0; at < count; at++) {
        uint64_t sum = 0;
        for (int pe = 0; pe < perf->npes; pe++)
            sum += perf_given_word(pe, row, at);
        if (!is_word(perf, row, at, sum))
            return false;
    }
    return is_rest_empty(perf, row, count);
}

static bool verify_collect(struct perf *perf, struct perf_row *row)
{
    size_t count = row->bytes / 8, all = count * (size_t)perf->npes;
    for (size_t at = 0; at < all; at++)
        if (!is_word(perf, row, at, perf_given_word((int)(at / count), row, at % count)))
            return false;
    return is_rest_empty(perf, row, all);
}

static bool verify_alltoall(struct perf *perf, struct perf_row *row)
{
    size_t count = row->bytes / 8, all = count * (size_t)perf->npes;
    for (size_t at = 0; at < all; at++)
        if (!is_word(perf, row, at, perf_given_word((int)(at / count), row, (size_t)perf->me * count + at % count)))
            return false;
    return is_rest_empty(perf, row, all);
}

static bool verify_strided(struct perf *perf, struct perf_row *row)
{
    size_t count = row->bytes / 8, all = count * (size_t)perf->npes;
    for (size_t at = 0; at < all; at++) {
        size_t block = at / count, in = at % count;
        uint64_t should = perf_given_word((int)block, row, ((size_t)perf->me * count + in) * 2);
        if (!is_word(perf, row, at * 2, should) || !perf_is_empty(perf, row, perf->to[PERF_HEAP] + (at * 2 + 1) * 8, 8))
            return false;
    }
    return perf_is_empty(perf, row, perf->to[PERF_HEAP] + all * 16, PERF_GUARD_BYTES);
}

#define LIMIT "transfers, switches, memcpy of what comes"

#define TEST(name, sentence, begin, call, copy, verify)                                                                \
    {                                                                                                                  \
        name, sentence, LIMIT, PERF_ALL, PERF_NO_RATE, 8, BYTES_MAX, false, false, begin, call, copy, verify           \
    }

const struct perf_test perf_coll_tests[] = {
    TEST("broadcast", "from PE 0 to all", begin, broadcast, copy_unless_root, verify_broadcast),
    TEST("reduce", "sum of 64-bit integers", begin, reduce, copy_one, verify_reduce),
    TEST("collect", "from all to all, any number of each", begin, collect, copy_all, verify_collect),
    TEST("fcollect", "from all to all, the same number of each", begin, fcollect, copy_all, verify_collect),
    TEST("alltoall", "a block of each for each", begin, alltoall, copy_all, verify_alltoall),
    TEST("alltoalls", "the same with a stride of two words", begin_strided, alltoalls, copy_all, verify_strided),
    {NULL, NULL, NULL, PERF_ONE, PERF_NO_RATE, 0, 0, false, false, NULL, NULL, NULL, NULL},
};
