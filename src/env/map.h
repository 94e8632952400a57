/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - files of memory, mapped so that huge pages can back them. Any thread. */
#ifndef QUOIT_ENV_MAP_H
#define QUOIT_ENV_MAP_H

#include <stdint.h>

#define QUOIT_HUGE_PAGE_BYTES (2u << 20)

/* The first `bytes` of a file, at an address that is a multiple of QUOIT_HUGE_PAGE_BYTES, shared; no memory is taken.
 * `protection` is that of mmap. NULL, with errno set, if the kernel refuses. The caller unmaps it. */
void *quoit_map_file(int fd, uint64_t bytes, int protection);

/* Backs [base + from, base + to) of a shared mapping by huge pages where that can be done: every whole huge page that
 * ends in the range, also when it starts before it, so that a region which grows in small steps gets them too. What is
 * there stays. base is a multiple of QUOIT_HUGE_PAGE_BYTES and mapped from such an offset; memory of the range was
 * taken. A kernel that cannot do it leaves all as it was. */
void quoit_map_huge(void *base, uint64_t from, uint64_t to);

#endif
