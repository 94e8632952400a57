/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.h - which block of dsm_malloc an address is in. */
#ifndef QUOIT_DSM_HEAP_H
#define QUOIT_DSM_HEAP_H

#include "dsm/state.h"

struct quoit_dsm_block {
    char *start;
    uint64_t bytes;
};

/* Searches backwards for the header of the block, in at most a few thousand pages at their homes. The address is mapped
 * here. Needs the library's lock; does not touch the program's view. */
bool quoit_dsm_heap_block(struct quoit_dsm *dsm, const char *address, struct quoit_dsm_block *block_out);

/* Where a shared address is, in a variable or in a block, for messages. Needs the lock as well. */
void quoit_dsm_heap_name(struct quoit_dsm *dsm, const char *address, char *text, size_t bytes);

#endif
