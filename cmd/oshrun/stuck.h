/* SPDX-License-Identifier: BSD-3-Clause */
/* stuck.h - a job that stands still: every PE waits, or one is in shmem_finalize, as exit(0) does, and all others wait.
 *
 * Over several machines each agent looks at its PEs, and the head decides; docs/design/stillness.md has the rule.
 *
 * Where none is in shmem_finalize it only warns, and only if no thread, child or signal handler of a PE might end its
 * wait. Where one is: if another waits for a lock that it holds, nobody can release that any more, and the job is
 * ended. If all others wait, or do nothing but poll in vain, and nothing moves, it warns; later it ends the job if some
 * poll, whose processes have one thread each.
 */
#ifndef OSHRUN_STUCK_H
#define OSHRUN_STUCK_H

#include "job.h"

/* Begins a round (rounds.h) when one is due, until all PEs have entered shmem_finalize. Returns when to call again. */
uint64_t stuck_step(struct job *job, uint64_t now_ns);
/* Of an agent: looks at its host, and answers the head's question. */
void stuck_answer(struct job *job, const void *bytes, size_t count);
/* Of the head: that answer. The last one of a round decides. */
void stuck_take(struct host *host, const void *bytes, size_t count);

#endif
