/* SPDX-License-Identifier: BSD-3-Clause */
/* perf.h - the speed of an OpenSHMEM library, through its public interface alone, beside the limits of the machine.
 *
 * One program that runs under any OpenSHMEM library of version 1.4 or later: oshcc -O2 -o perf *.c, then the library's
 * own launcher. Routines of later versions are used if the header declares them.
 *
 * A test is one kind of call; a row is a test with a size, a kind of buffers, and warm or cold. All PEs walk the same
 * list of rows. PE 0 leads: it announces the number of calls of the next batch, measures, and announces the end of the
 * row; then every PE that received data compares each byte. In alternating batches, the same PEs do the minimum that
 * the machine must do for the call: that is the row's limit.
 *
 * Threads: one per PE. Errors: wrong data and lack of memory end the job with a message and status 1.
 */
#ifndef QUOIT_PERF_H
#define QUOIT_PERF_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERF_HAS_1_5 (SHMEM_MAJOR_VERSION > 1 || (SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION >= 5))

#define PERF_SIZES_MAX    64
#define PERF_SAMPLES_MAX  8192
#define PERF_GLOBAL_BYTES (4u << 20) /* of each static buffer */
#define PERF_GUARD_BYTES  64u        /* after each buffer: must stay as they were */

enum perf_buffers { PERF_HEAP, PERF_GLOBAL, PERF_PRIVATE, PERF_BUFFERS_COUNT };

enum perf_who {
    PERF_ONE,   /* PE 0 alone acts, on the peer */
    PERF_TWO,   /* PE 0 and the peer */
    PERF_PAIRS, /* each PE of the lower half with one of the upper half */
    PERF_ALL    /* every PE */
};

enum perf_rate {
    PERF_NO_RATE,
    PERF_BYTES_RATE,  /* million bytes a second */
    PERF_CALLS_RATE,  /* million calls a second */
    PERF_OVERLAP_RATE /* share of the transfer that was hidden */
};

/* What the machine itself needs, measured by PE 0 with a helper process, without the library. */
enum perf_machine {
    PERF_TIMER,  /* reading the clock: taken off every sample */
    PERF_CALL,   /* an empty function called through a pointer */
    PERF_ADD,    /* an atomic fetch-add on a line in its own cache */
    PERF_LINE,   /* the transfer of a cache line from one processor to another */
    PERF_SWITCH, /* from one process to another that waits for the same processor */
    PERF_MACHINE_COUNT
};

struct perf_stat {
    double min, p25, median, p75, p99; /* nanoseconds a call */
    int samples;
};

struct perf_row {
    const struct perf_test *test;
    size_t bytes; /* 0: the test moves no data */
    enum perf_buffers buffers;
    bool is_cold;
    /* From here on of this run of the row. */
    int number;
    size_t slot_bytes, span, step; /* calls go round `span` bytes of the buffers, by `step` */
    size_t at, limit_at;           /* where the next call is, and the next of the limit */
    double calls_a_count;          /* what one count of a batch stands for; 1 if begin() says nothing */
    double limit_calls_a_count;    /* of a batch of the limit */
    double limit_base_ns;          /* a part of the limit that is not measured by limit_batch */
    double plan;                   /* of the test's own use */
    long count;                    /* of the calls of all batches, once the row has ended */
};

struct perf;

struct perf_test {
    const char *name;
    const char *sentence;
    const char *limit_name;
    enum perf_who who;
    enum perf_rate rate;
    size_t bytes_min, bytes_max; /* 0, 0: no data */
    bool can_vary;               /* by kind of buffers and cache */
    bool varies;                 /* also when not asked to */
    /* Fills the buffers. Every PE; a barrier follows. May be NULL. */
    void (*begin)(struct perf *perf, struct perf_row *row);
    /* `count` calls. Every PE that acts. NULL: the library lacks the routine, and the test has no rows. */
    void (*batch)(struct perf *perf, struct perf_row *row, long count);
    /* The same by the machine alone, or NULL. */
    void (*limit_batch)(struct perf *perf, struct perf_row *row, long count);
    /* False: the received data is wrong, and a message was printed. Every PE, after row->count counts. May call the
     * library. */
    bool (*verify)(struct perf *perf, struct perf_row *row);
};

struct perf_options {
    const char *tests; /* names and patterns with commas, or NULL for all */
    size_t sizes[PERF_SIZES_MAX];
    int size_count;
    unsigned buffers; /* bits by enum perf_buffers; 0: as the tests vary by themselves */
    unsigned caches;  /* 1 warm, 2 cold; 0 as well */
    double seconds;
    size_t cold_bytes;
    int peer;
    const char *json;
    const char *name; /* of the library; NULL: what it says itself */
    const char *note;
    bool shows_progress, is_list, is_help;
};

struct perf_result {
    const struct perf_row *row;
    struct perf_stat ns, limit;
    double ratio; /* of the medians */
    double rate;
};

struct perf {
    int me, npes, peer;
    struct perf_options options;
    struct perf_orders *orders; /* symmetric: measure.c */
    long order_number;
    unsigned char *from[PERF_BUFFERS_COUNT], *to[PERF_BUFFERS_COUNT];
    size_t pool_bytes[PERF_BUFFERS_COUNT];
    unsigned char *copy_from, *copy_to; /* private, as large as the largest pool: what the limits copy */
    struct perf_stat machine[PERF_MACHINE_COUNT];
    struct perf_twin *twin;
    double *samples[2];
    long *cells; /* symmetric: words for atomics, flags and locks, far from each other: sync.c */
};

/* options.c: what is asked for. False: a message said what is wrong. */
bool perf_options_parse(struct perf_options *options, int argc, char **argv);
void perf_options_help(FILE *out);

/* main.c: the tests, in order; ends with a name of NULL. */
extern const struct perf_test perf_rma_tests[], perf_sync_tests[], perf_coll_tests[], perf_machine_tests[];

/* main.c: prints a message and ends the job. */
void perf_fail(const struct perf *perf, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

/* measure.c: measures a row. Every PE; only PE 0 gets the result. */
double perf_now_ns(void);
void perf_measure(struct perf *perf, struct perf_row *row, double seconds, struct perf_result *result_out);
void perf_summarise(double *samples, int count, struct perf_stat *stat_out);
bool perf_orders_make(struct perf *perf);
void perf_orders_free(struct perf *perf);
/* PE 0 runs `deed` while all others sleep, as far as the library lets them. Every PE. */
void perf_alone(struct perf *perf, void (*deed)(struct perf *perf));

/* limits.c: perf_limits_fork() before shmem_init(). perf_limits_measure() by PE 0, alone; it takes 20 ms. */
struct perf_twin *perf_limits_fork(void);
void perf_limits_measure(struct perf *perf);
/* Whether the kernel lets a process write to the memory of another. */
bool perf_cma_is_allowed(const struct perf *perf);
void perf_limits_end(struct perf_twin *twin);
/* The minimum time for all PEs to synchronise: cache line transfers, and context switches to waiting PEs. For PE 0. */
double perf_meeting_ns(const struct perf *perf);
int perf_processor_count(void);

/* buffers.c: the contents of buffers, byte for byte. */
/* As large as these rows need. */
bool perf_buffers_make(struct perf *perf, const struct perf_row *rows, int row_count);
void perf_buffers_free(struct perf *perf);
bool perf_row_fits(const struct perf *perf, const struct perf_row *row);
void perf_row_layout(const struct perf *perf, struct perf_row *row);
/* Fills the sources of the row's kind, and of its symmetric side, with what this PE gives, and the destinations with
 * something else. */
void perf_fill(struct perf *perf, struct perf_row *row); /* a begin() */
void perf_fill_given(unsigned char *bytes, size_t count, int pe, const struct perf_row *row);
void perf_fill_empty(unsigned char *bytes, size_t count);
/* Whether `bytes` at `at` of a buffer are what `pe` put there; if not, reports the first wrong one. */
bool perf_is_given(const struct perf *perf, const struct perf_row *row, const unsigned char *bytes, size_t at,
                   size_t count, int pe);
bool perf_is_empty(const struct perf *perf, const struct perf_row *row, const unsigned char *bytes, size_t count);
/* Whether the calls of the row, and they alone, brought to `to` what `pe` gave. */
bool perf_has_come(const struct perf *perf, const struct perf_row *row, const unsigned char *to, int pe);
uint64_t perf_given_word(int pe, const struct perf_row *row, size_t word);

/* report.c: a table as the rows come, and JSON at the end. */
const char *perf_buffers_name(enum perf_buffers buffers);
void perf_report_head(const struct perf *perf);
void perf_report_machine(const struct perf *perf);
void perf_report_row(const struct perf *perf, const struct perf_result *result);
bool perf_report_json(const struct perf *perf, const struct perf_result *results, int count);

/* The next offset of a row in its buffers. */
static inline size_t perf_next(const struct perf_row *row, size_t *at)
{
    size_t here = *at;
    *at += row->step;
    if (*at >= row->span)
        *at -= row->span;
    return here;
}

#endif
