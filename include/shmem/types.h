/* SPDX-License-Identifier: BSD-3-Clause */
/* shmem/types.h - the type tables of the OpenSHMEM 1.6 specification, each written once.
 *
 * A table is a macro that applies its argument X to each row: X(NAME, TYPE), where NAME is the part of routine names
 * (shmem_NAME_put). Declarations, definitions, C11 selections, C++ overloads and tests are made from these tables. The
 * tables named _SELECT hold each distinct C type once, because a selection may not name a type twice: the exact-width
 * types, size_t and ptrdiff_t are aliases of types already listed.
 */
#ifndef QUOIT_SHMEM_TYPES_H
#define QUOIT_SHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <complex>
#define QUOIT_COMPLEX_FLOAT  std::complex<float>
#define QUOIT_COMPLEX_DOUBLE std::complex<double>
#else
#define QUOIT_COMPLEX_FLOAT  float _Complex
#define QUOIT_COMPLEX_DOUBLE double _Complex
#endif

/* Standard RMA types (section 9.6, table "Standard RMA Types and Names"). */
#define QUOIT_RMA_SELECT(X)                                                                                            \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(longdouble, long double)                                                                                         \
    X(char, char)                                                                                                      \
    X(schar, signed char)                                                                                              \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)
#define QUOIT_RMA_TYPES(X)                                                                                             \
    QUOIT_RMA_SELECT(X)                                                                                                \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Sizes of the sized RMA routines: X(BITS, BYTES). */
#define QUOIT_RMA_SIZES(X)                                                                                             \
    X(8, 1)                                                                                                            \
    X(16, 2)                                                                                                           \
    X(32, 4)                                                                                                           \
    X(64, 8)                                                                                                           \
    X(128, 16)

/* Standard AMO types: compare-swap, inc, add. */
#define QUOIT_AMO_SELECT(X)                                                                                            \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)                                                                                             \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)
#define QUOIT_AMO_TYPES(X)                                                                                             \
    QUOIT_AMO_SELECT(X)                                                                                                \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)                                                                                                    \
    X(ptrdiff, ptrdiff_t)

/* Extended AMO types: fetch, set, swap. */
#define QUOIT_AMO_EXTENDED_SELECT(X)                                                                                   \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    QUOIT_AMO_SELECT(X)
#define QUOIT_AMO_EXTENDED_TYPES(X)                                                                                    \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    QUOIT_AMO_TYPES(X)

/* Bitwise AMO types: and, or, xor. */
#define QUOIT_AMO_BITWISE_SELECT(X)                                                                                    \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)
#define QUOIT_AMO_BITWISE_TYPES(X)                                                                                     \
    QUOIT_AMO_BITWISE_SELECT(X)                                                                                        \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)

/* Types of the atomic routines before 1.4 (shmem_NAME_add and the like), deprecated. */
#define QUOIT_AMO_OLD_TYPES(X)                                                                                         \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)
#define QUOIT_AMO_OLD_EXTENDED_TYPES(X)                                                                                \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    QUOIT_AMO_OLD_TYPES(X)

/* Point-to-point synchronization types (section 9.11). The specification has short and unsigned short, deprecated, only
 * for wait_until and test; programs also use them with the forms over several objects. */
#define QUOIT_P2P_SELECT(X)                                                                                            \
    X(short, short)                                                                                                    \
    X(ushort, unsigned short)                                                                                          \
    QUOIT_AMO_SELECT(X)
#define QUOIT_P2P_TYPES(X)                                                                                             \
    X(short, short)                                                                                                    \
    X(ushort, unsigned short)                                                                                          \
    QUOIT_AMO_TYPES(X)
#define QUOIT_WAIT_TYPES(X)                                                                                            \
    X(short, short)                                                                                                    \
    QUOIT_AMO_OLD_TYPES(X)

/* Reductions of teams: and, or, xor; min, max; sum, prod (and the sum scans). */
#define QUOIT_REDUCE_BITWISE_SELECT(X)                                                                                 \
    X(uchar, unsigned char)                                                                                            \
    X(ushort, unsigned short)                                                                                          \
    X(uint, unsigned int)                                                                                              \
    X(ulong, unsigned long)                                                                                            \
    X(ulonglong, unsigned long long)                                                                                   \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)
#define QUOIT_REDUCE_BITWISE_TYPES(X)                                                                                  \
    QUOIT_REDUCE_BITWISE_SELECT(X)                                                                                     \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)                                                                                                \
    X(size, size_t)
#define QUOIT_REDUCE_ORDERED_SELECT(X) QUOIT_RMA_SELECT(X)
#define QUOIT_REDUCE_ORDERED_TYPES(X)  QUOIT_RMA_TYPES(X)
#define QUOIT_REDUCE_COMPLEX_TYPES(X)                                                                                  \
    X(complexf, QUOIT_COMPLEX_FLOAT)                                                                                   \
    X(complexd, QUOIT_COMPLEX_DOUBLE)
#define QUOIT_REDUCE_ARITHMETIC_SELECT(X)                                                                              \
    QUOIT_RMA_SELECT(X)                                                                                                \
    QUOIT_REDUCE_COMPLEX_TYPES(X)
#define QUOIT_REDUCE_ARITHMETIC_TYPES(X)                                                                               \
    QUOIT_RMA_TYPES(X)                                                                                                 \
    QUOIT_REDUCE_COMPLEX_TYPES(X)

/* Reductions of active sets, deprecated. */
#define QUOIT_TO_ALL_BITWISE_TYPES(X)                                                                                  \
    X(short, short)                                                                                                    \
    X(int, int)                                                                                                        \
    X(long, long)                                                                                                      \
    X(longlong, long long)
#define QUOIT_TO_ALL_ORDERED_TYPES(X)                                                                                  \
    QUOIT_TO_ALL_BITWISE_TYPES(X)                                                                                      \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(longdouble, long double)
#define QUOIT_TO_ALL_ARITHMETIC_TYPES(X)                                                                               \
    QUOIT_TO_ALL_ORDERED_TYPES(X)                                                                                      \
    QUOIT_REDUCE_COMPLEX_TYPES(X)

#endif
