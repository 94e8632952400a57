/* SPDX-License-Identifier: BSD-3-Clause */
/* sync.c - atomics, signals, order, barriers, locks and the heap. The limits are what the processors need for the same:
 * an atomic addition, a cache line transfer, a switch to the process that is waited for. */
#include "perf.h"

#include <string.h>

#define SIGNAL_MAX  65536u
#define MALLOC_MAX  (1u << 20)
#define BARRIERS    50
#define LOCK_CHECKS 50
#define CELL_STRIDE 32 /* longs between two cells */
#define START_VALUE 1000

enum cell { CELL_WORD, CELL_FLAG, CELL_LOCK, CELL_COUNTER, CELL_SEEN, CELL_SIGNAL, CELL_COUNT };

static long *cell(const struct perf *perf, enum cell which)
{
    return &perf->cells[which * CELL_STRIDE];
}

/* Atomics of PE 0 on a word of the peer. */

static void begin_word(struct perf *perf, struct perf_row *row)
{
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    *cell(perf, CELL_WORD) = START_VALUE;
    row->plan = START_VALUE; /* the value that PE 0 expects there */
}

static bool is_word(const struct perf *perf, const struct perf_row *row, enum cell which, int pe, long should)
{
    long is = shmem_long_g(cell(perf, which), pe);
    if (is == should)
        return true;
    fprintf(stderr, "perf: %s: PE %d finds %ld at PE %d, and should find %ld\n", row->test->name, perf->me, is, pe,
            should);
    return false;
}

static bool verify_added(struct perf *perf, struct perf_row *row)
{
    return is_word(perf, row, CELL_WORD, perf->peer, START_VALUE + row->count);
}

static void fetched(struct perf *perf, const struct perf_row *row, long is, long should)
{
    if (is != should)
        perf_fail(perf, "%s: %ld was fetched, and %ld stood there", row->test->name, is, should);
}

static void fetch_add(struct perf *perf, struct perf_row *row, long count)
{
    long last = 0;
    for (long i = 0; i < count; i++)
        last = shmem_long_atomic_fetch_add(cell(perf, CELL_WORD), 1, perf->peer);
    row->plan += (double)count;
    fetched(perf, row, last, (long)row->plan - 1);
}

static void add(struct perf *perf, struct perf_row *row, long count)
{
    (void)row;
    for (long i = 0; i < count; i++)
        shmem_long_atomic_add(cell(perf, CELL_WORD), 1, perf->peer);
    shmem_quiet();
}

static void compare_swap(struct perf *perf, struct perf_row *row, long count)
{
    long stands = (long)row->plan;
    for (long i = 0; i < count; i++)
        stands += shmem_long_atomic_compare_swap(cell(perf, CELL_WORD), stands, stands + 1, perf->peer) == stands;
    row->plan += (double)count;
    fetched(perf, row, stands, (long)row->plan);
}

static void swap(struct perf *perf, struct perf_row *row, long count)
{
    long was = 0;
    for (long i = 0; i < count; i++)
        was = shmem_long_atomic_swap(cell(perf, CELL_WORD), (long)row->plan + i + 1, perf->peer);
    row->plan += (double)count;
    fetched(perf, row, was, (long)row->plan - 1);
}

static void fetch(struct perf *perf, struct perf_row *row, long count)
{
    long is = 0;
    for (long i = 0; i < count; i++)
        is = shmem_long_atomic_fetch(cell(perf, CELL_WORD), perf->peer);
    fetched(perf, row, is, START_VALUE);
}

static void set(struct perf *perf, struct perf_row *row, long count)
{
    for (long i = 0; i < count; i++)
        shmem_long_atomic_set(cell(perf, CELL_WORD), (long)row->plan + i + 1, perf->peer);
    shmem_quiet();
    row->plan += (double)count;
}

/* All PEs on one word of PE 0. */
static void begin_all_add(struct perf *perf, struct perf_row *row)
{
    begin_word(perf, row);
    row->calls_a_count = row->limit_calls_a_count = perf->npes;
}

static void all_add(struct perf *perf, struct perf_row *row, long count)
{
    (void)row;
    for (long i = 0; i < count; i++)
        shmem_long_atomic_fetch_add(cell(perf, CELL_WORD), 1, 0);
}

static bool verify_all_added(struct perf *perf, struct perf_row *row)
{
    return is_word(perf, row, CELL_WORD, 0, START_VALUE + row->count * perf->npes);
}

static void processor_add(struct perf *perf, struct perf_row *row, long count)
{
    long word = 0;
    (void)perf, (void)row;
    for (long i = 0; i < count; i++)
        __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
    __asm__ __volatile__("" : : "r"(&word) : "memory");
}

/* Round trips: PE 0 and the peer in turn. */

static int partner(const struct perf *perf)
{
    return perf->me == 0 ? perf->peer : 0;
}

static void begin_turns(struct perf *perf, struct perf_row *row)
{
    perf_fill(perf, row);
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    row->calls_a_count = 2;
    row->limit_base_ns = perf->machine[PERF_LINE].median;
}

static void begin_flag(struct perf *perf, struct perf_row *row)
{
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    row->calls_a_count = 2;
    row->limit_base_ns = perf->machine[PERF_LINE].median;
}

/* CELL_SEEN counts the turns of this PE, across batches. */
static void flag_turns(struct perf *perf, struct perf_row *row, long count)
{
    long *flag = cell(perf, CELL_FLAG), *seen = cell(perf, CELL_SEEN);
    (void)row;
    for (long i = 0; i < count; i++) {
        long turn = ++*seen;
        if (perf->me == 0)
            shmem_long_p(flag, turn, partner(perf));
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn);
        if (perf->me != 0)
            shmem_long_p(flag, turn, partner(perf));
    }
}

static bool verify_flag(struct perf *perf, struct perf_row *row)
{
    if (perf->me != 0 && perf->me != perf->peer)
        return true;
    return is_word(perf, row, CELL_FLAG, perf->me, row->count);
}

static void put_and_flag(struct perf *perf, struct perf_row *row, long turn)
{
    size_t at = perf_next(row, &row->at);
    shmem_putmem(perf->to[PERF_HEAP] + at, perf->from[PERF_HEAP] + at, row->bytes, partner(perf));
    shmem_fence();
    shmem_long_p(cell(perf, CELL_FLAG), turn, partner(perf));
}

static void put_flag_turns(struct perf *perf, struct perf_row *row, long count)
{
    long *flag = cell(perf, CELL_FLAG), *seen = cell(perf, CELL_SEEN);
    for (long i = 0; i < count; i++) {
        long turn = ++*seen;
        if (perf->me == 0)
            put_and_flag(perf, row, turn);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, turn);
        if (perf->me != 0)
            put_and_flag(perf, row, turn);
    }
}

#if PERF_HAS_1_5
static void put_signal(struct perf *perf, struct perf_row *row, uint64_t turn)
{
    size_t at = perf_next(row, &row->at);
    shmem_putmem_signal(perf->to[PERF_HEAP] + at, perf->from[PERF_HEAP] + at, row->bytes,
                        (uint64_t *)cell(perf, CELL_SIGNAL), turn, SHMEM_SIGNAL_SET, partner(perf));
}

static void signal_turns(struct perf *perf, struct perf_row *row, long count)
{
    uint64_t *signal = (uint64_t *)cell(perf, CELL_SIGNAL);
    long *seen = cell(perf, CELL_SEEN);
    for (long i = 0; i < count; i++) {
        uint64_t turn = (uint64_t)++ * seen;
        if (perf->me == 0)
            put_signal(perf, row, turn);
        shmem_signal_wait_until(signal, SHMEM_CMP_EQ, turn);
        if (perf->me != 0)
            put_signal(perf, row, turn);
    }
}
#define SIGNAL_TURNS signal_turns
#else
#define SIGNAL_TURNS NULL /* no such routine */
#endif

static bool verify_turns(struct perf *perf, struct perf_row *row)
{
    if (perf->me != 0 && perf->me != perf->peer)
        return true;
    return perf_has_come(perf, row, perf->to[PERF_HEAP], partner(perf));
}

static void copy(struct perf *perf, struct perf_row *row, long count)
{
    void *(*volatile hidden)(void *, const void *, size_t) = memcpy;
    for (long i = 0; i < count; i++)
        hidden(perf->copy_to, perf->copy_from, row->bytes);
}

/* Order. */

static void fence(struct perf *perf, struct perf_row *row, long count)
{
    (void)perf, (void)row;
    for (long i = 0; i < count; i++)
        shmem_fence();
}

static void quiet(struct perf *perf, struct perf_row *row, long count)
{
    (void)perf, (void)row;
    for (long i = 0; i < count; i++)
        shmem_quiet();
}

static void begin_call(struct perf *perf, struct perf_row *row)
{
    row->limit_base_ns = perf->machine[PERF_CALL].median;
}

/* All together. */

static void begin_meeting(struct perf *perf, struct perf_row *row)
{
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    row->limit_base_ns = perf_meeting_ns(perf);
}

static void begin_malloc(struct perf *perf, struct perf_row *row)
{
    row->limit_base_ns = 2 * perf_meeting_ns(perf);
}

static void barrier(struct perf *perf, struct perf_row *row, long count)
{
    (void)perf, (void)row;
    for (long i = 0; i < count; i++)
        shmem_barrier_all();
}

static void sync_all(struct perf *perf, struct perf_row *row, long count)
{
    (void)perf, (void)row;
    for (long i = 0; i < count; i++)
        shmem_sync_all();
}

/* Data put before a barrier has arrived after it, at every PE; and no PE is ahead by more than one. */
static bool verify_barrier(struct perf *perf, struct perf_row *row)
{
    int next = (perf->me + 1) % perf->npes;
    for (long i = 1; i <= BARRIERS; i++) {
        shmem_long_p(cell(perf, CELL_WORD), i, next);
        shmem_barrier_all();
        if (!is_word(perf, row, CELL_WORD, perf->me, i))
            return false;
        shmem_barrier_all();
    }
    return true;
}

static bool verify_sync(struct perf *perf, struct perf_row *row)
{
    int next = (perf->me + 1) % perf->npes;
    for (long i = 1; i <= BARRIERS; i++) {
        shmem_long_atomic_set(cell(perf, CELL_WORD), i, next);
        shmem_quiet();
        shmem_sync_all();
        if (!is_word(perf, row, CELL_WORD, perf->me, i))
            return false;
        shmem_sync_all();
    }
    return true;
}

/* Locks: PE 0 alone, and all at once. */

static void begin_lock(struct perf *perf, struct perf_row *row)
{
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    row->limit_calls_a_count = 0.5; /* acquired and released */
}

static void begin_all_lock(struct perf *perf, struct perf_row *row)
{
    memset(perf->cells, 0, (CELL_COUNT * CELL_STRIDE) * sizeof(long));
    row->calls_a_count = perf->npes;
    row->limit_base_ns = perf->machine[PERF_LINE].median;
}

static void lock(struct perf *perf, struct perf_row *row, long count)
{
    (void)row;
    for (long i = 0; i < count; i++) {
        shmem_set_lock(cell(perf, CELL_LOCK));
        shmem_clear_lock(cell(perf, CELL_LOCK));
    }
}

/* Non-atomic additions are all present only if none collided. */
static bool verify_lock(struct perf *perf, struct perf_row *row)
{
    for (int i = 0; i < LOCK_CHECKS; i++) {
        shmem_set_lock(cell(perf, CELL_LOCK));
        shmem_long_p(cell(perf, CELL_COUNTER), shmem_long_g(cell(perf, CELL_COUNTER), 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(cell(perf, CELL_LOCK));
    }
    shmem_barrier_all();
    return is_word(perf, row, CELL_COUNTER, 0, (long)LOCK_CHECKS * perf->npes);
}

static void malloc_free(struct perf *perf, struct perf_row *row, long count)
{
    for (long i = 0; i < count; i++) {
        void *block = shmem_malloc(row->bytes);
        if (!block)
            perf_fail(perf, "shmem_malloc(%zu) returned NULL", row->bytes);
        shmem_free(block);
    }
}

/* The block has the same offset on every PE: the neighbour's put into it arrives. */
static bool verify_malloc(struct perf *perf, struct perf_row *row)
{
    unsigned char *block = shmem_malloc(row->bytes);
    int next = (perf->me + 1) % perf->npes, last = (perf->me + perf->npes - 1) % perf->npes;
    if (!block)
        perf_fail(perf, "shmem_malloc(%zu) returned NULL", row->bytes);
    perf_fill_given(perf->from[PERF_HEAP], row->bytes, perf->me, row);
    shmem_putmem(block, perf->from[PERF_HEAP], row->bytes, next);
    shmem_barrier_all();
    bool is_right = perf_is_given(perf, row, block, 0, row->bytes, last);
    shmem_barrier_all();
    shmem_free(block);
    return is_right;
}

#define ADD      "an atomic addition of the processor"
#define TRANSFER "a cache line transfer"
#define TURN     "a cache line transfer and memcpy"
#define MEETING  "transfers and switches"

/* An addition or exchange of PE 0 on the peer's word. */
#define ATOMIC(name, sentence, batch, verify)                                                                          \
    {                                                                                                                  \
        name, sentence, ADD, PERF_ONE, PERF_CALLS_RATE, 0, 0, false, false, begin_word, batch, processor_add, verify   \
    }

const struct perf_test perf_sync_tests[] = {
    ATOMIC("fetch-add", "shmem_long_atomic_fetch_add on the peer's word", fetch_add, verify_added),
    ATOMIC("add", "shmem_long_atomic_add on the peer's word, a quiet at the end", add, verify_added),
    ATOMIC("compare-swap", "shmem_long_atomic_compare_swap on the peer's word", compare_swap, verify_added),
    ATOMIC("swap", "shmem_long_atomic_swap on the peer's word", swap, verify_added),
    ATOMIC("fetch", "shmem_long_atomic_fetch of the peer's word", fetch, NULL),
    ATOMIC("set", "shmem_long_atomic_set of the peer's word, a quiet at the end", set, verify_added),
    {"all-fetch-add", "all PEs on one word of PE 0, together", ADD, PERF_ALL, PERF_CALLS_RATE, 0, 0, false, false,
     begin_all_add, all_add, processor_add, verify_all_added},
    {"ping-pong", "shmem_long_p and shmem_long_wait_until in turn, one way", TRANSFER, PERF_TWO, PERF_NO_RATE, 0, 0,
     false, false, begin_flag, flag_turns, NULL, verify_flag},
    {"put-flag", "shmem_putmem, shmem_fence, shmem_long_p, waited for in turn, one way", TURN, PERF_TWO,
     PERF_BYTES_RATE, 1, SIGNAL_MAX, false, false, begin_turns, put_flag_turns, copy, verify_turns},
    {"put-signal", "shmem_putmem_signal and shmem_signal_wait_until in turn, one way", TURN, PERF_TWO, PERF_BYTES_RATE,
     1, SIGNAL_MAX, false, false, begin_turns, SIGNAL_TURNS, copy, verify_turns},
    {"fence", "shmem_fence with nothing under way", "an empty call", PERF_ONE, PERF_CALLS_RATE, 0, 0, false, false,
     begin_call, fence, NULL, NULL},
    {"quiet", "shmem_quiet with nothing under way", "an empty call", PERF_ONE, PERF_CALLS_RATE, 0, 0, false, false,
     begin_call, quiet, NULL, NULL},
    {"barrier", "shmem_barrier_all", MEETING, PERF_ALL, PERF_NO_RATE, 0, 0, false, false, begin_meeting, barrier, NULL,
     verify_barrier},
    {"sync", "shmem_sync_all", MEETING, PERF_ALL, PERF_NO_RATE, 0, 0, false, false, begin_meeting, sync_all, NULL,
     verify_sync},
    {"lock", "shmem_set_lock and shmem_clear_lock, nobody else wants it", "two atomic additions", PERF_ONE,
     PERF_NO_RATE, 0, 0, false, false, begin_lock, lock, processor_add, verify_lock},
    {"all-lock", "the same by all PEs at once, each acquisition", TRANSFER, PERF_ALL, PERF_NO_RATE, 0, 0, false, false,
     begin_all_lock, lock, NULL, verify_lock},
    {"malloc", "shmem_malloc and shmem_free, both collective", "transfers and switches, twice", PERF_ALL, PERF_NO_RATE,
     64, MALLOC_MAX, false, false, begin_malloc, malloc_free, NULL, verify_malloc},
    {NULL, NULL, NULL, PERF_ONE, PERF_NO_RATE, 0, 0, false, false, NULL, NULL, NULL, NULL},
};
