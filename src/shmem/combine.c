/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/combine.h"

#define COMBINE(NAME, T, EXPRESSION)                                                                                   \
    void NAME(void *into, const void *from, size_t count)                                                              \
    {                                                                                                                  \
        T *restrict a = into;                                                                                          \
        const T *restrict b = from;                                                                                    \
        for (size_t i = 0; i < count; i++)                                                                             \
            a[i] = (T)(EXPRESSION);                                                                                    \
    }

#define X(N, T)                                                                                                        \
    COMBINE(quoit_and_##N, T, a[i] & b[i])                                                                             \
    COMBINE(quoit_or_##N, T, a[i] | b[i])                                                                              \
    COMBINE(quoit_xor_##N, T, a[i] ^ b[i])
QUOIT_REDUCE_BITWISE_TYPES(X)
QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    COMBINE(quoit_min_##N, T, b[i] < a[i] ? b[i] : a[i])                                                               \
    COMBINE(quoit_max_##N, T, b[i] > a[i] ? b[i] : a[i])
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    COMBINE(quoit_sum_##N, T, a[i] + b[i])                                                                             \
    COMBINE(quoit_prod_##N, T, a[i] * b[i])
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X
