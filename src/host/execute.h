/* SPDX-License-Identifier: BSD-3-Clause */
/* execute.h - processor atomics, by the operation codes of the wire.
 *
 * Used by the proxy for other hosts and by PEs of one host for each other, so all atomics on a word are atomic with
 * each other. Always inlined: in the API's routines op and size are constants, and one instruction remains. `word` is
 * aligned to its size, 4 or 8. Returns the old value, zero-extended. Any thread.
 */
#ifndef QUOIT_HOST_EXECUTE_H
#define QUOIT_HOST_EXECUTE_H

#include <stdint.h>

#include "base/assert.h"
#include "wire/frame.h"

#define QUOIT_EXECUTE_AMO(bits)                                                                                        \
    static inline __attribute__((always_inline)) uint64_t quoit_execute_amo##bits(                                     \
        uint##bits##_t *word, enum quoit_amo op, uint##bits##_t operand, uint##bits##_t compare)                       \
    {                                                                                                                  \
        switch (op) {                                                                                                  \
        case QUOIT_AMO_SET:                                                                                            \
            __atomic_store_n(word, operand, __ATOMIC_RELEASE);                                                         \
            return 0;                                                                                                  \
        case QUOIT_AMO_ADD:                                                                                            \
            return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);                                                \
        case QUOIT_AMO_AND:                                                                                            \
            return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);                                                \
        case QUOIT_AMO_OR:                                                                                             \
            return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);                                                 \
        case QUOIT_AMO_XOR:                                                                                            \
            return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);                                                \
        case QUOIT_AMO_SWAP:                                                                                           \
            return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);                                               \
        case QUOIT_AMO_COMPARE_SWAP:                                                                                   \
            __atomic_compare_exchange_n(word, &compare, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
            return compare;                                                                                            \
        case QUOIT_AMO_FETCH:                                                                                          \
            return __atomic_load_n(word, __ATOMIC_ACQUIRE);                                                            \
        case QUOIT_AMO_TAKE: /* changes no word */                                                                     \
        case QUOIT_AMO_COUNT:                                                                                          \
            break;                                                                                                     \
        }                                                                                                              \
        quoit_assert(op < QUOIT_AMO_TAKE);                                                                             \
        return 0;                                                                                                      \
    }
QUOIT_EXECUTE_AMO(32)
QUOIT_EXECUTE_AMO(64)
#undef QUOIT_EXECUTE_AMO

static inline __attribute__((always_inline)) uint64_t quoit_execute_amo(void *word, enum quoit_amo op, uint32_t size,
                                                                        uint64_t operand, uint64_t compare)
{
    if (size == 4)
        return quoit_execute_amo32((uint32_t *)word, op, (uint32_t)operand, (uint32_t)compare);
    quoit_assert(size == 8);
    return quoit_execute_amo64((uint64_t *)word, op, operand, compare);
}

#endif
