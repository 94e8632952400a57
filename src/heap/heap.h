/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.h - the symmetric allocator: blocks in a region that others own. Pure.
 *
 * What it is: an allocator whose bookkeeping lies outside the region (a user's overrun cannot destroy it, and the
 * region is not touched before the user does). Deterministic: the same sequence of calls gives the same offsets on
 * every PE; it never looks at addresses. Works on offsets 0..limit_bytes of the region; the caller adds the base.
 *
 * Growth: used_bytes() tells how far from the start blocks reach; the caller makes that much of the region usable
 * before it hands out a block. Freed space is merged with its neighbours at once.
 *
 * Cost: prepare, take, give, resize and block_bytes take constant expected time each, not only on average, whatever the
 * number of blocks. Two walk: find walks all blocks, and a take that no larger block can serve walks the free ones of
 * its own size class and of those that alignment adds, before it refuses.
 *
 * Threads: one at a time. Errors: no room is QUOIT_HEAP_NONE. A free of what is no block is INVALID.
 */
#ifndef QUOIT_HEAP_HEAP_H
#define QUOIT_HEAP_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define QUOIT_HEAP_ALIGN 64 /* of every block: two PEs never share a cache line of two blocks */
#define QUOIT_HEAP_NONE  UINT64_MAX

struct quoit_heap;

/* NULL when the process is out of memory. limit_bytes is a multiple of QUOIT_HEAP_ALIGN. */
struct quoit_heap *quoit_heap_new(uint64_t limit_bytes);
/* NULL is allowed. */
void quoit_heap_delete(struct quoit_heap *heap);

/* Takes private memory for the records of the next take or resize; to be called before each. False: there is none, and
 * nothing changed. Apart from them, so that a caller can tell this PE's lack of memory from a full heap, which is the
 * same on all PEs. */
QUOIT_MUST_USE bool quoit_heap_prepare(struct quoit_heap *heap);
/* The offset of a new block of at least `bytes` (>0), aligned to `align` (a power of two; less than QUOIT_HEAP_ALIGN
 * means that), or QUOIT_HEAP_NONE. */
uint64_t quoit_heap_take(struct quoit_heap *heap, uint64_t bytes, uint64_t align);
/* INVALID, and nothing changes, if no block starts at `offset`. */
QUOIT_MUST_USE enum quoit_status quoit_heap_give(struct quoit_heap *heap, uint64_t offset);
/* Changes the size (>0) in place. FULL if there is no room behind the block, INVALID if there is no such block; both
 * leave everything as it was. */
QUOIT_MUST_USE enum quoit_status quoit_heap_resize(struct quoit_heap *heap, uint64_t offset, uint64_t bytes);
/* The size that was asked for of the block starting at offset; 0 if there is none. */
uint64_t quoit_heap_block_bytes(const struct quoit_heap *heap, uint64_t offset);
/* The block that `offset` lies in, for messages: its start and size; 0 if none. */
int quoit_heap_find(const struct quoit_heap *heap, uint64_t offset, uint64_t *start_out, uint64_t *bytes_out);
/* One past the end of the last block in use. */
uint64_t quoit_heap_used_bytes(const struct quoit_heap *heap);

#endif
