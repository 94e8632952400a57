/* SPDX-License-Identifier: BSD-3-Clause */
/* gups.c - random access: the rate of updates of single words anywhere in the memory of all PEs.
 *
 * Use: gups [words a PE, as a power of two [updates a PE [seed]]]     (20, 1000000 and 1 unless given)
 * Each PE draws random words and changes each by one atomic exclusive-or, so that no update is lost, as it may be in
 * the HPC Challenge. Checked: the same updates once more restore every word of the table.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <shmem.h>

static long sum_sync[SHMEM_REDUCE_SYNC_SIZE]; /* symmetric */
static long long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], wrong_here, wrong;

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The PE comes from the upper half of the random number, the word from the lower: PEs need not be a power of two. */
static double update(uint64_t *table, uint64_t mask, uint64_t count, uint64_t seed)
{
    uint64_t pe_count = (uint64_t)shmem_n_pes();
    shmem_barrier_all();
    double start = seconds_now();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t r = next_random(&seed);
        shmem_uint64_atomic_xor(&table[r & mask], r, (int)((r >> 32) * pe_count >> 32));
    }
    shmem_barrier_all(); /* all updates have happened */
    return seconds_now() - start;
}

int main(int argc, char **argv)
{
    unsigned bits = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20;
    uint64_t updates = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (bits > 31) {
        fprintf(stderr, "gups: a table of 2^%u words is too large: 31 at most\n", bits);
        return 2;
    }
    shmem_init();
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    uint64_t words = (uint64_t)1 << bits;
    uint64_t *table = shmem_malloc(words * sizeof(*table));
    if (table == NULL) {
        fprintf(stderr, "gups: no room for 2^%u words; give SHMEM_SYMMETRIC_SIZE\n", bits);
        shmem_global_exit(2);
    }
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        sum_sync[i] = SHMEM_SYNC_VALUE;
    for (uint64_t i = 0; i < words; i++)
        table[i] = i;
    uint64_t own_seed = seed * 1000003 + (uint64_t)me * 0x9e3779b97f4a7c15u * updates; /* no two PEs draw the same */
    double seconds = update(table, words - 1, updates, own_seed);
    for (uint64_t i = 0; i < words; i++)
        wrong_here -= table[i] != i; /* few words are back at their initial value */
    int is_changed = wrong_here < 0;
    wrong_here = 0;
    update(table, words - 1, updates, own_seed);
    for (uint64_t i = 0; i < words; i++)
        wrong_here += table[i] != i;
    wrong_here += updates > 1000 && !is_changed; /* a library that does nothing would restore every word too */
    shmem_barrier_all();
    shmem_longlong_sum_to_all(&wrong, &wrong_here, 1, 0, 0, pe_count, work, sum_sync);
    if (me == 0)
        printf("gups: %llu updates on %d PEs in %.3f s, %.6f GUPS: %s\n",
               (unsigned long long)updates * (unsigned)pe_count, pe_count, seconds,
               (double)updates * pe_count / seconds / 1e9, wrong == 0 ? "verified" : "WRONG");
    shmem_free(table);
    shmem_finalize();
    return wrong == 0 ? 0 : 1;
}
