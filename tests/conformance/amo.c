/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every atomic of every type, plain, with a context, non-blocking, and by its old name (9.7). Method: first each
 * operation once on a word of the next PE that no other PE accesses, compared with C's operators; then all PEs, local
 * and remote, add to, compare-and-swap and set bits of the same word of PE 0 and of the last PE, and no update may be
 * lost. */
#include "check.h"

static shmem_ctx_t ctx;

#define EXPECT(N, OP, GOT, WANT) CHECK((GOT) == (WANT), "atomic " #OP " of " #N)

#define X(N, T)                                                                                                        \
    static T extended_##N[2];                                                                                          \
    static void run_extended_##N(void)                                                                                 \
    {                                                                                                                  \
        int next = (me + 1) % npes;                                                                                    \
        T *word = &extended_##N[1], got;                                                                               \
        shmem_##N##_atomic_set(word, (T)41, next);                                                                     \
        EXPECT(N, fetch, shmem_##N##_atomic_fetch(word, next), (T)41);                                                 \
        EXPECT(N, swap, shmem_##N##_atomic_swap(word, (T)-3, next), (T)41);                                            \
        EXPECT(N, fetch, shmem_ctx_##N##_atomic_fetch(ctx, word, next), (T)-3);                                        \
        shmem_ctx_##N##_atomic_set(ctx, word, (T)7, next);                                                             \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, swap, shmem_ctx_##N##_atomic_swap(ctx, word, (T)8, next), (T)7);                                     \
        shmem_##N##_atomic_fetch_nbi(&got, word, next);                                                                \
        shmem_quiet();                                                                                                 \
        EXPECT(N, fetch_nbi, got, (T)8);                                                                               \
        shmem_##N##_atomic_swap_nbi(&got, word, (T)9, next);                                                           \
        shmem_quiet();                                                                                                 \
        EXPECT(N, swap_nbi, got, (T)8);                                                                                \
        shmem_ctx_##N##_atomic_fetch_nbi(ctx, &got, word, next);                                                       \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, fetch_nbi, got, (T)9);                                                                               \
        shmem_ctx_##N##_atomic_swap_nbi(ctx, &got, word, (T)5, next);                                                  \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, swap_nbi, got, (T)9);                                                                                \
        shmem_barrier_all();                                                                                           \
        EXPECT(N, swap_nbi, *word, (T)5);                                                                              \
        EXPECT(N, neighbour, extended_##N[0], (T)0);                                                                   \
    }
QUOIT_AMO_EXTENDED_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T standard_##N[3];                                                                                          \
    static void run_standard_##N(void)                                                                                 \
    {                                                                                                                  \
        int next = (me + 1) % npes;                                                                                    \
        T *word = &standard_##N[1], got;                                                                               \
        shmem_##N##_atomic_add(word, (T)-2, next);                                                                     \
        EXPECT(N, fetch_add, shmem_##N##_atomic_fetch_add(word, (T)10, next), (T)-2);                                  \
        shmem_##N##_atomic_inc(word, next);                                                                            \
        EXPECT(N, fetch_inc, shmem_##N##_atomic_fetch_inc(word, next), (T)9);                                          \
        EXPECT(N, compare_swap, shmem_##N##_atomic_compare_swap(word, (T)9, (T)1, next), (T)10);                       \
        EXPECT(N, compare_swap, shmem_##N##_atomic_compare_swap(word, (T)10, (T)1, next), (T)10);                      \
        shmem_ctx_##N##_atomic_add(ctx, word, (T)2, next);                                                             \
        shmem_ctx_##N##_atomic_inc(ctx, word, next);                                                                   \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, fetch_add, shmem_ctx_##N##_atomic_fetch_add(ctx, word, (T)1, next), (T)4);                           \
        EXPECT(N, fetch_inc, shmem_ctx_##N##_atomic_fetch_inc(ctx, word, next), (T)5);                                 \
        EXPECT(N, compare_swap, shmem_ctx_##N##_atomic_compare_swap(ctx, word, (T)6, (T)20, next), (T)6);              \
        shmem_##N##_atomic_fetch_add_nbi(&got, word, (T)1, next);                                                      \
        shmem_quiet();                                                                                                 \
        EXPECT(N, fetch_add_nbi, got, (T)20);                                                                          \
        shmem_##N##_atomic_fetch_inc_nbi(&got, word, next);                                                            \
        shmem_quiet();                                                                                                 \
        EXPECT(N, fetch_inc_nbi, got, (T)21);                                                                          \
        shmem_##N##_atomic_compare_swap_nbi(&got, word, (T)22, (T)30, next);                                           \
        shmem_quiet();                                                                                                 \
        EXPECT(N, compare_swap_nbi, got, (T)22);                                                                       \
        shmem_ctx_##N##_atomic_fetch_add_nbi(ctx, &got, word, (T)1, next);                                             \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, fetch_add_nbi, got, (T)30);                                                                          \
        shmem_ctx_##N##_atomic_fetch_inc_nbi(ctx, &got, word, next);                                                   \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, fetch_inc_nbi, got, (T)31);                                                                          \
        shmem_ctx_##N##_atomic_compare_swap_nbi(ctx, &got, word, (T)32, (T)33, next);                                  \
        shmem_ctx_quiet(ctx);                                                                                          \
        EXPECT(N, compare_swap_nbi, got, (T)32);                                                                       \
        for (int i = 0; i < 100; i++) {                                                                                \
            shmem_##N##_atomic_add(&standard_##N[2], (T)3, i % npes);                                                  \
            shmem_##N##_atomic_fetch_inc(&standard_##N[2], i % npes);                                                  \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        EXPECT(N, compare_swap_nbi, *word, (T)33);                                                                     \
        EXPECT(N, neighbour, standard_##N[0], (T)0);                                                                   \
        int mine = 100 / npes + (me < 100 % npes);                                                                     \
        EXPECT(N, sum, standard_##N[2], (T)(4 * mine * npes));                                                         \
    }
QUOIT_AMO_TYPES(X)
#undef X

#define BITWISE(N, T, OP, SIGN)                                                                                        \
    model = (T)0x5a5a;                                                                                                 \
    shmem_##N##_atomic_##OP(word, (T)0x0ff0, next);                                                                    \
    model = (T)(model SIGN(T) 0x0ff0);                                                                                 \
    EXPECT(N, fetch_##OP, shmem_##N##_atomic_fetch_##OP(word, (T)0x3333, next), model);                                \
    model = (T)(model SIGN(T) 0x3333);                                                                                 \
    shmem_ctx_##N##_atomic_##OP(ctx, word, (T)0x7f0f, next);                                                           \
    model = (T)(model SIGN(T) 0x7f0f);                                                                                 \
    shmem_ctx_quiet(ctx);                                                                                              \
    EXPECT(N, fetch_##OP, shmem_ctx_##N##_atomic_fetch_##OP(ctx, word, (T)~0x11, next), model);                        \
    model = (T)(model SIGN(T) ~0x11);                                                                                  \
    shmem_##N##_atomic_fetch_##OP##_nbi(&got, word, (T)0x1234, next);                                                  \
    shmem_quiet();                                                                                                     \
    EXPECT(N, fetch_##OP##_nbi, got, model);                                                                           \
    model = (T)(model SIGN(T) 0x1234);                                                                                 \
    shmem_ctx_##N##_atomic_fetch_##OP##_nbi(ctx, &got, word, (T)0x5a5a, next);                                         \
    shmem_ctx_quiet(ctx);                                                                                              \
    EXPECT(N, fetch_##OP##_nbi, got, model);                                                                           \
    shmem_##N##_atomic_set(word, (T)0x5a5a, next);                                                                     \
    shmem_quiet();

#define X(N, T)                                                                                                        \
    static T bitwise_##N;                                                                                              \
    static void run_bitwise_##N(void)                                                                                  \
    {                                                                                                                  \
        int next = (me + 1) % npes;                                                                                    \
        T *word = &bitwise_##N, got, model;                                                                            \
        shmem_##N##_atomic_set(word, (T)0x5a5a, next);                                                                 \
        BITWISE(N, T, and, &)                                                                                          \
        BITWISE(N, T, or, |)                                                                                           \
        BITWISE(N, T, xor, ^)                                                                                          \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_AMO_BITWISE_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T old_##N;                                                                                                  \
    static void run_old_extended_##N(void)                                                                             \
    {                                                                                                                  \
        int next = (me + 1) % npes;                                                                                    \
        shmem_##N##_set(&old_##N, (T)4, next);                                                                         \
        EXPECT(N, old swap, shmem_##N##_swap(&old_##N, (T)6, next), (T)4);                                             \
        EXPECT(N, old fetch, shmem_##N##_fetch(&old_##N, next), (T)6);                                                 \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_AMO_OLD_EXTENDED_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    static void run_old_##N(void)                                                                                      \
    {                                                                                                                  \
        int next = (me + 1) % npes;                                                                                    \
        EXPECT(N, old cswap, shmem_##N##_cswap(&old_##N, (T)6, (T)10, next), (T)6);                                    \
        EXPECT(N, old fadd, shmem_##N##_fadd(&old_##N, (T)5, next), (T)10);                                            \
        EXPECT(N, old finc, shmem_##N##_finc(&old_##N, next), (T)15);                                                  \
        shmem_##N##_inc(&old_##N, next);                                                                               \
        shmem_##N##_add(&old_##N, (T)2, next);                                                                         \
        shmem_barrier_all();                                                                                           \
        EXPECT(N, old add, old_##N, (T)19);                                                                            \
    }
QUOIT_AMO_OLD_TYPES(X)
#undef X

/* Every PE adds 4 to the word by three routines, repeatedly. */
enum { CONTENDED = 25 };
#define X(N, T)                                                                                                        \
    static T contended_##N;                                                                                            \
    static void run_contended_##N(int owner)                                                                           \
    {                                                                                                                  \
        T *word = &contended_##N, seen, wanted;                                                                        \
        for (int i = 0; i < CONTENDED; i++) {                                                                          \
            shmem_##N##_atomic_inc(word, owner);                                                                       \
            seen = shmem_##N##_atomic_fetch_add(word, (T)2, owner);                                                    \
            do {                                                                                                       \
                wanted = seen;                                                                                         \
                seen = shmem_##N##_atomic_compare_swap(word, wanted, (T)(wanted + 1), owner);                          \
            } while (seen != wanted);                                                                                  \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        if (me == owner)                                                                                               \
            EXPECT(N, contended sum, *word, (T)(4 * CONTENDED * npes));                                                \
        *word = 0;                                                                                                     \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_AMO_TYPES(X)
#undef X

/* Every PE swaps its own numbers in and records what it swaps out: each number ends in exactly one place. */
static double taken_sum, all_taken, given_sum, all_given;
#define X(N, T)                                                                                                        \
    static T swapped_##N;                                                                                              \
    static void run_swapped_##N(int owner)                                                                             \
    {                                                                                                                  \
        taken_sum = given_sum = 0;                                                                                     \
        for (int i = 1; i <= CONTENDED; i++) {                                                                         \
            T number = (T)(me * CONTENDED + i);                                                                        \
            given_sum += (double)number;                                                                               \
            taken_sum += (double)shmem_##N##_atomic_swap(&swapped_##N, number, owner);                                 \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        taken_sum += me == owner ? (double)swapped_##N : 0;                                                            \
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &all_taken, &taken_sum, 1);                                          \
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, &all_given, &given_sum, 1);                                          \
        EXPECT(N, contended swap, all_taken, all_given);                                                               \
        swapped_##N = 0;                                                                                               \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_AMO_EXTENDED_TYPES(X)
#undef X

/* Up to 31 PEs own one bit each, and find it as they left it. */
#define X(N, T)                                                                                                        \
    static T bits_##N;                                                                                                 \
    static void run_bits_##N(int owner)                                                                                \
    {                                                                                                                  \
        T *word = &bits_##N, bit = (T)((T)1 << (me < 31 ? me : 0)), old;                                               \
        for (int i = 0; i < CONTENDED && me < 31; i++) {                                                               \
            old = shmem_##N##_atomic_fetch_or(word, bit, owner);                                                       \
            EXPECT(N, contended or, old & bit, (T)0);                                                                  \
            old = shmem_##N##_atomic_fetch_and(word, (T)~bit, owner);                                                  \
            EXPECT(N, contended and, old &bit, bit);                                                                   \
            shmem_##N##_atomic_xor(word, bit, owner);                                                                  \
            old = shmem_##N##_atomic_fetch_xor(word, bit, owner);                                                      \
            EXPECT(N, contended xor, old & bit, bit);                                                                  \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        EXPECT(N, contended bits, bits_##N, (T)0);                                                                     \
    }
QUOIT_AMO_BITWISE_TYPES(X)
#undef X

/* Tickets: all PEs draw from one counter on each PE; every number is drawn once. */
static long counter;
static void run_tickets(void)
{
    enum { DRAWS = 50 };
    long *drawn = shmem_calloc((size_t)(npes * DRAWS), sizeof *drawn);
    for (int target = 0; target < npes; target++) {
        for (int i = 0; i < DRAWS; i++) {
            long ticket = shmem_long_atomic_fetch_inc(&counter, target);
            shmem_long_atomic_inc(&drawn[ticket % (npes * DRAWS)], target);
        }
    }
    shmem_barrier_all();
    CHECK(counter == (long)npes * DRAWS, "counter %ld", counter);
    for (int i = 0; i < npes * DRAWS; i++)
        CHECK(drawn[i] == 1, "ticket %d was drawn %ld times", i, drawn[i]);
    shmem_free(drawn);
}

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) == 0, "no context");
#define X(N, T) run_extended_##N();
    QUOIT_AMO_EXTENDED_TYPES(X)
#undef X
#define X(N, T) run_standard_##N();
    QUOIT_AMO_TYPES(X)
#undef X
#define X(N, T) run_bitwise_##N();
    QUOIT_AMO_BITWISE_TYPES(X)
#undef X
#define X(N, T) run_old_extended_##N();
    QUOIT_AMO_OLD_EXTENDED_TYPES(X)
#undef X
#define X(N, T) run_old_##N();
    QUOIT_AMO_OLD_TYPES(X)
#undef X
    for (int owner = 0; owner<npes; owner += npes> 1 ? npes - 1 : 1) {
#define X(N, T) run_contended_##N(owner);
        QUOIT_AMO_TYPES(X)
#undef X
#define X(N, T) run_swapped_##N(owner);
        QUOIT_AMO_EXTENDED_TYPES(X)
#undef X
#define X(N, T) run_bits_##N(owner);
        QUOIT_AMO_BITWISE_TYPES(X)
#undef X
    }
    run_tickets();
    shmem_ctx_destroy(ctx);
    return check_end("amo");
}
