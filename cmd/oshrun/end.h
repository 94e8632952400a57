/* SPDX-License-Identifier: BSD-3-Clause */
/* end.h - the decision that the job must end. The first reason counts; what runs then gets a moment and SIGKILL. */
#ifndef OSHRUN_END_H
#define OSHRUN_END_H

#include "job.h"

void end_begin(struct job *job, enum end_reason reason, int status, uint32_t culprit, uint64_t grace_ns);
/* Another PE has the same to tell: the grace begins anew, as long as all is over within a second. */
void end_prolong(struct job *job, uint64_t grace_ns);
/* To the process group of each PE. */
void end_signal_all(struct job *job, int signal_number);
/* To the program of each PE, not to what stands between. */
void end_signal_programs(struct job *job, int signal_number);
/* As oshrun itself was told to end: the first asks the PEs, the second does not ask. */
void end_interrupt(struct job *job, int signal_number);
/* Whether output that waits for its reader is dropped: oshrun was told to end, by a signal or --timeout. Without that
 * it waits for ever, as for a pager. */
bool end_gives_up_output(struct job *job, uint64_t now_ns);
/* Returns the next deadline. */
uint64_t end_step(struct job *job, uint64_t now_ns);
bool end_is_over(const struct job *job);

#endif
