/* SPDX-License-Identifier: BSD-3-Clause */
/* The symmetric heap: collective calls, by which all PEs reach the same offsets in the same steps. Memory is allocated
 * before a block is handed out, so a shortage is NULL here and never a SIGBUS later; for blocks of shmemx_reserve,
 * which occupy none at first, before shmemx_take returns. */
#include "base/assert.h"
#include "boot/exit.h"
#include "env/limits.h"
#include "env/map.h"
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"

#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROW_BYTES (1u << 20) /* the heap grows by multiples of this */
#define MAP_ALIGN  4096u      /* alignment of any mapping of the heap */

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

/* PEs of the job on this machine. */
static uint32_t neighbour_count(void)
{
    return ((const struct quoit_host_header *)quoit_job.boot.memory)->machine.pe_count;
}

/* All PEs grow at once. */
static bool is_room(uint64_t more_bytes)
{
    uint64_t all;
    if (more_bytes == 0)
        return true;
    return !__builtin_mul_overflow(more_bytes, (uint64_t)neighbour_count(), &all) &&
           !__builtin_add_overflow(all, QUOIT_ROOM_SPARE_BYTES, &all) && all <= quoit_limits_free_bytes();
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

/* Where the region is to end so that a block which ends at `used` is inside, and some of those that follow. */
static uint64_t end_of_growth(uint64_t used)
{
    uint64_t limit = quoit_job.boot.layout.job.heap_bytes, reserved = quoit_job.reserved_bytes;
    uint64_t taken = used > reserved ? used - reserved : 0;
    uint64_t to = (used + taken / 8 + GROW_BYTES - 1) / GROW_BYTES * GROW_BYTES;
    return to < limit ? to : limit;
}

static void set_region_end(uint64_t bytes)
{
    quoit_job.regions.heap.bytes = bytes;
    quoit_job_regions_changed();
}

/* False on all PEs if it fails on one. Behind the region's end nothing was ever taken. */
static bool take_range(struct same same, uint64_t from, uint64_t to)
{
    char *heap = (char *)quoit_job.regions.heap.base;
    uint64_t more = from < quoit_job.regions.heap.bytes ? quoit_map_missing_bytes(heap + from, to - from) : to - from;
    return !any_failed(same, !is_room(more)) && !any_failed(same, !take_pages(from, to));
}

/* Makes a block that the allocator handed out usable; false on all PEs if it fails on one. Before the region's end all
 * memory is taken, unless a block of shmemx_reserve lay there. */
static bool grow(struct same same, uint64_t offset, uint64_t bytes)
{
    uint64_t used = quoit_heap_used_bytes(quoit_job.allocator), region_end = quoit_job.regions.heap.bytes;
    uint64_t from = region_end, to = used > region_end ? end_of_growth(used) : region_end;
    if (quoit_job.reserved_bytes != 0 && offset < region_end) {
        from = offset;
        if (to == region_end)
            to = offset + bytes;
    }
    if (from == to)
        return true;
    if (!take_range(same, from, to))
        return false;
    if (to > region_end)
        set_region_end(to);
    return true;
}

/* Makes a block of shmemx_reserve usable, which then reads as zero: it is a hole of the file, but for what was part of
 * another block before. */
static bool reserve(struct same same, uint64_t offset, uint64_t bytes)
{
    uint64_t used = quoit_heap_used_bytes(quoit_job.allocator), region_end = quoit_job.regions.heap.bytes;
    quoit_job.reserved_bytes += bytes;
    if (offset < region_end) {
        uint64_t old = region_end - offset < bytes ? region_end - offset : bytes;
        if (!take_range(same, offset, offset + old))
            return false;
        memset((char *)quoit_job.regions.heap.base + offset, 0, old);
    }
    if (used > region_end)
        set_region_end((used + MAP_ALIGN - 1) / MAP_ALIGN * MAP_ALIGN);
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

/* How a new block begins. */
enum beginning { UNDEFINED, ZEROED, RESERVED };

/* A new block, or NULL on all PEs. Ends before the barrier. */
static void *take(size_t bytes, size_t align, enum beginning beginning, struct same same)
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
    uint64_t extent = bytes + guard_bytes();
    if (!(beginning == RESERVED ? reserve(same, offset, extent) : grow(same, offset, extent))) {
        quoit_assert(quoit_heap_give(quoit_job.allocator, offset) == QUOIT_OK);
        return NULL;
    }
    if (quoit_job.fabric->self.profile)
        quoit_profile_heap(quoit_job.fabric->self.profile, quoit_heap_used_bytes(quoit_job.allocator));
    if (beginning == ZEROED)
        memset((char *)quoit_job.regions.heap.base + offset, 0, bytes);
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

static void *take_with_barrier(size_t bytes, size_t align, enum beginning beginning, const char *call)
{
    QUOIT_SPAN(call);
    quoit_check_running(call);
    compare_calls(0, bytes, align, call);
    if (bytes == 0)
        return NULL;
    quoit_span_world(&call_span, bytes);
    struct same same = same_of(call, "size is %llu with alignment %llu", bytes, align);
    void *block = take(bytes, align, beginning, same);
    barrier(same);
    return block;
}

static void give(void *ptr, const char *call)
{
    QUOIT_SPAN(call);
    quoit_check_running(call);
    if (!ptr || quoit_exit_has_begun(&quoit_job.boot)) /* a destructor, and no other PE is left to agree with */
        return;
    quoit_span_world(&call_span, 0);
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
    if (ptr || bytes != 0)
        quoit_span_world(&call_span, bytes);
    if (!ptr)
        return take_with_barrier(bytes, 1, UNDEFINED, call);
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
        if (grow(same, offset, bytes + guard_bytes())) {
            block = ptr;
            if (quoit_job.audit)
                quoit_audit_resized(offset, bytes);
        } else
            quoit_assert(quoit_heap_resize(quoit_job.allocator, offset, before + guard_bytes()) == QUOIT_OK);
    } else {
        block = take(bytes, 1, UNDEFINED, same);
        if (block) {
            memcpy(block, ptr, before < bytes ? before : bytes);
            give_back(offset, call);
        }
    }
    barrier(same);
    return block;
}

static void *take_aligned(size_t alignment, size_t bytes, enum beginning beginning, const char *call)
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
    return take_with_barrier(bytes, alignment, beginning, call);
}

/* Core files have what this PE took of the heap, and no holes, each of which the kernel would allocate to write it. */
static void put_taken_in_core(const void *start, size_t bytes)
{
    const struct quoit_region *heap = &quoit_job.regions.heap;
    uint64_t from = (uintptr_t)start - heap->base;
    if (quoit_job.is_heap_in_core && from < heap->bytes)
        put_in_core((char *)heap->base, from, from + bytes);
}

/* At a PE of another host its proxy does it. */
static int take_far(const struct quoit_target *target)
{
    uint64_t at = target->offset / sizeof(uint64_t) * sizeof(uint64_t), end = target->offset + target->bytes;
    int error = 0;
    for (uint64_t piece; at < end && !error; at += piece) {
        piece = end - at < QUOIT_TAKE_BYTES_MAX ? end - at : QUOIT_TAKE_BYTES_MAX;
        error = (int)quoit_fabric_amo_fetch(quoit_job.fabric, target->context, QUOIT_AMO_TAKE, sizeof(uint64_t), at,
                                            piece, 0, target->pe);
    }
    return error;
}

QUOIT_API(void *, malloc, (size_t size))
{
    QUOIT_JOB_ENTER("shmem_malloc");
    return take_with_barrier(size, 1, UNDEFINED, "shmem_malloc");
}

QUOIT_API(void *, calloc, (size_t count, size_t size))
{
    size_t bytes;
    QUOIT_JOB_ENTER("shmem_calloc");
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX / 2; /* more than any heap holds: NULL on all PEs */
    return take_with_barrier(bytes, 1, ZEROED, "shmem_calloc");
}

QUOIT_API(void *, align, (size_t alignment, size_t size))
{
    QUOIT_JOB_ENTER("shmem_align");
    return take_aligned(alignment, size, UNDEFINED, "shmem_align");
}

QUOIT_API(void *, malloc_with_hints, (size_t size, long hints))
{
    const char *call = "shmem_malloc_with_hints";
    QUOIT_JOB_ENTER(call);
    (void)hints; /* all memory suits atomics and signals alike; hints of other libraries are harmless */
    return take_with_barrier(size, 1, UNDEFINED, call);
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
    return take_with_barrier(size, 1, UNDEFINED, "shmalloc");
}

void *shmemalign(size_t alignment, size_t size)
{
    QUOIT_JOB_ENTER("shmemalign");
    return take_aligned(alignment, size, UNDEFINED, "shmemalign");
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

void *shmemx_reserve(size_t alignment, size_t size)
{
    QUOIT_JOB_ENTER("shmemx_reserve");
    return take_aligned(alignment, size, RESERVED, "shmemx_reserve");
}

int shmemx_take(void *start, size_t bytes, int pe)
{
    const char *call = "shmemx_take";
    const struct quoit_layout *layout = &quoit_job.boot.layout;
    QUOIT_JOB_ENTER(call);
    QUOIT_SPAN_TO(call, bytes, (uint32_t)pe);
    quoit_check_running(call);
    if (pe == (int)quoit_job.pe) { /* by the mapping that the PE uses, which gets page table entries */
        put_taken_in_core(start, bytes);
        return quoit_room_take(&quoit_job.room, start, bytes, neighbour_count());
    }
    struct quoit_target target = quoit_check_target(SHMEM_CTX_DEFAULT, start, "start", bytes, 1, pe, call);
    uint32_t local = target.pe - layout->first_pe;
    if (local >= layout->local_count)
        return take_far(&target);
    char *segment = (char *)quoit_job.boot.memory + quoit_layout_segment(layout, local);
    return quoit_room_take(&quoit_job.room, segment + target.offset, bytes, neighbour_count());
}

size_t shmemx_heap_limit(void)
{
    QUOIT_JOB_ENTER("shmemx_heap_limit");
    quoit_check_running("shmemx_heap_limit");
    return quoit_job.boot.layout.job.heap_bytes;
}
