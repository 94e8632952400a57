/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.h - symmetric memory that occupies none before its pages are used: by the extensions of Quoit's library. Of
 * another one, the whole block is taken, then returned to the kernel where that is possible, and pages are taken when
 * they are touched. */
#ifndef QUOIT_DSM_MEMORY_H
#define QUOIT_DSM_MEMORY_H

#include <shmem.h>
#include <stddef.h>

#ifdef QUOIT_SHMEM_H
#include <shmemx.h>
#else
#include <string.h>
#include <sys/mman.h>
#endif

#define QUOIT_DSM_MEMORY_PAGE 4096u

/* Collective. A block of whole pages that reads as zero; NULL: the symmetric heap has no room. For shmem_free. */
static inline void *quoit_dsm_memory_reserve(size_t bytes)
{
    size_t whole = (bytes + QUOIT_DSM_MEMORY_PAGE - 1) / QUOIT_DSM_MEMORY_PAGE * QUOIT_DSM_MEMORY_PAGE;
#ifdef QUOIT_SHMEM_H
    return shmemx_reserve(QUOIT_DSM_MEMORY_PAGE, whole);
#else
    void *block = shmem_align(QUOIT_DSM_MEMORY_PAGE, whole);
    if (block && madvise(block, whole, MADV_REMOVE) != 0)
        memset(block, 0, whole);
    return block;
#endif
}

/* Bytes that the symmetric heap of each PE has at most; 0: not known. */
static inline size_t quoit_dsm_memory_limit(void)
{
#ifdef QUOIT_SHMEM_H
    return shmemx_heap_limit();
#else
    return 0;
#endif
}

/* Takes the memory of a range of such a block at a PE, which another PE may do; or of private memory at the own one.
 * Returns 0 or an errno. */
static inline int quoit_dsm_memory_take(void *start, size_t bytes, int pe)
{
#ifdef QUOIT_SHMEM_H
    return shmemx_take(start, bytes, pe);
#else
    (void)start, (void)bytes, (void)pe;
    return 0;
#endif
}

#endif
