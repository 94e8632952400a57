/* SPDX-License-Identifier: BSD-3-Clause */
/* atomic.c - atomics on words shared by all PEs, checked by what all results together must satisfy:
 *
 * sums     the sum of what all PEs added, in 32 and 64 bits, by every adding routine;
 * tickets  fetch-and-increment returns each number once: the hashes of all numbers returned add up;
 * chain    swap: each value swapped in is swapped out again or remains at the end, exactly once;
 * bits     and, or, xor: each PE owns one bit of a word, and finds it as it left it;
 * own      words of a pair: set, fence, fetch returns the same value, for integers and floating point;
 * lock     a plain counter under a lock.
 */
#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define LATER_MAX     16
#define BURST_MAX     256
#define STORM_SECONDS 0.004 /* of each kind */

struct words { /* of each PE, symmetric */
    uint64_t sum64, ticket, chain, bits64;
    uint32_t sum32, compared, bits32, unused;
};

struct tally { /* this PE's contributions to the words of each PE: [PE] each, symmetric, since they are reduced */
    uint64_t *sum64, *sum32, *tickets, *ticket_hashes, *chain, *compared;
};

struct atomics {
    struct words *words; /* symmetric: one */
    double *own_double;  /* symmetric: [writer] */
    float *own_float;
    long *own_long;
    int *own_int;
    struct tally mine, all;
    uint64_t *tallies; /* symmetric: the owner of both words */
    bool *my_bit64, *my_bit32;
    uint64_t chain_next;
    uint64_t locked_count; /* this PE's increments of the counter under the lock */
    struct later {         /* tickets requested by non-blocking fetches */
        uint64_t ticket;
        int pe;
    } later[LATER_MAX];
    size_t later_count;
};

static long lock;                        /* symmetric */
static uint64_t locked_counter;          /* symmetric: only PE 0's is used */
static uint64_t locked_here, locked_all; /* symmetric */

static uint64_t ticket_hash(uint64_t ticket)
{
    return mix_hash(ticket, 17, 0);
}

static void take_ticket(struct mix *mix, uint64_t ticket, int pe)
{
    mix->atomics->mine.tickets[pe]++;
    mix->atomics->mine.ticket_hashes[pe] += ticket_hash(ticket);
}

void atomics_completed(struct mix *mix)
{
    struct atomics *a = mix->atomics;
    for (size_t i = 0; i < a->later_count; i++)
        take_ticket(mix, a->later[i].ticket, a->later[i].pe);
    a->later_count = 0;
}

static void step_sum64(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    uint64_t value = quoit_prng_next(&mix->prng);
    switch (mix_choose(mix, 4)) {
    case 0:
        shmem_uint64_atomic_add(&a->words->sum64, value, pe);
        break;
    case 1:
        shmem_uint64_atomic_fetch_add(&a->words->sum64, value, pe);
        break;
    case 2:
        value = 1;
        shmem_uint64_atomic_inc(&a->words->sum64, pe);
        break;
    default:
        value = 1;
        shmem_uint64_atomic_fetch_inc(&a->words->sum64, pe);
    }
    a->mine.sum64[pe] += value;
}

static void step_sum32(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    uint32_t value = (uint32_t)quoit_prng_next(&mix->prng);
    switch (mix_choose(mix, 4)) {
    case 0:
        shmem_uint32_atomic_add(&a->words->sum32, value, pe);
        break;
    case 1:
        shmem_uint32_atomic_fetch_add(&a->words->sum32, value, pe);
        break;
    case 2:
        value = 1;
        shmem_uint32_atomic_inc(&a->words->sum32, pe);
        break;
    default:
        value = 1;
        shmem_uint32_atomic_fetch_inc(&a->words->sum32, pe);
    }
    a->mine.sum32[pe] += value;
}

static void step_ticket(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    if (mix_choose(mix, 2) == 0) {
        take_ticket(mix, shmem_uint64_atomic_fetch_inc(&a->words->ticket, pe), pe);
    } else if (a->later_count < LATER_MAX) {
        struct later *later = &a->later[a->later_count++];
        later->pe = pe;
        shmem_uint64_atomic_fetch_add_nbi(&later->ticket, &a->words->ticket, 1, pe);
    }
}

static void step_chain(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    uint64_t value = ++a->chain_next << 8 | (uint64_t)mix->me;
    uint64_t old = shmem_uint64_atomic_swap(&a->words->chain, value, pe);
    if (old != 0) /* zero is the initial value, not swapped in by any PE */
        a->mine.chain[pe] -= mix_hash(old, 3, 3);
    a->mine.chain[pe] += mix_hash(value, 3, 3);
}

static void step_compared(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    uint32_t seen = shmem_uint32_atomic_fetch(&a->words->compared, pe);
    uint32_t old = shmem_uint32_atomic_compare_swap(&a->words->compared, seen, seen + 1, pe);
    a->mine.compared[pe] += old == seen;
}

/* This PE's bit of a word: set, cleared or flipped; the old value must show it as this PE left it. */
#define STEP_BITS(type, name, width)                                                                                   \
    static void step_bits##width(struct mix *mix, int pe)                                                              \
    {                                                                                                                  \
        struct atomics *a = mix->atomics;                                                                              \
        type bit = (type)1 << (mix->me % width), old = 0, *word = &a->words->bits##width;                              \
        bool was = a->my_bit##width[pe], is_fetching = mix_choose(mix, 2) == 0;                                        \
        if (mix->me >= width)                                                                                          \
            return;                                                                                                    \
        shmem_fence(); /* ordered after the non-fetching ones before it */                                             \
        switch (mix_choose(mix, 3)) {                                                                                  \
        case 0:                                                                                                        \
            a->my_bit##width[pe] = true;                                                                               \
            if (is_fetching)                                                                                           \
                old = shmem_##name##_atomic_fetch_or(word, bit, pe);                                                   \
            else                                                                                                       \
                shmem_##name##_atomic_or(word, bit, pe);                                                               \
            break;                                                                                                     \
        case 1:                                                                                                        \
            a->my_bit##width[pe] = false;                                                                              \
            if (is_fetching)                                                                                           \
                old = shmem_##name##_atomic_fetch_and(word, (type)~bit, pe);                                           \
            else                                                                                                       \
                shmem_##name##_atomic_and(word, (type)~bit, pe);                                                       \
            break;                                                                                                     \
        default:                                                                                                       \
            a->my_bit##width[pe] = !was;                                                                               \
            if (is_fetching)                                                                                           \
                old = shmem_##name##_atomic_fetch_xor(word, bit, pe);                                                  \
            else                                                                                                       \
                shmem_##name##_atomic_xor(word, bit, pe);                                                              \
        }                                                                                                              \
        if (is_fetching && ((old & bit) != 0) != was)                                                                  \
            mix_fail(mix, "bit %d of the %d-bit word of PE %d was %d, but this PE left it %d", mix->me, width, pe,     \
                     (old & bit) != 0, was);                                                                           \
    }
STEP_BITS(uint64_t, uint64, 64)
STEP_BITS(uint32_t, uint32, 32)
#undef STEP_BITS

static void step_own(struct mix *mix, int pe)
{
    struct atomics *a = mix->atomics;
    int number = (int)mix_choose(mix, 1 << 20), me = mix->me;
    bool is_right = true;
    switch (mix_choose(mix, 4)) {
    case 0:
        shmem_double_atomic_set(&a->own_double[me], number + 0.25, pe);
        shmem_fence();
        is_right = shmem_double_atomic_fetch(&a->own_double[me], pe) == number + 0.25;
        break;
    case 1:
        shmem_float_atomic_set(&a->own_float[me], (float)number, pe);
        shmem_fence();
        is_right = shmem_float_atomic_swap(&a->own_float[me], 1.5f, pe) == (float)number;
        break;
    case 2:
        shmem_long_atomic_set(&a->own_long[me], -(long)number, pe);
        shmem_fence();
        is_right = shmem_long_atomic_fetch_add(&a->own_long[me], -1, pe) == -(long)number &&
                   shmem_long_atomic_swap(&a->own_long[me], 5, pe) == -(long)number - 1;
        break;
    default:
        shmem_int_atomic_set(&a->own_int[me], -number, pe);
        shmem_fence();
        is_right = shmem_int_atomic_compare_swap(&a->own_int[me], -number, 7, pe) == -number &&
                   shmem_int_atomic_fetch(&a->own_int[me], pe) == 7;
    }
    if (!is_right)
        mix_fail(mix, "an atomic on a word that only this PE writes at PE %d gave another value back (number %d)", pe,
                 number);
}

/* The counter under the lock is on PE 0, whatever PE was chosen. */
static void step_lock(struct mix *mix, int pe)
{
    (void)pe;
    shmem_set_lock(&lock);
    uint64_t value = shmem_uint64_g(&locked_counter, 0);
    shmem_uint64_p(&locked_counter, value + 1, 0);
    shmem_quiet();
    shmem_clear_lock(&lock);
    mix->atomics->locked_count++;
}

typedef void step_function(struct mix *mix, int pe);

static step_function *const kinds[] = {step_sum64,    step_sum32,  step_ticket, step_chain,
                                       step_compared, step_bits64, step_bits32, step_own};
#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/* Many at once, so that those of several PEs collide: of one kind, or of all. */
void atomics_step(struct mix *mix, int pe)
{
    step_function *same = mix_choose(mix, 2) == 0 ? kinds[mix_choose(mix, KIND_COUNT)] : NULL;
    if (mix_choose(mix, 16) == 0)
        step_lock(mix, pe);
    for (size_t left = mix_choose_size(mix, BURST_MAX); left > 0; left--)
        (same != NULL ? same : kinds[mix_choose(mix, KIND_COUNT)])(mix, pe);
}

static void storm_of(struct mix *mix, step_function *kind, int pe)
{
    shmem_barrier_all();
    double end = mix_seconds_now() + STORM_SECONDS;
    while (mix_seconds_now() < end)
        kind(mix, pe);
}

void atomics_storm(struct mix *mix, int pe)
{
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        storm_of(mix, kinds[kind], pe);
    storm_of(mix, step_lock, pe);
}

static void expect(const struct mix *mix, const char *what, uint64_t is, uint64_t should_be)
{
    if (is != should_be)
        mix_fail(mix, "%s: is %llu, should be %llu", what, (unsigned long long)is, (unsigned long long)should_be);
}

void atomics_check(struct mix *mix)
{
    struct atomics *a = mix->atomics;
    size_t pe_count = (size_t)mix->pe_count;
    locked_here = a->locked_count;
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, a->all.sum64, a->mine.sum64, 6 * pe_count);
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &locked_all, &locked_here, 1);
    const struct words *words = a->words;
    int me = mix->me;
    uint64_t hashes = 0;
    for (uint64_t ticket = 0; ticket < a->all.tickets[me]; ticket++)
        hashes += ticket_hash(ticket);
    expect(mix, "sum in 64 bits", words->sum64, a->all.sum64[me]);
    expect(mix, "sum in 32 bits", words->sum32, (uint32_t)a->all.sum32[me]);
    expect(mix, "number of tickets", words->ticket, a->all.tickets[me]);
    expect(mix, "hashes of all tickets", a->all.ticket_hashes[me], hashes);
    expect(mix, "chain of swaps", words->chain == 0 ? 0 : mix_hash(words->chain, 3, 3), a->all.chain[me]);
    expect(mix, "counter by compare-and-swap", words->compared, (uint32_t)a->all.compared[me]);
    for (int pe = 0; pe < mix->pe_count; pe++) {
        struct words there;
        shmem_getmem(&there, a->words, sizeof(there), pe);
        if (me < 64)
            expect(mix, "own bit of 64", there.bits64 >> me & 1, a->my_bit64[pe]);
        if (me < 32)
            expect(mix, "own bit of 32", there.bits32 >> me & 1, a->my_bit32[pe]);
    }
    if (me == 0)
        expect(mix, "counter under the lock", locked_counter, locked_all);
}

static struct tally tally_at(uint64_t *words, size_t pe_count)
{
    return (struct tally){words,
                          words + pe_count,
                          words + 2 * pe_count,
                          words + 3 * pe_count,
                          words + 4 * pe_count,
                          words + 5 * pe_count};
}

void atomics_open(struct mix *mix)
{
    size_t pe_count = (size_t)mix->pe_count;
    struct atomics *a = mix->atomics = mix_private(mix, 1, sizeof(*a));
    a->words = mix_symmetric(mix, 1, sizeof(*a->words));
    a->own_double = mix_symmetric(mix, pe_count, sizeof(double));
    a->own_float = mix_symmetric(mix, pe_count, sizeof(float));
    a->own_long = mix_symmetric(mix, pe_count, sizeof(long));
    a->own_int = mix_symmetric(mix, pe_count, sizeof(int));
    a->tallies = mix_symmetric(mix, 12 * pe_count, sizeof(uint64_t));
    a->mine = tally_at(a->tallies, pe_count);
    a->all = tally_at(a->tallies + 6 * pe_count, pe_count);
    a->my_bit64 = mix_private(mix, pe_count, sizeof(bool));
    a->my_bit32 = mix_private(mix, pe_count, sizeof(bool));
}

void atomics_close(struct mix *mix)
{
    struct atomics *a = mix->atomics;
    free(a->my_bit32);
    free(a->my_bit64);
    shmem_free(a->tallies);
    shmem_free(a->own_int);
    shmem_free(a->own_long);
    shmem_free(a->own_float);
    shmem_free(a->own_double);
    shmem_free(a->words);
    free(a);
}
