/* SPDX-License-Identifier: BSD-3-Clause */
/* heap_trace.h - a recording of allocator calls: an array of struct heap_event in the order of the calls. Written by
 * heap_record.c, read by heap_replay.c, on one machine. */
#ifndef QUOIT_BENCH_HEAP_TRACE_H
#define QUOIT_BENCH_HEAP_TRACE_H

#include <stdint.h>

enum heap_deed { HEAP_TAKE, HEAP_GIVE, HEAP_RESIZE };

struct heap_event {
    uint32_t deed;  /* enum heap_deed */
    uint32_t align; /* 0: as malloc */
    uint64_t block; /* an address; 0: none was given */
    uint64_t old;   /* RESIZE: the block before, or 0 */
    uint64_t bytes;
};

#endif
