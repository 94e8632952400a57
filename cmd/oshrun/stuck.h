/* SPDX-License-Identifier: BSD-3-Clause */
/* stuck.h - warns of a PE that waits in shmem_finalize, as exit(0) does, while all others wait for what will not come.
 *
 * A warning and no end: a thread of a PE, or a signal handler, may still wake it by a plain store.
 */
#ifndef OSHRUN_STUCK_H
#define OSHRUN_STUCK_H

#include "job.h"

/* Looks once a second while some PEs, and not all, have come to shmem_finalize. Returns when to look again. */
uint64_t stuck_step(struct job *job, uint64_t now_ns);

#endif
