/* SPDX-License-Identifier: BSD-3-Clause */
/* reap.h - children that ended or stopped, and the effect on the job. */
#ifndef OSHRUN_REAP_H
#define OSHRUN_REAP_H

#include "job.h"

/* Of the head: what an agent reports of a PE, or of its proxy, that has ended. */
struct reap_ended {
    int32_t wait_status;
    int32_t exec_error;
};
void reap_pe(struct pe *pe, const struct reap_ended *ended);
void reap_proxy(struct host *host, int wait_status);
/* After SIGCHLD. */
void reap_children(struct job *job);

#endif
