/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the symmetric heap (9.3). Method: blocks of many sizes are allocated, filled, checked for overlap by their
 * content, resized and freed in a fixed mixture; offsets must be the same on all PEs, which a put from each PE
 * verifies. */
#include "check.h"

#define BLOCKS 60

static unsigned char *blocks[BLOCKS];
static size_t sizes[BLOCKS];

static void fill(int i)
{
    memset(blocks[i], (i * 7 + me) & 0xff, sizes[i]);
}

static void look(int i)
{
    size_t wrong = 0;
    for (size_t at = 0; at < sizes[i]; at++)
        wrong += blocks[i][at] != ((i * 7 + me) & 0xff);
    CHECK(wrong == 0, "block %d of %zu bytes changed in %zu places", i, sizes[i], wrong);
}

static void run_mixture(void)
{
    uint64_t chance = 12345; /* the same on all PEs, since the calls are collective */
    for (int step = 0; step < 600; step++) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        int i = (int)((chance >> 33) % BLOCKS);
        size_t size = (size_t)((chance >> 40) % 5000) + 1;
        if (!blocks[i]) {
            size_t align = (size_t)16 << ((chance >> 20) % 8);
            blocks[i] = (chance >> 30) % 2 ? shmem_malloc(size) : shmem_align(align, size);
            CHECK(blocks[i] != NULL, "no block of %zu", size);
            if ((chance >> 30) % 2 == 0)
                CHECK((uintptr_t)blocks[i] % align == 0, "not aligned to %zu", align);
            sizes[i] = size;
            fill(i);
        } else if ((chance >> 50) % 3 == 0) {
            look(i);
            size_t kept = size < sizes[i] ? size : sizes[i];
            blocks[i] = shmem_realloc(blocks[i], size);
            sizes[i] = kept;
            CHECK(blocks[i] != NULL, "no realloc to %zu", size);
            look(i);
            sizes[i] = size;
            fill(i);
        } else {
            look(i);
            shmem_free(blocks[i]);
            blocks[i] = NULL;
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i])
            look(i);
        shmem_free(blocks[i]);
    }
}

static void run_edges(void)
{
    CHECK(shmem_malloc(0) == NULL, "malloc(0)");
    CHECK(shmem_calloc(0, 8) == NULL, "calloc(0)");
    CHECK(shmem_malloc_with_hints(0, 0) == NULL, "malloc_with_hints(0)");
    CHECK(shmem_malloc((size_t)1 << 62) == NULL, "2^62 bytes");
    CHECK(shmem_calloc(SIZE_MAX / 2, 16) == NULL, "a product that overflows");
    CHECK(shmem_realloc(NULL, 0) == NULL, "realloc(NULL, 0)");
    shmem_free(NULL);
    long *zero = shmem_calloc(1000, sizeof *zero);
    for (int i = 0; i < 1000; i++)
        CHECK(zero[i] == 0, "calloc, element %d", i);
    CHECK(shmem_realloc(zero, 0) == NULL, "realloc to nothing");
    long *kept = shmem_malloc(2 * sizeof *kept);
    kept[1] = 77;
    for (size_t less = 1; less <= 128; less++)
        CHECK(shmem_realloc(kept, SIZE_MAX - less) == NULL, "realloc to SIZE_MAX - %zu", less);
    CHECK(kept[1] == 77, "a block that was not resized");
    shmem_free(kept);
    if (!getenv("QUOIT_CHECK")) /* which reports the error */
        CHECK(shmem_align(63, 100) == NULL && shmem_align(0, 100) == NULL, "align to no power of two");
    long *hinted = shmem_malloc_with_hints(64, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    CHECK(hinted != NULL, "malloc_with_hints");
    shmem_free(hinted);
    void *page = shmem_align(1 << 16, 100);
    CHECK(page && (uintptr_t)page % (1 << 16) == 0, "align to 64 KiB gives %p", page);
    shmem_free(page);
    void *old = shmalloc(100);
    old = shrealloc(old, 200);
    CHECK(old != NULL, "shrealloc");
    shfree(old);
    old = shmemalign(128, 10);
    CHECK((uintptr_t)old % 128 == 0, "shmemalign");
    shfree(old);
}

/* The heap grows while objects in it are in use. */
static void run_growth(void)
{
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    long *first = shmem_malloc(sizeof *first);
    *first = me;
    const size_t count = 3 << 18;
    long *large = shmem_malloc(count * sizeof *large);
    CHECK(large != NULL, "no 6 MiB");
    shmem_long_p(&large[count - 1], me, next);
    shmem_barrier_all();
    CHECK(large[count - 1] == before, "the last element of a large block is %ld", large[count - 1]);
    CHECK(*first == me, "the first block changed");
    shmem_free(large);
    shmem_free(first);
}

int main(void)
{
    check_begin();
    run_edges();
    run_mixture();
    run_growth();
    return check_end("memory");
}
