/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/heap_default.h"
#include "env/limits.h"
#include "env/map.h"
#include "host/layout.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT_ALIGN      QUOIT_HUGE_PAGE_BYTES
#define SEGMENTS_BYTES_MAX (64ull << 30) /* of a host: a port's window */
#define HEAP_BYTES_MIN     (1u << 20)
#define ALONE_BYTES        (1ull << 36)
#define CHECKED_BYTES      (64u << 20)

/* Bytes of segments on a host that the limits of this process (ulimit -v, -f) allow; a half of the addresses is left to
 * the program, and to the heap of its own that each PE maps once more. */
static uint64_t allowed_segments_bytes(uint32_t map_count)
{
    uint64_t addresses = quoit_limits_address_bytes(), file = quoit_limits_file_bytes(), bytes = SEGMENTS_BYTES_MAX;
    if (addresses != UINT64_MAX && addresses / 2 / (map_count + 1) < bytes)
        bytes = addresses / 2 / (map_count + 1);
    return file / 4 * 3 < bytes ? file / 4 * 3 : bytes; /* the memory of a host is more than its segments */
}

uint64_t quoit_heap_default_bytes(uint32_t pes_of_machine, uint32_t pes_of_host, uint32_t map_count,
                                  uint64_t data_bytes, uint64_t most_bytes)
{
    uint64_t heap = quoit_limits_memory_bytes() / 4 * 3 / pes_of_machine;
    uint64_t stride = allowed_segments_bytes(map_count) / pes_of_host / SEGMENT_ALIGN * SEGMENT_ALIGN;
    uint64_t before_heap = (QUOIT_RUNTIME_BYTES + data_bytes + SEGMENT_ALIGN - 1) / SEGMENT_ALIGN * SEGMENT_ALIGN;
    if (stride < before_heap + HEAP_BYTES_MIN)
        stride = before_heap + HEAP_BYTES_MIN;
    if (heap > stride - before_heap)
        heap = stride - before_heap;
    if (heap > most_bytes)
        heap = most_bytes;
    return heap < HEAP_BYTES_MIN ? HEAP_BYTES_MIN : heap;
}

uint64_t quoit_heap_default_alone_bytes(uint64_t data_bytes)
{
    uint64_t addresses = quoit_limits_address_bytes() / 4, file = quoit_limits_file_bytes();
    uint64_t bytes = quoit_heap_most_bytes() < ALONE_BYTES ? quoit_heap_most_bytes() : ALONE_BYTES;
    uint64_t others = QUOIT_RUNTIME_BYTES + data_bytes + 3ull * QUOIT_HUGE_PAGE_BYTES;
    bytes = addresses < bytes ? addresses : bytes;
    if (file < bytes + others)
        bytes = file > others ? file - others : 0;
    bytes = bytes / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    return bytes ? bytes : QUOIT_HUGE_PAGE_BYTES;
}

uint64_t quoit_heap_most_bytes(void)
{
    const char *preloaded = getenv("LD_PRELOAD"); /* in which Valgrind puts a library of its own first */
    return preloaded && strstr(preloaded, "/vgpreload_") ? CHECKED_BYTES : UINT64_MAX;
}
