/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: blocks never overlap, are aligned, are found again, merge when freed, and nothing that fits is refused. Method:
 * random traces against a model that marks each 64-byte unit of a small region with its owner and thus knows all free
 * runs; the model decides what must succeed. Also: offsets are deterministic, and the waste of traces with realistic
 * sizes is printed. QUOIT_SEED replays a failure. */
#include "heap/heap.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UNIT        QUOIT_HEAP_ALIGN
#define UNITS_MAX   4096u
#define BLOCKS_MAX  1024u
#define TRACE_COUNT 60
#define STEP_COUNT  2000

struct block {
    uint64_t offset;
    uint64_t bytes; /* 0: none */
};

struct model {
    struct quoit_heap *heap;
    uint32_t unit_count;
    uint16_t owners[UNITS_MAX]; /* 0: free; else block index + 1 */
    struct block blocks[BLOCKS_MAX];
};

static uint64_t first_seed(void)
{
    const char *text = getenv("QUOIT_SEED");
    return text ? strtoull(text, NULL, 10) : 1;
}

static uint64_t take(struct quoit_heap *heap, uint64_t bytes, uint64_t align)
{
    assert_true(quoit_heap_prepare(heap));
    return quoit_heap_take(heap, bytes, align);
}

static enum quoit_status resize(struct quoit_heap *heap, uint64_t offset, uint64_t bytes)
{
    assert_true(quoit_heap_prepare(heap));
    return quoit_heap_resize(heap, offset, bytes);
}

static uint32_t units_of(uint64_t bytes)
{
    return (uint32_t)((bytes + UNIT - 1) / UNIT);
}

static bool run_is_free(const struct model *model, uint32_t unit, uint32_t count)
{
    if (unit + count > model->unit_count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (model->owners[unit + i])
            return false;
    return true;
}

static bool model_has_room(const struct model *model, uint64_t bytes, uint64_t align)
{
    uint32_t step = align < UNIT ? 1 : (uint32_t)(align / UNIT);
    for (uint32_t unit = 0; unit < model->unit_count; unit += step)
        if (run_is_free(model, unit, units_of(bytes)))
            return true;
    return false;
}

static void mark(struct model *model, uint64_t offset, uint64_t bytes, uint16_t owner)
{
    for (uint32_t i = 0; i < units_of(bytes); i++)
        model->owners[offset / UNIT + i] = owner;
}

static void step_take(struct model *model, struct quoit_prng *prng, uint32_t index)
{
    uint64_t most = quoit_prng_choose(prng, 8) == 0 ? (uint64_t)model->unit_count * UNIT : 2000;
    uint64_t bytes = 1 + quoit_prng_choose(prng, most);
    uint64_t align = quoit_prng_choose(prng, 2) ? 8 : 1ull << quoit_prng_choose(prng, 16);
    bool has_room = model_has_room(model, bytes, align);
    uint64_t offset = take(model->heap, bytes, align);
    assert_int_equal(offset != QUOIT_HEAP_NONE, has_room);
    if (!has_room)
        return;
    assert_int_equal(offset % UNIT, 0);
    assert_int_equal(offset % align, 0);
    assert_true(run_is_free(model, (uint32_t)(offset / UNIT), units_of(bytes)));
    model->blocks[index] = (struct block){offset, bytes};
    mark(model, offset, bytes, (uint16_t)(index + 1));
}

static void step_give(struct model *model, uint32_t index)
{
    struct block *block = &model->blocks[index];
    assert_int_equal(quoit_heap_give(model->heap, block->offset), QUOIT_OK);
    assert_int_equal(quoit_heap_give(model->heap, block->offset), QUOIT_INVALID);
    mark(model, block->offset, block->bytes, 0);
    block->bytes = 0;
}

static void step_resize(struct model *model, struct quoit_prng *prng, uint32_t index)
{
    struct block *block = &model->blocks[index];
    uint64_t bytes = 1 + quoit_prng_choose(prng, 2 * block->bytes + 64);
    mark(model, block->offset, block->bytes, 0);
    bool has_room = run_is_free(model, (uint32_t)(block->offset / UNIT), units_of(bytes));
    assert_int_equal(resize(model->heap, block->offset, bytes), has_room ? QUOIT_OK : QUOIT_FULL);
    if (has_room)
        block->bytes = bytes;
    mark(model, block->offset, block->bytes, (uint16_t)(index + 1));
}

static void check_queries(const struct model *model, struct quoit_prng *prng)
{
    uint32_t used = model->unit_count;
    while (used > 0 && model->owners[used - 1] == 0)
        used--;
    assert_int_equal(quoit_heap_used_bytes(model->heap), (uint64_t)used * UNIT);

    uint64_t at = quoit_prng_choose(prng, (uint64_t)model->unit_count * UNIT);
    uint16_t owner = model->owners[at / UNIT];
    const struct block *block = owner ? &model->blocks[owner - 1] : NULL;
    bool is_inside = block && at - block->offset < block->bytes;
    uint64_t start = 0, bytes = 0;
    assert_int_equal(quoit_heap_find(model->heap, at, &start, &bytes), is_inside);
    if (is_inside) {
        assert_int_equal(start, block->offset);
        assert_int_equal(bytes, block->bytes);
    }
    assert_int_equal(quoit_heap_block_bytes(model->heap, at), block && at == block->offset ? block->bytes : 0);
    if (!block || at != block->offset)
        assert_int_equal(resize(model->heap, at, 64), QUOIT_INVALID);
}

/* After all is freed the region is one block again. */
static void drain(struct model *model)
{
    uint64_t limit_bytes = (uint64_t)model->unit_count * UNIT;
    for (uint32_t i = 0; i < BLOCKS_MAX; i++)
        if (model->blocks[i].bytes)
            step_give(model, i);
    assert_int_equal(quoit_heap_used_bytes(model->heap), 0);
    assert_int_equal(take(model->heap, limit_bytes + 1, 8), QUOIT_HEAP_NONE);
    assert_int_equal(take(model->heap, limit_bytes, 8), 0);
    assert_int_equal(take(model->heap, 1, 8), QUOIT_HEAP_NONE);
    assert_int_equal(quoit_heap_used_bytes(model->heap), limit_bytes);
}

static void run_trace(uint64_t seed)
{
    struct quoit_prng prng = {.state = seed};
    struct model *model = calloc(1, sizeof *model);
    model->unit_count = 1 + (uint32_t)quoit_prng_choose(&prng, UNITS_MAX);
    uint32_t block_limit = 1 + (uint32_t)quoit_prng_choose(&prng, BLOCKS_MAX);
    model->heap = quoit_heap_new((uint64_t)model->unit_count * UNIT);
    for (int i = 0; i < STEP_COUNT; i++) {
        uint32_t index = (uint32_t)quoit_prng_choose(&prng, block_limit);
        if (model->blocks[index].bytes == 0)
            step_take(model, &prng, index);
        else if (quoit_prng_choose(&prng, 3) == 0)
            step_resize(model, &prng, index);
        else
            step_give(model, index);
        check_queries(model, &prng);
    }
    drain(model);
    quoit_heap_delete(model->heap);
    free(model);
}

static void test_random_traces_against_model(void **state)
{
    (void)state;
    uint64_t seed = first_seed();
    print_message("seed");
    for (uint64_t i = 0; i < TRACE_COUNT; i++) {
        print_message(" %llu", (unsigned long long)(seed + i)); /* the last one printed is the one that failed */
        run_trace(seed + i);
    }
    print_message("\n");
}

/* Two allocators given the same calls return the same offsets, whatever the process did before. */
static void test_same_calls_give_same_offsets(void **state)
{
    (void)state;
    struct quoit_prng prng = {.state = first_seed()};
    struct quoit_heap *one = quoit_heap_new(1u << 20), *two = quoit_heap_new(1u << 20);
    struct block blocks[64] = {{0, 0}};
    for (int i = 0; i < 5000; i++) {
        struct block *block = &blocks[quoit_prng_choose(&prng, 64)];
        uint64_t bytes = 1 + quoit_prng_choose(&prng, 40000);
        free(malloc(bytes));
        if (block->bytes) {
            assert_int_equal(quoit_heap_give(one, block->offset), quoit_heap_give(two, block->offset));
            block->bytes = 0;
            continue;
        }
        block->offset = take(one, bytes, 8);
        assert_int_equal(take(two, bytes, 8), block->offset);
        block->bytes = block->offset == QUOIT_HEAP_NONE ? 0 : bytes;
    }
    quoit_heap_delete(one);
    quoit_heap_delete(two);
}

static void test_empty_region(void **state)
{
    (void)state;
    struct quoit_heap *heap = quoit_heap_new(0);
    uint64_t start, bytes;
    assert_int_equal(take(heap, 1, 1), QUOIT_HEAP_NONE);
    assert_int_equal(quoit_heap_give(heap, 0), QUOIT_INVALID);
    assert_int_equal(quoit_heap_find(heap, 0, &start, &bytes), 0);
    assert_int_equal(quoit_heap_used_bytes(heap), 0);
    quoit_heap_delete(heap);
    quoit_heap_delete(NULL);
}

/* Far more blocks than the tables start with, in a region too large to exist. */
static void test_many_blocks_in_a_vast_region(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    struct quoit_heap *heap = quoit_heap_new(1ull << 62);
    uint64_t *offsets = malloc(COUNT * sizeof *offsets);
    for (int i = 0; i < COUNT; i++) {
        offsets[i] = take(heap, (uint64_t)i * 1000 + 1, 8);
        assert_int_not_equal(offsets[i], QUOIT_HEAP_NONE);
        assert_int_equal(quoit_heap_block_bytes(heap, offsets[i]), (uint64_t)i * 1000 + 1);
    }
    for (int i = 0; i < COUNT; i += 2)
        assert_int_equal(quoit_heap_give(heap, offsets[i]), QUOIT_OK);
    for (int i = 1; i < COUNT; i += 2)
        assert_int_equal(quoit_heap_give(heap, offsets[i]), QUOIT_OK);
    assert_int_equal(quoit_heap_used_bytes(heap), 0);
    assert_int_equal(take(heap, 1ull << 62, 8), 0);
    free(offsets);
    quoit_heap_delete(heap);
}

/* Sizes with evenly spread logarithms between two powers of two. Returns the largest used_bytes, and the largest sum of
 * live blocks in *live_out. */
static uint64_t run_waste(uint64_t seed, int low_log2, int high_log2, uint32_t slot_count, uint64_t *live_out)
{
    struct quoit_prng prng = {.state = seed};
    struct quoit_heap *heap = quoit_heap_new(1ull << 50);
    struct block *blocks = calloc(slot_count, sizeof *blocks);
    uint64_t live = 0, most_live = 0, most_used = 0;
    for (int i = 0; i < 40000; i++) {
        struct block *block = &blocks[quoit_prng_choose(&prng, slot_count)];
        if (block->bytes) {
            assert_int_equal(quoit_heap_give(heap, block->offset), QUOIT_OK);
            live -= block->bytes;
            block->bytes = 0;
            continue;
        }
        uint64_t power = 1ull << (low_log2 + (int)quoit_prng_choose(&prng, (uint64_t)(high_log2 - low_log2)));
        block->bytes = power + quoit_prng_choose(&prng, power);
        block->offset = take(heap, block->bytes, 8);
        live += block->bytes;
        most_live = live > most_live ? live : most_live;
        most_used = quoit_heap_used_bytes(heap) > most_used ? quoit_heap_used_bytes(heap) : most_used;
    }
    free(blocks);
    quoit_heap_delete(heap);
    *live_out = most_live;
    return most_used;
}

static void test_waste_stays_small(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int low_log2, high_log2;
        uint32_t slot_count;
    } traces[] = {
        {"64 B..1 KiB", 6, 10, 4000},
        {"1 KiB..1 MiB", 10, 20, 1000},
        {"64 B..64 MiB", 6, 26, 500},
    };
    for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
        uint64_t live;
        uint64_t used =
            run_waste(first_seed() + i, traces[i].low_log2, traces[i].high_log2, traces[i].slot_count, &live);
        print_message("%s: most live %.1f MiB, region reached %.1f MiB, %.1f %% more\n", traces[i].name,
                      (double)live / 1048576, (double)used / 1048576, 100.0 * (double)used / (double)live - 100);
        assert_true(used < 2 * live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_traces_against_model),
        cmocka_unit_test(test_same_calls_give_same_offsets),
        cmocka_unit_test(test_empty_region),
        cmocka_unit_test(test_many_blocks_in_a_vast_region),
        cmocka_unit_test(test_waste_stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
