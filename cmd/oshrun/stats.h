/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h - what the links carried. */
#ifndef OSHRUN_STATS_H
#define OSHRUN_STATS_H

#include "job.h"

/* On standard error. */
void stats_print(struct job *job);
/* As JSON. False: it could not be written, which was told. */
bool stats_write(const struct job *job, const char *path);

#endif
