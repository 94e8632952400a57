/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.h - starts the PEs. */
#ifndef OSHRUN_SPAWN_H
#define OSHRUN_SPAWN_H

#include "job.h"

/* Starts every PE. False if one could not be started, which was reported; the job must end. */
bool spawn_all(struct job *job);

#endif
