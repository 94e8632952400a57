/* SPDX-License-Identifier: BSD-3-Clause */
/* awaited.h - whom a job waits for while it starts and ends, and how long (env/await.h).
 *
 * Programs may do other things before shmem_init, so a PE that has not called it is only reported. Between the layout
 * of the memory and GO only Quoit's own code runs: there processes that hang end the job. In shmem_finalize those that
 * are stopped are reported; stuck.h has the rest. After that proxies that work towards their end are waited for; those
 * that sleep, or are stopped, are killed soon, since the status is known by then.
 */
#ifndef OSHRUN_AWAITED_H
#define OSHRUN_AWAITED_H

#include "job.h"

/* Reports, or ends the job, when that is due. Returns the time of the next call. */
uint64_t awaited_step(struct job *job, uint64_t now_ns);
/* Of an agent: what the processes of its host do, for the head; and of the head: that answer. */
void awaited_answer(struct job *job);
void awaited_take(struct host *host, const void *bytes, size_t count);

#endif
