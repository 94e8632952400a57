/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - facts about this build, this machine and a job, as text or JSON: `quoit info`, SHMEM_INFO.
 *
 * Sections of rows: version, parts and build, machine (processors, caches), options with value and source, the
 * transport from one PE to all others, the copy methods between PEs of one host, the schedules between hosts, limits.
 * As text, section lines with indented rows; as JSON, one object with the same names and with numbers where values are
 * numbers.
 *
 * Threads: any. Errors: none; what the machine does not disclose is left out.
 */
#ifndef QUOIT_BOOT_INFO_H
#define QUOIT_BOOT_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "base/options.h"
#include "base/version.h"
#include "fabric/fabric.h"
#include "host/layout.h"
#include "local/schedules_file.h"

/* A library or program of an installation. */
struct quoit_info_part {
    const char *name;
    const char *path;
    struct quoit_version version;
};

struct quoit_info {
    const char *version;
    const struct quoit_info_part *parts; /* [part_count]; what is not known is left out */
    uint32_t part_count;
    const char *python;   /* where the Python package is, for PYTHONPATH; NULL: nowhere, or not known */
    const char *examples; /* the folder of the programs to learn from; NULL likewise */
    const struct quoit_options *options;
    struct quoit_job_config job;    /* its PEs and where they are */
    uint32_t pe;                    /* whose transports are printed */
    const struct quoit_peer *peers; /* [pe_count]; NULL: no job is running, and the transports follow from the ring
                                     * alone */
    const struct quoit_contacts *contacts; /* NULL: no job is running, or its hosts have no network */
    const struct quoit_paths *paths;
    const char *cma;                             /* the result of probing it; NULL: not probed */
    const struct quoit_schedules_key *schedules; /* what the table of job.schedules is for; NULL: a job is running */
};

void quoit_info_print(const struct quoit_info *info, bool is_json, FILE *out);
/* Prints one section alone: of copy methods, of schedules. */
void quoit_info_print_paths(const struct quoit_info *info, bool is_json, FILE *out);
void quoit_info_print_schedules(const struct quoit_info *info, bool is_json, FILE *out);

#endif
