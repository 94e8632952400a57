/* SPDX-License-Identifier: BSD-3-Clause */
/* notice.h - the log of write notices of each PE, read by the others with gets: nothing has to be sent.
 *
 * An entry names a run of pages and, in its lap, how often the log had gone round when it was written, so that a reader
 * knows an entry that was overwritten meanwhile. Overwritten notices are treated as notices of every page: the writer
 * lets a quarter of the log go by at most before it settles, so the diffs of an overwritten entry have arrived. */
#ifndef QUOIT_DSM_NOTICE_H
#define QUOIT_DSM_NOTICE_H

#include "dsm/state.h"

/* Adds a page to the notices of this interval, which end at known[me]. Returns its version: the position after it. */
uint64_t quoit_dsm_notice_add(struct quoit_dsm *dsm, uint64_t *position, uint64_t interval_start, uint64_t page);

/* Adds a notice of no page: others can tell whether they have applied it. */
void quoit_dsm_notice_add_empty(struct quoit_dsm *dsm, uint64_t *position);

/* Applies what the log of `writer` has up to position `to`. is_settled: all diffs of these notices have arrived. */
void quoit_dsm_notice_apply(struct quoit_dsm *dsm, int writer, uint64_t to, bool is_settled);

#endif
