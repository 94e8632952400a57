/* SPDX-License-Identifier: BSD-3-Clause */
/* job_descriptor.h - identifies the job that a host's memory belongs to, for `quoit top`.
 *
 * The launcher publishes one in the header of each host's memory.
 */
#ifndef QUOIT_HOST_JOB_DESCRIPTOR_H
#define QUOIT_HOST_JOB_DESCRIPTOR_H

#include <stdint.h>

#include "host/job_config.h"

#define QUOIT_JOB_DESCRIPTOR_MAGIC 0x51434135u
#define QUOIT_PROGRAM_NAME_BYTES   40

/* `quoit top` finds it through the launcher's file descriptors. Writer: the launcher, before any other process has the
 * memory. */
struct quoit_job_descriptor {
    uint32_t magic; /* QUOIT_JOB_DESCRIPTOR_MAGIC, which changes with the layout; 0: a job without a launcher */
    uint32_t host;
    struct quoit_job_config job;
    uint64_t start_ns;                      /* start of the job, monotonic clock */
    char program[QUOIT_PROGRAM_NAME_BYTES]; /* of PE 0 */
};

#endif
