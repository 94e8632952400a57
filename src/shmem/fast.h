/* SPDX-License-Identifier: BSD-3-Clause */
/* fast.h - what is inlined into every typed routine: the way to a PE of the same host, a handful of instructions; the
 * rest, and everything that is wrong, goes to the functions of check.h and fabric.
 *
 * One comparison of the PE number and one of the address decide, whichever region the address lies in. Before
 * shmem_init and after shmem_finalize the first fails, so that use at the wrong time costs nothing here either. Nothing
 * here needs a register over a call but the wake after a large copy: what is left over is left by jumps.
 */
#ifndef QUOIT_SHMEM_FAST_H
#define QUOIT_SHMEM_FAST_H

#include <string.h>

#include "host/execute.h"
#include "shmem/api.h"
#include "shmem/check.h"
#include "shmem/poll.h"

/* Larger copies take the path that a table names. */
#define QUOIT_FAST_BYTES QUOIT_PATHS_PLAIN_BYTES

/* Whether `bytes` at `address` surely lie in the region of its half. */
QUOIT_INLINE bool quoit_fast_has(const void *address, size_t bytes)
{
    const struct quoit_fast *fast = &quoit_job.fast;
    size_t half = quoit_half(address);
    uint64_t at = (uintptr_t)address - fast->base[half];
    if (__builtin_expect(at >= fast->span[half], 0))
        return false;
    return (__builtin_constant_p(bytes) && bytes <= QUOIT_FAST_ELEMENT_BYTES) || bytes <= fast->span[half] - at;
}

/* The PE of the job that is `pe` in the context's team; false: the slow way finds out. */
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

/* Where `bytes` at a symmetric address lie for this process on a PE of the same host; false: elsewhere or wrong. */
QUOIT_INLINE bool quoit_fast_reach(shmem_ctx_t ctx, const void *address, size_t bytes, int pe, char **at_out,
                                   const struct quoit_reach **reach_out)
{
    const struct quoit_fast *fast = &quoit_job.fast;
    uint32_t local;
    if (!quoit_fast_pe(ctx, pe, &local))
        return false;
    local -= fast->first_pe;
    if (__builtin_expect(local >= fast->pe_count || !quoit_fast_has(address, bytes), 0))
        return false;
    *reach_out = &fast->reaches[local];
    *at_out = (char *)((intptr_t)address + (*reach_out)->shift[quoit_half(address)]);
    return true;
}

/* After a store to `to` of that PE. */
QUOIT_INLINE void quoit_fast_wake(const struct quoit_reach *reach, const char *to, size_t bytes)
{
    quoit_park_wake_at(reach->park, (uint64_t)(to - reach->segment), bytes);
}

/* One element, or a word of bytes: what is copied in the routine itself. */
QUOIT_INLINE size_t quoit_fast_unit(size_t element_bytes)
{
    return element_bytes > 1 ? element_bytes : sizeof(uint64_t);
}
QUOIT_INLINE bool quoit_fast_is_unit(size_t nelems, size_t element_bytes)
{
    return nelems == quoit_fast_unit(element_bytes) / element_bytes;
}

/* A message about a crash names copies of more than a few lines. */
#define QUOIT_FAST_NAMELESS_BYTES 2048
#define QUOIT_FAST_ENTER(bytes, call)                                                                                  \
    do {                                                                                                               \
        if (__builtin_expect((bytes) > QUOIT_FAST_NAMELESS_BYTES, 0))                                                  \
            QUOIT_JOB_ENTER(call);                                                                                     \
    } while (0)

/* What the fast way leaves over: a function of check.h. */
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
            __builtin_memcpy(to, source, unit);
            quoit_fast_wake(reach, to, unit);
            return;
        }
    } else if (__builtin_expect(nelems <= QUOIT_FAST_BYTES / element_bytes && source, 1) &&
               __builtin_expect(quoit_fast_reach(ctx, dest, nelems * element_bytes, pe, &to, &reach), 1)) {
        QUOIT_FAST_ENTER(nelems * element_bytes, call);
        quoit_fast_put(reach, to, source, nelems * element_bytes);
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

/* The value is copied where the slow way begins, so that the fast way keeps it in a register. */
QUOIT_INLINE void quoit_p(shmem_ctx_t ctx, void *dest, const void *value, size_t bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    char *to;
    if (__builtin_expect(quoit_fast_reach(ctx, dest, bytes, pe, &to, &reach), 1)) {
        __builtin_memcpy(to, value, bytes);
        quoit_fast_wake(reach, to, bytes);
        return;
    }
    _Alignas(16) char copy[16];
    __builtin_memcpy(copy, value, bytes);
    QUOIT_JOB_ENTER(call);
    quoit_put_slow(ctx, dest, copy, 1, bytes, pe, call);
}

QUOIT_INLINE void quoit_g(shmem_ctx_t ctx, void *value_out, const void *source, size_t bytes, int pe, const char *call)
{
    const struct quoit_reach *reach;
    char *from;
    if (__builtin_expect(quoit_fast_reach(ctx, source, bytes, pe, &from, &reach), 1)) {
        __builtin_memcpy(value_out, from, bytes);
        quoit_poll_word(source);
        return;
    }
    _Alignas(16) char copy[16];
    QUOIT_JOB_ENTER(call);
    quoit_get_slow(ctx, copy, source, 1, bytes, pe, call);
    __builtin_memcpy(value_out, copy, bytes);
}

/* The bits of a value of up to 8 bytes, zero-extended, and back. */
QUOIT_INLINE uint64_t quoit_bits(const void *value, size_t bytes)
{
    uint64_t bits = 0;
    __builtin_memcpy(&bits, value, bytes);
    return bits;
}
#define QUOIT_BITS(VALUE)    quoit_bits(&(VALUE), sizeof(VALUE))
#define QUOIT_AS(TYPE, BITS) (*(const TYPE *)&(const uint64_t){BITS})

/* False: not of this host, or wrong. */
QUOIT_INLINE bool quoit_fast_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address,
                                 uint64_t operand, uint64_t compare, int pe, uint64_t *old_out)
{
    const struct quoit_reach *reach;
    char *word;
    if (__builtin_expect(!quoit_fast_reach(ctx, address, size, pe, &word, &reach), 0) ||
        __builtin_expect(((uintptr_t)address & (size - 1)) != 0, 0))
        return false;
    *old_out = quoit_execute_amo(word, op, size, operand, compare);
    if (op != QUOIT_AMO_FETCH)
        quoit_fast_wake(reach, word, size);
    if (op == QUOIT_AMO_FETCH || (op == QUOIT_AMO_COMPARE_SWAP && *old_out != compare))
        quoit_poll_word(address);
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
