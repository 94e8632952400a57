/* SPDX-License-Identifier: BSD-3-Clause */
/* job_descriptor.h - identifies the job that a memory belongs to, for `quoit top`.
 *
 * The launcher publishes one in the header of each host's memory; on several machines the oshrun that the user started
 * publishes one in its summary of all hosts, too (boot/summary.h).
 */
#ifndef QUOIT_HOST_JOB_DESCRIPTOR_H
#define QUOIT_HOST_JOB_DESCRIPTOR_H

#include <stdint.h>

#include "host/job_config.h"

#define QUOIT_JOB_DESCRIPTOR_MAGIC 0x51434136u
#define QUOIT_PROGRAM_NAME_BYTES   40
#define QUOIT_HOST_NAME_BYTES      128

/* `quoit top` finds it through the launcher's file descriptors. Writer: the launcher, before any other process has the
 * memory. */
struct quoit_job_descriptor {
    uint32_t magic; /* QUOIT_JOB_DESCRIPTOR_MAGIC, which changes with the layout; 0: a job without a launcher */
    uint32_t host;
    struct quoit_job_config job;
    uint64_t start_ns;                      /* start of the job on this machine, monotonic clock */
    char program[QUOIT_PROGRAM_NAME_BYTES]; /* of PE 0 */
    char host_name[QUOIT_HOST_NAME_BYTES];  /* of a host's memory: "host3", or the name of its machine */
    uint64_t tag;                           /* chance, the same on all machines of the job; 0: there is one machine */
    uint32_t is_part;                       /* the other hosts are other machines, and what runs here is an agent */
    uint32_t unused;
};

#endif
