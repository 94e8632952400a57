/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - files of memory, mapped so that huge pages can back them. Any thread. */
#ifndef QUOIT_ENV_MAP_H
#define QUOIT_ENV_MAP_H

#include <stdint.h>

#include "base/status.h"

#define QUOIT_HUGE_PAGE_BYTES (2u << 20)

/* The first `bytes` of a file, at an address that is a multiple of QUOIT_HUGE_PAGE_BYTES, shared; no memory is taken.
 * `protection` is that of mmap. NULL, with errno set, if the kernel refuses. The caller unmaps it. */
void *quoit_map_file(int fd, uint64_t bytes, int protection);

/* Takes the memory of [from, to) of a region of a file: `fd` from file_offset on, mapped shared at base, both multiples
 * of QUOIT_HUGE_PAGE_BYTES. As huge pages where that can be done: every whole one that ends in the range, also when it
 * starts before it, so that a region which grows in small steps gets them too. What is there stays. 0, or the errno
 * with which the kernel refuses; some of it may be taken then. */
QUOIT_MUST_USE int quoit_map_take(int fd, uint64_t file_offset, void *base, uint64_t from, uint64_t to);

#endif
