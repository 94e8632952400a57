/* SPDX-License-Identifier: BSD-3-Clause */
/* processor.h - moves a thread to a processor without binding it there: the affinity mask is restored at once.
 *
 * Threads: any; each moves only itself. Errors: if the kernel refuses, the thread stays where it is.
 */
#ifndef QUOIT_ENV_PROCESSOR_H
#define QUOIT_ENV_PROCESSOR_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the allowed processors in *allowed_out; true if they are all processors of the machine. False: an affinity
 * was set (taskset, oshrun --bind-to, a control group, the program), and threads must stay where they were put. */
bool quoit_processor_is_free(cpu_set_t *allowed_out);
/* Names the kernel of this machine, since it has been booted; processes in whatever namespaces and containers of it get
 * the same value. 0: unknown. */
uint32_t quoit_processor_kernel(void);
/* Names the processors that the calling thread may run on and their kernel: threads of whatever processes, in whatever
 * namespaces and containers, that share all of them get the same value. 0: unknown. */
uint64_t quoit_processor_pool(void);
/* The processor that the calling thread runs on; negative: unknown. */
int quoit_processor_own(void);
/* The `index`th allowed processor, counted from 0; -1 if there are fewer. */
int quoit_processor_nth(const cpu_set_t *allowed, uint32_t index);
/* Moves the calling thread to an allowed processor, which may take tens of microseconds. False, and the thread stays:
 * the kernel refused, or the affinity is no longer `allowed` because it was changed meanwhile. */
bool quoit_processor_go(int processor, const cpu_set_t *allowed);

#endif
