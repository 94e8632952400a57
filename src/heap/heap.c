/* SPDX-License-Identifier: BSD-3-Clause */
/* A two-level segregated fit. Free blocks are listed by size class: a power of two, divided into SPLIT_COUNT steps.
 * Bitmaps show which lists are non-empty, so two bit scans find a class that fits. Block records refer to one another
 * by index; 0 is none. Blocks of all kinds form one list in order of offset, used for merging; blocks in use are found
 * by a hash of their offset. No call pays for growing these tables: a table consists of segments, each as large as all
 * before it, so entries never move, and the hash is a linear one, which splits one bucket per new block (Litwin, VLDB
 * 1980). */
#include "heap/heap.h"
#include "base/assert.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define UNIT              QUOIT_HEAP_ALIGN
#define SPLIT_LOG2        4
#define SPLIT_COUNT       (1u << SPLIT_LOG2)
#define POWER_COUNT       60 /* powers of two of sizes in units: all that 64 bits hold */
#define SEGMENT_LOG2      6  /* entries of the first segment of a table */
#define SEGMENT_COUNT     (32 - SEGMENT_LOG2)
#define TABLE_LIMIT       (1u << 31) /* entries */
#define RECORDS_A_CALL    2          /* the most that one call adds: before and behind a new block */
#define NEAR_MISSES_TRIED 4          /* blocks of the request's own class tried before a larger class is split */

struct record {
    uint64_t offset;
    uint64_t extent;      /* bytes, a multiple of UNIT */
    uint64_t asked_bytes; /* 0: free */
    uint32_t before;      /* in order of offset */
    uint32_t behind;
    uint32_t previous; /* free: in the list of its class. In use: unused */
    uint32_t next;     /* free: likewise. In use: in its hash bucket. Spare record: the next spare one */
};

struct table {
    void *segments[SEGMENT_COUNT];
    uint32_t limit; /* entries in the allocated segments */
    uint32_t count; /* entries in use; those behind were never touched */
};

struct quoit_heap {
    uint64_t limit_bytes;
    struct table records; /* entry 0 means none */
    uint32_t spare;       /* first unused record */
    uint32_t spare_count;
    uint32_t first; /* block at offset 0 */
    uint32_t last;
    struct table buckets; /* indices of records */
    uint32_t used_count;
    uint64_t powers;              /* bit: some class of this power is non-empty */
    uint32_t splits[POWER_COUNT]; /* bit: the class is non-empty */
    uint32_t classes[POWER_COUNT][SPLIT_COUNT];
};

struct class
{
    uint32_t power;
    uint32_t split;
};

/* The class that lists a free block of this extent; its blocks have at least the first extent of the class. */
static struct class class_of(uint64_t extent)
{
    uint64_t units = extent / UNIT;
    if (units < SPLIT_COUNT)
        return (struct class){0, (uint32_t)units};
    uint32_t log2 = 63 - (uint32_t)__builtin_clzll(units);
    return (struct class){log2 - SPLIT_LOG2 + 1, (uint32_t)(units >> (log2 - SPLIT_LOG2)) & (SPLIT_COUNT - 1)};
}

/* The lowest class all of whose blocks have at least this extent. */
static struct class class_above(uint64_t extent)
{
    uint64_t units = extent / UNIT;
    if (units >= SPLIT_COUNT)
        units += (1ull << (63 - __builtin_clzll(units) - SPLIT_LOG2)) - 1;
    return class_of(units * UNIT);
}

/* The segment that holds an entry, and its position there. */
static uint32_t segment_of(uint32_t index, uint32_t *place_out)
{
    uint32_t log2 = 31 - (uint32_t)__builtin_clz(index | ((1u << SEGMENT_LOG2) - 1));
    *place_out = log2 < SEGMENT_LOG2 ? index : index - (1u << log2);
    return log2 < SEGMENT_LOG2 ? 0 : log2 - SEGMENT_LOG2 + 1;
}

static struct record *record_at(const struct quoit_heap *heap, uint32_t index)
{
    uint32_t place, segment = segment_of(index, &place);
    return (struct record *)heap->records.segments[segment] + place;
}

static uint32_t *bucket_at(const struct quoit_heap *heap, uint32_t index)
{
    uint32_t place, segment = segment_of(index, &place);
    return (uint32_t *)heap->buckets.segments[segment] + place;
}

static void hang_free(struct quoit_heap *heap, uint32_t index)
{
    struct record *record = record_at(heap, index);
    struct class class = class_of(record->extent);
    uint32_t *head = &heap->classes[class.power][class.split];
    record->asked_bytes = 0;
    record->previous = 0;
    record->next = *head;
    if (*head)
        record_at(heap, *head)->previous = index;
    *head = index;
    heap->powers |= 1ull << class.power;
    heap->splits[class.power] |= 1u << class.split;
}

static void unhang_free(struct quoit_heap *heap, uint32_t index)
{
    struct record *record = record_at(heap, index);
    struct class class = class_of(record->extent);
    if (record->next)
        record_at(heap, record->next)->previous = record->previous;
    if (record->previous) {
        record_at(heap, record->previous)->next = record->next;
        return;
    }
    uint32_t *head = &heap->classes[class.power][class.split];
    quoit_assert(*head == index);
    *head = record->next;
    if (*head)
        return;
    heap->splits[class.power] &= ~(1u << class.split);
    if (heap->splits[class.power] == 0)
        heap->powers &= ~(1ull << class.power);
}

/* Linear hashing: of the buckets up to the next power of two, those past bucket_count are still merged with the bucket
 * half that far. */
static uint32_t bucket_of(const struct quoit_heap *heap, uint64_t offset)
{
    uint32_t mix = (uint32_t)((offset / UNIT * 0x9e3779b97f4a7c15u) >> 32);
    uint32_t power = 1u << (31 - (uint32_t)__builtin_clz(heap->buckets.count));
    uint32_t bucket = mix & (2 * power - 1);
    return bucket < heap->buckets.count ? bucket : bucket - power;
}

static void hash_in(struct quoit_heap *heap, uint32_t index)
{
    uint32_t *head = bucket_at(heap, bucket_of(heap, record_at(heap, index)->offset));
    record_at(heap, index)->next = *head;
    *head = index;
}

static void hash_out(struct quoit_heap *heap, uint32_t index)
{
    uint32_t *at = bucket_at(heap, bucket_of(heap, record_at(heap, index)->offset));
    while (*at != index)
        at = &record_at(heap, *at)->next;
    *at = record_at(heap, index)->next;
}

static uint32_t hash_find(const struct quoit_heap *heap, uint64_t offset)
{
    uint32_t index = *bucket_at(heap, bucket_of(heap, offset));
    while (index && record_at(heap, index)->offset != offset)
        index = record_at(heap, index)->next;
    return index;
}

/* Adds one bucket and moves its blocks out of the bucket that held them. */
static void hash_split(struct quoit_heap *heap)
{
    uint32_t power = 1u << (31 - (uint32_t)__builtin_clz(heap->buckets.count));
    uint32_t *old = bucket_at(heap, heap->buckets.count - power);
    uint32_t index = *old;
    *old = 0;
    *bucket_at(heap, heap->buckets.count++) = 0;
    while (index) {
        uint32_t next = record_at(heap, index)->next;
        hash_in(heap, index);
        index = next;
    }
}

/* Adds one segment. On false nothing changed. */
static bool extend(struct table *table, size_t entry_bytes)
{
    uint32_t place, segment = segment_of(table->limit, &place);
    if (table->limit >= TABLE_LIMIT)
        return false;
    uint32_t count = segment == 0 ? 1u << SEGMENT_LOG2 : table->limit;
    table->segments[segment] = malloc(count * entry_bytes);
    if (!table->segments[segment])
        return false;
    table->limit += count;
    return true;
}

bool quoit_heap_prepare(struct quoit_heap *heap)
{
    if (heap->spare_count + heap->records.limit - heap->records.count < RECORDS_A_CALL &&
        !extend(&heap->records, sizeof(struct record)))
        return false;
    if (heap->used_count < heap->buckets.count)
        return true;
    if (heap->buckets.count == heap->buckets.limit && !extend(&heap->buckets, sizeof(uint32_t)))
        return false;
    hash_split(heap);
    return true;
}

static uint32_t take_record(struct quoit_heap *heap)
{
    uint32_t index = heap->spare;
    if (index) {
        heap->spare = record_at(heap, index)->next;
        heap->spare_count--;
        return index;
    }
    quoit_assert(heap->records.count < heap->records.limit);
    return heap->records.count++;
}

/* Splits a block after `extent` bytes; the remainder becomes a free block behind it. */
static void cut(struct quoit_heap *heap, uint32_t index, uint64_t extent)
{
    struct record *record = record_at(heap, index);
    uint32_t rest = take_record(heap);
    *record_at(heap, rest) = (struct record){.offset = record->offset + extent,
                                             .extent = record->extent - extent,
                                             .before = index,
                                             .behind = record->behind};
    if (record->behind)
        record_at(heap, record->behind)->before = rest;
    else
        heap->last = rest;
    record->behind = rest;
    record->extent = extent;
}

/* Merges the block behind `index`, which is in no list any more, into it. */
static void swallow_behind(struct quoit_heap *heap, uint32_t index)
{
    struct record *record = record_at(heap, index);
    uint32_t gone = record->behind;
    record->extent += record_at(heap, gone)->extent;
    record->behind = record_at(heap, gone)->behind;
    if (record->behind)
        record_at(heap, record->behind)->before = index;
    else
        heap->last = index;
    record_at(heap, gone)->next = heap->spare;
    heap->spare = gone;
    heap->spare_count++;
}

static bool is_free(const struct quoit_heap *heap, uint32_t index)
{
    return index != 0 && record_at(heap, index)->asked_bytes == 0;
}

/* Frees a block and merges it with its free neighbours. */
static void release(struct quoit_heap *heap, uint32_t index)
{
    uint32_t before = record_at(heap, index)->before, behind = record_at(heap, index)->behind;
    if (is_free(heap, behind)) {
        unhang_free(heap, behind);
        swallow_behind(heap, index);
    }
    if (is_free(heap, before)) {
        unhang_free(heap, before);
        swallow_behind(heap, before);
        index = before;
    }
    hang_free(heap, index);
}

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static bool fits(const struct record *record, uint64_t extent, uint64_t align)
{
    uint64_t gap = round_up(record->offset, align) - record->offset;
    return gap < record->extent && extent <= record->extent - gap;
}

/* The first of up to `try_count` blocks of a class that fits; 0: none. */
static uint32_t find_in_class(const struct quoit_heap *heap, struct class class, uint64_t extent, uint64_t align,
                              uint32_t try_count)
{
    uint32_t index = heap->classes[class.power][class.split];
    for (; index && try_count > 0; index = record_at(heap, index)->next, try_count--)
        if (fits(record_at(heap, index), extent, align))
            return index;
    return 0;
}

/* The lowest non-empty class from `class` on; false: none. */
static bool find_class(const struct quoit_heap *heap, struct class *class)
{
    if (class->power >= POWER_COUNT)
        return false;
    uint32_t splits = heap->splits[class->power] & (UINT32_MAX << class->split);
    if (splits == 0) {
        uint64_t powers = heap->powers & (UINT64_MAX << class->power << 1);
        if (powers == 0)
            return false;
        class->power = (uint32_t)__builtin_ctzll(powers);
        splits = heap->splits[class->power];
    }
    class->split = (uint32_t)__builtin_ctz(splits);
    return true;
}

/* A free block that holds `extent` aligned bytes. First tries a few blocks that are hardly too large, then any block of
 * a class where all fit; only if there is none walks the classes in between, so that nothing that fits is refused.
 */
static uint32_t find_fit(const struct quoit_heap *heap, uint64_t extent, uint64_t align)
{
    uint32_t index = find_in_class(heap, class_of(extent), extent, align, NEAR_MISSES_TRIED);
    if (index)
        return index;
    struct class class = class_above(extent + align - UNIT);
    if (find_class(heap, &class))
        return heap->classes[class.power][class.split];
    class = class_of(extent);
    while (find_class(heap, &class)) {
        index = find_in_class(heap, class, extent, align, UINT32_MAX);
        if (index)
            return index;
        if (++class.split == SPLIT_COUNT)
            class = (struct class){class.power + 1, 0};
    }
    return 0;
}

struct quoit_heap *quoit_heap_new(uint64_t limit_bytes)
{
    quoit_assert(limit_bytes % UNIT == 0);
    struct quoit_heap *heap = calloc(1, sizeof *heap);
    if (!heap)
        return NULL;
    heap->limit_bytes = limit_bytes;
    if (!extend(&heap->records, sizeof(struct record)) || !extend(&heap->buckets, sizeof(uint32_t))) {
        quoit_heap_delete(heap);
        return NULL;
    }
    heap->records.count = 1; /* entry 0 means none */
    *bucket_at(heap, heap->buckets.count++) = 0;
    if (limit_bytes > 0) {
        heap->first = heap->last = take_record(heap);
        *record_at(heap, heap->first) = (struct record){.extent = limit_bytes};
        hang_free(heap, heap->first);
    }
    return heap;
}

void quoit_heap_delete(struct quoit_heap *heap)
{
    if (!heap)
        return;
    for (uint32_t i = 0; i < SEGMENT_COUNT; i++) {
        free(heap->records.segments[i]);
        free(heap->buckets.segments[i]);
    }
    free(heap);
}

uint64_t quoit_heap_take(struct quoit_heap *heap, uint64_t bytes, uint64_t align)
{
    if (align < UNIT)
        align = UNIT;
    quoit_assert(bytes > 0);
    quoit_assert((align & (align - 1)) == 0);
    if (bytes > heap->limit_bytes)
        return QUOIT_HEAP_NONE;
    uint64_t extent = round_up(bytes, UNIT);
    uint32_t index = find_fit(heap, extent, align);
    if (!index)
        return QUOIT_HEAP_NONE;
    unhang_free(heap, index);
    uint64_t gap = round_up(record_at(heap, index)->offset, align) - record_at(heap, index)->offset;
    if (gap > 0) {
        cut(heap, index, gap);
        hang_free(heap, index);
        index = record_at(heap, index)->behind;
    }
    if (record_at(heap, index)->extent > extent) {
        cut(heap, index, extent);
        hang_free(heap, record_at(heap, index)->behind);
    }
    record_at(heap, index)->asked_bytes = bytes;
    hash_in(heap, index);
    heap->used_count++;
    return record_at(heap, index)->offset;
}

enum quoit_status quoit_heap_give(struct quoit_heap *heap, uint64_t offset)
{
    uint32_t index = hash_find(heap, offset);
    if (!index)
        return QUOIT_INVALID;
    hash_out(heap, index);
    heap->used_count--;
    release(heap, index);
    return QUOIT_OK;
}

enum quoit_status quoit_heap_resize(struct quoit_heap *heap, uint64_t offset, uint64_t bytes)
{
    uint32_t index = hash_find(heap, offset);
    quoit_assert(bytes > 0);
    if (!index)
        return QUOIT_INVALID;
    if (bytes > heap->limit_bytes)
        return QUOIT_FULL;
    uint64_t extent = round_up(bytes, UNIT);
    uint32_t behind = record_at(heap, index)->behind;
    if (extent > record_at(heap, index)->extent) {
        if (!is_free(heap, behind) || record_at(heap, index)->extent + record_at(heap, behind)->extent < extent)
            return QUOIT_FULL;
        unhang_free(heap, behind);
        swallow_behind(heap, index);
    }
    if (extent < record_at(heap, index)->extent) {
        cut(heap, index, extent);
        release(heap, record_at(heap, index)->behind);
    }
    record_at(heap, index)->asked_bytes = bytes;
    return QUOIT_OK;
}

uint64_t quoit_heap_block_bytes(const struct quoit_heap *heap, uint64_t offset)
{
    uint32_t index = hash_find(heap, offset);
    return index ? record_at(heap, index)->asked_bytes : 0;
}

int quoit_heap_find(const struct quoit_heap *heap, uint64_t offset, uint64_t *start_out, uint64_t *bytes_out)
{
    for (uint32_t i = heap->first; i; i = record_at(heap, i)->behind) {
        const struct record *record = record_at(heap, i);
        if (record->asked_bytes && offset >= record->offset && offset - record->offset < record->asked_bytes) {
            *start_out = record->offset;
            *bytes_out = record->asked_bytes;
            return 1;
        }
    }
    return 0;
}

uint64_t quoit_heap_used_bytes(const struct quoit_heap *heap)
{
    if (!heap->last)
        return 0;
    const struct record *last = record_at(heap, heap->last);
    return last->asked_bytes ? last->offset + last->extent : last->offset;
}
