/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - what there is to know about this Quoit, this machine and a job, as text or JSON: `quoit info`, SHMEM_INFO.
 *
 * Sections of rows: version and build, machine (processors, caches), options with value and source, the ways from one
 * PE to all others, the paths of copies between PEs of one host, limits. Text is "section" lines with indented rows;
 * JSON one object with the same names, numbers where values are numbers.
 *
 * Threads: any. Errors: none; what the machine does not tell is left out.
 */
#ifndef QUOIT_BOOT_INFO_H
#define QUOIT_BOOT_INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "base/options.h"
#include "fabric/fabric.h"
#include "host/layout.h"

struct quoit_info {
    const char *version;
    const struct quoit_options *options;
    uint32_t host_count;
    uint32_t pe_count;
    uint32_t pe;                    /* whose ways are told */
    const struct quoit_peer *peers; /* [pe_count]; NULL: no job runs, and the ways follow from the ring alone */
    const struct quoit_paths *paths;
    const char *cma; /* what trying it gave; NULL: it was not tried */
};

void quoit_info_print(const struct quoit_info *info, bool is_json, FILE *out);
/* The section of paths alone. */
void quoit_info_print_paths(const struct quoit_info *info, bool is_json, FILE *out);

#endif
