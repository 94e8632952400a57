/* SPDX-License-Identifier: BSD-3-Clause */
/* Strided puts and gets, of elements (iput, iget) and of blocks (ibput, ibget). */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"

struct stride {
    ptrdiff_t dst;
    ptrdiff_t sst;
    size_t block_count; /* elements in a contiguous block */
    size_t count;       /* blocks */
};

/* Strides are at least `least` elements. */
static void check_strides(const struct stride *stride, const char *call)
{
    ptrdiff_t least = (ptrdiff_t)stride->block_count;
    if (stride->count > 1 && stride->dst < least)
        quoit_wrong(QUOIT_WRONG_STRIDE, call, "dst is %td, but a stride is at least %td", stride->dst, least);
    if (stride->count > 1 && stride->sst < least)
        quoit_wrong(QUOIT_WRONG_STRIDE, call, "sst is %td, but a stride is at least %td", stride->sst, least);
}

static void put_strided(shmem_ctx_t ctx, void *dest, const void *source, const struct stride *stride,
                        size_t element_bytes, int pe, const char *call)
{
    QUOIT_SPAN_TO(call, stride->count * stride->block_count * element_bytes, (uint32_t)pe);
    quoit_check_running(call);
    check_strides(stride, call);
    struct quoit_target target =
        quoit_check_target(ctx, dest, "dest", quoit_check_extent(stride->dst, stride->block_count, stride->count, call),
                           element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_PUT, target.pe);
    quoit_check_private(source,
                        quoit_check_bytes(quoit_check_extent(stride->sst, stride->block_count, stride->count, call),
                                          element_bytes, call),
                        "source", call);
    if (target.bytes == 0)
        return;
    const ptrdiff_t size = (ptrdiff_t)element_bytes;
    if (stride->block_count == 1 && stride->count > 1) { /* the stride of a single element is not checked */
        struct quoit_strided strided = {target.offset, stride->dst * size, stride->sst * size, stride->count,
                                        (uint32_t)element_bytes};
        quoit_fabric_iput(quoit_job.fabric, target.context, &strided, source, target.pe);
        return;
    }
    for (size_t i = 0; i < stride->count; i++)
        quoit_fabric_put(quoit_job.fabric, target.context, target.offset + i * (size_t)stride->dst * element_bytes,
                         (const char *)source + i * (size_t)stride->sst * element_bytes,
                         stride->block_count * element_bytes, target.pe);
}

static void get_strided(shmem_ctx_t ctx, void *dest, const void *source, const struct stride *stride,
                        size_t element_bytes, int pe, const char *call)
{
    QUOIT_SPAN_TO(call, stride->count * stride->block_count * element_bytes, (uint32_t)pe);
    quoit_check_running(call);
    check_strides(stride, call);
    struct quoit_target target = quoit_check_target(
        ctx, source, "source", quoit_check_extent(stride->sst, stride->block_count, stride->count, call), element_bytes,
        pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_GET, target.pe);
    quoit_check_private(dest,
                        quoit_check_bytes(quoit_check_extent(stride->dst, stride->block_count, stride->count, call),
                                          element_bytes, call),
                        "dest", call);
    if (target.bytes == 0)
        return;
    const ptrdiff_t size = (ptrdiff_t)element_bytes;
    if (stride->block_count == 1 && stride->count > 1) { /* the stride of a single element is not checked */
        struct quoit_strided strided = {target.offset, stride->sst * size, stride->dst * size, stride->count,
                                        (uint32_t)element_bytes};
        quoit_fabric_iget(quoit_job.fabric, target.context, &strided, dest, target.pe);
        return;
    }
    for (size_t i = 0; i < stride->count; i++)
        quoit_fabric_get(quoit_job.fabric, target.context, (char *)dest + i * (size_t)stride->dst * element_bytes,
                         target.offset + i * (size_t)stride->sst * element_bytes, stride->block_count * element_bytes,
                         target.pe);
}

#define ELEMENTS(NAME, WORK, T, BYTES)                                                                                 \
    QUOIT_API(void, NAME, (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe))            \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #NAME);                                                                               \
        WORK(SHMEM_CTX_DEFAULT, dest, source, &(struct stride){dst, sst, 1, nelems}, BYTES, pe, "shmem_" #NAME);       \
    }                                                                                                                  \
    QUOIT_API(void, ctx_##NAME,                                                                                        \
              (shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe))       \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_ctx_" #NAME);                                                                           \
        WORK(ctx, dest, source, &(struct stride){dst, sst, 1, nelems}, BYTES, pe, "shmem_ctx_" #NAME);                 \
    }
#define BLOCKS(NAME, WORK, T, BYTES)                                                                                   \
    QUOIT_API(void, NAME,                                                                                              \
              (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))         \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #NAME);                                                                               \
        WORK(SHMEM_CTX_DEFAULT, dest, source, &(struct stride){dst, sst, bsize, nblocks}, BYTES, pe, "shmem_" #NAME);  \
    }                                                                                                                  \
    QUOIT_API(void, ctx_##NAME,                                                                                        \
              (shmem_ctx_t ctx, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, \
               int pe))                                                                                                \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_ctx_" #NAME);                                                                           \
        WORK(ctx, dest, source, &(struct stride){dst, sst, bsize, nblocks}, BYTES, pe, "shmem_ctx_" #NAME);            \
    }

#define X(N, T)                                                                                                        \
    ELEMENTS(N##_iput, put_strided, T, sizeof(T))                                                                      \
    ELEMENTS(N##_iget, get_strided, T, sizeof(T))                                                                      \
    BLOCKS(N##_ibput, put_strided, T, sizeof(T))                                                                       \
    BLOCKS(N##_ibget, get_strided, T, sizeof(T))
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    ELEMENTS(iput##BITS, put_strided, void, BYTES)                                                                     \
    ELEMENTS(iget##BITS, get_strided, void, BYTES)                                                                     \
    BLOCKS(ibput##BITS, put_strided, void, BYTES)                                                                      \
    BLOCKS(ibget##BITS, get_strided, void, BYTES)
QUOIT_RMA_SIZES(X)
#undef X
