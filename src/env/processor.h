/* SPDX-License-Identifier: BSD-3-Clause */
/* processor.h - which processor a thread runs on, without binding it: it is moved, and may go everywhere again at once.
 *
 * Threads: any; each moves itself. Errors: what the kernel refuses is left as it is.
 */
#ifndef QUOIT_ENV_PROCESSOR_H
#define QUOIT_ENV_PROCESSOR_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* The processors that the calling thread may run on, if these are all of the machine. False: somebody has chosen
 * (taskset, oshrun --bind-to, a control group, the program), and threads stay where they were put. */
bool quoit_processor_is_free(cpu_set_t *allowed_out);
/* The `index`th of those allowed, from 0 on; -1: there are not so many. */
int quoit_processor_nth(const cpu_set_t *allowed, uint32_t index);
/* Takes the calling thread to one of those allowed. May take tens of microseconds. False: the kernel refused, or the
 * thread may not run on just these any more, since somebody has chosen in the meantime: it stays. */
bool quoit_processor_go(int processor, const cpu_set_t *allowed);

#endif
