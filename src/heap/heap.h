/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.h - the symmetric allocator: blocks in a region owned by the caller. Pure.
 *
 * What it is: an allocator with its metadata outside the region, where a user's overrun cannot destroy it; the region
 * itself is not touched before the user does. Deterministic: it never looks at addresses, so the same sequence of calls
 * gives the same offsets on every PE. Works on offsets 0..limit_bytes of the region; the caller adds the base.
 *
 * Growth: used_bytes() tells how far blocks reach from the start; the caller makes that much of the region usable
 * before it hands out a block. Freed blocks are merged with their free neighbours at once.
 *
 * Cost: prepare, take, give, resize and block_bytes take constant expected time per call, not only amortised, whatever
 * the number of blocks. Two calls walk: find visits all blocks; a take that no larger class can serve visits the free
 * blocks of its own size class, and of those that alignment adds, before it refuses.
 *
 * Threads: one at a time. Errors: no room is QUOIT_HEAP_NONE; freeing what is not a block is INVALID.
 */
#ifndef QUOIT_HEAP_HEAP_H
#define QUOIT_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define QUOIT_HEAP_ALIGN 64 /* of every block: blocks of two PEs never share a cache line */
#define QUOIT_HEAP_NONE  UINT64_MAX

struct quoit_heap;

/* A new allocator for limit_bytes, a multiple of QUOIT_HEAP_ALIGN; NULL when the process is out of memory. The caller
 * deletes it. */
struct quoit_heap *quoit_heap_new(uint64_t limit_bytes);
/* NULL is allowed. */
void quoit_heap_delete(struct quoit_heap *heap);

/* Allocates private memory for the records of the next take or resize; called before each. False: out of memory, and
 * nothing changed. A separate call lets the caller tell this PE's lack of private memory from a full heap, which is the
 * same on all PEs. */
QUOIT_MUST_USE bool quoit_heap_prepare(struct quoit_heap *heap);
/* The offset of a new block of at least `bytes` (> 0), aligned to `align` (a power of two; at least QUOIT_HEAP_ALIGN is
 * used), or QUOIT_HEAP_NONE. */
uint64_t quoit_heap_take(struct quoit_heap *heap, uint64_t bytes, uint64_t align);
/* Frees the block that starts at `offset`. INVALID, and nothing changes, if there is none. */
QUOIT_MUST_USE enum quoit_status quoit_heap_give(struct quoit_heap *heap, uint64_t offset);
/* Resizes a block in place to `bytes` (> 0). FULL if there is no room behind it, INVALID if there is no such block;
 * both change nothing. */
QUOIT_MUST_USE enum quoit_status quoit_heap_resize(struct quoit_heap *heap, uint64_t offset, uint64_t bytes);
/* The size requested for the block that starts at `offset`; 0 if there is none. */
uint64_t quoit_heap_block_bytes(const struct quoit_heap *heap, uint64_t offset);
/* The block that contains `offset`, for messages: its start and size. 0 if there is none. */
int quoit_heap_find(const struct quoit_heap *heap, uint64_t offset, uint64_t *start_out, uint64_t *bytes_out);
/* One past the end of the last block in use. */
uint64_t quoit_heap_used_bytes(const struct quoit_heap *heap);

#endif
