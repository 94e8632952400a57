/* SPDX-License-Identifier: BSD-3-Clause */
/* top.h - what quoit top shows of a job over several machines: the head keeps a summary of all hosts (boot/summary.h),
 * and asks the agents when it is asked.
 *
 * It is beside the job: nothing here waits, is needed by the job, or goes on once the job is to end; what fails here
 * leaves quoit top without a job to show.
 */
#ifndef OSHRUN_TOP_H
#define OSHRUN_TOP_H

#include "job.h"

/* Of the head: begins as soon as there is a layout, and ends with the decision to end the job. Returns when to call
 * again at the latest. */
uint64_t top_step(struct job *job, uint64_t now_ns);
/* Of the head: what the agent of a host answered. */
void top_take(struct host *host, const void *answer, size_t bytes);
/* Of an agent: answers the head. */
void top_answer(struct job *job, const void *round, size_t bytes);
/* Repeating it does nothing. */
void top_close(struct job *job);

#endif
