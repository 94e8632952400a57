/* SPDX-License-Identifier: BSD-3-Clause */
/* allocation_rig.h - for tests: one allocation fails, and what is not given back is counted.
 *
 * The linker leads the program's allocations here (--wrap, in tests/CMakeLists.txt), and not those within libraries.
 * Only those between rig_allocations_begin() and rig_allocations_end() count; one thread allocates meanwhile.
 */
#ifndef QUOIT_PROXY_ALLOCATION_RIG_H
#define QUOIT_PROXY_ALLOCATION_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static struct {
    bool is_counting;
    uint32_t fails_at; /* the n-th; 0: none */
    uint32_t count;
    int32_t live_count;
} rig_allocations;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *memory);

static bool rig_may_allocate(void)
{
    if (!rig_allocations.is_counting)
        return true;
    if (++rig_allocations.count == rig_allocations.fails_at)
        return false;
    rig_allocations.live_count++;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return rig_may_allocate() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return rig_may_allocate() ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (!rig_may_allocate())
        return NULL;
    rig_allocations.live_count -= rig_allocations.is_counting && old;
    return __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return rig_may_allocate() ? __real_aligned_alloc(alignment, bytes) : NULL;
}

void __wrap_free(void *memory)
{
    rig_allocations.live_count -= rig_allocations.is_counting && memory;
    __real_free(memory);
}

/* fails_at: which allocation, from 1 on; 0: none. */
static inline void rig_allocations_begin(uint32_t fails_at)
{
    rig_allocations.count = 0;
    rig_allocations.live_count = 0;
    rig_allocations.fails_at = fails_at;
    rig_allocations.is_counting = true;
}

/* Returns how many allocations were not given back. */
static inline int32_t rig_allocations_end(void)
{
    rig_allocations.is_counting = false;
    return rig_allocations.live_count;
}

static inline bool rig_allocations_has_failed(void)
{
    return rig_allocations.fails_at != 0 && rig_allocations.count >= rig_allocations.fails_at;
}

#endif
