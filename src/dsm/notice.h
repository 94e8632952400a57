/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.h - the log of write notices of each PE, and how notices reach the PE that acquires a lock.
 *
 * The log is a ring. An entry names a run of pages and the lap in which it was written, by which a reader detects that
 * an entry was overwritten. An overwritten notice counts as a notice of every page. The writer settles after at most a
 * quarter of the log, so the diffs of an overwritten entry have arrived.
 *
 * An acquirer that finds a lock free reads the releaser's `known` by one get, and with it the ring of the notices that
 * the releaser last published or applied, of any PE. To a PE that waits for its lock the releaser writes what that PE
 * lacks, as far as it has left its own `known` there. Notices that came by neither way are read from the logs, so both
 * may be incomplete.
 *
 * All functions need the library's lock. */
#ifndef QUOIT_DSM_NOTICE_H
#define QUOIT_DSM_NOTICE_H

#include "dsm/state.h"

#define QUOIT_DSM_RECENT_WORDS (QUOIT_DSM_RECENT * sizeof(struct quoit_dsm_record) / sizeof(uint64_t))

/* Adds a page to the notices of this interval, which end at known[me]. Returns its version: the position after it. */
uint64_t quoit_dsm_notice_add(struct quoit_dsm *dsm, uint64_t *position, uint64_t interval_start, uint64_t page);

/* Adds a notice of no page, which only marks a position that others can have applied. */
void quoit_dsm_notice_add_empty(struct quoit_dsm *dsm, uint64_t *position);

/* Publishes the notices up to `position`: a PE that reads known[me] from now on finds them in the log. */
void quoit_dsm_notice_publish(struct quoit_dsm *dsm, uint64_t position);

/* Applies what the log of `writer` has up to position `to`; what `records` lacks is read. is_settled: all diffs of
 * these notices have arrived. */
void quoit_dsm_notice_apply(struct quoit_dsm *dsm, int writer, uint64_t to, struct quoit_dsm_records records,
                            bool is_settled);

/* Reads `known` of another PE into an array of as many words as there are PEs and QUOIT_DSM_RECENT_WORDS more. Returns
 * its recent records, which may lie there. */
struct quoit_dsm_records quoit_dsm_notice_read(struct quoit_dsm *dsm, int pe, uint64_t *known);

/* Leaves the own `known` at a PE that will hand a lock over to this one, if what that PE has is much older. */
void quoit_dsm_notice_show(struct quoit_dsm *dsm, int pe);

/* What this PE hands over to another. False: of too many writers. */
bool quoit_dsm_notice_hand(struct quoit_dsm *dsm, int pe, struct quoit_dsm_handed *handed);

#endif
