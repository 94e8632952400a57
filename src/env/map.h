/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - files of memory, mapped so that huge pages can back them. Any thread. */
#ifndef QUOIT_ENV_MAP_H
#define QUOIT_ENV_MAP_H

#include <stdint.h>

#include "base/status.h"

#define QUOIT_HUGE_PAGE_BYTES (2u << 20)

/* The first `bytes` of a file, at an address that is a multiple of QUOIT_HUGE_PAGE_BYTES, shared; no memory is taken.
 * `protection` is that of mmap. Left out of core files, which would take the memory of every page to write it. NULL,
 * with errno set, if the kernel refuses. The caller unmaps it. */
void *quoit_map_file(int fd, uint64_t bytes, int protection);

/* Whether core files hold a mapped range of whole pages: not, or as the rest of the process. */
void quoit_map_leave_out(void *base, uint64_t bytes);
void quoit_map_put_in(void *base, uint64_t bytes);

/* Takes the memory of [from, to) of a file that is mapped shared and writable at base, a multiple of
 * QUOIT_HUGE_PAGE_BYTES in address and in file. As huge pages where that can be done: every whole one that ends in the
 * range, also when it starts before it, so that a region which grows in small steps gets them too. What is there stays.
 * 0, or the errno with which the kernel refuses; some of it may be taken then. */
QUOIT_MUST_USE int quoit_map_take(void *base, uint64_t from, uint64_t to);

#endif
