/* SPDX-License-Identifier: BSD-3-Clause */
/* schedules_file.h - the table of schedules (host/schedules.h) that `quoit tune --hosts` has stored for a set of hosts.
 *
 * A file is for one number of hosts, one value of --network, and one digest of the names of the machines, in any order,
 * and of provider and device: "schedules.8.ofi.1f00c4d2". Names count as they are asked for, since nothing else is
 * known before a job starts, and the library behind --network auto, the default with --host, is not looked for. The
 * text (tuned.h): quoit schedules 1 hosts 8 network ofi digest 1f00c4d2 broadcast SCHEDULE SCHEDULE ...     one for
 * each size: up to 8K, 16K, ..., 2M, and more reduce SCHEDULE SCHEDULE ... exchange SCHEDULE SCHEDULE ...
 *
 * Threads: any. Errors: a file that is malformed or of other hosts is described in one line, and the rules are used.
 */
#ifndef QUOIT_LOCAL_SCHEDULES_FILE_H
#define QUOIT_LOCAL_SCHEDULES_FILE_H

#include "base/options.h"
#include "host/schedules.h"
#include "local/tuned.h"

#define QUOIT_SCHEDULES_NETWORK_BYTES 24

/* What a file is for. */
struct quoit_schedules_key {
    uint32_t host_count;
    uint32_t digest;
    char network[QUOIT_SCHEDULES_NETWORK_BYTES];
};

/* Without hosts yet. */
void quoit_schedules_key_begin(struct quoit_schedules_key *key, const struct quoit_options *options);
/* One host more, on the machine of that name; a user before it, as in "USER@NAME", does not count. */
void quoit_schedules_key_add(struct quoit_schedules_key *key, const char *machine);
/* Emulated hosts: all on this machine. */
void quoit_schedules_key_add_own(struct quoit_schedules_key *key, uint32_t count);

/* False: there is no place for such a file. */
bool quoit_schedules_file(const struct quoit_schedules_key *key, char path_out[QUOIT_TUNED_NAME_BYTES]);
/* False, with the problem described and *schedules_out unchanged, if the text is not a table for these hosts. */
bool quoit_schedules_parse(uint64_t *schedules_out, const char *text, const struct quoit_schedules_key *key,
                           char problem_out[QUOIT_TUNED_PROBLEM_BYTES]);

/* The table for --schedules `choice`: "auto", or what is forced. False, with 0 and a line for the user in problem_out,
 * if there is a file and it is unusable, or `choice` is. */
bool quoit_schedules_load(uint64_t *schedules_out, const char *choice, const struct quoit_schedules_key *key,
                          char problem_out[QUOIT_TUNED_PROBLEM_BYTES]);

#endif
