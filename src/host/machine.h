/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.h - what of the job runs on the machine of one host, and how its threads therefore wait.
 *
 * Emulated hosts are processes of one machine and share its processors and memory; a host behind a bridge has a machine
 * of its own. Hosts that a network joins may be either. The host's own proxy finds out and publishes it in the header
 * of the host's memory, where PEs read it after start; for a job of one host, which has no proxy, that is the process
 * that made the memory.
 */
#ifndef QUOIT_HOST_MACHINE_H
#define QUOIT_HOST_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "env/wait.h"
#include "host/job_config.h"

struct quoit_machine {
    struct quoit_wait_policy policy; /* of all threads of the job on this machine */
    uint32_t pe_count;               /* of the job, on this machine */
    uint32_t core_count;             /* processors that the machine gives the job */
};

/* is_one_machine: all hosts of the job are processes of this machine. */
struct quoit_machine quoit_machine_of(const struct quoit_job_config *job, uint32_t host, bool is_one_machine,
                                      uint32_t core_count);
/* A machine with so many of the job's hosts, which have so many PEs together. */
struct quoit_machine quoit_machine_with(const struct quoit_job_config *job, uint32_t host_count, uint32_t pe_count,
                                        uint32_t core_count);

#endif
