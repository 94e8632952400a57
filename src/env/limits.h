/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - what this process may use of the machine: the machine's resources, reduced by resource limits (ulimit) and
 * by control groups, version 1 or 2, including all ancestors.
 *
 * All limits may change while a job runs, and other processes compete for the same memory, so the values are hints.
 * UINT64_MAX: no limit, or none that can be read (no /proc, no /sys). Any thread, also an
 * isolated one (boot/apart.h): nothing is allocated.
 */
#ifndef QUOIT_ENV_LIMITS_H
#define QUOIT_ENV_LIMITS_H

#include <stdint.h>

/* Total memory of the machine, or the lowest limit of a control group. */
uint64_t quoit_limits_memory_bytes(void);
/* Memory that could still be allocated now. */
uint64_t quoit_limits_free_bytes(void);
/* Address space that this process may still map (ulimit -v). */
uint64_t quoit_limits_address_bytes(void);
/* The largest file that this process may create (ulimit -f); exceeding it raises SIGXFSZ. */
uint64_t quoit_limits_file_bytes(void);
/* Processors that this process may use at once, at least 1: its affinity mask, reduced by the CPU quota of its groups.
 */
uint32_t quoit_limits_core_count(void);
/* Raises the limit of open files as far as this process may (ulimit -Hn): that of a shell is 1,024. */
void quoit_limits_raise_files(void);

#endif
