/* SPDX-License-Identifier: BSD-3-Clause */
/* home.h - homes that move.
 *
 * Between two barriers of all PEs each PE sees every notice of the others exactly once, so all come to the same verdict
 * without a message: a page with one writer in that time moves to it. What dsm_migrate asks for travels as words at
 * each PE that the others read at the barrier. Needs the library's lock. */
#ifndef QUOIT_DSM_HOME_H
#define QUOIT_DSM_HOME_H

#include "dsm/state.h"

/* A page was written in this epoch, here or, as a notice says, by another PE. */
void quoit_dsm_written(struct quoit_dsm *dsm, uint64_t page, int writer);

/* After a barrier and the notices that came with it, all diffs arrived: moves homes. Collective where homes migrate:
 * ends with a barrier then. */
void quoit_dsm_homes_move(struct quoit_dsm *dsm);

/* One page now has its home elsewhere; the new home takes its content from the old one. All PEs do it between two
 * barriers. */
void quoit_dsm_home_move(struct quoit_dsm *dsm, uint64_t page, int from, int to);

#endif
