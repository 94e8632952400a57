/* SPDX-License-Identifier: BSD-3-Clause */
/* races.h - finds stores of two PEs to one byte, or a store and a load, that no synchronisation orders (DSM_RACES).
 *
 * Each diff is recorded with its interval: how far the PE had applied each log (a vector clock), and where its notices
 * end. An interval precedes another exactly if the other had applied its notices. At each barrier of all PEs the diffs
 * since the last barrier are compared, pair by pair. A PE works on copies of the pages of which it is the home too, so
 * that its own stores and arriving diffs can be distinguished. The threads of a PE count as one. Needs the library's
 * lock.
 *
 * Loads (DSM_RACES=reads): a page is open for one instruction at a time. The fault of an access opens its page, the
 * processor traps after the instruction, and the page is closed. An interval that has only loads gets an empty notice,
 * which distinguishes later acquires from earlier ones. */
#ifndef QUOIT_DSM_RACES_H
#define QUOIT_DSM_RACES_H

#include "dsm/state.h"

void quoit_dsm_races_start(struct quoit_dsm *dsm); /* collective */
void quoit_dsm_races_stop(struct quoit_dsm *dsm);

/* A store faulted at an instruction: the first to its page in this interval. */
void quoit_dsm_races_place(struct quoit_dsm *dsm, uint64_t page, const void *instruction);
/* One piece of a page that was changed in this interval; masks as of quoit_dsm_diff_masks. */
void quoit_dsm_races_add(struct quoit_dsm *dsm, uint64_t page, size_t offset, const uint64_t *masks, size_t bytes);
/* Whether loads are followed too. */
bool quoit_dsm_races_reads(const struct quoit_dsm *dsm);
/* A load of so many bytes faulted. */
void quoit_dsm_races_load(struct quoit_dsm *dsm, uint64_t page, size_t offset, size_t bytes, const void *instruction);
/* Whether the interval that ends now has loads, and needs a notice. */
bool quoit_dsm_races_has_loads(const struct quoit_dsm *dsm);
/* step: this thread opened a page for one instruction. stepped: the instruction was executed, and the pages that the
 * thread opened are closed; false: there were none. */
void quoit_dsm_races_step(struct quoit_dsm *dsm, uint64_t page);
bool quoit_dsm_races_stepped(struct quoit_dsm *dsm);

/* The interval ends, its notices before `position`. */
void quoit_dsm_races_end(struct quoit_dsm *dsm, uint64_t position);
/* Within a barrier, all PEs having ended their intervals: compares, reports, forgets. Has barriers of its own. */
void quoit_dsm_races_compare(struct quoit_dsm *dsm);

#endif
