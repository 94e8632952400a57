/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.h - which ranks of a launcher are on which host, and the job config that follows from it. Pure: every host
 * makes the same of the same contacts.
 *
 * Hosts are numbered in the order of their lowest ranks. PEs are numbered host by host, on each in the order of ranks:
 * where the launcher places ranks in blocks, PE and rank are the same number.
 *
 * Threads: one at a time.
 */
#ifndef QUOIT_BOOT_HOSTS_H
#define QUOIT_BOOT_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "host/job_config.h"

#define QUOIT_HOSTS_TEXT_BYTES 64

/* What a process publishes of itself. */
struct quoit_hosts_entry {
    const char *machine; /* the same on all processes of a host */
    const char *name;    /* for messages */
    uint64_t data_bytes; /* of globals and statics, whole pages */
    uint64_t heap_bytes; /* asked for each PE; 0: the default */
    uint64_t heap_share; /* the default for all PEs of its host together */
    uint64_t tag;        /* chance */
};

struct quoit_hosts {
    uint32_t count;
    uint32_t rank_count;
    uint64_t data_bytes; /* the largest */
    uint64_t heap_bytes; /* as rank 0 asks */
    uint64_t tag;        /* of the job: rank 0's */
    struct {
        char machine[QUOIT_HOSTS_TEXT_BYTES];
        char name[QUOIT_HOSTS_TEXT_BYTES];
        uint32_t pe_count;
        uint32_t lowest_rank;
        uint64_t heap_share; /* of its lowest rank */
    } list[QUOIT_JOB_HOSTS_MAX];
    uint16_t *host_of_rank;
};

/* NO_MEMORY. */
QUOIT_MUST_USE enum quoit_status quoit_hosts_open(uint32_t rank_count, struct quoit_hosts **hosts_out);
/* NULL is allowed. */
void quoit_hosts_close(struct quoit_hosts *hosts);
/* Of the next rank. FULL: there are more hosts, or more PEs on one, than a job may have. */
QUOIT_MUST_USE enum quoit_status quoit_hosts_add(struct quoit_hosts *hosts, const struct quoit_hosts_entry *entry);

/* After all ranks were added. The ranks of a host, ascending; ranks_out has room for its pe_count. */
void quoit_hosts_ranks(const struct quoit_hosts *hosts, uint32_t host, uint32_t *ranks_out);
/* The job config of several hosts. False: there are more rows of hosts with equal numbers of PEs than it has places
 * for.
 */
bool quoit_hosts_configure(const struct quoit_hosts *hosts, struct quoit_job_config *job_out);

#endif
