/* SPDX-License-Identifier: BSD-3-Clause */
/* inject.h - applies --fault to the running job. */
#ifndef OSHRUN_INJECT_H
#define OSHRUN_INJECT_H

#include "job.h"

/* Applies what is due; returns when the next change is due, UINT64_MAX if there is none. */
uint64_t inject_step(struct job *job, uint64_t now_ns);

#endif
