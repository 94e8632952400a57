/* SPDX-License-Identifier: BSD-3-Clause */
/* stuck.h - warns of a PE that waits in shmem_finalize, as exit(0) does, while all others wait for something else.
 *
 * It only warns: a thread of a PE, or a signal handler, may still end the wait by a plain store.
 */
#ifndef OSHRUN_STUCK_H
#define OSHRUN_STUCK_H

#include "job.h"

/* Checks once a second while some PEs, but not all, have entered shmem_finalize. Returns when to check again. */
uint64_t stuck_step(struct job *job, uint64_t now_ns);

#endif
