/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: boundary cases of remote memory access (9.6, 9.8): zero elements, one element, a whole block of the heap, the
 * calling PE itself, unaligned addresses, and the untyped routines. Method: a range of elements is filled with a mark;
 * after the calls the elements that must have changed are compared one by one, and all others must still hold the mark.
 */
#include "check.h"

#define COUNT 6

static shmem_ctx_t ctx;
static uint64_t sig;

/* Calls with no elements change nothing and accept any address; the signal is updated all the same. */
#define ZERO(N, PRE, CTX, AT, NOWHERE, pe)                                                                             \
    shmem_##PRE##N##_put(CTX AT, NOWHERE, 0, pe);                                                                      \
    shmem_##PRE##N##_get(CTX AT, NOWHERE, 0, pe);                                                                      \
    shmem_##PRE##N##_put_nbi(CTX AT, NOWHERE, 0, pe);                                                                  \
    shmem_##PRE##N##_get_nbi(CTX AT, NOWHERE, 0, pe);                                                                  \
    shmem_##PRE##N##_iput(CTX AT, NOWHERE, 1, 1, 0, pe);                                                               \
    shmem_##PRE##N##_iget(CTX AT, NOWHERE, 1, 1, 0, pe);                                                               \
    shmem_##PRE##N##_ibput(CTX AT, NOWHERE, 2, 2, 2, 0, pe);                                                           \
    shmem_##PRE##N##_ibget(CTX AT, NOWHERE, 2, 2, 2, 0, pe);                                                           \
    shmem_##PRE##N##_put_signal(CTX AT, NOWHERE, 0, &sig, 1, SHMEM_SIGNAL_ADD, pe);                                    \
    shmem_##PRE##N##_put_signal_nbi(CTX AT, NOWHERE, 0, &sig, 1, SHMEM_SIGNAL_ADD, pe);
#define CTX_ARGUMENT ctx,

#define X(N, T)                                                                                                        \
    static T at_##N[COUNT];                                                                                            \
    static void run_##N(void)                                                                                          \
    {                                                                                                                  \
        int next = (me + 1) % npes, previous = (me + npes - 1) % npes;                                                 \
        T *at = at_##N, one[2] = {VALUE(T, me, 3, 1), VALUE(T, me, 4, 1)}, got[COUNT];                                 \
        for (int i = 0; i < COUNT; i++)                                                                                \
            at[i] = got[i] = (T)99;                                                                                    \
        sig = 0;                                                                                                       \
        shmem_barrier_all();                                                                                           \
        ZERO(N, , , at, one, next)                                                                                     \
        ZERO(N, ctx_, CTX_ARGUMENT, at, one, next)                                                                     \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(sig == 4, "signals with no elements of " #N ": %d", (int)sig);                                           \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(at[i] == (T)99, "no elements of " #N " changed element %d", i);                                      \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_put(at + 1, one, 1, next); /* one element, and a block far from the next */                        \
        shmem_##N##_ibput(at + 3, one, 1000, 1000, 2, 1, next);                                                        \
        shmem_##N##_iput(at + 5, one, 1000, 1000, 1, next);                                                            \
        shmem_barrier_all();                                                                                           \
        CHECK(at[1] == VALUE(T, previous, 3, 1) && at[5] == at[1], "one element of " #N);                              \
        CHECK(at[3] == VALUE(T, previous, 3, 1) && at[4] == VALUE(T, previous, 4, 1), "one block of " #N);             \
        CHECK(at[0] == (T)99 && at[2] == (T)99, "one element of " #N " had neighbours");                               \
        shmem_##N##_get(got, at, COUNT, me); /* of the calling PE */                                                   \
        CHECK(memcmp(got + 1, at + 1, sizeof(T)) == 0 && got[1] == at[1] && got[4] == at[4], "own " #N);               \
        shmem_##N##_put(at + 2, one + 1, 1, me);                                                                       \
        shmem_quiet();                                                                                                 \
        CHECK(at[2] == one[1] && shmem_##N##_g(at + 2, me) == one[1], "a put of " #N " to the own PE");                \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_RMA_TYPES(X)
#undef X

/* Bytes at every alignment of both sides; each PE sends to both neighbours, one half each. */
enum { SPAN = 96, LONGEST = 40 };
static unsigned char bytes[2][SPAN];

static void put_and_get_bytes(int form, size_t to, size_t from, size_t length)
{
    unsigned char source[SPAN], got[SPAN];
    int next = (me + 1) % npes, previous = (me + npes - 1) % npes;
    for (size_t i = 0; i < SPAN; i++)
        source[i] = VALUE(unsigned char, me, i, (int)length);
    memset(bytes, 0xee, sizeof bytes);
    memset(got, 0xdd, sizeof got);
    shmem_barrier_all();
    switch (form) {
    case 0:
        shmem_putmem(&bytes[0][to], source + from, length, next);
        shmem_quiet();
        shmem_getmem(got + from, &bytes[0][to], length, next);
        break;
    case 1:
        shmem_putmem_nbi(&bytes[0][to], source + from, length, next);
        shmem_quiet();
        shmem_getmem_nbi(got + from, &bytes[0][to], length, next);
        shmem_quiet();
        break;
    case 2:
        shmem_ctx_putmem(ctx, &bytes[0][to], source + from, length, next);
        shmem_ctx_quiet(ctx);
        shmem_ctx_getmem(ctx, got + from, &bytes[0][to], length, next);
        break;
    default:
        shmem_ctx_putmem_nbi(ctx, &bytes[0][to], source + from, length, next);
        shmem_ctx_quiet(ctx);
        shmem_ctx_getmem_nbi(ctx, got + from, &bytes[0][to], length, next);
        shmem_ctx_quiet(ctx);
    }
    shmem_barrier_all();
    for (size_t i = 0; i < SPAN; i++) {
        int is_inside = i >= to && i < to + length;
        int wanted = is_inside ? VALUE(unsigned char, previous, i - to + from, (int)length) : 0xee;
        CHECK(bytes[0][i] == wanted, "form %d, %zu bytes from %zu to %zu: byte %zu is %d", form, length, from, to, i,
              bytes[0][i]);
        wanted = i >= from && i < from + length ? source[i] : 0xdd;
        CHECK(got[i] == wanted, "form %d, %zu bytes got back from %zu: byte %zu is %d", form, length, to, i, got[i]);
    }
    shmem_barrier_all();
}

/* A block of several chunks, whole, in both directions. */
static void run_whole_block(void)
{
    enum { WORDS = 40000 };
    int next = (me + 1) % npes, previous = (me + npes - 1) % npes;
    uint64_t *block = shmem_malloc(WORDS * sizeof *block), *own = malloc(WORDS * sizeof *own);
    CHECK(block && own, "no memory");
    if (!block || !own)
        return;
    for (int i = 0; i < WORDS; i++)
        own[i] = (uint64_t)me << 32 | (uint32_t)i;
    shmem_putmem(block, own, WORDS * sizeof *block, next);
    shmem_barrier_all();
    for (int i = 0; i < WORDS; i++)
        CHECK(block[i] == ((uint64_t)previous << 32 | (uint32_t)i), "word %d of the whole block", i);
    shmem_getmem(own, block, WORDS * sizeof *block, previous);
    for (int i = 0; i < WORDS; i++)
        CHECK(own[i] >> 32 == (uint64_t)((previous + npes - 1) % npes) && (uint32_t)own[i] == (uint32_t)i, "got %d", i);
    shmem_free(block);
    free(own);
}

/* Larger than several chunks, into symmetric memory: every chunk goes to its own place there. Words encode their index,
 * so a chunk that lands in the place of another is detected; a blocking and a non-blocking get, into a block and into a
 * variable. */
static void run_get_into_symmetric(void)
{
    enum { WORDS = 30000 }; /* 7 chunks and a fraction */
    static uint64_t variable[WORDS];
    uint64_t *source = shmem_malloc(WORDS * sizeof *source), *dest = shmem_malloc(WORDS * sizeof *dest);
    for (int i = 0; i < WORDS; i++)
        source[i] = (uint64_t)me << 32 | (uint32_t)i;
    shmem_barrier_all();
    for (int away = 1; away < npes && away <= 3; away++) {
        int from = (me + away) % npes;
        memset(dest, 0xff, WORDS * sizeof *dest);
        memset(variable, 0xff, sizeof variable);
        shmem_getmem(dest, source, WORDS * sizeof *dest, from);
        shmem_getmem_nbi(variable, source, sizeof variable, from);
        shmem_quiet();
        for (int i = 0; i < WORDS; i++)
            CHECK(dest[i] == ((uint64_t)from << 32 | (uint32_t)i) && variable[i] == dest[i],
                  "word %d of PE %d: %llx in the block, %llx in the variable", i, from, (unsigned long long)dest[i],
                  (unsigned long long)variable[i]);
    }
    shmem_barrier_all();
    shmem_free(dest);
    shmem_free(source);
}

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0, "no context");
#define X(N, T) run_##N();
    QUOIT_RMA_TYPES(X)
#undef X
    for (int form = 0; form < 4; form++)
        for (size_t i = 0; i < 12; i++)
            put_and_get_bytes(form, i * 5 % 9, i * 7 % 8, i < 9 ? i : LONGEST - i);
    run_whole_block();
    run_get_into_symmetric();
    shmem_ctx_destroy(ctx);
    return check_end("edges");
}
