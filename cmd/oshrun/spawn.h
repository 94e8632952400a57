/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.h - starts the PEs. */
#ifndef OSHRUN_SPAWN_H
#define OSHRUN_SPAWN_H

#include "job.h"

/* Before the name of a variable that is for the PEs, and not for oshrun. */
#define SPAWN_KEPT_PREFIX "QUOIT_OF_PES_"

/* What begins each line of a PE's output; malloc'd. */
char *spawn_tag(const struct job *job, const struct pe *pe);
/* Between fork and exec: limits, signals and mask as the program that the user started would have found them. */
void spawn_restore(const struct job *job);
/* Starts every PE of this machine. False if one could not be started, which was reported; the job must end. */
bool spawn_all(struct job *job);

#endif
