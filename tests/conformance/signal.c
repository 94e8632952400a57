/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: put-with-signal of every type and size, and the operations on signals (9.8). Method: data and signal go to the
 * next PE; once a PE sees the signal it must see the data, immediately and without a barrier. */
#include "check.h"

#define COUNT 40

static shmem_ctx_t ctx;
static uint64_t sig, taken;

#define CONFORM(NAME, T, PUT, PUT_NBI)                                                                                 \
    static T data_##NAME[4 * COUNT];                                                                                   \
    static void run_##NAME(void)                                                                                       \
    {                                                                                                                  \
        T source[COUNT];                                                                                               \
        int next = (me + 1) % npes, before = (me + npes - 1) % npes;                                                   \
        for (int i = 0; i < COUNT; i++)                                                                                \
            source[i] = VALUE(T, me, i, 3);                                                                            \
        shmem_uint64_atomic_set(&sig, 0, me);                                                                          \
        shmem_barrier_all();                                                                                           \
        shmem_##PUT(data_##NAME, source, COUNT, &sig, 5, SHMEM_SIGNAL_SET, next);                                      \
        CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 5) == 5, "signal");                                          \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(data_##NAME[i] == VALUE(T, before, i, 3), #PUT " element %d", i);                                    \
        shmem_barrier_all();                                                                                           \
        shmem_ctx_##PUT(ctx, data_##NAME + COUNT, source, COUNT, &sig, 2, SHMEM_SIGNAL_ADD, next);                     \
        CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_GE, 7) == 7, "signal");                                          \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(data_##NAME[COUNT + i] == VALUE(T, before, i, 3), "ctx_" #PUT " element %d", i);                     \
        shmem_barrier_all();                                                                                           \
        shmem_##PUT_NBI(data_##NAME + 2 * COUNT, source, COUNT, &sig, 1, SHMEM_SIGNAL_ADD, next);                      \
        shmem_ctx_##PUT_NBI(ctx, data_##NAME + 3 * COUNT, source, COUNT, &sig, 1, SHMEM_SIGNAL_ADD, next);             \
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 9);                                                                \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK(data_##NAME[2 * COUNT + i] == VALUE(T, before, i, 3), #PUT_NBI " element %d", i);                    \
            CHECK(data_##NAME[3 * COUNT + i] == VALUE(T, before, i, 3), "ctx_" #PUT_NBI " element %d", i);             \
        }                                                                                                              \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
    }
#define X(N, T) CONFORM(N, T, N##_put_signal, N##_put_signal_nbi)
QUOIT_RMA_TYPES(X)
#undef X
CONFORM(8, uint8_t, put8_signal, put8_signal_nbi)
CONFORM(16, uint16_t, put16_signal, put16_signal_nbi)
CONFORM(32, uint32_t, put32_signal, put32_signal_nbi)
CONFORM(64, uint64_t, put64_signal, put64_signal_nbi)
CONFORM(128, long double, put128_signal, put128_signal_nbi)
CONFORM(mem, unsigned char, putmem_signal, putmem_signal_nbi)

/* A large message overtaken by its signal would be detected. */
static void run_large(void)
{
    const size_t bytes = 200000;
    unsigned char *heap = shmem_malloc(bytes), *source = malloc(bytes);
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (int round = 1; round <= 20; round++) {
        memset(source, me + round, bytes);
        shmem_putmem_signal(heap, source, bytes, &sig, (uint64_t)(1000 + round), SHMEM_SIGNAL_SET, next);
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, (uint64_t)(1000 + round));
        size_t wrong = 0;
        for (size_t i = 0; i < bytes; i++)
            wrong += heap[i] != (unsigned char)(before + round);
        CHECK(wrong == 0, "round %d: %zu bytes came after their signal", round, wrong);
        shmem_signal_add(&taken, 1, before);
        shmem_signal_wait_until(&taken, SHMEM_CMP_GE, (uint64_t)round);
    }
    free(source);
    shmem_free(heap);
}

static void run_operations(void)
{
    int next = (me + 1) % npes;
    shmem_signal_set(&sig, 3, next);
    shmem_ctx_signal_set(SHMEM_CTX_DEFAULT, &sig, 4, next);
    shmem_signal_add(&sig, 10, next);
    shmem_quiet();
    shmem_ctx_signal_add(ctx, &sig, 20, next);
    shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 34);
    CHECK(shmem_signal_fetch(&sig) == 34, "signal_fetch gives %llu", (unsigned long long)shmem_signal_fetch(&sig));
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, &sig, 1, next);
    CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_LT, 2) == 1, "signal_wait_until");
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0, "no context");
#define X(N, T) run_##N();
    QUOIT_RMA_TYPES(X)
    QUOIT_RMA_SIZES(X)
#undef X
    run_mem();
    run_operations();
    run_large();
    shmem_ctx_destroy(ctx);
    return check_end("signal");
}
