/* SPDX-License-Identifier: BSD-3-Clause */
/* job_descriptor.h - whose memory this is, as `quoit top` reads it.
 *
 * The launcher publishes one in the header of each host's memory.
 */
#ifndef QUOIT_HOST_JOB_DESCRIPTOR_H
#define QUOIT_HOST_JOB_DESCRIPTOR_H

#include <stdint.h>

#include "host/job_config.h"

#define QUOIT_JOB_DESCRIPTOR_MAGIC 0x51434132u
#define QUOIT_PROGRAM_NAME_BYTES   40

/* Who this memory belongs to, for `quoit top`, which finds it among the descriptors of the launcher. Writer: the
 * launcher, before anybody else has the memory. */
struct quoit_job_descriptor {
    uint32_t magic; /* QUOIT_JOB_DESCRIPTOR_MAGIC, which changes with this layout; 0: a job without a launcher */
    uint32_t host;
    struct quoit_job_config job;
    uint64_t start_ns;                      /* of the job, by the monotonic clock */
    char program[QUOIT_PROGRAM_NAME_BYTES]; /* of PE 0 */
};

#endif
