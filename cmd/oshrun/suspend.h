/* SPDX-License-Identifier: BSD-3-Clause */
/* suspend.h - stops and continues the PEs of a job, and with it the front and the clock of limits, as stopping.h says.
 */
#ifndef OSHRUN_SUSPEND_H
#define OSHRUN_SUSPEND_H

#include "job.h"

void suspend_take(struct job *job, enum stopping_event event);
/* The front has sent SIGCONT. */
void suspend_continue(struct job *job);
/* The PE that may have the terminal was stopped by this signal, or has been continued. As a shell does with its
 * foreground job: a PE that accesses the terminal gets it, and Ctrl-Z to that PE stops the whole job. Any other stop
 * was requested from outside, and lasts until that is continued from outside. */
void suspend_stopped(struct job *job, const struct pe *pe, int signal_number);
void suspend_continued(struct job *job, const struct pe *pe);
/* Of the head, which reads the terminal itself: Ctrl-Z. */
void suspend_key(struct job *job);
/* The job goes on once it is to end. */
void suspend_step(struct job *job);

#endif
