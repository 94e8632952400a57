/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_is - the integer sort IS of the NAS benchmarks, on shared pages: each PE counts its keys, adds its counts to the
 * shared buckets under locks, and after a barrier has the rank of every key. Each iteration is verified by the ranks of
 * five keys in the benchmark's definition.
 *
 * Use: oshrun -n 4 dsm_is [S|W|A] */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ITERATIONS 10
#define TESTED     5
#define LOCKS      16

struct class
{
    char name;
    int key_bits, max_key_bits;
    long index[TESTED];                             /* keys whose ranks are verified */
    long rank[TESTED], step[TESTED], since[TESTED]; /* rank + step * (iteration - since) */
};

static const struct class classes[] = {
    {'S', 16, 11, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, {1, 1, 1, -1, -1}, {0, 0, 0, 0, 0}},
    {'W',
     20,
     16,
     {357773, 934767, 875723, 898999, 404505},
     {1249, 11698, 1039987, 1043896, 1048018},
     {1, 1, -1, -1, -1},
     {2, 2, 0, 0, 0}},
    {'A',
     23,
     19,
     {2112377, 662041, 5336171, 3642833, 4250760},
     {104, 17523, 123928, 8288932, 8388264},
     {1, 1, 1, -1, -1},
     {1, 1, 1, 1, 1}},
};

/* x(k+1) = 5^13 x(k) mod 2^46, as doubles between 0 and 1. */
static double next_random(uint64_t *seed)
{
    *seed = *seed * 1220703125u & ((1ull << 46) - 1);
    return (double)*seed / (double)(1ull << 46);
}

static uint64_t power(uint64_t exponent)
{
    uint64_t base = 1220703125u, result = 1, mask = (1ull << 46) - 1;
    for (; exponent > 0; exponent >>= 1, base = base * base & mask) {
        if (exponent & 1)
            result = result * base & mask;
    }
    return result;
}

struct shared {
    dsm_lock_t locks[LOCKS];
    long tested[TESTED];
};

static void make_keys(int *keys, long first, long end, long max_key)
{
    uint64_t seed = 314159265ull * power(4 * (uint64_t)first) & ((1ull << 46) - 1);
    for (long i = first; i < end; i++) {
        double sum = next_random(&seed);
        for (int k = 0; k < 3; k++)
            sum += next_random(&seed);
        keys[i - first] = (int)((double)(max_key / 4) * sum);
    }
}

/* Each PE starts at another part of the buckets, so that they do not queue for one lock. */
static void add_counts(struct shared *shared, int *buckets, const int *counts, long max_key, int me)
{
    long part = max_key / LOCKS;
    for (int i = 0; i < LOCKS; i++) {
        int lock = (i + me) % LOCKS;
        dsm_lock(&shared->locks[lock]);
        for (long key = lock * part; key < (lock + 1) * part; key++)
            buckets[key] += counts[key];
        dsm_unlock(&shared->locks[lock]);
    }
}

/* ranks[key] becomes the number of smaller keys. */
static int verify(const struct class *class, const int *buckets, int *ranks, long max_key, const long *tested,
                  int iteration)
{
    int failed = 0, sum = 0;
    for (long key = 0; key < max_key; key++) {
        ranks[key] = sum;
        sum += buckets[key];
    }
    for (int i = 0; i < TESTED; i++) {
        long expected = class->rank[i] + class->step[i] * (iteration - class->since[i]);
        if (ranks[tested[i]] != expected) {
            printf("iteration %d: rank of key %ld is %d, but %ld is required\n", iteration, tested[i], ranks[tested[i]],
                   expected);
            failed++;
        }
    }
    return failed;
}

/* The two keys that the benchmark changes, and the five whose ranks it verifies. */
static void begin_iteration(const struct class *class, struct shared *shared, int *keys, long first, long end,
                            int iteration)
{
    long late = iteration + ITERATIONS, max_key = 1l << class->max_key_bits;
    if (first <= iteration && iteration < end)
        keys[iteration - first] = iteration;
    if (first <= late && late < end)
        keys[late - first] = (int)(max_key - iteration);
    for (int i = 0; i < TESTED; i++) {
        if (first <= class->index[i] && class->index[i] < end)
            shared->tested[i] = keys[class->index[i] - first];
    }
}

int main(int count, char **words)
{
    const struct class *class = &classes[0];
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (count > 1 && words[1][0] == classes[i].name)
            class = &classes[i];
    }
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes(), failed = 0;
    long keys_count = 1l << class->key_bits, max_key = 1l << class->max_key_bits;
    long first = keys_count * me / pes, end = keys_count * (me + 1) / pes;
    struct shared *shared = dsm_all_malloc(sizeof *shared);
    int *buckets = dsm_all_malloc((size_t)max_key * sizeof *buckets);
    int *keys = malloc((size_t)(end - first + 1) * sizeof *keys), *counts = malloc((size_t)max_key * sizeof *counts);
    int *ranks = malloc((size_t)max_key * sizeof *ranks);
    make_keys(keys, first, end, max_key);
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int iteration = 1; iteration <= ITERATIONS; iteration++) {
        begin_iteration(class, shared, keys, first, end, iteration);
        for (long key = max_key * me / pes; key < max_key * (me + 1) / pes; key++)
            buckets[key] = 0;
        memset(counts, 0, (size_t)max_key * sizeof *counts);
        for (long i = 0; i < end - first; i++)
            counts[keys[i]]++;
        dsm_barrier_all();
        add_counts(shared, buckets, counts, max_key, me);
        dsm_barrier_all();
        failed += verify(class, buckets, ranks, max_key, shared->tested, iteration);
        dsm_barrier_all();
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (me == 0)
        printf("IS class %c: verification %s, %d PEs, %.4f s\n", class->name, failed ? "FAILED" : "PASSED", pes,
               (double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9);
    free(keys);
    free(counts);
    free(ranks);
    dsm_finalize();
    return failed != 0;
}
