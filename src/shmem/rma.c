/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking puts and gets: contiguous, single, and non-blocking forms of the same. */
#include "shmem/fast.h"

/* The plain form and the form with a context of a routine whose work is WORK(ctx, ..., call). */
#define BOTH(RETURN, NAME, WORK, P, A)                                                                                 \
    QUOIT_API(RETURN, NAME, (QUOIT_LIST P))                                                                            \
    {                                                                                                                  \
        WORK(SHMEM_CTX_DEFAULT, QUOIT_LIST A, pe, "shmem_" #NAME);                                                     \
    }                                                                                                                  \
    QUOIT_API(RETURN, ctx_##NAME, (shmem_ctx_t ctx, QUOIT_LIST P))                                                     \
    {                                                                                                                  \
        WORK(ctx, QUOIT_LIST A, pe, "shmem_ctx_" #NAME);                                                               \
    }
#define QUOIT_LIST(...) __VA_ARGS__

#define X(N, T)                                                                                                        \
    BOTH(void, N##_put, quoit_put, (T * dest, const T *source, size_t nelems, int pe),                                 \
         (dest, source, nelems, sizeof(T)))                                                                            \
    BOTH(void, N##_get, quoit_get, (T * dest, const T *source, size_t nelems, int pe),                                 \
         (dest, source, nelems, sizeof(T)))                                                                            \
    BOTH(void, N##_p, quoit_p, (T * dest, T value, int pe), (dest, &value, sizeof(T)))
QUOIT_RMA_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_API(T, N##_g, (const T *source, int pe))                                                                     \
    {                                                                                                                  \
        T value;                                                                                                       \
        quoit_g(SHMEM_CTX_DEFAULT, &value, source, sizeof value, pe, "shmem_" #N "_g");                                \
        return value;                                                                                                  \
    }                                                                                                                  \
    QUOIT_API(T, ctx_##N##_g, (shmem_ctx_t ctx, const T *source, int pe))                                              \
    {                                                                                                                  \
        T value;                                                                                                       \
        quoit_g(ctx, &value, source, sizeof value, pe, "shmem_ctx_" #N "_g");                                          \
        return value;                                                                                                  \
    }
QUOIT_RMA_TYPES(X)
#undef X

#define X(BITS, BYTES)                                                                                                 \
    BOTH(void, put##BITS, quoit_put, (void *dest, const void *source, size_t nelems, int pe),                          \
         (dest, source, nelems, BYTES))                                                                                \
    BOTH(void, get##BITS, quoit_get, (void *dest, const void *source, size_t nelems, int pe),                          \
         (dest, source, nelems, BYTES))
QUOIT_RMA_SIZES(X)
#undef X
BOTH(void, putmem, quoit_put, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
BOTH(void, getmem, quoit_get, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))

/* On the own host a non-blocking copy is the blocking one. */
QUOIT_INLINE void put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                          const char *call)
{
    const struct quoit_peer *peer;
    char *to = nelems == 1 && source ? quoit_fast_reach(ctx, dest, element_bytes, pe, &peer) : NULL;
    if (to) {
        __builtin_memcpy(to, source, element_bytes);
        quoit_fabric_wake(peer, to, element_bytes);
        return;
    }
    QUOIT_JOB_ENTER(call);
    quoit_put_nbi(ctx, dest, source, nelems, element_bytes, pe, call);
}

QUOIT_INLINE void get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                          const char *call)
{
    QUOIT_JOB_ENTER(call);
    quoit_get_nbi(ctx, dest, source, nelems, element_bytes, pe, call);
}

#define X(N, T)                                                                                                        \
    BOTH(void, N##_put_nbi, put_nbi, (T * dest, const T *source, size_t nelems, int pe),                               \
         (dest, source, nelems, sizeof(T)))                                                                            \
    BOTH(void, N##_get_nbi, get_nbi, (T * dest, const T *source, size_t nelems, int pe),                               \
         (dest, source, nelems, sizeof(T)))
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    BOTH(void, put##BITS##_nbi, put_nbi, (void *dest, const void *source, size_t nelems, int pe),                      \
         (dest, source, nelems, BYTES))                                                                                \
    BOTH(void, get##BITS##_nbi, get_nbi, (void *dest, const void *source, size_t nelems, int pe),                      \
         (dest, source, nelems, BYTES))
QUOIT_RMA_SIZES(X)
#undef X
BOTH(void, putmem_nbi, put_nbi, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
BOTH(void, getmem_nbi, get_nbi, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
