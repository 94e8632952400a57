/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h - what the links carried: --stats, --stats-json. */
#ifndef OSHRUN_STATS_H
#define OSHRUN_STATS_H

#include "job.h"

/* On standard error. */
void stats_print(struct job *job);
/* Writes JSON. False: it could not be written, which was reported. */
bool stats_write(const struct job *job, const char *path);
/* Of that JSON the items "links" and "network". */
void stats_write_items(const struct job *job, FILE *out);

#endif
