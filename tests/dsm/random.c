/* SPDX-License-Identifier: BSD-3-Clause */
/* random - random race-free programs on shared memory, every byte compared with a reference outside it.
 *
 * Two regions. Bytes of `locked` belong to locks, adjacent bytes to different ones: under its lock a thread compares
 * all bytes of the lock with the reference, in OpenSHMEM memory of PE 0, and changes some of both. In each phase
 * between two barriers a byte of `phased` has one writer; all PEs know which, and the value: each PE compares the bytes
 * that are not being written. With --word the bytes of an aligned word belong together. Blocks are allocated and freed
 * meanwhile.
 *
 * Use: random [--seed N] [--steps N] [--threads N] [--word N] [--seconds N]. With --seconds it goes on, in one thread,
 * until PE 0 finds that they are over. A failure prints seed, step, byte and both values.
 */
#include <dsm.h>
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"

#define LOCK_COUNT   7
#define LOCKED_BYTES (7 * 4096)
#define PHASED_BYTES (16 * 4096)
#define THREADS_MAX  8

#define REFERENCE_BYTES (LOCKED_BYTES / LOCK_COUNT) /* of one lock */

struct shared {
    dsm_lock_t locks[LOCK_COUNT];
    unsigned char locked[LOCKED_BYTES];
    unsigned char phased[PHASED_BYTES];
    int is_over[2]; /* written by PE 0 before a barrier, in turn, since others may still read the one before */
};

static struct {
    struct shared *shared;
    unsigned char *reference; /* symmetric, PE 0's is used */
    unsigned char phased[PHASED_BYTES];
    uint64_t seed;
    size_t word;
    int steps, threads, me, pe_count;
    time_t end; /* 0: none */
} test = {.seed = 1, .word = 1, .steps = 20, .threads = 1};

static uint64_t chance(uint64_t a, uint64_t b, uint64_t c)
{
    struct quoit_prng prng = {test.seed * 0x9e3779b97f4a7c15u + a * 0x100000001b3u + b * 0xc2b2ae3d27d4eb4fu + c};
    return quoit_prng_next(&prng);
}

__attribute__((noreturn)) static void fail(const char *region, int step, size_t at, int found, int expected)
{
    fprintf(stderr,
            "random: PE %d, seed %llu, step %d: byte %zu of %s is %d, but the reference has %d\n"
            "replay: oshrun ... random --seed %llu --steps %d --threads %d\n",
            test.me, (unsigned long long)test.seed, step, at, region, found, expected, (unsigned long long)test.seed,
            test.steps, test.threads);
    _exit(1);
}

/* Word i belongs to lock i % LOCK_COUNT. The reference has the bytes of one lock together, so that threads under
 * different locks touch nothing in common: this is where byte k of a lock is in `locked`. */
static size_t locked_at(int lock, size_t k)
{
    return (k / test.word * LOCK_COUNT + (size_t)lock) * test.word + k % test.word;
}

static void locked_step(struct quoit_prng *prng, int step)
{
    int lock = (int)quoit_prng_choose(prng, LOCK_COUNT);
    unsigned char reference[REFERENCE_BYTES];
    dsm_lock(&test.shared->locks[lock]);
    shmem_getmem(reference, test.reference + lock * REFERENCE_BYTES, REFERENCE_BYTES, 0);
    for (size_t k = 0; k < REFERENCE_BYTES; k++) {
        size_t i = locked_at(lock, k);
        if (test.shared->locked[i] != reference[k])
            fail("locked", step, i, test.shared->locked[i], reference[k]);
    }
    for (uint64_t writes = quoit_prng_choose(prng, 40); writes > 0; writes--) {
        size_t k = quoit_prng_choose(prng, REFERENCE_BYTES);
        for (uint64_t run = quoit_prng_choose(prng, 30); run > 0 && k < REFERENCE_BYTES; run--, k++) {
            reference[k] = (unsigned char)quoit_prng_next(prng);
            test.shared->locked[locked_at(lock, k)] = reference[k];
        }
    }
    /* Each byte once, though some were stored twice: two puts to one place may arrive in either order. */
    shmem_putmem(test.reference + lock * REFERENCE_BYTES, reference, REFERENCE_BYTES, 0);
    shmem_quiet();
    dsm_unlock(&test.shared->locks[lock]);
}

/* Runs of 1 to 64 words have one owner; each phase writes about a third of them. */
static int writer_of(int phase, size_t at)
{
    uint64_t run = at / test.word >> chance(1, (uint64_t)(phase / 4), 0) % 7;
    uint64_t word = chance(2, (uint64_t)phase, run);
    return word % 3 == 0 ? (int)(word / 3 % (uint64_t)test.pe_count) : -1;
}

static unsigned char value_of(int phase, size_t at)
{
    return (unsigned char)chance(3, (uint64_t)phase, at);
}

static void phase_step(int phase)
{
    for (size_t i = 0; i < PHASED_BYTES; i++) {
        int writer = writer_of(phase, i);
        if (writer == test.me)
            test.shared->phased[i] = value_of(phase, i);
        else if (writer < 0 && test.shared->phased[i] != test.phased[i])
            fail("phased", phase, i, test.shared->phased[i], test.phased[i]);
    }
    for (size_t i = 0; i < PHASED_BYTES; i++) {
        if (writer_of(phase, i) >= 0)
            test.phased[i] = value_of(phase, i);
    }
}

static void block_step(struct quoit_prng *prng, int step)
{
    size_t bytes = quoit_prng_choose(prng, 9000) + 1;
    unsigned char *block = quoit_prng_choose(prng, 2) ? dsm_malloc(bytes) : dsm_calloc(bytes, 1);
    unsigned char mark = (unsigned char)quoit_prng_next(prng);
    memset(block, mark, bytes);
    locked_step(prng, step);
    for (size_t i = 0; i < bytes; i++) {
        if (block[i] != mark)
            fail("a block", step, i, block[i], mark);
    }
    dsm_free(block);
}

static void *run_thread(void *argument)
{
    int thread = *(int *)argument;
    struct quoit_prng prng = {chance(4, (uint64_t)test.me, (uint64_t)thread)};
    for (int step = 0; step < test.steps; step++) {
        if (quoit_prng_choose(&prng, 4) == 0)
            block_step(&prng, step);
        else
            locked_step(&prng, step);
        if (test.threads > 1 || step % 3 != 0)
            continue;
        int *is_over = &test.shared->is_over[step / 3 % 2];
        phase_step(step / 3);
        if (test.me == 0)
            *is_over = test.end != 0 && time(NULL) >= test.end;
        dsm_barrier_all();
        if (*is_over)
            break;
    }
    return NULL;
}

static void read_arguments(int count, char **words)
{
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(words[i], "--seed") == 0)
            test.seed = strtoull(words[i + 1], NULL, 10);
        else if (strcmp(words[i], "--steps") == 0)
            test.steps = atoi(words[i + 1]);
        else if (strcmp(words[i], "--threads") == 0)
            test.threads = atoi(words[i + 1]);
        else if (strcmp(words[i], "--word") == 0)
            test.word = strtoull(words[i + 1], NULL, 10);
        else if (strcmp(words[i], "--seconds") == 0)
            test.end = time(NULL) + atoi(words[i + 1]);
    }
    if (test.end != 0)
        test.steps = INT32_MAX;
}

int main(int count, char **words)
{
    read_arguments(count, words);
    dsm_init();
    test.me = dsm_my_pe();
    test.pe_count = dsm_n_pes();
    test.reference = shmem_calloc(LOCKED_BYTES, 1);
    test.shared = dsm_all_malloc(sizeof *test.shared);
    if (test.me == 0)
        memset(test.shared, 0, sizeof *test.shared);
    dsm_barrier_all();
    pthread_t threads[THREADS_MAX];
    int numbers[THREADS_MAX] = {0};
    for (int i = 1; i < test.threads && i < THREADS_MAX; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run_thread, &numbers[i]);
    }
    run_thread(&numbers[0]); /* alone it is the only thread of the PE */
    for (int i = 1; i < test.threads && i < THREADS_MAX; i++)
        pthread_join(threads[i], NULL);
    dsm_barrier_all();
    unsigned char reference[LOCKED_BYTES];
    shmem_getmem(reference, test.reference, LOCKED_BYTES, 0);
    for (size_t at = 0; at < LOCKED_BYTES; at++) {
        size_t i = locked_at((int)(at / REFERENCE_BYTES), at % REFERENCE_BYTES);
        if (test.shared->locked[i] != reference[at])
            fail("locked, at the end,", test.steps, i, test.shared->locked[i], reference[at]);
    }
    for (size_t i = 0; i < PHASED_BYTES; i++) {
        if (test.shared->phased[i] != test.phased[i])
            fail("phased, at the end,", test.steps, i, test.shared->phased[i], test.phased[i]);
    }
    dsm_barrier_all();
    dsm_finalize();
    return 0;
}
