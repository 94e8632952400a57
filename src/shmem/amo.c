/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: one untyped operation on the bits of a value, with a thin typed wrapper per routine. */
#include "shmem/fast.h"

QUOIT_INLINE void amo_nbi(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, void *fetch, const void *address,
                          uint64_t operand, uint64_t compare, int pe, const char *call)
{
    uint64_t old;
    if (fetch && quoit_fast_amo(ctx, op, size, address, operand, compare, pe, &old)) {
        __builtin_memcpy(fetch, &old, size);
        return;
    }
    QUOIT_JOB_ENTER(call);
    quoit_amo_nbi_slow(ctx, op, size, fetch, address, operand, compare, pe, call);
}

#define LIST(...) __VA_ARGS__
/* The form without and the form with a context. */
#define CHANGE(T, NAME, OP, P, DEST, OPERAND)                                                                          \
    QUOIT_API(void, NAME, (LIST P, int pe))                                                                            \
    {                                                                                                                  \
        quoit_amo(SHMEM_CTX_DEFAULT, QUOIT_AMO_##OP, sizeof(T), DEST, "dest", OPERAND, pe, "shmem_" #NAME);            \
    }                                                                                                                  \
    QUOIT_API(void, ctx_##NAME, (shmem_ctx_t ctx, LIST P, int pe))                                                     \
    {                                                                                                                  \
        quoit_amo(ctx, QUOIT_AMO_##OP, sizeof(T), DEST, "dest", OPERAND, pe, "shmem_ctx_" #NAME);                      \
    }
#define FETCH(T, NAME, OP, P, DEST, OPERAND, COMPARE)                                                                  \
    QUOIT_API(T, NAME, (LIST P, int pe))                                                                               \
    {                                                                                                                  \
        return QUOIT_AS(T, quoit_amo_fetch(SHMEM_CTX_DEFAULT, QUOIT_AMO_##OP, sizeof(T), DEST, OPERAND, COMPARE, pe,   \
                                           "shmem_" #NAME));                                                           \
    }                                                                                                                  \
    QUOIT_API(T, ctx_##NAME, (shmem_ctx_t ctx, LIST P, int pe))                                                        \
    {                                                                                                                  \
        return QUOIT_AS(                                                                                               \
            T, quoit_amo_fetch(ctx, QUOIT_AMO_##OP, sizeof(T), DEST, OPERAND, COMPARE, pe, "shmem_ctx_" #NAME));       \
    }
#define NBI(T, NAME, OP, P, DEST, OPERAND, COMPARE)                                                                    \
    QUOIT_API(void, NAME, (T * fetch, LIST P, int pe))                                                                 \
    {                                                                                                                  \
        amo_nbi(SHMEM_CTX_DEFAULT, QUOIT_AMO_##OP, sizeof(T), fetch, DEST, OPERAND, COMPARE, pe, "shmem_" #NAME);      \
    }                                                                                                                  \
    QUOIT_API(void, ctx_##NAME, (shmem_ctx_t ctx, T * fetch, LIST P, int pe))                                          \
    {                                                                                                                  \
        amo_nbi(ctx, QUOIT_AMO_##OP, sizeof(T), fetch, DEST, OPERAND, COMPARE, pe, "shmem_ctx_" #NAME);                \
    }

#define X(N, T)                                                                                                        \
    FETCH(T, N##_atomic_fetch, FETCH, (const T *source), source, 0, 0)                                                 \
    CHANGE(T, N##_atomic_set, SET, (T * dest, T value), dest, QUOIT_BITS(value))                                       \
    FETCH(T, N##_atomic_swap, SWAP, (T * dest, T value), dest, QUOIT_BITS(value), 0)                                   \
    NBI(T, N##_atomic_fetch_nbi, FETCH, (const T *source), source, 0, 0)                                               \
    NBI(T, N##_atomic_swap_nbi, SWAP, (T * dest, T value), dest, QUOIT_BITS(value), 0)
QUOIT_AMO_EXTENDED_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    FETCH(T, N##_atomic_compare_swap, COMPARE_SWAP, (T * dest, T cond, T value), dest, QUOIT_BITS(value),              \
          QUOIT_BITS(cond))                                                                                            \
    FETCH(T, N##_atomic_fetch_inc, ADD, (T * dest), dest, 1, 0)                                                        \
    CHANGE(T, N##_atomic_inc, ADD, (T * dest), dest, 1)                                                                \
    FETCH(T, N##_atomic_fetch_add, ADD, (T * dest, T value), dest, QUOIT_BITS(value), 0)                               \
    CHANGE(T, N##_atomic_add, ADD, (T * dest, T value), dest, QUOIT_BITS(value))                                       \
    NBI(T, N##_atomic_compare_swap_nbi, COMPARE_SWAP, (T * dest, T cond, T value), dest, QUOIT_BITS(value),            \
        QUOIT_BITS(cond))                                                                                              \
    NBI(T, N##_atomic_fetch_inc_nbi, ADD, (T * dest), dest, 1, 0)                                                      \
    NBI(T, N##_atomic_fetch_add_nbi, ADD, (T * dest, T value), dest, QUOIT_BITS(value), 0)
QUOIT_AMO_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    FETCH(T, N##_atomic_fetch_and, AND, (T * dest, T value), dest, QUOIT_BITS(value), 0)                               \
    CHANGE(T, N##_atomic_and, AND, (T * dest, T value), dest, QUOIT_BITS(value))                                       \
    FETCH(T, N##_atomic_fetch_or, OR, (T * dest, T value), dest, QUOIT_BITS(value), 0)                                 \
    CHANGE(T, N##_atomic_or, OR, (T * dest, T value), dest, QUOIT_BITS(value))                                         \
    FETCH(T, N##_atomic_fetch_xor, XOR, (T * dest, T value), dest, QUOIT_BITS(value), 0)                               \
    CHANGE(T, N##_atomic_xor, XOR, (T * dest, T value), dest, QUOIT_BITS(value))                                       \
    NBI(T, N##_atomic_fetch_and_nbi, AND, (T * dest, T value), dest, QUOIT_BITS(value), 0)                             \
    NBI(T, N##_atomic_fetch_or_nbi, OR, (T * dest, T value), dest, QUOIT_BITS(value), 0)                               \
    NBI(T, N##_atomic_fetch_xor_nbi, XOR, (T * dest, T value), dest, QUOIT_BITS(value), 0)
QUOIT_AMO_BITWISE_TYPES(X)
#undef X

/* The names before OpenSHMEM 1.4. */
#define OLD_CHANGE(T, NAME, OP, P, DEST, OPERAND)                                                                      \
    QUOIT_API(void, NAME, (LIST P, int pe))                                                                            \
    {                                                                                                                  \
        quoit_amo(SHMEM_CTX_DEFAULT, QUOIT_AMO_##OP, sizeof(T), DEST, "dest", OPERAND, pe, "shmem_" #NAME);            \
    }
#define OLD_FETCH(T, NAME, OP, P, DEST, OPERAND, COMPARE)                                                              \
    QUOIT_API(T, NAME, (LIST P, int pe))                                                                               \
    {                                                                                                                  \
        return QUOIT_AS(T, quoit_amo_fetch(SHMEM_CTX_DEFAULT, QUOIT_AMO_##OP, sizeof(T), DEST, OPERAND, COMPARE, pe,   \
                                           "shmem_" #NAME));                                                           \
    }
#define X(N, T)                                                                                                        \
    OLD_FETCH(T, N##_fetch, FETCH, (const T *source), source, 0, 0)                                                    \
    OLD_CHANGE(T, N##_set, SET, (T * dest, T value), dest, QUOIT_BITS(value))                                          \
    OLD_FETCH(T, N##_swap, SWAP, (T * dest, T value), dest, QUOIT_BITS(value), 0)
QUOIT_AMO_OLD_EXTENDED_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    OLD_FETCH(T, N##_cswap, COMPARE_SWAP, (T * dest, T cond, T value), dest, QUOIT_BITS(value), QUOIT_BITS(cond))      \
    OLD_FETCH(T, N##_finc, ADD, (T * dest), dest, 1, 0)                                                                \
    OLD_CHANGE(T, N##_inc, ADD, (T * dest), dest, 1)                                                                   \
    OLD_FETCH(T, N##_fadd, ADD, (T * dest, T value), dest, QUOIT_BITS(value), 0)                                       \
    OLD_CHANGE(T, N##_add, ADD, (T * dest, T value), dest, QUOIT_BITS(value))
QUOIT_AMO_OLD_TYPES(X)
#undef X
