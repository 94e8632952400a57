/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_malloc and related routines: an allocator that keeps its state in shared memory, so any PE allocates and frees.
 *
 * The state is at the start of space, under a DSM lock. Sizes have classes, four per power of two, each with a free
 * list. A header of 64 bytes precedes each block. Blocks of a page or more are page-aligned. Blocks with a placement
 * have their own free list, so that reuse never changes the home of a page. */
#include <dsm.h>
#include <errno.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "dsm/barrier.h"
#include "dsm/coherence.h"
#include "dsm/heap.h"
#include "dsm/home.h"
#include "dsm/net.h"
#include "dsm/order.h"
#include "dsm/profile.h"
#include "dsm/space.h"
#include "dsm/sync.h"

#define CLASS_COUNT   192
#define HEADER_BYTES  64
#define ALIGNMENT_MAX (2u << 20)
#define LIVE          0x6c697665ull /* "live" */
#define FREED         0x66726565ull /* "free" */

struct header {
    uint64_t mark;
    uint64_t class;
    uint64_t placement, pe; /* placement: enum dsm_placement | kind << 8 */
    uint64_t next;          /* address of the next free block's header */
    uint64_t start;         /* of the memory taken from the reserve, for messages */
    uint64_t bytes;         /* as requested */
};

struct records {
    dsm_lock_t lock;
    uint64_t used; /* bytes of space from its start */
    uint64_t free[CLASS_COUNT];
    uint64_t placed; /* one list for all placed blocks */
};

static struct records *records_of(struct quoit_dsm *dsm)
{
    return (struct records *)dsm->space;
}

/* Class 4k+j holds blocks of up to (4+j) << (k+4) bytes. */
static uint64_t class_bytes(uint64_t class)
{
    return (4 + class % 4) << (class / 4 + 4);
}

static uint64_t class_of(uint64_t bytes)
{
    uint64_t class = 0;
    while (class_bytes(class) < bytes)
        class ++;
    return class;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Takes a block from the reserve, with room for its header before it; 0: the reserve is exhausted. */
static uint64_t take_new(struct quoit_dsm *dsm, struct records *records, uint64_t bytes, uint64_t alignment)
{
    uint64_t used = records->used == 0 ? round_up(sizeof *records, 64) : records->used;
    uint64_t base = (uintptr_t)dsm->space;
    uint64_t block = round_up(base + used + HEADER_BYTES, alignment);
    if (block - base > dsm->heap_bytes || bytes > dsm->heap_bytes - (block - base))
        return 0;
    records->used = round_up(block + bytes - base, 64);
    return block;
}

static void lock_records(struct quoit_dsm *dsm, struct records *records)
{
    quoit_dsm_object_lock(dsm, quoit_dsm_object(dsm, &records->lock, "dsm_malloc"));
}

static void unlock_records(struct quoit_dsm *dsm, struct records *records)
{
    bool was_held = quoit_dsm_object_unlock(dsm, quoit_dsm_object(dsm, &records->lock, "dsm_malloc"));
    quoit_assert(was_held);
}

static struct header *header_of(uint64_t block)
{
    return (struct header *)(block - HEADER_BYTES);
}

/* The first block of a list that fits. The pages of one that was placed are as many as were placed. */
static uint64_t take_listed(uint64_t *list, const struct header *wanted, uint64_t alignment, uint64_t page_bytes)
{
    for (uint64_t *at = list; *at != 0; at = &((struct header *)*at)->next) {
        struct header *header = (struct header *)*at;
        uint64_t block = *at + HEADER_BYTES;
        bool has_pages = wanted->placement == DSM_DEFAULT ||
                         round_up(header->bytes, page_bytes) == round_up(wanted->bytes, page_bytes);
        if (header->class == wanted->class && block % alignment == 0 && header->placement == wanted->placement &&
            header->pe == wanted->pe && has_pages) {
            *at = header->next;
            return block;
        }
    }
    return 0;
}

static void *allocate(struct quoit_dsm *dsm, size_t bytes, size_t alignment, uint64_t placement, int pe,
                      bool *is_new_out)
{
    *is_new_out = false;
    if (bytes == 0 || bytes > dsm->heap_bytes) {
        errno = bytes == 0 ? errno : ENOMEM;
        return NULL;
    }
    bool is_large = bytes >= dsm->page_bytes || placement != DSM_DEFAULT;
    uint64_t class = class_of(bytes), room = class_bytes(class);
    if (is_large && alignment < dsm->page_bytes)
        alignment = dsm->page_bytes;
    if (placement != DSM_DEFAULT)
        room = round_up(room, dsm->page_bytes); /* no other block on its last page */
    struct records *records = records_of(dsm);
    lock_records(dsm, records);
    uint64_t *list = placement == DSM_DEFAULT ? &records->free[class] : &records->placed;
    struct header header = {LIVE, class, placement, (uint64_t)pe, 0, 0, bytes};
    uint64_t block = take_listed(list, &header, alignment, dsm->page_bytes);
    if (block == 0) {
        block = take_new(dsm, records, room, alignment);
        *is_new_out = true;
    }
    header.start = block;
    if (block != 0)
        *header_of(block) = header;
    unlock_records(dsm, records);
    if (block == 0)
        errno = ENOMEM;
    return (void *)block;
}

void *dsm_malloc(size_t bytes)
{
    QUOIT_DSM_CALL("dsm_malloc");
    bool is_new;
    return allocate(quoit_dsm_running("dsm_malloc"), bytes, 64, DSM_DEFAULT, 0, &is_new);
}

void *dsm_calloc(size_t count, size_t bytes)
{
    QUOIT_DSM_CALL("dsm_calloc");
    size_t all;
    bool is_new;
    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = allocate(quoit_dsm_running("dsm_calloc"), all, 64, DSM_DEFAULT, 0, &is_new);
    if (block && !is_new)
        memset(block, 0, all);
    return block;
}

void *dsm_aligned_alloc(size_t alignment, size_t bytes)
{
    QUOIT_DSM_CALL("dsm_aligned_alloc");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_aligned_alloc");
    bool is_new;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > ALIGNMENT_MAX)
        quoit_dsm_wrong("dsm_aligned_alloc: alignment is %zu, but it is a power of two up to 2 MiB", alignment);
    return allocate(dsm, bytes, alignment < 64 ? 64 : alignment, DSM_DEFAULT, 0, &is_new);
}

/* No PE has touched the pages of a new block, so their homes are written directly, 64 words of a directory at once,
 * with the mark that their memory is not taken there. Pages that have only a kind of their own get no home yet. */
static void place(struct quoit_dsm *dsm, char *block, uint64_t bytes, enum dsm_placement placement, int pe,
                  uint8_t kind)
{
    uint64_t pages = (bytes + dsm->page_bytes - 1) >> dsm->page_shift, count = (uint64_t)dsm->pe_count;
    uint64_t share = (pages + count - 1) / count, words[64];
    for (uint64_t i = 0; i < pages;) {
        uint64_t page = quoit_dsm_space_page(dsm, block + (i << dsm->page_shift)), first = page, n = 0;
        do {
            int home = placement == DSM_DEFAULT ? QUOIT_DSM_NO_HOME : pe;
            if (placement == DSM_BLOCK || placement == DSM_CYCLIC)
                home = (int)(placement == DSM_BLOCK ? i / share : i % count);
            if (home == QUOIT_DSM_NO_HOME)
                words[n++] = quoit_dsm_home_word(home, kind);
            else
                words[n++] = quoit_dsm_home_word(home, kind | QUOIT_DSM_PLACED) | QUOIT_DSM_UNTAKEN;
            i++;
        } while (i < pages && (page + n) % 64 != 0 && (page + n) % dsm->chunk_pages != 0);
        quoit_dsm_put(dsm, &dsm->homes[first], words, n * sizeof words[0], quoit_dsm_directory_of(dsm, first));
    }
    quoit_dsm_settle(dsm);
    quoit_dsm_order_before(dsm->homes); /* who asks for a page has the pointer from this PE */
}

/* `from` may lie in shared memory, which must not be touched under the library's lock. */
static void *malloc_with(size_t bytes, const struct dsm_attributes *from, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    const struct dsm_attributes copy = *from, *with = &copy;
    bool is_new;
    if (with->placement == DSM_ON_PE && (with->pe < 0 || with->pe >= dsm->pe_count))
        quoit_dsm_wrong("%s: pe is %d, but the job has %d PEs (0..%d)", call, with->pe, dsm->pe_count,
                        dsm->pe_count - 1);
    if ((unsigned)with->placement > DSM_ON_PE)
        quoit_dsm_wrong("%s: placement is %d, which is none of enum dsm_placement", call, (int)with->placement);
    if ((unsigned)with->protocol > DSM_PROTOCOL_NEWGENDSM)
        quoit_dsm_wrong("%s: protocol is %d, which is none of enum dsm_protocol", call, (int)with->protocol);
    if ((unsigned)with->copies > DSM_COPIES_UPDATE)
        quoit_dsm_wrong("%s: copies is %d, which is none of enum dsm_copies", call, (int)with->copies);
    if ((unsigned)with->word > DSM_WORD_8)
        quoit_dsm_wrong("%s: word is %d, which is none of enum dsm_word", call, (int)with->word);
    bool needs_handler = with->protocol != DSM_PROTOCOL_RUN && with->protocol != DSM_PROTOCOL_NEWGENDSM;
    if (needs_handler && !dsm->service && !dsm->is_direct && !dsm->races)
        quoit_dsm_wrong(
            "%s: the protocol of the block needs handlers, which this run has not; DSM_HANDLER=on makes them", call);
    uint8_t kind = quoit_dsm_kind(with->protocol, with->copies, with->word);
    int pe = with->placement == DSM_ON_PE ? with->pe : 0;
    char *block = allocate(dsm, bytes, 64, (uint64_t)with->placement | (uint64_t)kind << 8, pe, &is_new);
    if (!block || !is_new || dsm->is_direct || (with->placement == DSM_DEFAULT && kind == 0))
        return block;
    quoit_dsm_lock(dsm);
    place(dsm, block, bytes, with->placement, pe, kind);
    quoit_dsm_unlock(dsm);
    return block;
}

void *dsm_malloc_placed(size_t bytes, enum dsm_placement placement, int pe)
{
    QUOIT_DSM_CALL("dsm_malloc_placed");
    return malloc_with(bytes, &(struct dsm_attributes){.placement = placement, .pe = pe}, "dsm_malloc_placed");
}

void *dsm_malloc_with(size_t bytes, const struct dsm_attributes *attributes)
{
    QUOIT_DSM_CALL("dsm_malloc_with");
    return malloc_with(bytes, attributes, "dsm_malloc_with");
}

void dsm_free(void *ptr)
{
    QUOIT_DSM_CALL("dsm_free");
    if (!ptr)
        return;
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_free");
    uint64_t offset = quoit_dsm_offset_of(dsm, ptr);
    if (offset < HEADER_BYTES || offset >= dsm->heap_bytes || offset % 64 != 0)
        quoit_dsm_wrong("dsm_free: ptr is %p, which is no block of dsm_malloc", ptr);
    struct records *records = records_of(dsm);
    struct header *header = header_of((uintptr_t)ptr);
    lock_records(dsm, records);
    if (header->mark != LIVE || header->start != (uintptr_t)ptr)
        quoit_dsm_wrong("dsm_free: ptr is %p, which is no block now%s", ptr,
                        header->mark == FREED ? "; freed twice?" : "");
    uint64_t *list = header->placement == DSM_DEFAULT ? &records->free[header->class] : &records->placed;
    header->mark = FREED;
    header->next = *list;
    *list = (uintptr_t)header;
    unlock_records(dsm, records);
}

void *dsm_all_malloc(size_t bytes)
{
    QUOIT_DSM_CALL("dsm_all_malloc");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_all_malloc");
    uint64_t *word = &dsm->words[QUOIT_DSM_NEXT_COMMON], block;
    if (dsm->me == 0)
        *word = (uintptr_t)dsm_malloc(bytes);
    quoit_dsm_barrier(dsm);
    quoit_dsm_get(dsm, &block, word, sizeof block, 0);
    quoit_dsm_barrier(dsm);
    if (block == 0 && bytes > 0)
        errno = ENOMEM;
    return (void *)block;
}

void dsm_all_free(void *ptr)
{
    QUOIT_DSM_CALL("dsm_all_free");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_all_free");
    quoit_dsm_barrier(dsm);
    if (dsm->me == 0)
        dsm_free(ptr);
}

/* Finding the block of an address */

#define SEARCH_PAGES 16384

/* Headers in `bytes` before `end`, the last first, as their home has them; nothing is mapped or appointed for it. */
static bool search_part(struct quoit_dsm *dsm, uint64_t end, uint64_t bytes, uint64_t offset,
                        struct quoit_dsm_block *block_out)
{
    uint64_t start = end - bytes, chunk = start >> dsm->chunk_shift, count = (uint64_t)dsm->pe_count;
    uint64_t word = quoit_dsm_fetch(dsm, &dsm->chunks[chunk / count], (int)(chunk % count));
    if (word == 0 || word > dsm->slot_count)
        return false;
    uint64_t page = quoit_dsm_page_of_slot(dsm, (int32_t)word - 1) + (start % dsm->chunk_bytes >> dsm->page_shift);
    uint64_t word_of_home =
        dsm->is_direct ? 1 : quoit_dsm_fetch(dsm, &dsm->homes[page], quoit_dsm_directory_of(dsm, page));
    int home = quoit_dsm_home_in(word_of_home);
    for (uint64_t at = end - HEADER_BYTES; home != QUOIT_DSM_NO_HOME && at >= start && at < end; at -= HEADER_BYTES) {
        struct header header;
        const char *from = quoit_dsm_master(dsm, page) + (at & (dsm->page_bytes - 1));
        quoit_dsm_get(dsm, &header, from, sizeof header, home);
        uint64_t block = at + HEADER_BYTES;
        if (header.mark == LIVE && header.start == (uintptr_t)dsm->space + block && offset - block < header.bytes) {
            *block_out = (struct quoit_dsm_block){dsm->space + block, header.bytes};
            return true;
        }
    }
    return false;
}

/* A small block begins in the page of the address or in the one before; a large one with a page, its header before. */
bool quoit_dsm_heap_block(struct quoit_dsm *dsm, const char *address, struct quoit_dsm_block *block_out)
{
    uint64_t offset = quoit_dsm_offset_of(dsm, address), page_start = offset & ~(dsm->page_bytes - 1);
    uint64_t own_bytes = offset / HEADER_BYTES * HEADER_BYTES - page_start;
    if (own_bytes > 0 && search_part(dsm, page_start + own_bytes, own_bytes, offset, block_out))
        return true;
    for (int i = 0; i < SEARCH_PAGES && page_start > 0; i++, page_start -= dsm->page_bytes) {
        if (search_part(dsm, page_start, i == 0 ? dsm->page_bytes : HEADER_BYTES, offset, block_out))
            return true;
    }
    return false;
}

void quoit_dsm_heap_name(struct quoit_dsm *dsm, const char *address, char *text, size_t bytes)
{
    struct quoit_dsm_block block;
    if (quoit_dsm_offset_of(dsm, address) >= dsm->heap_bytes)
        snprintf(text, bytes, "%p, in the variables marked DSM_SHARED, byte %zu", (const void *)address,
                 (size_t)(address - dsm->globals));
    else if (quoit_dsm_heap_block(dsm, address, &block))
        snprintf(text, bytes, "%p, byte %zu of the block of %zu bytes at %p", (const void *)address,
                 (size_t)(address - block.start), (size_t)block.bytes, (void *)block.start);
    else
        snprintf(text, bytes, "%p", (const void *)address);
}
