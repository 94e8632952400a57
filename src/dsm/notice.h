/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.h - the log of write notices of each PE. Other PEs read it by gets; no notice is sent.
 *
 * The log is a ring. An entry names a run of pages and the lap in which it was written, by which a reader detects that
 * an entry was overwritten. An overwritten notice counts as a notice of every page. The writer settles after at most a
 * quarter of the log, so the diffs of an overwritten entry have arrived. */
#ifndef QUOIT_DSM_NOTICE_H
#define QUOIT_DSM_NOTICE_H

#include "dsm/state.h"

/* Adds a page to the notices of this interval, which end at known[me]. Returns its version: the position after it. */
uint64_t quoit_dsm_notice_add(struct quoit_dsm *dsm, uint64_t *position, uint64_t interval_start, uint64_t page);

/* Adds a notice of no page, which only marks a position that others can have applied. */
void quoit_dsm_notice_add_empty(struct quoit_dsm *dsm, uint64_t *position);

/* Applies what the log of `writer` has up to position `to`. is_settled: all diffs of these notices have arrived. */
void quoit_dsm_notice_apply(struct quoit_dsm *dsm, int writer, uint64_t to, bool is_settled);

#endif
