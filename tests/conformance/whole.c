/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: one operation moves the whole symmetric heap: puts and gets of each form, from and to private memory, at every
 * distance, and collectives in place or with one half for each side. Method: the largest possible block leaves nothing
 * else; after each operation every byte of it is compared with a formula. SHMEM_SYMMETRIC_SIZE is small. */
#include "check.h"

#define BYTES_MAX (16 << 20)

static unsigned char *block, *private;
static size_t bytes;
static uint64_t sig;
static shmem_ctx_t ctx;

static unsigned char pattern(int pe, size_t i, int salt)
{
    return (unsigned char)((i * 31 + (i >> 8) * 7 + (i >> 16) + (size_t)pe * 101 + (size_t)salt * 13) & 0xff);
}

static void fill(unsigned char *at, size_t count, int pe, int salt)
{
    for (size_t i = 0; i < count; i++)
        at[i] = pattern(pe, i, salt);
}

static void look(const unsigned char *at, size_t count, int pe, int salt, const char *what)
{
    size_t wrong = 0, first = 0;
    for (size_t i = 0; i < count; i++)
        if (at[i] != pattern(pe, i, salt) && wrong++ == 0)
            first = i;
    CHECK(wrong == 0, "%s: %zu of %zu bytes are not those of PE %d, the first is %zu", what, wrong, count, pe, first);
}

/* Halves the step until the largest block is found. */
static size_t find_largest(void)
{
    size_t largest = 0;
    for (size_t step = (size_t)1 << 40; step >= 64; step /= 2) {
        void *some = shmem_malloc(largest + step);
        if (some)
            largest += step;
        shmem_free(some);
    }
    return largest;
}

enum form { PUT, PUT_NBI, CTX_PUT64, PUT_UNALIGNED, PUT_SIGNAL, IPUT, PUT_FORMS };
static const char *const put_names[] = {"putmem", "putmem_nbi", "put64", "unaligned putmem", "putmem_signal", "iput64"};

static void put_whole(enum form form, int to, int salt)
{
    const int from = (me + npes - (to - me + npes) % npes) % npes;
    size_t skip = form == PUT_UNALIGNED;
    fill(private, bytes, me, salt);
    sig = 0;
    memset(block, 0xee, bytes);
    shmem_barrier_all();
    switch (form) {
    case PUT:
        shmem_putmem(block, private, bytes, to);
        break;
    case PUT_NBI:
        shmem_putmem_nbi(block, private, bytes, to);
        shmem_quiet();
        break;
    case CTX_PUT64:
        shmem_ctx_put64(ctx, block, private, bytes / 8, to);
        shmem_ctx_quiet(ctx);
        break;
    case PUT_UNALIGNED:
        shmem_putmem(block + 1, private, bytes - 1, to);
        break;
    case PUT_SIGNAL:
        shmem_putmem_signal(block, private, bytes, &sig, 9, SHMEM_SIGNAL_SET, to);
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 9);
        break;
    default: /* the words at even indices, then those at odd ones */
        for (int i = 0; i < 2; i++)
            shmem_iput64(block + 8 * i, private + 8 * i, 2, 2, bytes / 16, to);
    }
    if (form != PUT_SIGNAL)
        shmem_barrier_all();
    look(block + skip, bytes - skip, from, salt, put_names[form]);
    CHECK(skip == 0 || block[0] == 0xee, "a byte before the put changed");
    shmem_barrier_all();
}

/* The block of each PE as fill(me) made it. */
static void get_whole(int from, int salt)
{
    fill(block, bytes, me, salt);
    shmem_barrier_all();
    memset(private, 0, bytes);
    shmem_getmem(private, block, bytes, from);
    look(private, bytes, from, salt, "getmem");
    memset(private, 0, bytes);
    shmem_ctx_getmem_nbi(ctx, private + 1, block, bytes - 1, from);
    shmem_ctx_quiet(ctx);
    look(private + 1, bytes - 1, from, salt, "unaligned getmem_nbi");
    memset(private, 0, bytes);
    for (int i = 0; i < 2; i++)
        shmem_iget64(private + 8 * i, block + 8 * i, 2, 2, bytes / 16, from);
    look(private, bytes, from, salt, "iget64");
    shmem_barrier_all();
}

static void run_in_place(void)
{
    fill(block, bytes, me, 5);
    shmem_barrier_all();
    CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, block, block, bytes, npes - 1) == 0, "broadcast");
    look(block, bytes, npes - 1, 5, "broadcast");
    unsigned *numbers = (unsigned *)(void *)block;
    size_t count = bytes / sizeof *numbers, wrong = 0;
    for (size_t i = 0; i < count; i++)
        numbers[i] = (unsigned)i * 2654435761u + (unsigned)me * 97u;
    shmem_barrier_all();
    CHECK(shmem_uint_sum_reduce(SHMEM_TEAM_WORLD, numbers, numbers, count) == 0, "sum");
    unsigned of_pes = 97u * (unsigned)(npes * (npes - 1) / 2);
    for (size_t i = 0; i < count; i++)
        wrong += numbers[i] != (unsigned)npes * ((unsigned)i * 2654435761u) + of_pes;
    CHECK(wrong == 0, "%zu of %zu sums", wrong, count);
    shmem_barrier_all();
}

/* One half is the source, the other dest; a remainder is unused. */
static void run_halves(void)
{
    size_t half = bytes / 2, part = half / (size_t)npes;
    unsigned char *dest = block, *source = block + half;
    fill(source, half, me, 8);
    shmem_barrier_all();
    CHECK(shmem_fcollectmem(SHMEM_TEAM_WORLD, dest, source, part) == 0, "fcollect");
    for (int pe = 0; pe < npes; pe++)
        look(dest + (size_t)pe * part, part, pe, 8, "fcollect");
    memset(dest, 0, half);
    shmem_barrier_all();
    CHECK(shmem_alltoallmem(SHMEM_TEAM_WORLD, dest, source, part) == 0, "alltoall");
    size_t wrong = 0;
    for (int pe = 0; pe < npes; pe++)
        for (size_t i = 0; i < part; i++)
            wrong += dest[(size_t)pe * part + i] != pattern(pe, (size_t)me * part + i, 8);
    CHECK(wrong == 0, "alltoall: %zu bytes", wrong);
    memset(dest, 0, half);
    shmem_barrier_all();
    CHECK(shmem_collectmem(SHMEM_TEAM_WORLD, dest, source, me == npes - 1 ? half : 0) == 0, "collect");
    look(dest, half, npes - 1, 8, "collect");
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0, "no context");
    if (shmem_malloc(BYTES_MAX)) { /* not enough memory on this machine */
        fprintf(stderr, "whole: set SHMEM_SYMMETRIC_SIZE to less than %d\n", BYTES_MAX);
        shmem_global_exit(1);
    }
    bytes = find_largest();
    block = shmem_malloc(bytes);
    private = malloc(bytes);
    CHECK(bytes >= 1 << 20 && block && private, "the largest block has %zu bytes", bytes);
    CHECK(shmem_malloc(1) == NULL && shmem_calloc(1, 1) == NULL && shmem_align(64, 1) == NULL, "room beside all");
    CHECK(shmem_realloc(block, bytes + 64) == NULL, "more than all");
    for (int form = 0; form < PUT_FORMS; form++)
        for (int distance = 0; distance < npes && distance < 3; distance++)
            put_whole((enum form)form, (me + distance) % npes, form * 3 + distance);
    for (int distance = 0; distance < npes && distance < 3; distance++)
        get_whole((me + distance) % npes, distance);
    run_in_place();
    run_halves();
    shmem_free(block);
    block = shmem_calloc(1, bytes);
    CHECK(block && block[0] == 0 && block[bytes - 1] == 0, "the whole heap a second time");
    shmem_free(block);
    free(private);
    shmem_ctx_destroy(ctx);
    return check_end("whole");
}
