/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: iput, iget, ibput, ibget of every type and size (9.6). Method: a pattern of elements is scattered to the next
 * PE; every element of the target, including those between, is compared with a model that copies one element at a time.
 */
#include "check.h"

#define PLACES 200

static shmem_ctx_t ctx;

struct shape {
    ptrdiff_t dst, sst;
    size_t bsize, nblocks;
};
static const struct shape shapes[] = {{1, 1, 1, 0},
                                      {1, 1, 1, 1},
                                      {3, 1, 1, 17},
                                      {1, 4, 1, 17},
                                      {2, 5, 1, 30},
                                      {4, 4, 4, 10},
                                      {7, 3, 2, 20},
                                      {5, 9, 5, 15},
                                      {3, 3, 0, 9},
                                      /* boundary cases: the last element, adjacent blocks, a stride without effect */
                                      {199, 1, 1, 2},
                                      {1, 199, 1, 2},
                                      {199, 199, 1, 2},
                                      {100, 100, 100, 2},
                                      {150, 50, 50, 2},
                                      {PTRDIFF_MAX, PTRDIFF_MAX, 1, 1},
                                      {PTRDIFF_MAX, PTRDIFF_MAX, 9, 1}};

#define CONFORM(NAME, T, IPUT, IGET, IBPUT, IBGET)                                                                     \
    static void run_##NAME(void)                                                                                       \
    {                                                                                                                  \
        T source[PLACES], model[PLACES], got[PLACES];                                                                  \
        T *heap = shmem_malloc(sizeof source);                                                                         \
        int next = (me + 1) % npes, before = (me + npes - 1) % npes;                                                   \
        for (size_t s = 0; s < 2 * sizeof shapes / sizeof shapes[0]; s++) {                                            \
            struct shape shape = shapes[s / 2];                                                                        \
            memset(heap, 0, sizeof source);                                                                            \
            memset(model, 0, sizeof model);                                                                            \
            memset(got, 0, sizeof got);                                                                                \
            for (int i = 0; i < PLACES; i++)                                                                           \
                source[i] = VALUE(T, me, i, (int)s);                                                                   \
            for (size_t b = 0; b < shape.nblocks; b++)                                                                 \
                for (size_t i = 0; i < shape.bsize; i++)                                                               \
                    model[b * (size_t)shape.dst + i] = VALUE(T, before, (int)(b * (size_t)shape.sst + i), (int)s);     \
            shmem_barrier_all();                                                                                       \
            if (shape.bsize == 1 && s % 2)                                                                             \
                shmem_##IPUT(heap, source, shape.dst, shape.sst, shape.nblocks, next);                                 \
            else if (shape.bsize == 1)                                                                                 \
                shmem_ctx_##IPUT(ctx, heap, source, shape.dst, shape.sst, shape.nblocks, next);                        \
            else if (s % 2)                                                                                            \
                shmem_##IBPUT(heap, source, shape.dst, shape.sst, shape.bsize, shape.nblocks, next);                   \
            else                                                                                                       \
                shmem_ctx_##IBPUT(ctx, heap, source, shape.dst, shape.sst, shape.bsize, shape.nblocks, next);          \
            shmem_ctx_quiet(ctx);                                                                                      \
            shmem_barrier_all();                                                                                       \
            for (int i = 0; i < PLACES; i++)                                                                           \
                CHECK(memcmp(&heap[i], &model[i], sizeof(T) < 16 ? sizeof(T) : 10) == 0,                               \
                      #IPUT " shape %zu element %d", s / 2, i);                                                        \
            /* and back: source and target strides are swapped, so each element returns to where it was read */        \
            if (shape.bsize == 1 && s % 2)                                                                             \
                shmem_##IGET(got, heap, shape.sst, shape.dst, shape.nblocks, next);                                    \
            else if (shape.bsize == 1)                                                                                 \
                shmem_ctx_##IGET(ctx, got, heap, shape.sst, shape.dst, shape.nblocks, next);                           \
            else if (s % 2)                                                                                            \
                shmem_##IBGET(got, heap, shape.sst, shape.dst, shape.bsize, shape.nblocks, next);                      \
            else                                                                                                       \
                shmem_ctx_##IBGET(ctx, got, heap, shape.sst, shape.dst, shape.bsize, shape.nblocks, next);             \
            for (size_t b = 0; b < shape.nblocks; b++)                                                                 \
                for (size_t i = 0; i < shape.bsize; i++) {                                                             \
                    size_t at = b * (size_t)shape.sst + i;                                                             \
                    CHECK(memcmp(&got[at], &source[at], sizeof(T) < 16 ? sizeof(T) : 10) == 0,                         \
                          #IGET " shape %zu element %zu", s / 2, at);                                                  \
                }                                                                                                      \
            shmem_barrier_all();                                                                                       \
        }                                                                                                              \
        shmem_free(heap);                                                                                              \
    }
#define X(N, T) CONFORM(N, T, N##_iput, N##_iget, N##_ibput, N##_ibget)
QUOIT_RMA_TYPES(X)
#undef X
CONFORM(8, uint8_t, iput8, iget8, ibput8, ibget8)
CONFORM(16, uint16_t, iput16, iget16, ibput16, ibget16)
CONFORM(32, uint32_t, iput32, iget32, ibput32, ibget32)
CONFORM(64, uint64_t, iput64, iget64, ibput64, ibget64)
CONFORM(128, long double, iput128, iget128, ibput128, ibget128)

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, "no context");
#define X(N, T) run_##N();
    QUOIT_RMA_TYPES(X)
    QUOIT_RMA_SIZES(X)
#undef X
    shmem_ctx_destroy(ctx);
    return check_end("strided");
}
