/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - explains on standard error how the job ended. */
#ifndef OSHRUN_REPORT_H
#define OSHRUN_REPORT_H

#include "job.h"

/* The wait descriptors of the PEs of this machine as text, in their notes. */
void report_wait_descs(struct job *job);
void report_end(struct job *job);
/* A warning, with the positions in job->notes. QUOIT_ROUNDS_WARNS: a PE waits in shmem_finalize, and all others wait or
 * poll (Q0220). QUOIT_ROUNDS_HANGS: every PE waits (Q0140 to Q0142); nothing, if no cause fits their positions. */
void report_still(struct job *job, enum quoit_rounds_verdict verdict);

#endif
