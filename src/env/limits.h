/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - what this process may take of the machine: what the machine has, what resource limits (ulimit) leave of
 * it, and what control groups do, of version 1 or 2, those above the own one included.
 *
 * All of it may change while a job runs, and is only a hint where others take memory at the same time. UINT64_MAX: no
 * limit, or none that can be found out (no /proc, no /sys). Any thread.
 */
#ifndef QUOIT_ENV_LIMITS_H
#define QUOIT_ENV_LIMITS_H

#include <stdint.h>

/* Memory that there is in all: of the machine, or what a group may have of it. */
uint64_t quoit_limits_memory_bytes(void);
/* Memory that could still be taken now. */
uint64_t quoit_limits_free_bytes(void);
/* Address space that this process could still map (ulimit -v). */
uint64_t quoit_limits_address_bytes(void);
/* The largest file that may be made (ulimit -f); a larger one would be a signal. */
uint64_t quoit_limits_file_bytes(void);
/* Processors that this process may run on at once, at least 1: those of its affinity, or as many as a group's share of
 * time keeps busy. */
uint32_t quoit_limits_core_count(void);

#endif
