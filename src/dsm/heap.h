/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.h - which block of dsm_malloc an address is in. */
#ifndef QUOIT_DSM_HEAP_H
#define QUOIT_DSM_HEAP_H

#include "dsm/state.h"

struct quoit_dsm_block {
    char *start;
    uint64_t bytes;
};

/* Searches the homes' pages back from an address that is mapped here, for as far as a few thousand of them. Needs the
 * library's lock; touches nothing of the program's view. */
bool quoit_dsm_heap_block(struct quoit_dsm *dsm, const char *address, struct quoit_dsm_block *block_out);

#endif
