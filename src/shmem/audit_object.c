/* SPDX-License-Identifier: BSD-3-Clause */
/* Heap blocks and program variables: what allocated them, what freed them, and what is left at the end. */
#include "shmem/audit_state.h"
#include "base/assert.h"
#include "base/bisect.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FREED_BLOCKS_MAX 256           /* in quarantine */
#define FREED_BYTES_MAX  (64ull << 20) /* in quarantine */
#define POISONED_MAX     (1ull << 20)

/* --- variables --- */

static int by_address(const void *a, const void *b)
{
    const struct quoit_audit_variable *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* Of several names for one address the largest object remains. */
static void sort_variables(struct quoit_audit *audit)
{
    size_t kept = 0;
    qsort(audit->variables, audit->variable_count, sizeof *audit->variables, by_address);
    for (size_t i = 0; i < audit->variable_count; i++)
        if (kept == 0 || audit->variables[kept - 1].address != audit->variables[i].address)
            audit->variables[kept++] = audit->variables[i];
    audit->variable_count = kept;
}

/* Imported variables have a copy in the program. Those of a stripped program that it does not export have no bounds. */
void quoit_audit_read_variables(struct quoit_audit *audit)
{
    struct quoit_symbol symbol;
    quoit_symbols_open(&audit->symbols, "/proc/self/exe");
    audit->variables = calloc(audit->symbols.count + 1, sizeof *audit->variables);
    for (size_t i = 0; audit->variables && i < audit->symbols.count; i++) {
        if (!quoit_symbols_get(&audit->symbols, i, &symbol) || symbol.is_function)
            continue;
        uint64_t address = audit->load_base + symbol.address;
        if (quoit_job_file_address((const void *)address) != 0)
            audit->variables[audit->variable_count++] =
                (struct quoit_audit_variable){address, symbol.bytes, symbol.name};
    }
    sort_variables(audit);
}

/* Names, addresses and sizes of all variables, hashed to 31 bits. */
static uint64_t fold_variables(const struct quoit_audit *audit)
{
    uint64_t mix = 0;
    for (uint32_t i = 0; i < quoit_job.segments.program_count; i++)
        mix = (mix ^ quoit_job.segments.list[i].bytes) * 0x100000001b3u;
    for (size_t i = 0; i < audit->variable_count; i++) {
        const struct quoit_audit_variable *variable = &audit->variables[i];
        for (const char *c = variable->name; *c; c++)
            mix = (mix ^ (uint8_t)*c) * 0x100000001b3u;
        mix = (mix ^ (variable->address - audit->load_base)) * 0x9e3779b97f4a7c15u;
        mix = (mix ^ mix >> 29 ^ variable->bytes) * 0xbf58476d1ce4e5b9u;
    }
    return mix >> 33;
}

/* Each PE contributes its hash and the hash's complement: where the OR has a bit in both, two PEs differ. */
void quoit_audit_compare_programs(void)
{
    const uint64_t mask = (1u << 31) - 1;
    if (!quoit_job.audit || quoit_job.pe_count == 1)
        return;
    uint64_t fold = fold_variables(quoit_job.audit);
    uint64_t all = quoit_coll_agree(quoit_job.world, fold | (~fold & mask) << 31, "shmem_init");
    if (quoit_job.pe == 0 && (all & all >> 31 & mask) != 0)
        quoit_say("shmem_init: the programs of this job have different global variables, or at different places: a "
                  "transfer between them that names a variable hits another one; memory of shmem_malloc is symmetric "
                  "[Q0123]");
}

/* The variable that contains an address, or NULL. */
static const struct quoit_audit_variable *find_variable(const struct quoit_audit *audit, uint64_t address)
{
    size_t place = quoit_bisect(audit->variables, audit->variable_count, sizeof *audit->variables, address);
    const struct quoit_audit_variable *variable = place ? &audit->variables[place - 1] : NULL;
    return variable && address - variable->address < variable->bytes ? variable : NULL;
}

/* --- blocks --- */

/* 1 + the index of the last block that begins at or before `offset`. */
static size_t find_place(const struct quoit_audit *audit, uint64_t offset)
{
    return quoit_bisect(audit->blocks, audit->block_count, sizeof *audit->blocks, offset);
}

static struct quoit_audit_block *find_block(const struct quoit_audit *audit, uint64_t offset)
{
    size_t place = find_place(audit, offset);
    return place ? &audit->blocks[place - 1] : NULL;
}

static void fill_guard(const struct quoit_audit_block *block)
{
    memset((char *)quoit_job.regions.heap.base + block->offset + block->bytes, QUOIT_AUDIT_POISON,
           QUOIT_AUDIT_GUARD_BYTES);
}

static void check_guard(const struct quoit_audit_block *block, const char *call)
{
    const unsigned char *guard = (const unsigned char *)quoit_job.regions.heap.base + block->offset + block->bytes;
    char made[QUOIT_AUDIT_PLACE_BYTES];
    for (size_t i = 0; i < QUOIT_AUDIT_GUARD_BYTES; i++)
        if (guard[i] != QUOIT_AUDIT_POISON)
            quoit_wrong(QUOIT_WRONG_OBJECT, call,
                        "byte %zu past the end of a block of %" PRIu64 " bytes at %p from %s%s was written", i,
                        block->bytes, (void *)(quoit_job.regions.heap.base + block->offset), block->call,
                        quoit_audit_place(block->from, made));
}

void quoit_audit_taken(uint64_t offset, uint64_t bytes, const char *call)
{
    struct quoit_audit *audit = quoit_job.audit;
    pthread_mutex_lock(&audit->lock);
    if (audit->block_count == audit->block_limit) {
        size_t limit = audit->block_limit ? 2 * audit->block_limit : 64;
        void *blocks = realloc(audit->blocks, limit * sizeof *audit->blocks);
        if (!blocks)
            quoit_boot_abort(&quoit_job.boot, 1, "no memory for --check");
        audit->blocks = blocks;
        audit->block_limit = limit;
    }
    size_t place = find_place(audit, offset);
    memmove(&audit->blocks[place + 1], &audit->blocks[place], (audit->block_count - place) * sizeof *audit->blocks);
    audit->blocks[place] =
        (struct quoit_audit_block){.offset = offset, .bytes = bytes, .call = call, .from = quoit_audit_from()};
    fill_guard(&audit->blocks[place]);
    audit->block_count++;
    pthread_mutex_unlock(&audit->lock);
}

void quoit_audit_resized(uint64_t offset, uint64_t bytes)
{
    struct quoit_audit *audit = quoit_job.audit;
    pthread_mutex_lock(&audit->lock);
    struct quoit_audit_block *block = find_block(audit, offset);
    block->bytes = bytes;
    fill_guard(block);
    pthread_mutex_unlock(&audit->lock);
}

void quoit_audit_is_live(uint64_t offset, const char *call)
{
    const struct quoit_audit_block *block = find_block(quoit_job.audit, offset);
    char made[QUOIT_AUDIT_PLACE_BYTES], ended[QUOIT_AUDIT_PLACE_BYTES];
    uint64_t at = block ? offset - block->offset : 0;
    if (!block || at >= block->bytes)
        return;
    if (at != 0)
        quoit_wrong(QUOIT_WRONG_BLOCK, call,
                    "ptr is %p, which is %" PRIu64 " bytes into a block of %" PRIu64
                    " bytes from %s%s; its beginning is needed",
                    (void *)(quoit_job.regions.heap.base + offset), at, block->bytes, block->call,
                    quoit_audit_place(block->from, made));
    if (!block->end_call) {
        check_guard(block, call);
        return;
    }
    quoit_wrong(QUOIT_WRONG_BLOCK, call,
                "ptr is %p, a block of %" PRIu64 " bytes from %s%s that %s%s has freed already",
                (void *)(quoit_job.regions.heap.base + offset), block->bytes, block->call,
                quoit_audit_place(block->from, made), block->end_call, quoit_audit_place(block->end_from, ended));
}

/* What is poisoned of a freed block: the first and the last MiB, since all of a large one would take seconds. The end
 * of the first part, and the beginning of the last. */
static uint64_t head_end(const struct quoit_audit_block *block)
{
    return block->bytes < POISONED_MAX ? block->bytes : POISONED_MAX;
}

static uint64_t tail_begin(const struct quoit_audit_block *block)
{
    return block->bytes < 2 * POISONED_MAX ? head_end(block) : block->bytes - POISONED_MAX;
}

static void poison(const struct quoit_audit_block *block)
{
    char *bytes = (char *)quoit_job.regions.heap.base + block->offset;
    memset(bytes, QUOIT_AUDIT_POISON, head_end(block));
    memset(bytes + tail_begin(block), QUOIT_AUDIT_POISON, block->bytes - tail_begin(block));
}

/* The offset of the first poisoned byte written since the block was freed, or the block's size. */
static uint64_t find_write(const struct quoit_audit_block *block)
{
    const unsigned char *bytes = (const unsigned char *)quoit_job.regions.heap.base + block->offset;
    for (uint64_t i = 0; i < block->bytes; i = i + 1 == head_end(block) ? tail_begin(block) : i + 1)
        if (bytes[i] != QUOIT_AUDIT_POISON)
            return i;
    return block->bytes;
}

static void check_untouched(const struct quoit_audit_block *block, const char *call)
{
    char made[QUOIT_AUDIT_PLACE_BYTES], ended[QUOIT_AUDIT_PLACE_BYTES];
    uint64_t at = find_write(block);
    if (at < block->bytes)
        quoit_wrong(QUOIT_WRONG_FREED, call,
                    "byte %" PRIu64 " of a block of %" PRIu64 " bytes from %s%s was written after %s%s had freed it",
                    at, block->bytes, block->call, quoit_audit_place(block->from, made), block->end_call,
                    quoit_audit_place(block->end_from, ended));
}

/* Returns quarantined blocks to the allocator, oldest first, until at most this many are left. */
static void give_back(struct quoit_audit *audit, size_t most_blocks, uint64_t most_bytes, const char *call)
{
    while (audit->freed_count > most_blocks || audit->freed_bytes > most_bytes) {
        size_t oldest = audit->block_count;
        for (size_t i = 0; i < audit->block_count; i++)
            if (audit->blocks[i].end_call &&
                (oldest == audit->block_count || audit->blocks[i].end_turn < audit->blocks[oldest].end_turn))
                oldest = i;
        quoit_assert(oldest < audit->block_count);
        struct quoit_audit_block block = audit->blocks[oldest];
        check_untouched(&block, call);
        enum quoit_status status = quoit_heap_give(quoit_job.allocator, block.offset);
        quoit_assert(status == QUOIT_OK);
        audit->freed_count--;
        audit->freed_bytes -= block.bytes;
        audit->block_count--;
        memmove(&audit->blocks[oldest], &audit->blocks[oldest + 1],
                (audit->block_count - oldest) * sizeof *audit->blocks);
    }
}

void quoit_audit_given(uint64_t offset, const char *call)
{
    struct quoit_audit *audit = quoit_job.audit;
    pthread_mutex_lock(&audit->lock);
    struct quoit_audit_block *block = find_block(audit, offset);
    quoit_assert(block != NULL);
    quoit_assert(block->offset == offset);
    check_guard(block, call);
    block->end_call = call;
    block->end_from = quoit_audit_from();
    block->end_turn = audit->turn++;
    poison(block);
    audit->freed_count++;
    audit->freed_bytes += block->bytes;
    give_back(audit, FREED_BLOCKS_MAX, FREED_BYTES_MAX, call);
    pthread_mutex_unlock(&audit->lock);
}

bool quoit_audit_reclaim(const char *call)
{
    struct quoit_audit *audit = quoit_job.audit;
    pthread_mutex_lock(&audit->lock);
    bool has_freed = audit->freed_count != 0;
    give_back(audit, 0, 0, call);
    pthread_mutex_unlock(&audit->lock);
    return has_freed;
}

/* --- ranges --- */

void quoit_audit_describe(const void *address, char *text, size_t text_bytes)
{
    uint64_t offset = (uintptr_t)address - quoit_job.regions.heap.base;
    bool is_in_heap = offset < quoit_job.regions.heap.bytes;
    const struct quoit_audit_block *block = is_in_heap ? find_block(quoit_job.audit, offset) : NULL;
    if (block)
        snprintf(text, text_bytes, "%p (block of %" PRIu64 " bytes + %" PRIu64 ")", address, block->bytes,
                 offset - block->offset);
    else
        snprintf(text, text_bytes, is_in_heap ? "%p (no object)" : "%p", address);
}

static void check_block(const void *address, uint64_t offset, size_t bytes, const char *argument, const char *call)
{
    const struct quoit_audit_block *block = find_block(quoit_job.audit, offset);
    char made[QUOIT_AUDIT_PLACE_BYTES], ended[QUOIT_AUDIT_PLACE_BYTES];
    if (!block)
        quoit_wrong(QUOIT_WRONG_OBJECT, call, "%s %p is in no block of the symmetric heap", argument, address);
    uint64_t at = offset - block->offset;
    if (at < block->bytes && block->end_call)
        quoit_wrong(QUOIT_WRONG_FREED, call,
                    "%s %p lies %" PRIu64 " bytes into a block of %" PRIu64 " bytes from %s%s that %s%s has freed",
                    argument, address, at, block->bytes, block->call, quoit_audit_place(block->from, made),
                    block->end_call, quoit_audit_place(block->end_from, ended));
    if (at >= block->bytes)
        quoit_wrong(QUOIT_WRONG_OBJECT, call,
                    "%s %p is in no block; it lies %" PRIu64 " bytes past the end of a block of %" PRIu64
                    " bytes at %p from %s%s",
                    argument, address, at - block->bytes, block->bytes,
                    (void *)(quoit_job.regions.heap.base + block->offset), block->call,
                    quoit_audit_place(block->from, made));
    if (bytes > block->bytes - at)
        quoit_wrong(
            QUOIT_WRONG_OBJECT, call,
            "%s %p with %zu bytes ends %" PRIu64 " bytes past the end of a block of %" PRIu64 " bytes at %p from %s%s",
            argument, address, bytes, bytes - (block->bytes - at), block->bytes,
            (void *)(quoit_job.regions.heap.base + block->offset), block->call, quoit_audit_place(block->from, made));
}

void quoit_audit_object(const void *address, size_t bytes, const char *argument, const char *call)
{
    struct quoit_audit *audit = quoit_job.audit;
    uint64_t offset = (uintptr_t)address - quoit_job.regions.heap.base;
    if (offset < quoit_job.regions.heap.bytes) {
        pthread_mutex_lock(&audit->lock);
        check_block(address, offset, bytes, argument, call);
        pthread_mutex_unlock(&audit->lock);
        return;
    }
    const struct quoit_audit_variable *variable = find_variable(audit, (uintptr_t)address);
    uint64_t at = variable ? (uintptr_t)address - variable->address : 0;
    if (!variable || bytes <= variable->bytes - at)
        return;
    quoit_wrong(QUOIT_WRONG_OBJECT, call,
                "%s %p with %zu bytes ends %" PRIu64 " bytes past the end of that variable, which has %" PRIu64
                " bytes",
                argument, address, bytes, bytes - (variable->bytes - at), variable->bytes);
}

void quoit_audit_local(const void *address, size_t bytes, const char *argument, const char *call)
{
    uint64_t offset = (uintptr_t)address - quoit_job.regions.heap.base;
    if (offset >= quoit_job.regions.heap.bytes && offset < quoit_job.boot.layout.job.heap_bytes)
        quoit_wrong_address(call, argument, address, bytes);
    quoit_audit_object(address, bytes, argument, call);
}

void quoit_audit_end_objects(void)
{
    struct quoit_audit *audit = quoit_job.audit;
    give_back(audit, 0, 0, "shmem_finalize");
    for (size_t i = 0; i < audit->block_count; i++)
        check_guard(&audit->blocks[i], "shmem_finalize");
}
