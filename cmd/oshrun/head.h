/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - oshrun's side of a job over several machines: starts an agent on each by a remote shell, and takes what they
 * say for what a job on this machine would say itself. */
#ifndef OSHRUN_HEAD_H
#define OSHRUN_HEAD_H

#include "job.h"

/* Starts the agents, which start the PEs. False: reported; the job must end. */
bool head_start(struct job *job);
/* Returns when to call again at the latest. */
uint64_t head_step(struct job *job, uint64_t now_ns);
void head_close(struct job *job);

#endif
