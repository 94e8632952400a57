/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_arguments.h - the command line of `quoit ring`, and for `join` the configuration file. */
#ifndef QUOIT_RING_ARGUMENTS_H
#define QUOIT_RING_ARGUMENTS_H

#include "ring.h"

#define RING_STATUS_FAILED     1
#define RING_STATUS_USAGE      2
#define RING_PATH_BYTES        256
#define RING_GIVEN_BYTES       96
#define RING_JOBS_PER_USER_MAX (QUOIT_SHARES_MAX - 1) /* the Ethernet devices have one share */
#define RING_JOBS_PER_USER     8u                     /* with --jobs all, so that one user cannot take every share */
#define RING_CONFIG            "/etc/quoit/ring.conf"

struct ring_arguments {
    struct ring_plan plan;
    char given[RING_GIVEN_BYTES]; /* [USER:]NAME as written */
    uint32_t uid;                 /* of the ring's user */
    bool is_json;
    bool has_host; /* join: --host and --hosts were given */
    bool has_host_count;
    char config[RING_PATH_BYTES]; /* "": RING_CONFIG, if it exists */
    const char *command;
    const char *number; /* of the host, or of the link */
    char **words;       /* the command of exec, ends with NULL */
};

/* Reports wrong usage; returns the exit status. */
__attribute__((format(printf, 1, 2))) int ring_bad_usage(const char *format, ...);
bool ring_parse_number(const char *text, uint64_t least, uint64_t most, uint32_t *number_out);
/* Parses the words behind the command, for `join` after the configuration file. An exit status, or -1: no error. */
int ring_arguments_parse(struct ring_arguments *arguments, int argc, char **argv);

#endif
