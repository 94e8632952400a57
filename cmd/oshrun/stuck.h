/* SPDX-License-Identifier: BSD-3-Clause */
/* stuck.h - a PE that waits in shmem_finalize, as exit(0) does, while others wait for something else.
 *
 * If another waits for a lock that it holds, nobody can release that any more, and the job is ended. If all others
 * wait, or do nothing but poll in vain, and nothing moves, it warns; later it ends the job if some poll, whose
 * processes have one thread each. Where all sleep it only warns: a thread of a PE, or a signal handler, may still end a
 * wait by a plain store.
 */
#ifndef OSHRUN_STUCK_H
#define OSHRUN_STUCK_H

#include "job.h"

/* Checks once a second while some PEs, but not all, have entered shmem_finalize. Returns when to check again. */
uint64_t stuck_step(struct job *job, uint64_t now_ns);

#endif
