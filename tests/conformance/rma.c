/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: put, get, p, g and their non-blocking forms, every type and size, at every distance, from the heap and from
 * globals, with and without a context (9.6). Method: each PE writes numbers derived from its own to its part of the
 * target, and after a barrier every PE reads all parts, its own and those of the others. */
#include "check.h"

#define COUNT  9
#define PES    64
#define GUARD  2 /* elements after each part that must stay unchanged */
#define STRIDE (COUNT + GUARD)

static shmem_ctx_t ctx;

#define X(N, T)                                                                                                        \
    static T global_##N[PES * STRIDE];                                                                                 \
    static void look_##N(const T *at, int salt, const char *what)                                                      \
    {                                                                                                                  \
        for (int pe = 0; pe < npes; pe++) {                                                                            \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(at[pe * STRIDE + i] == VALUE(T, pe, i, salt), "%s of " #N " from %d, element %d", what, pe, i);  \
            for (int i = COUNT; i < STRIDE; i++)                                                                       \
                CHECK(at[pe * STRIDE + i] == (T)99, "%s of " #N " from %d wrote past its end", what, pe);              \
        }                                                                                                              \
    }                                                                                                                  \
    static void clear_##N(T *at)                                                                                       \
    {                                                                                                                  \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < PES * STRIDE; i++)                                                                         \
            at[i] = (T)99;                                                                                             \
        shmem_barrier_all();                                                                                           \
    }                                                                                                                  \
    static void put_all_##N(T *at, int form, T *source)                                                                \
    {                                                                                                                  \
        T *to = at + me * STRIDE;                                                                                      \
        for (int n = 0; n < npes; n++) {                                                                               \
            int pe = (me + n) % npes;                                                                                  \
            switch (form) {                                                                                            \
            case 0:                                                                                                    \
                shmem_##N##_put(to, source, COUNT, pe);                                                                \
                shmem_##N##_put(to + COUNT, source, 0, pe);                                                            \
                break;                                                                                                 \
            case 1:                                                                                                    \
                shmem_##N##_put_nbi(to, source, COUNT, pe);                                                            \
                break;                                                                                                 \
            case 2:                                                                                                    \
                for (int i = 0; i < COUNT; i++)                                                                        \
                    shmem_##N##_p(to + i, source[i], pe);                                                              \
                break;                                                                                                 \
            case 3:                                                                                                    \
                shmem_ctx_##N##_put(ctx, to, source, COUNT - 1, pe);                                                   \
                shmem_ctx_##N##_put_nbi(ctx, to + COUNT - 1, source + COUNT - 1, 1, pe);                               \
                break;                                                                                                 \
            default:                                                                                                   \
                for (int i = 0; i < COUNT; i++)                                                                        \
                    shmem_ctx_##N##_p(ctx, to + i, source[i], pe);                                                     \
            }                                                                                                          \
        }                                                                                                              \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
    }                                                                                                                  \
    static void get_all_##N(const T *at, int salt)                                                                     \
    {                                                                                                                  \
        T got[6][COUNT + 1];                                                                                           \
        for (int pe = 0; pe < npes; pe++) {                                                                            \
            const T *from = at + pe * STRIDE;                                                                          \
            memset(got, 0, sizeof got);                                                                                \
            shmem_##N##_get(got[0], from, COUNT, pe);                                                                  \
            shmem_##N##_get_nbi(got[1], from, COUNT, pe);                                                              \
            shmem_ctx_##N##_get(ctx, got[2], from, COUNT, pe);                                                         \
            shmem_ctx_##N##_get_nbi(ctx, got[3], from, COUNT, pe);                                                     \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                got[4][i] = shmem_##N##_g(from + i, pe);                                                               \
                got[5][i] = shmem_ctx_##N##_g(ctx, from + i, pe);                                                      \
            }                                                                                                          \
            shmem_quiet();                                                                                             \
            shmem_ctx_quiet(ctx);                                                                                      \
            for (int form = 0; form < 6; form++)                                                                       \
                for (int i = 0; i < COUNT; i++)                                                                        \
                    CHECK(got[form][i] == VALUE(T, pe, i, salt), "get form %d of " #N " from %d", form, pe);           \
        }                                                                                                              \
    }                                                                                                                  \
    static void run_##N(void)                                                                                          \
    {                                                                                                                  \
        T source[COUNT];                                                                                               \
        T *heap = shmem_malloc(sizeof global_##N);                                                                     \
        CHECK(heap != NULL, "no memory");                                                                              \
        for (int form = 0; form < 5; form++) {                                                                         \
            T *at = form % 2 ? global_##N : heap;                                                                      \
            clear_##N(at);                                                                                             \
            for (int i = 0; i < COUNT; i++)                                                                            \
                source[i] = VALUE(T, me, i, form);                                                                     \
            put_all_##N(at, form, source);                                                                             \
            shmem_barrier_all();                                                                                       \
            look_##N(at, form, "put");                                                                                 \
        }                                                                                                              \
        get_all_##N(heap, 4);                                                                                          \
        get_all_##N(global_##N, 3);                                                                                    \
        shmem_free(heap);                                                                                              \
    }
QUOIT_RMA_TYPES(X)
#undef X

/* The sized routines on bytes; to_nbi alternates. */
#define X(BITS, BYTES)                                                                                                 \
    static void run_size_##BITS(char *heap)                                                                            \
    {                                                                                                                  \
        char source[7 * BYTES], got[4][7 * BYTES];                                                                     \
        int next = (me + 1) % npes, before = (me + npes - 1) % npes;                                                   \
        for (int i = 0; i < 7 * BYTES; i++)                                                                            \
            source[i] = VALUE(char, me, i, BITS);                                                                      \
        shmem_put##BITS(heap, source, 7, next);                                                                        \
        shmem_put##BITS##_nbi(heap + 256, source, 7, next);                                                            \
        shmem_ctx_put##BITS(ctx, heap + 512, source, 7, next);                                                         \
        shmem_ctx_put##BITS##_nbi(ctx, heap + 768, source, 7, next);                                                   \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        shmem_get##BITS(got[0], heap, 7, next);                                                                        \
        shmem_get##BITS##_nbi(got[1], heap + 256, 7, next);                                                            \
        shmem_ctx_get##BITS(ctx, got[2], heap + 512, 7, next);                                                         \
        shmem_ctx_get##BITS##_nbi(ctx, got[3], heap + 768, 7, next);                                                   \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        for (int part = 0; part < 4; part++)                                                                           \
            for (int i = 0; i < 7 * BYTES; i++) {                                                                      \
                CHECK(heap[256 * part + i] == VALUE(char, before, i, BITS), "put" #BITS " form %d byte %d", part, i);  \
                CHECK(got[part][i] == source[i], "get" #BITS " form %d byte %d", part, i);                             \
            }                                                                                                          \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_RMA_SIZES(X)
#undef X

/* putmem and getmem of many sizes at odd offsets, up to several chunks of a ring. */
static void run_mem(void)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 15, 16, 63, 64, 65, 1000, 2048, 2049, 32768, 32769, 300001};
    size_t most = 300001 + 16;
    unsigned char *heap = shmem_malloc(most), *source = malloc(most), *got = malloc(most);
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t bytes = sizes[s], at = s % 9;
        for (size_t i = 0; i < bytes; i++)
            source[i] = VALUE(unsigned char, me, i, (int)s);
        if (s % 2)
            shmem_putmem(heap + at, source, bytes, next);
        else
            shmem_putmem_nbi(heap + at, source, bytes, next);
        shmem_barrier_all();
        size_t wrong = 0;
        for (size_t i = 0; i < bytes; i++)
            wrong += heap[at + i] != VALUE(unsigned char, before, i, (int)s);
        CHECK(wrong == 0, "putmem of %zu bytes: %zu differ", bytes, wrong);
        memset(got, 0, bytes);
        if (s % 2)
            shmem_getmem_nbi(got, heap + at, bytes, next);
        else
            shmem_getmem(got, heap + at, bytes, next);
        shmem_quiet();
        CHECK(memcmp(got, source, bytes) == 0, "getmem of %zu bytes", bytes);
        shmem_barrier_all();
    }
    free(source);
    free(got);
    shmem_free(heap);
}

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0, "no context");
#define X(N, T) run_##N();
    QUOIT_RMA_TYPES(X)
#undef X
    char *heap = shmem_malloc(1024);
#define X(BITS, BYTES) run_size_##BITS(heap);
    QUOIT_RMA_SIZES(X)
#undef X
    shmem_free(heap);
    run_mem();
    shmem_ctx_destroy(ctx);
    return check_end("rma");
}
