/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - --profile: where the time of the job went, from what its PEs recorded (trace/profile.h).
 *
 * Over several machines the agents send the records of their PEs when these have ended; their clocks are compared by
 * when their PEs left the same collectives.
 */
#ifndef OSHRUN_PROFILE_H
#define OSHRUN_PROFILE_H

#include <stdbool.h>

struct job;

/* Opens the file if --profile is given. False: it cannot be written, which was reported. */
bool profile_open(struct job *job);
/* After all PEs have ended: prints the summary on standard error and writes the file. False: it could not be written,
 * which was reported. */
bool profile_finish(struct job *job);

#endif
