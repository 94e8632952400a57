/* SPDX-License-Identifier: BSD-3-Clause */
/* space.h - the program's addresses: reserved at the same place on every PE, mapped chunk by chunk as they are touched.
 */
#ifndef QUOIT_DSM_SPACE_H
#define QUOIT_DSM_SPACE_H

#include "dsm/state.h"

/* Collective, once: reserves dsm->space. All PEs agree on an address that is free on each of them. */
void quoit_dsm_space_reserve(struct quoit_dsm *dsm);
/* Collective: whether all PEs pass true. */
bool quoit_dsm_space_all(struct quoit_dsm *dsm, bool could);
void quoit_dsm_space_release(struct quoit_dsm *dsm);

static inline bool quoit_dsm_space_has(const struct quoit_dsm *dsm, const void *address)
{
    return quoit_dsm_offset_of(dsm, address) != UINT64_MAX;
}

/* Takes the memory of pages at a PE, with that of their versions there, before anybody uses it: this PE before it opens
 * them or becomes their home, and for a home that was appointed without having used them the PE that needs it first.
 * Lack of memory ends the job with a message. A handler calls it too, for its own PE. */
void quoit_dsm_take(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int pe);
/* The same for the twins of pages on this PE. */
void quoit_dsm_take_twins(struct quoit_dsm *dsm, uint64_t page, uint64_t count);

/* The page of an address in space; an untouched chunk gets its slot, and this PE's view its mapping. */
uint64_t quoit_dsm_space_page(struct quoit_dsm *dsm, const void *address);

#endif
