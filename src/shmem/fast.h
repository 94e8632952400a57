/* SPDX-License-Identifier: BSD-3-Clause */
/* fast.h - what is inlined into every typed routine: the way to a PE of the same host, a handful of instructions; the
 * rest, and everything that is wrong, goes to the functions of check.h and fabric.
 *
 * One comparison of the PE number and one of the address decide. Before shmem_init and after shmem_finalize both fail,
 * so that use at the wrong time costs nothing here either.
 */
#ifndef QUOIT_SHMEM_FAST_H
#define QUOIT_SHMEM_FAST_H

#include "node/execute.h"
#include "shmem/api.h"
#include "shmem/check.h"

/* Larger copies take the path that a table names. */
#define QUOIT_FAST_BYTES QUOIT_PATHS_PLAIN_BYTES

/* Where `bytes` at a symmetric address lie for this process on a PE of the same host; NULL: elsewhere or wrong. */
QUOIT_INLINE char *quoit_fast_reach(shmem_ctx_t ctx, const void *address, size_t bytes, int pe,
                                    const struct quoit_peer **peer_out)
{
    uint64_t offset;
    if (__builtin_expect(ctx != SHMEM_CTX_DEFAULT || (uint32_t)pe >= quoit_job.fast_pe_count, 0))
        return NULL;
    if (__builtin_expect(!quoit_job_locate(address, bytes, &offset), 0))
        return NULL;
    const struct quoit_peer *peer = &quoit_job.fabric->peers[pe];
    if (!peer->area)
        return NULL;
    *peer_out = peer;
    return peer->area + offset;
}

/* One element, and a few bytes, without a call. A message about a crash names copies of more than a few lines. */
#define QUOIT_FAST_NAMELESS_BYTES 2048
QUOIT_INLINE void quoit_fast_copy(void *to, const void *from, size_t nelems, size_t element_bytes, const char *call)
{
    size_t bytes = nelems * element_bytes;
    if (element_bytes > 1 && nelems == 1)
        __builtin_memcpy(to, from, element_bytes);
    else if (element_bytes == 1 && bytes == 8)
        __builtin_memcpy(to, from, 8);
    else if (element_bytes == 1 && bytes == 4)
        __builtin_memcpy(to, from, 4);
    else {
        if (bytes > QUOIT_FAST_NAMELESS_BYTES)
            QUOIT_JOB_ENTER(call);
        memmove(to, from, bytes);
    }
}

QUOIT_INLINE void quoit_put(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                            int pe, const char *call)
{
    const struct quoit_peer *peer;
    if (__builtin_expect(nelems <= QUOIT_FAST_BYTES / element_bytes && source, 1)) {
        char *to = quoit_fast_reach(ctx, dest, nelems * element_bytes, pe, &peer);
        if (__builtin_expect(to != NULL, 1)) {
            quoit_fast_copy(to, source, nelems, element_bytes, call);
            quoit_fabric_wake(peer, to, nelems * element_bytes);
            return;
        }
    }
    QUOIT_JOB_ENTER(call);
    quoit_put_slow(ctx, dest, source, nelems, element_bytes, pe, call);
}

QUOIT_INLINE void quoit_get(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                            int pe, const char *call)
{
    const struct quoit_peer *peer;
    if (__builtin_expect(nelems <= QUOIT_FAST_BYTES / element_bytes && dest, 1)) {
        const char *from = quoit_fast_reach(ctx, source, nelems * element_bytes, pe, &peer);
        if (__builtin_expect(from != NULL, 1)) {
            quoit_fast_copy(dest, from, nelems, element_bytes, call);
            return;
        }
    }
    QUOIT_JOB_ENTER(call);
    quoit_get_slow(ctx, dest, source, nelems, element_bytes, pe, call);
}

/* The value is copied where the slow way begins, so that the fast way keeps it in a register. */
QUOIT_INLINE void quoit_p(shmem_ctx_t ctx, void *dest, const void *value, size_t bytes, int pe, const char *call)
{
    const struct quoit_peer *peer;
    char *to = quoit_fast_reach(ctx, dest, bytes, pe, &peer);
    if (__builtin_expect(to != NULL, 1)) {
        __builtin_memcpy(to, value, bytes);
        quoit_fabric_wake(peer, to, bytes);
        return;
    }
    _Alignas(16) char copy[16];
    __builtin_memcpy(copy, value, bytes);
    QUOIT_JOB_ENTER(call);
    quoit_put_slow(ctx, dest, copy, 1, bytes, pe, call);
}

QUOIT_INLINE void quoit_g(shmem_ctx_t ctx, void *value_out, const void *source, size_t bytes, int pe, const char *call)
{
    const struct quoit_peer *peer;
    const char *from = quoit_fast_reach(ctx, source, bytes, pe, &peer);
    if (__builtin_expect(from != NULL, 1)) {
        __builtin_memcpy(value_out, from, bytes);
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
    const struct quoit_peer *peer;
    char *word = quoit_fast_reach(ctx, address, size, pe, &peer);
    if (__builtin_expect(!word || ((uintptr_t)word & (size - 1)) != 0, 0))
        return false;
    *old_out = quoit_execute_amo(word, op, size, operand, compare);
    if (op != QUOIT_AMO_FETCH)
        quoit_fabric_wake(peer, word, size);
    return true;
}

QUOIT_INLINE void quoit_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                            int pe, const char *call)
{
    uint64_t old;
    if (__builtin_expect(quoit_fast_amo(ctx, op, size, address, operand, 0, pe, &old), 1))
        return;
    QUOIT_JOB_ENTER(call);
    quoit_amo_slow(ctx, op, size, address, operand, pe, call);
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
