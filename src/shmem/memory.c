/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap: collective calls, by which all PEs reach the same offsets in the same steps. Memory is allocated
 * before a block is handed out, so a shortage is NULL here and never a SIGBUS later. */
#include "base/assert.h"
#include "boot/exit.h"
#include "env/limits.h"
#include "env/map.h"
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW_BYTES  (1u << 20)  /* the heap grows by multiples of this */
#define SPARE_BYTES (64u << 20) /* left to the rest of the machine */
#define MAP_ALIGN   4096u       /* alignment of any mapping of the heap */

/* One call on all PEs: its arguments hashed to 31 bits, to detect PEs that call with different ones. */
struct same {
    const char *call;
    const char *format; /* of a and b, for the message */
    uint64_t a;
    uint64_t b;
    uint32_t fold;
};

static struct same same_of(const char *call, const char *format, uint64_t a, uint64_t b)
{
    uint64_t mix = 0;
    for (const char *c = call; *c; c++)
        mix = (mix ^ (uint8_t)*c) * 0x100000001b3u;
    mix = (mix ^ a) * 0x9e3779b97f4a7c15u;
    mix = (mix ^ (mix >> 29) ^ b) * 0xbf58476d1ce4e5b9u;
    return (struct same){call, format, a, b, (uint32_t)(mix >> 33)};
}

/* Every PE reports its own arguments; oshrun folds equal texts into one, with the PEs that sent them. */
static void tell_difference(struct same same)
{
    char arguments[96];
    snprintf(arguments, sizeof arguments, same.format, (unsigned long long)same.a, (unsigned long long)same.b);
    quoit_wrong(QUOIT_WRONG_COLLECTIVE, same.call,
                "%s here, but other PEs call it with something else, or another routine of the heap; all PEs call it "
                "together with the same arguments",
                arguments);
}

/* Each PE contributes its hash and the hash's complement: where the OR has a bit in both, two PEs differ. The highest
 * bit says that a PE failed. Includes a sync of all PEs. */
static bool any_failed(struct same same, bool is_failed)
{
    const uint64_t mask = (1u << 31) - 1;
    uint64_t all = quoit_coll_agree(quoit_job.world,
                                    same.fold | ((~same.fold & mask) << 31) | (uint64_t)is_failed << 63, same.call);
    if ((all & (all >> 31) & mask) != 0)
        tell_difference(same);
    return all >> 63;
}

static void barrier(struct same same)
{
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    any_failed(same, false);
}

/* All PEs grow at once. */
static bool is_room(uint64_t more_bytes)
{
    uint64_t all;
    const struct quoit_host_header *header = (const struct quoit_host_header *)quoit_job.boot.memory;
    return !__builtin_mul_overflow(more_bytes, (uint64_t)header->machine.pe_count, &all) &&
           !__builtin_add_overflow(all, SPARE_BYTES, &all) && all <= quoit_limits_free_bytes();
}

/* madvise on a part of a huge page would split it. */
static void put_in_core(char *heap, uint64_t from, uint64_t to)
{
    const uint64_t limit = quoit_job.boot.layout.job.heap_bytes;
    from = from / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    to = (to + QUOIT_HUGE_PAGE_BYTES - 1) / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    quoit_map_put_in(heap + from, (to < limit ? to : limit) - from);
}

static bool take_pages(uint64_t from, uint64_t to)
{
    char *heap = (char *)quoit_job.regions.heap.base;
    if (quoit_job.is_heap_in_core)
        put_in_core(heap, from, to);
    return quoit_map_take(heap, from, to) == 0;
}

/* Makes everything that the allocator handed out usable; false on all PEs if it fails on one. */
static bool grow(struct same same)
{
    uint64_t used = quoit_heap_used_bytes(quoit_job.allocator);
    uint64_t limit = quoit_job.boot.layout.job.heap_bytes;
    uint64_t from = quoit_job.regions.heap.bytes;
    if (used <= from)
        return true;
    uint64_t to = (used + used / 8 + GROW_BYTES - 1) / GROW_BYTES * GROW_BYTES;
    if (to > limit)
        to = limit;
    if (any_failed(same, !is_room(to - from)) || any_failed(same, !take_pages(from, to)))
        return false;
    quoit_job.regions.heap.bytes = to;
    quoit_job_regions_changed();
    return true;
}

static uint64_t offset_of_block(const void *ptr, const char *call)
{
    uint64_t offset = (uintptr_t)ptr - quoit_job.regions.heap.base;
    uint64_t start, bytes;
    if (quoit_job.audit)
        quoit_audit_is_live(offset, call);
    if (quoit_heap_block_bytes(quoit_job.allocator, offset) != 0)
        return offset;
    if (offset < quoit_job.regions.heap.bytes && quoit_heap_find(quoit_job.allocator, offset, &start, &bytes))
        quoit_wrong(QUOIT_WRONG_BLOCK, call,
                    "ptr is %p, which is %llu bytes into a block of %llu bytes; its beginning is needed", ptr,
                    (unsigned long long)(offset - start), (unsigned long long)bytes);
    if (offset < quoit_job.regions.heap.bytes)
        quoit_wrong(QUOIT_WRONG_BLOCK, call, "ptr is %p, which is no block now; freed twice?", ptr);
    if (quoit_job_locate(ptr, 1, &start))
        quoit_wrong(QUOIT_WRONG_BLOCK, call, "ptr is %p, which is a variable; shmem_malloc gives what can be freed",
                    ptr);
    quoit_wrong(QUOIT_WRONG_BLOCK, call, "ptr is %p, which is not in the symmetric heap; memory of malloc?", ptr);
}

/* The bytes added to each request. */
static uint64_t guard_bytes(void)
{
    return quoit_job.audit ? QUOIT_AUDIT_GUARD_BYTES : 0;
}

/* Fails on one PE alone, so it cannot be the result of a collective call: the others would continue with other offsets.
 */
static void prepare(const char *call)
{
    if (!quoit_heap_prepare(quoit_job.allocator))
        quoit_wrong(QUOIT_WRONG_MEMORY, call,
                    "this process is out of private memory for the records of symmetric blocks; is ulimit -v or -d "
                    "small?");
}

/* A new block, or NULL on all PEs. Ends before the barrier. */
static void *take(size_t bytes, size_t align, struct same same)
{
    if (align > MAP_ALIGN && any_failed(same, quoit_job.regions.heap.base % align != 0))
        return NULL;
    if (bytes > quoit_job.boot.layout.job.heap_bytes)
        return NULL;
    prepare(same.call);
    uint64_t offset = quoit_heap_take(quoit_job.allocator, bytes + guard_bytes(), align);
    if (offset == QUOIT_HEAP_NONE && quoit_job.audit && quoit_audit_reclaim(same.call))
        offset = quoit_heap_take(quoit_job.allocator, bytes + guard_bytes(), align);
    if (offset == QUOIT_HEAP_NONE)
        return NULL;
    if (!grow(same)) {
        quoit_assert(quoit_heap_give(quoit_job.allocator, offset) == QUOIT_OK);
        return NULL;
    }
    if (quoit_job.audit)
        quoit_audit_taken(offset, bytes, same.call);
    return (char *)quoit_job.regions.heap.base + offset;
}

static void give_back(uint64_t offset, const char *call)
{
    if (quoit_job.audit)
        quoit_audit_given(offset, call);
    else
        quoit_assert(quoit_heap_give(quoit_job.allocator, offset) == QUOIT_OK);
}

/* Whether ptr lies in a block, but not at its beginning. Some programs free such a pointer, and other libraries leak
 * the block in silence; so does this one, with a warning. */
static bool is_inside_block(const void *ptr)
{
    uint64_t offset = (uintptr_t)ptr - quoit_job.regions.heap.base, start, bytes;
    return offset < quoit_job.regions.heap.bytes && quoit_heap_block_bytes(quoit_job.allocator, offset) == 0 &&
           quoit_heap_find(quoit_job.allocator, offset, &start, &bytes);
}

static void leak(const void *ptr, const char *call)
{
    uint64_t offset = (uintptr_t)ptr - quoit_job.regions.heap.base, start, bytes;
    quoit_assert(quoit_heap_find(quoit_job.allocator, offset, &start, &bytes));
    barrier(same_of(call, "ptr is byte %llu of the heap, inside a block", offset, 0));
    quoit_warn(
        QUOIT_WRONG_BLOCK, call,
        "warning: ptr is %p, which is %llu bytes into a block of %llu bytes; its beginning is needed, so the block "
        "stays allocated",
        ptr, (unsigned long long)(offset - start), (unsigned long long)bytes);
}

/* Under --check all PEs compare their arguments. */
static void compare_calls(uint64_t block, uint64_t bytes, uint64_t align, const char *call)
{
    if (quoit_job.audit)
        QUOIT_AUDIT_COLLECTIVE(quoit_team_of(SHMEM_TEAM_WORLD, call), call,
                               {"ptr", block, block != 0 ? QUOIT_AUDIT_OFFSET : QUOIT_AUDIT_NUMBER},
                               {"size", bytes, QUOIT_AUDIT_NUMBER}, {"alignment", align, QUOIT_AUDIT_NUMBER});
}

static void *take_with_barrier(size_t bytes, size_t align, bool is_zeroed, const char *call)
{
    QUOIT_SPAN(call);
    quoit_check_running(call);
    compare_calls(0, bytes, align, call);
    if (bytes == 0)
        return NULL;
    struct same same = same_of(call, "size is %llu with alignment %llu", bytes, align);
    void *block = take(bytes, align, same);
    if (block && is_zeroed)
        memset(block, 0, bytes);
    barrier(same);
    return block;
}

static void give(void *ptr, const char *call)
{
    QUOIT_SPAN(call);
    quoit_check_running(call);
    if (!ptr || quoit_exit_has_begun(&quoit_job.boot)) /* a destructor, and no other PE is left to agree with */
        return;
    if (!quoit_job.audit && is_inside_block(ptr)) {
        leak(ptr, call);
        return;
    }
    uint64_t offset = offset_of_block(ptr, call);
    compare_calls(quoit_job.regions.heap.segment_offset + offset, 0, 0, call);
    barrier(same_of(call, "ptr is the block at byte %llu of the heap", offset, 0));
    give_back(offset, call);
}

static void *resize(void *ptr, size_t bytes, const char *call)
{
    QUOIT_SPAN(call);
    quoit_check_running(call);
    if (!ptr)
        return take_with_barrier(bytes, 1, false, call);
    if (bytes == 0) {
        give(ptr, call);
        return NULL;
    }
    uint64_t offset = offset_of_block(ptr, call);
    uint64_t before = quoit_heap_block_bytes(quoit_job.allocator, offset) - guard_bytes();
    compare_calls(quoit_job.regions.heap.segment_offset + offset, bytes, 0, call);
    struct same same = same_of(call, "ptr is the block at byte %llu of the heap and size is %llu", offset, bytes);
    barrier(same);
    void *block = NULL;
    prepare(call);
    bool fits_heap = bytes <= quoit_job.boot.layout.job.heap_bytes; /* so nothing overflows below */
    if (fits_heap && quoit_heap_resize(quoit_job.allocator, offset, bytes + guard_bytes()) == QUOIT_OK) {
        if (grow(same)) {
            block = ptr;
            if (quoit_job.audit)
                quoit_audit_resized(offset, bytes);
        } else
            quoit_assert(quoit_heap_resize(quoit_job.allocator, offset, before + guard_bytes()) == QUOIT_OK);
    } else {
        block = take(bytes, 1, same);
        if (block) {
            memcpy(block, ptr, before < bytes ? before : bytes);
            give_back(offset, call);
        }
    }
    barrier(same);
    return block;
}

static void *take_aligned(size_t alignment, size_t bytes, const char *call)
{
    quoit_check_running(call);
    bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!is_power && quoit_job.audit)
        quoit_wrong(QUOIT_WRONG_ALIGNMENT, call, "alignment is %zu, but a power of two is needed", alignment);
    if (!is_power) { /* undefined in the specification; programs rely on what other libraries return */
        quoit_warn(QUOIT_WRONG_ALIGNMENT, call,
                   "warning: alignment is %zu, but a power of two is needed, so NULL is returned", alignment);
        return NULL;
    }
    return take_with_barrier(bytes, alignment, false, call);
}

QUOIT_API(void *, malloc, (size_t size))
{
    QUOIT_JOB_ENTER("shmem_malloc");
    return take_with_barrier(size, 1, false, "shmem_malloc");
}

QUOIT_API(void *, calloc, (size_t count, size_t size))
{
    size_t bytes;
    QUOIT_JOB_ENTER("shmem_calloc");
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX / 2; /* more than any heap holds: NULL on all PEs */
    return take_with_barrier(bytes, 1, true, "shmem_calloc");
}

QUOIT_API(void *, align, (size_t alignment, size_t size))
{
    QUOIT_JOB_ENTER("shmem_align");
    return take_aligned(alignment, size, "shmem_align");
}

QUOIT_API(void *, malloc_with_hints, (size_t size, long hints))
{
    const char *call = "shmem_malloc_with_hints";
    QUOIT_JOB_ENTER(call);
    (void)hints; /* all memory suits atomics and signals alike; hints of other libraries are harmless */
    return take_with_barrier(size, 1, false, call);
}

QUOIT_API(void *, realloc, (void *ptr, size_t size))
{
    QUOIT_JOB_ENTER("shmem_realloc");
    return resize(ptr, size, "shmem_realloc");
}

QUOIT_API(void, free, (void *ptr))
{
    QUOIT_JOB_ENTER("shmem_free");
    give(ptr, "shmem_free");
}

void *shmalloc(size_t size)
{
    QUOIT_JOB_ENTER("shmalloc");
    return take_with_barrier(size, 1, false, "shmalloc");
}

void *shmemalign(size_t alignment, size_t size)
{
    QUOIT_JOB_ENTER("shmemalign");
    return take_aligned(alignment, size, "shmemalign");
}

void *shrealloc(void *ptr, size_t size)
{
    QUOIT_JOB_ENTER("shrealloc");
    return resize(ptr, size, "shrealloc");
}

void shfree(void *ptr)
{
    QUOIT_JOB_ENTER("shfree");
    give(ptr, "shfree");
}
