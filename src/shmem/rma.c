/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets: contiguous, single-element and non-blocking forms; within a host the latter are the blocking ones. */
#include "shmem/fast.h"

/* The forms without and with a context of a routine implemented by WORK(ctx, ..., call). */
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

#define PUT(...)     quoit_put(quoit_put_slow, __VA_ARGS__)
#define GET(...)     quoit_get(quoit_get_slow, __VA_ARGS__)
#define PUT_NBI(...) quoit_put(quoit_put_nbi, __VA_ARGS__)
#define GET_NBI(...) quoit_get(quoit_get_nbi, __VA_ARGS__)

#define X(N, T)                                                                                                        \
    BOTH(void, N##_put, PUT, (T * dest, const T *source, size_t nelems, int pe), (dest, source, nelems, sizeof(T)))    \
    BOTH(void, N##_get, GET, (T * dest, const T *source, size_t nelems, int pe), (dest, source, nelems, sizeof(T)))    \
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
    BOTH(void, put##BITS, PUT, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, BYTES)) \
    BOTH(void, get##BITS, GET, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, BYTES))
QUOIT_RMA_SIZES(X)
#undef X
BOTH(void, putmem, PUT, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
BOTH(void, getmem, GET, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))

#define X(N, T)                                                                                                        \
    BOTH(void, N##_put_nbi, PUT_NBI, (T * dest, const T *source, size_t nelems, int pe),                               \
         (dest, source, nelems, sizeof(T)))                                                                            \
    BOTH(void, N##_get_nbi, GET_NBI, (T * dest, const T *source, size_t nelems, int pe),                               \
         (dest, source, nelems, sizeof(T)))
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    BOTH(void, put##BITS##_nbi, PUT_NBI, (void *dest, const void *source, size_t nelems, int pe),                      \
         (dest, source, nelems, BYTES))                                                                                \
    BOTH(void, get##BITS##_nbi, GET_NBI, (void *dest, const void *source, size_t nelems, int pe),                      \
         (dest, source, nelems, BYTES))
QUOIT_RMA_SIZES(X)
#undef X
BOTH(void, putmem_nbi, PUT_NBI, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
BOTH(void, getmem_nbi, GET_NBI, (void *dest, const void *source, size_t nelems, int pe), (dest, source, nelems, 1))
