/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - explains on standard error how the job ended. */
#ifndef OSHRUN_REPORT_H
#define OSHRUN_REPORT_H

#include "job.h"

/* The wishes of the PEs of this machine as text, in their notes. */
void report_wishes(struct job *job);
void report_end(struct job *job);

#endif
