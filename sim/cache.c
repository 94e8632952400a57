/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/cache.h"
#include "base/assert.h"
#include "sim/world.h"

#include <sys/mman.h>

#define PAGE_BYTES 4096u

struct page {
    uint64_t touched_at;       /* the clock of its processor */
    struct sim_cores *toucher; /* NULL: nobody yet */
};

struct sim_cache {
    uint64_t bytes; /* of this structure */
    uint64_t page_count;
    struct page pages[];
};

struct sim_cache *sim_cache_new(const struct sim_world *world)
{
    uint64_t page_count = world->config.job.host_count * world->memory_bytes / PAGE_BYTES + 1;
    uint64_t bytes = sizeof(struct sim_cache) + page_count * sizeof(struct page);
    struct sim_cache *cache =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    quoit_assert(cache != MAP_FAILED);
    cache->bytes = bytes;
    cache->page_count = page_count;
    return cache;
}

void sim_cache_free(struct sim_cache *cache)
{
    if (cache)
        munmap(cache, cache->bytes);
}

/* How much longer a byte of this page takes, in ps, than one in the own cache. */
static uint64_t touch(struct sim_world *world, const char *at, size_t bytes, uint64_t handed_ps)
{
    struct sim_cores *own = world->current->cores;
    if (at < world->memory || at >= world->memory + world->config.job.host_count * world->memory_bytes)
        return 0;
    struct page *page = &world->cache->pages[(uint64_t)(at - world->memory) / PAGE_BYTES];
    const struct sim_cores *last = page->toucher;
    bool is_cached = last && last->touched_bytes - page->touched_at <= world->model.cache_bytes;
    own->touched_bytes += bytes;
    page->toucher = own;
    page->touched_at = own->touched_bytes;
    return !is_cached ? world->model.far_ps_per_byte : last == own ? 0 : handed_ps;
}

uint64_t sim_cache_copy_ns(struct sim_world *world, const char *to, const char *from, size_t bytes,
                           uint64_t ps_per_byte)
{
    uint64_t ps = ps_per_byte * bytes;
    if (!world->cache || !world->current)
        return ps / 1000;
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES;
        ps += part * touch(world, from ? from + at : NULL, part, world->model.handed_read_ps_per_byte);
        ps += part * touch(world, to ? to + at : NULL, part, world->model.handed_write_ps_per_byte);
    }
    return ps / 1000;
}
