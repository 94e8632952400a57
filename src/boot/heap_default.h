/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_default.h - the limit of each PE's symmetric heap where SHMEM_SYMMETRIC_SIZE does not say. Any thread. */
#ifndef QUOIT_BOOT_HEAP_DEFAULT_H
#define QUOIT_BOOT_HEAP_DEFAULT_H

#include <stdint.h>

/* Three quarters of the machine's memory for all PEs on it together, and no more than the limits of this process, a
 * port's window, and the PEs' quoit_heap_most_bytes() allow, of which `most_bytes` is the least. map_count: how often a
 * process of the job maps the memory of a host. */
uint64_t quoit_heap_default_bytes(uint32_t pes_of_machine, uint32_t pes_of_host, uint32_t map_count,
                                  uint64_t data_bytes, uint64_t most_bytes);
/* The same for this process as a job of one PE without a launcher: a limit of address space alone, since pages are
 * allocated as the heap grows. A quarter of the remaining address space, since the heap is mapped twice, and at most
 * the largest file; the rest is left to the program. */
uint64_t quoit_heap_default_alone_bytes(uint64_t data_bytes);
/* The most that a default should be in this process: less than any machine's under Valgrind, whose leak check reads
 * every page. UINT64_MAX: no limit. */
uint64_t quoit_heap_most_bytes(void);

#endif
