/* SPDX-License-Identifier: BSD-3-Clause */
/* end.h - the decision to end the job. The first reason counts; running PEs get a grace period, then SIGKILL. */
#ifndef OSHRUN_END_H
#define OSHRUN_END_H

#include "job.h"

void end_begin(struct job *job, enum end_reason reason, int status, uint32_t culprit, uint64_t grace_ns);
/* Of an agent, to which end_begin does nothing: oshrun has decided, or has gone. */
void end_as_ordered(struct job *job, enum end_question question);
/* Another PE reports the same: the grace period restarts, as long as everything ends within a second. */
void end_prolong(struct job *job, uint64_t grace_ns);
/* Kills the PEs that are not in shmem_global_exit. */
void end_kill_others(struct job *job);
/* Whether a PE, which has ended, was killed by a key of the terminal, which means the job. */
bool end_is_by_key(const struct pe *pe);
/* Signals the process group of a PE of this machine; of each PE. */
void end_signal(const struct pe *pe, int signal_number);
void end_signal_all(struct job *job, int signal_number);
/* The same, but for the PE of this process; 0: none. */
void end_signal_all_but(struct job *job, pid_t spared, int signal_number);
/* Signals the program of each PE, not a shell or debugger around it. */
void end_signal_programs(struct job *job, int signal_number);
/* Notes where each PE of this machine is, in job->notes, and discards what was noted before. It goes on; but one that
 * is asked does not. */
void end_note(struct job *job, enum end_question question);
void end_forget(struct job *job);
/* A process that watches over this one has gone: no process waits for a status or for output any more. */
void end_lose_guard(struct job *job);
/* On a signal to oshrun itself: the first one notes where the PEs are and asks them to end, the second kills them. */
void end_interrupt(struct job *job, int signal_number);
/* Whether output that waits for its reader is dropped: only if oshrun was asked to end, by a signal or --timeout.
 * Otherwise it waits for ever, as for a pager. */
bool end_gives_up_output(struct job *job, uint64_t now_ns);
/* Returns the next deadline. */
uint64_t end_step(struct job *job, uint64_t now_ns);
bool end_is_over(const struct job *job);

#endif
