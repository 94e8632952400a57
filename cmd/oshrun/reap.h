/* SPDX-License-Identifier: BSD-3-Clause */
/* reap.h - children that ended or stopped, and the effect on the job. */
#ifndef OSHRUN_REAP_H
#define OSHRUN_REAP_H

#include "job.h"

/* After SIGCHLD. */
void reap_children(struct job *job);

#endif
