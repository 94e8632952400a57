/* SPDX-License-Identifier: BSD-3-Clause */
/* inject.h - does what --fault asks for to the running job. */
#ifndef OSHRUN_INJECT_H
#define OSHRUN_INJECT_H

#include "job.h"

/* Does what is due and returns when the next is, UINT64_MAX if there is none. */
uint64_t inject_step(struct job *job, uint64_t now_ns);

#endif
