/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_NS      50000.0   /* of a batch of PE 0 alone, about: reading the clock is a thousandth of it */
#define TOGETHER_NS   200000.0  /* of a batch of several PEs: their start is not quite the same */
#define CROWDED_NS    1000000.0 /* the same with more PEs than processors: the time includes acknowledgements */
#define COUNT_MAX     (1L << 20)
#define WARM_UP_SHARE 0.15 /* of a row's time */
#define SAMPLES_MIN   5
#define REST_NS       500000L

/* Orders of the leader, and acknowledgements of the others. The leader writes `count` and `what` on a PE before
 * `number`. An acknowledgement of 2n+1 means ready for order n; 2n+2: done. */
struct perf_orders {
    long number, count, what; /* written by PE 0 */
    long go;                  /* written by PE 0 */
    long *answers;            /* at PE 0: one of each PE */
    double *times;            /* at PE 0: one of each PE */
};

enum what { WHAT_CALLS, WHAT_LIMIT, WHAT_END };

double perf_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

bool perf_orders_make(struct perf *perf)
{
    perf->orders = shmem_calloc(1, sizeof *perf->orders);
    if (!perf->orders)
        return false;
    perf->orders->answers = shmem_calloc((size_t)perf->npes, sizeof(long));
    perf->orders->times = shmem_calloc((size_t)perf->npes, sizeof(double));
    return perf->orders->answers && perf->orders->times;
}

void perf_orders_free(struct perf *perf)
{
    shmem_free(perf->orders->times);
    shmem_free(perf->orders->answers);
    shmem_free(perf->orders);
}

static bool acts(const struct perf *perf, const struct perf_row *row, int pe)
{
    enum perf_who who = row->test->who;
    return pe == 0 || who == PERF_PAIRS || who == PERF_ALL || (who == PERF_TWO && pe == perf->peer);
}

/* One batch of this PE, in nanoseconds. Warm calls really are warm: the batch before used other buffers. */
static void prepare(struct perf *perf, struct perf_row *row, long what)
{
    if (row->is_cold)
        return;
    (what == WHAT_CALLS ? row->test->batch : row->test->limit_batch)(perf, row, 1);
}

static double timed(struct perf *perf, struct perf_row *row, long what, long count)
{
    double start = perf_now_ns();
    (what == WHAT_CALLS ? row->test->batch : row->test->limit_batch)(perf, row, count);
    return perf_now_ns() - start;
}

static void order(struct perf *perf, int pe, long what, long count)
{
    shmem_long_p(&perf->orders->what, what, pe);
    shmem_long_p(&perf->orders->count, count, pe);
    shmem_fence();
    shmem_long_p(&perf->orders->number, perf->order_number, pe);
}

static void answer(struct perf *perf, long value)
{
    shmem_fence();
    shmem_long_p(&perf->orders->answers[perf->me], value, 0);
}

/* More PEs than processors: then a PE may see the start only after others have ended, and its own time is too short. */
static bool is_crowded(const struct perf *perf)
{
    return perf->npes > perf_processor_count();
}

/* One batch of all acting PEs, started at once; the time of the slowest, or until the last has ended. PE 0 alone. */
static double lead_batch(struct perf *perf, struct perf_row *row, long what, long count)
{
    struct perf_orders *orders = perf->orders;
    if (row->test->who == PERF_ONE) {
        prepare(perf, row, what);
        return timed(perf, row, what, count);
    }
    perf->order_number++;
    for (int pe = 1; pe < perf->npes; pe++)
        if (acts(perf, row, pe))
            order(perf, pe, what, count);
    prepare(perf, row, what);
    for (int pe = 1; pe < perf->npes; pe++)
        if (acts(perf, row, pe))
            shmem_long_wait_until(&orders->answers[pe], SHMEM_CMP_GE, 2 * perf->order_number + 1);
    double start = perf_now_ns(); /* others may have ended before this PE runs on */
    for (int pe = 1; pe < perf->npes; pe++)
        if (acts(perf, row, pe))
            shmem_long_p(&orders->go, perf->order_number, pe);
    double slowest = timed(perf, row, what, count);
    for (int pe = 1; pe < perf->npes; pe++) {
        if (!acts(perf, row, pe))
            continue;
        shmem_long_wait_until(&orders->answers[pe], SHMEM_CMP_GE, 2 * perf->order_number + 2);
        if (orders->times[pe] > slowest)
            slowest = orders->times[pe];
    }
    return is_crowded(perf) ? perf_now_ns() - start : slowest;
}

/* Whether a PE serves the operations of others only within calls, and not within every one: Open MPI 4.1 over TCP makes
 * no progress in shmem_test(), and a put to such a PE waits for ever. */
#ifdef QUOIT_SHMEM_H
#define NEEDS_CALLS false
#else
#define NEEDS_CALLS true
#endif

/* PEs without a part in a row leave the processors to the others; the peer waits as its library requires. */
static void await_order(struct perf *perf, const struct perf_row *row)
{
    const struct timespec rest = {0, REST_NS};
    long *number = &perf->orders->number;
    if (NEEDS_CALLS || (row && (acts(perf, row, perf->me) || perf->me == perf->peer)))
        shmem_long_wait_until(number, SHMEM_CMP_GT, perf->order_number);
    else
        while (!shmem_long_test(number, SHMEM_CMP_GT, perf->order_number))
            nanosleep(&rest, NULL);
    perf->order_number = *(volatile long *)number;
}

static void follow(struct perf *perf, struct perf_row *row)
{
    struct perf_orders *orders = perf->orders;
    for (;;) {
        await_order(perf, row);
        long what = *(volatile long *)&orders->what, count = *(volatile long *)&orders->count;
        if (what == WHAT_END) {
            row->count = count;
            return;
        }
        prepare(perf, row, what);
        answer(perf, 2 * perf->order_number + 1);
        shmem_long_wait_until(&orders->go, SHMEM_CMP_GE, perf->order_number);
        shmem_double_p(&orders->times[perf->me], timed(perf, row, what, count), 0);
        answer(perf, 2 * perf->order_number + 2);
    }
}

void perf_alone(struct perf *perf, void (*deed)(struct perf *perf))
{
    if (perf->me != 0) {
        await_order(perf, NULL);
        return;
    }
    deed(perf);
    perf->order_number++;
    for (int pe = 1; pe < perf->npes; pe++)
        order(perf, pe, WHAT_END, 0);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

void perf_summarise(double *samples, int count, struct perf_stat *stat_out)
{
    qsort(samples, (size_t)count, sizeof samples[0], compare);
    const double *const s = samples;
    *stat_out = (struct perf_stat){s[0], s[count / 4], s[count / 2], s[count * 3 / 4], s[(count * 99) / 100], count};
}

static double counted_batch(struct perf *perf, struct perf_row *row, long what, long count)
{
    if (what == WHAT_CALLS)
        row->count += count + !row->is_cold; /* the one of prepare() */
    return lead_batch(perf, row, what, count);
}

/* As many calls as fill a batch; also warms up. One slow batch may be chance, two in a row are not. */
static long calibrate(struct perf *perf, struct perf_row *row, long what)
{
    double enough = row->test->who == PERF_ONE ? BATCH_NS : is_crowded(perf) ? CROWDED_NS : TOGETHER_NS;
    for (long count = 1;; count *= 2)
        if (count >= COUNT_MAX ||
            (counted_batch(perf, row, what, count) >= enough && counted_batch(perf, row, what, count) >= enough))
            return count;
}

static void lead(struct perf *perf, struct perf_row *row, double seconds, struct perf_result *result)
{
    int subjects = row->test->limit_batch ? 2 : 1, taken = 0;
    double begin = perf_now_ns(), until = begin + seconds * 1e9;
    long counts[2] = {0, 0};
    for (int what = 0; what < subjects; what++)
        counts[what] = calibrate(perf, row, what);
    bool is_warm = false;
    while (taken < PERF_SAMPLES_MAX && (taken < SAMPLES_MIN || perf_now_ns() < until)) {
        if (!is_warm && perf_now_ns() > begin + seconds * 1e9 * WARM_UP_SHARE) {
            is_warm = true;
            taken = 0;
        }
        for (int what = 0; what < subjects; what++) {
            double ns = counted_batch(perf, row, what, counts[what]) - perf->machine[PERF_TIMER].min;
            ns /= (double)counts[what];
            perf->samples[what][taken] =
                what == WHAT_CALLS ? ns / row->calls_a_count : ns / row->limit_calls_a_count + row->limit_base_ns;
        }
        taken++;
    }
    perf->order_number++;
    for (int pe = 1; pe < perf->npes; pe++)
        order(perf, pe, WHAT_END, row->count);
    perf_summarise(perf->samples[0], taken, &result->ns);
    if (subjects == 2)
        perf_summarise(perf->samples[1], taken, &result->limit);
    else
        result->limit = (struct perf_stat){row->limit_base_ns, row->limit_base_ns, row->limit_base_ns,
                                           row->limit_base_ns, row->limit_base_ns, 1};
}

static double rate_of(const struct perf_row *row, const struct perf_result *result)
{
    double ns = result->ns.median;
    switch (row->test->rate) {
    case PERF_BYTES_RATE:
        return (double)row->bytes / ns * 1e3;
    case PERF_CALLS_RATE:
        return 1e3 / ns;
    case PERF_OVERLAP_RATE:
        return result->ratio >= 2 ? 0 : result->ratio <= 1 ? 100 : (2 - result->ratio) * 100;
    case PERF_NO_RATE:
        break;
    }
    return 0;
}

void perf_measure(struct perf *perf, struct perf_row *row, double seconds, struct perf_result *result_out)
{
    row->calls_a_count = row->limit_calls_a_count = 1;
    row->limit_base_ns = row->plan = 0;
    row->count = 0;
    perf_row_layout(perf, row);
    if (row->test->begin)
        row->test->begin(perf, row);
    shmem_barrier_all();
    if (perf->me == 0) {
        *result_out = (struct perf_result){.row = row};
        lead(perf, row, seconds, result_out);
        result_out->ratio = result_out->limit.median > 0 ? result_out->ns.median / result_out->limit.median : 0;
        result_out->rate = rate_of(row, result_out);
    } else {
        follow(perf, row);
    }
    shmem_barrier_all();
    if (row->test->verify && !row->test->verify(perf, row))
        shmem_global_exit(1);
    shmem_barrier_all();
}
