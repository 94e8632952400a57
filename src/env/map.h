/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - shared file mappings placed so that huge pages can back them. Any thread. */
#ifndef QUOIT_ENV_MAP_H
#define QUOIT_ENV_MAP_H

#include <stdint.h>

#include "base/status.h"

#define QUOIT_HUGE_PAGE_BYTES (2u << 20)

/* Maps the first `bytes` of a file shared, with mmap's `protection`, at a multiple of QUOIT_HUGE_PAGE_BYTES. Allocates
 * no memory. The mapping is excluded from core files, which would otherwise allocate every page in order to write it.
 * NULL with errno set if the kernel refuses. The caller unmaps it. */
void *quoit_map_file(int fd, uint64_t bytes, int protection);

/* Excludes a range of whole pages from core files, or includes it again. */
void quoit_map_leave_out(void *base, uint64_t bytes);
void quoit_map_put_in(void *base, uint64_t bytes);

/* Allocates the memory of [from, to) of a file mapped shared and writable at `base`, a multiple of
 * QUOIT_HUGE_PAGE_BYTES both in address and in file offset. Huge pages are used for every whole one that ends in the
 * range, even if it starts before it, so a region that grows in small steps gets them too. Contents are preserved.
 * A process that is killed meanwhile ends after a step of some megabytes.
 * Returns 0 or the errno of the refusal; part of the range may be allocated then. */
QUOIT_MUST_USE int quoit_map_take(void *base, uint64_t from, uint64_t to);

/* The same for the pages that `bytes` at any address lie in, and no others: none becomes part of a huge page. */
QUOIT_MUST_USE int quoit_map_take_small(void *start, uint64_t bytes);

/* Bytes of those pages that are not in memory: never allocated, or swapped out. All of them if the kernel does not
 * answer. */
uint64_t quoit_map_missing_bytes(void *start, uint64_t bytes);

#endif
