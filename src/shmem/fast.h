/* SPDX-License-Identifier: BSD-3-Clause */
/* fast.h - the fast path to PEs of the same host, a handful of instructions, inlined into every typed routine.
 * Everything else, including every mistake, goes to check.h and fabric.
 *
 * One comparison of the PE number and one of the address decide, whichever region the address lies in. Before
 * shmem_init and after shmem_finalize the first comparison fails, so detecting that misuse costs nothing here either.
 * The slow path is reached by tail calls, so no register is saved, but for the wake after a large copy.
 */
#ifndef QUOIT_SHMEM_FAST_H
#define QUOIT_SHMEM_FAST_H

#include <string.h>

#include "local/store.h"
#include "shmem/api.h"
#include "shmem/check.h"
#include "shmem/poll.h"

/* Larger copies use the method that the path table names. */
#define QUOIT_FAST_BYTES QUOIT_PATHS_PLAIN_BYTES

/* Whether `bytes` at `address` certainly lie in the region of its half. */
QUOIT_INLINE bool quoit_fast_has(const struct quoit_fast *fast, const void *address, size_t bytes)
{
    size_t half = quoit_half(address);
    uint64_t at = (uintptr_t)address - fast->base[half];
    if (__builtin_expect(at >= fast->span[half], 0))
        return false;
    return (__builtin_constant_p(bytes) && bytes <= QUOIT_FAST_ELEMENT_BYTES) || bytes <= fast->span[half] - at;
}

/* Translates a PE of the context's team to a PE of the world; false: left to the slow path. */
QUOIT_INLINE bool quoit_fast_pe(shmem_ctx_t ctx, int pe, uint32_t *pe_out)
{
    *pe_out = (uint32_t)pe;
    if (ctx == SHMEM_CTX_DEFAULT)
        return true;
    const struct quoit_fast_context *context = quoit_job_context((uintptr_t)ctx);
    if (__builtin_expect(!context || (uint32_t)pe >= context->size, 0))
        return false;
    *pe_out = quoit_fast_context_pe(context, (uint32_t)pe);
    return true;
}

/* The local address of `bytes` at a symmetric address on a PE of this host; false: another host, or a mistake. */
QUOIT_INLINE bool quoit_fast_reach_by(const struct quoit_fast *fast, shmem_ctx_t ctx, const void *address, size_t bytes,
                                      int pe, char **at_out, const struct quoit_reach **reach_out)
{
    uint32_t local;
    if (!quoit_fast_pe(ctx, pe, &local))
        return false;
    local -= fast->first_pe;
    if (__builtin_expect(local >= fast->pe_count || !quoit_fast_has(fast, address, bytes), 0))
        return false;
    *reach_out = &fast->reaches[local];
    *at_out = (char *)((intptr_t)address + (*reach_out)->shift[quoit_half(address)]);
    return true;
}

QUOIT_INLINE bool quoit_fast_reach(shmem_ctx_t ctx, const void *address, size_t bytes, int pe, char **at_out,
                                   const struct quoit_reach **reach_out)
{
    return quoit_fast_reach_by(&quoit_job.fast, ctx, address, bytes, pe, at_out, reach_out);
}

/* The segment offset of `to` on that PE. */
QUOIT_INLINE uint64_t quoit_fast_at(const struct quoit_reach *reach, const char *to)
{
    return (uint64_t)(to - reach->segment);
}

/* The size copied inline: one element, or a word of bytes. */
QUOIT_INLINE size_t quoit_fast_unit(size_t element_bytes)
{
    return element_bytes > 1 ? element_bytes : sizeof(uint64_t);
}
QUOIT_INLINE bool quoit_fast_is_unit(size_t nelems, size_t element_bytes)
{
    return nelems == quoit_fast_unit(element_bytes) / element_bytes;
}

/* Crash messages name copies of more than a few cache lines. */
#define QUOIT_FAST_NAMELESS_BYTES 2048
#define QUOIT_FAST_ENTER(bytes, call)                                                                                  \
    do {                                                                                                               \
        if (__builtin_expect((bytes) > QUOIT_FAST_NAMELESS_BYTES, 0))                                                  \
            QUOIT_JOB_ENTER(call);                                                                                     \
    } while (0)

/* The slow path: a function of check.h. */
typedef void quoit_copy_rest(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                             int pe, const char *call);

QUOIT_INLINE void quoit_put(quoit_copy_rest *rest, shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,
                            size_t element_bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    const size_t unit = quoit_fast_unit(element_bytes);
    char *to;
    if (quoit_fast_is_unit(nelems, element_bytes)) {
        if (__builtin_expect(source && quoit_fast_reach(ctx, dest, unit, pe, &to, &reach), 1)) {
            quoit_local_put_unit(reach->park, quoit_fast_at(reach, to), to, source, unit);
            return;
        }
    } else if (__builtin_expect(nelems <= QUOIT_FAST_BYTES / element_bytes && source, 1) &&
               __builtin_expect(quoit_fast_reach(ctx, dest, nelems * element_bytes, pe, &to, &reach), 1)) {
        QUOIT_FAST_ENTER(nelems * element_bytes, call);
        quoit_local_put(reach->park, quoit_fast_at(reach, to), to, source, nelems * element_bytes);
        return;
    }
    QUOIT_JOB_ENTER(call);
    rest(ctx, dest, source, nelems, element_bytes, pe, call);
}

QUOIT_INLINE void quoit_get(quoit_copy_rest *rest, shmem_ctx_t ctx, void *dest, const void *source, size_t nelems,
                            size_t element_bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    const size_t unit = quoit_fast_unit(element_bytes);
    char *from;
    if (quoit_fast_is_unit(nelems, element_bytes)) {
        if (__builtin_expect(dest && quoit_fast_reach(ctx, source, unit, pe, &from, &reach), 1)) {
            __builtin_memcpy(dest, from, unit);
            return;
        }
    } else if (__builtin_expect(nelems <= QUOIT_FAST_BYTES / element_bytes && dest, 1) &&
               __builtin_expect(quoit_fast_reach(ctx, source, nelems * element_bytes, pe, &from, &reach), 1)) {
        QUOIT_FAST_ENTER(nelems * element_bytes, call);
        memmove(dest, from, nelems * element_bytes);
        return;
    }
    QUOIT_JOB_ENTER(call);
    rest(ctx, dest, source, nelems, element_bytes, pe, call);
}

/* The value is spilled only on the slow path, so the fast path keeps it in a register. */
QUOIT_INLINE void quoit_p(shmem_ctx_t ctx, void *dest, const void *value, size_t bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    char *to;
    if (__builtin_expect(quoit_fast_reach(ctx, dest, bytes, pe, &to, &reach), 1)) {
        quoit_local_put_unit(reach->park, quoit_fast_at(reach, to), to, value, bytes);
        return;
    }
    _Alignas(16) char copy[16];
    __builtin_memcpy(copy, value, bytes);
    QUOIT_JOB_ENTER(call);
    quoit_put_slow(ctx, dest, copy, 1, bytes, pe, call);
}

/* A value of up to 8 bytes as bits, zero-extended, and back. */
QUOIT_INLINE uint64_t quoit_bits(const void *value, size_t bytes)
{
    uint64_t bits = 0;
    __builtin_memcpy(&bits, value, bytes);
    return bits;
}

QUOIT_INLINE void quoit_g(shmem_ctx_t ctx, void *value_out, const void *source, size_t bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    char *from;
    if (__builtin_expect(quoit_fast_reach(ctx, source, bytes, pe, &from, &reach), 1)) {
        __builtin_memcpy(value_out, from, bytes);
        quoit_poll_word(source, quoit_bits(value_out, bytes < 8 ? bytes : 8));
        return;
    }
    _Alignas(16) char copy[16];
    QUOIT_JOB_ENTER(call);
    quoit_poll_begin();
    quoit_get_slow(ctx, copy, source, 1, bytes, pe, call);
    __builtin_memcpy(value_out, copy, bytes);
    quoit_poll_word(source, quoit_bits(copy, bytes < 8 ? bytes : 8));
}

#define QUOIT_BITS(VALUE)    quoit_bits(&(VALUE), sizeof(VALUE))
#define QUOIT_AS(TYPE, BITS) (*(const TYPE *)&(const uint64_t){BITS})

/* False: another host, or a mistake. */
QUOIT_INLINE bool quoit_fast_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address,
                                 uint64_t operand, uint64_t compare, int pe, uint64_t *old_out)
{
    const struct quoit_reach *reach;
    char *word;
    if (__builtin_expect(!quoit_fast_reach(ctx, address, size, pe, &word, &reach), 0) ||
        __builtin_expect(((uintptr_t)address & (size - 1)) != 0, 0))
        return false;
    *old_out = quoit_local_amo(reach->park, quoit_fast_at(reach, word), word, op, size, operand, compare);
    if (op == QUOIT_AMO_FETCH || (op == QUOIT_AMO_COMPARE_SWAP && *old_out != compare))
        quoit_poll_word(address, *old_out);
    return true;
}

QUOIT_INLINE void quoit_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address,
                            const char *argument, uint64_t operand, int pe, const char *call)
{
    uint64_t old;
    if (__builtin_expect(quoit_fast_amo(ctx, op, size, address, operand, 0, pe, &old), 1))
        return;
    QUOIT_JOB_ENTER(call);
    quoit_amo_slow(ctx, op, size, address, argument, operand, pe, call);
}

QUOIT_INLINE uint64_t quoit_amo_fetch(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address,
                                      uint64_t operand, uint64_t compare, int pe, const char *call)
{
    uint64_t old;
    if (__builtin_expect(quoit_fast_amo(ctx, op, size, address, operand, compare, pe, &old), 1))
        return old;
    QUOIT_JOB_ENTER(call);
    return quoit_amo_fetch_slow(ctx, op, size, address, operand, compare, pe, call);
}

#endif
