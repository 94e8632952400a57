/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cache.h"
#include "base/assert.h"
#include "sim/world.h"

#include <sys/mman.h>

#define PAGE_BYTES 4096u
#define LINE_BYTES 64u
#define MASK_BITS  64u /* processors that a line knows apart */

struct page {
    uint64_t touched_at;       /* the clock of its processor */
    struct sim_cores *toucher; /* NULL: nobody yet */
};

struct sim_cache {
    uint64_t bytes;  /* of this structure */
    uint64_t *lines; /* for each line the processors that have it, as bits */
    uint64_t page_count;
    struct page pages[];
};

static void *map_zeroes(uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    quoit_assert(at != MAP_FAILED);
    return at;
}

static uint64_t line_table_bytes(const struct sim_cache *cache)
{
    return cache->page_count * (PAGE_BYTES / LINE_BYTES) * sizeof(uint64_t);
}

struct sim_cache *sim_cache_new(const struct sim_world *world)
{
    uint64_t page_count = world->config.job.host_count * world->memory_bytes / PAGE_BYTES + 1;
    uint64_t bytes = sizeof(struct sim_cache) + page_count * sizeof(struct page);
    struct sim_cache *cache = map_zeroes(bytes);
    cache->bytes = bytes;
    cache->page_count = page_count;
    cache->lines = map_zeroes(line_table_bytes(cache));
    return cache;
}

void sim_cache_free(struct sim_cache *cache)
{
    if (!cache)
        return;
    munmap(cache->lines, line_table_bytes(cache));
    munmap(cache, cache->bytes);
}

static bool is_known(const struct sim_world *world, const char *at)
{
    return at >= world->memory && at < world->memory + world->config.job.host_count * world->memory_bytes;
}

enum place { PLACE_OWN, PLACE_HANDED, PLACE_FAR };

/* Where this page is. It is in the own cache then. Only what has to be fetched displaces something else, so the clock
 * of a cache counts that alone. */
static enum place touch(struct sim_world *world, const char *at, size_t bytes)
{
    struct sim_cores *own = world->current->cores;
    if (!is_known(world, at))
        return PLACE_OWN;
    struct page *page = &world->cache->pages[(uint64_t)(at - world->memory) / PAGE_BYTES];
    const struct sim_cores *last = page->toucher;
    bool is_cached = last && last->fetched_bytes - page->touched_at <= world->model.cache_bytes;
    bool is_own = is_cached && last == own;
    own->fetched_bytes += is_own ? 0 : bytes;
    page->toucher = own;
    page->touched_at = own->fetched_bytes;
    return is_own ? PLACE_OWN : is_cached ? PLACE_HANDED : PLACE_FAR;
}

/* How much longer a byte takes, in ps, than one that goes from the own cache to the own cache. */
static uint64_t longer_ps(const struct sim_model *model, enum place from, enum place to)
{
    const uint64_t read_ps[] = {0, model->handed_read_ps_per_byte, model->far_read_ps_per_byte};
    const uint64_t write_ps[] = {0, model->handed_write_ps_per_byte, model->far_write_ps_per_byte};
    return from == PLACE_FAR && to == PLACE_FAR ? model->far_both_ps_per_byte : read_ps[from] + write_ps[to];
}

uint64_t sim_cache_copy_ns(struct sim_world *world, const char *to, const char *from, size_t bytes,
                           uint64_t ps_per_byte)
{
    uint64_t ps = ps_per_byte * bytes;
    if (!world->cache || !world->current)
        return ps / 1000;
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES;
        enum place source = touch(world, from ? from + at : NULL, part);
        ps += part * longer_ps(&world->model, source, touch(world, to ? to + at : NULL, part));
    }
    return ps / 1000;
}

/* The processors that have the line of this byte; NULL: lines are not modelled. */
static uint64_t *holders_of(const struct sim_world *world, const char *at)
{
    if (!world->cache || !world->current || !is_known(world, at))
        return NULL;
    return &world->cache->lines[(uint64_t)(at - world->memory) / LINE_BYTES];
}

static uint64_t own_bit(const struct sim_world *world)
{
    return (uint64_t)1 << (uint64_t)(world->current->cores - world->shared_cores) % MASK_BITS;
}

uint64_t sim_cache_read_line_ns(const struct sim_world *world, const void *at)
{
    uint64_t *holders = holders_of(world, at);
    if (!holders)
        return 0;
    bool is_elsewhere = *holders != 0 && (*holders & own_bit(world)) == 0;
    *holders |= own_bit(world);
    return is_elsewhere ? world->model.line_read_ns : 0;
}

uint64_t sim_cache_write_line_ns(const struct sim_world *world, const void *at)
{
    uint64_t *holders = holders_of(world, at);
    if (!holders)
        return 0;
    bool is_elsewhere = (*holders & ~own_bit(world)) != 0;
    *holders = own_bit(world);
    return is_elsewhere ? world->model.line_write_ns : 0;
}
