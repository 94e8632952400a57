/* SPDX-License-Identifier: BSD-3-Clause */
/* samples.h - how the benchmarks time an operation: a number of batches of calls, each long enough to fill a given
 * time.
 *
 * Operations to be compared are measured in alternating batches, so that a disturbance of the machine affects both.
 * Each result is printed as one line of JSON; bench/run reads them.
 */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define SAMPLE_COUNT  9
#define SAMPLE_NS     1000000.0 /* approximate duration of each batch */
#define BYTES_MIN     8u
#define BYTES_MAX     (4u << 20)
#define BATCH_MAX     (1u << 20)
#define SUBJECT_COUNT 8

struct subject {
    const char *name;
    void (*batch)(void *arg, size_t bytes, size_t count); /* `count` calls of `bytes` each */
};

static inline double bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double bench_batch_ns(const struct subject *subject, void *arg, size_t bytes, size_t count)
{
    double start = bench_now_ns();
    subject->batch(arg, bytes, count);
    return bench_now_ns() - start;
}

/* Measures the subjects at one size, alternating, and prints a line for each. */
static inline void bench_measure(const struct subject *subjects, size_t subject_count, void *arg, size_t bytes,
                                 const char *where)
{
    size_t counts[SUBJECT_COUNT];
    double ns[SUBJECT_COUNT][SAMPLE_COUNT];
    for (size_t s = 0; s < subject_count; s++) { /* also warms up */
        counts[s] = 1;
        while (bench_batch_ns(&subjects[s], arg, bytes, counts[s]) < SAMPLE_NS && counts[s] < BATCH_MAX)
            counts[s] *= 2;
    }
    for (int sample = 0; sample < SAMPLE_COUNT; sample++)
        for (size_t s = 0; s < subject_count; s++)
            ns[s][sample] = bench_batch_ns(&subjects[s], arg, bytes, counts[s]) / (double)counts[s];
    for (size_t s = 0; s < subject_count; s++) {
        printf("{\"where\": \"%s\", \"what\": \"%s\", \"bytes\": %zu, \"ns\": [", where, subjects[s].name, bytes);
        for (int sample = 0; sample < SAMPLE_COUNT; sample++)
            printf("%s%.2f", sample == 0 ? "" : ", ", ns[s][sample]);
        printf("]}\n");
    }
    fflush(stdout);
}

#endif
