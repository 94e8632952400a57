/* SPDX-License-Identifier: BSD-3-Clause */
/* coherence.h - home-based lazy release consistency: fetches, diffs, notices.
 *
 * A release makes the writes of this PE since the last release visible to the PEs that acquire from it: it sends their
 * diffs to the homes and logs their notices. An acquire from a PE applies that PE's own notices and those that it had
 * applied itself, so that causality is transitive. The other PE takes no part, but a releaser that knows who acquires
 * writes them there.
 *
 * All but quoit_dsm_fault need the library's lock, and none touches the program's view. */
#ifndef QUOIT_DSM_COHERENCE_H
#define QUOIT_DSM_COHERENCE_H

#include "dsm/state.h"

void quoit_dsm_lock(struct quoit_dsm *dsm);
void quoit_dsm_unlock(struct quoit_dsm *dsm);

/* An instruction of the program touched an address in space without access: makes it accessible. Takes the lock. */
void quoit_dsm_fault(struct quoit_dsm *dsm, const void *address, bool is_write, const void *instruction);

/* Makes pages accessible as faults would; consecutive pages of one home come in one transfer. */
void quoit_dsm_touch(struct quoit_dsm *dsm, const void *address, size_t bytes, bool is_write);

void quoit_dsm_release(struct quoit_dsm *dsm);
void quoit_dsm_acquire_from(struct quoit_dsm *dsm, int pe);
/* The same with what that PE handed over: see struct quoit_dsm_handed. */
void quoit_dsm_acquire_handed(struct quoit_dsm *dsm, int pe, const struct quoit_dsm_record *items,
                              uint32_t writer_count, uint32_t record_count);
/* Applies the notices of all PEs up to their heads; every diff of them has arrived. The needs of all pages end, unless
 * this PE knows of later diffs. */
void quoit_dsm_acquire_all(struct quoit_dsm *dsm, const uint64_t *heads);

/* The pages of a notice; `version` is what their homes must have from that writer. */
void quoit_dsm_noticed(struct quoit_dsm *dsm, uint64_t page, uint64_t count, int writer, uint64_t version,
                       bool is_settled);
/* Drops all copies, or one. */
void quoit_dsm_drop_all(struct quoit_dsm *dsm);
void quoit_dsm_drop(struct quoit_dsm *dsm, uint64_t page);
/* The next release logs a page that was changed at its home by an atomic. */
void quoit_dsm_add_extra(struct quoit_dsm *dsm, uint64_t page);
/* Returns when all diffs of this PE have arrived. */
void quoit_dsm_diffs_settle(struct quoit_dsm *dsm);

/* The home of a page; one without a home gets that of the placement rule. */
int quoit_dsm_home_of(struct quoit_dsm *dsm, uint64_t page);
static inline int quoit_dsm_directory_of(const struct quoit_dsm *dsm, uint64_t page)
{
    return (int)(page / 64 % (uint64_t)dsm->pe_count);
}

#endif
