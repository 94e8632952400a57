/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_call.h - what the user asks of `quoit ring`: the command line, and for `join` the configuration file. */
#ifndef QUOIT_RING_CALL_H
#define QUOIT_RING_CALL_H

#include "ring.h"

#define RING_STATUS_FAILED 1
#define RING_STATUS_USAGE  2
#define RING_PATH_BYTES    256
#define RING_USER_JOBS_MAX (QUOIT_SHARES_MAX - 1) /* a share is the Ethernet devices' */
#define RING_USER_JOBS     8u                     /* with --jobs all, so that no user takes every share */
#define RING_CONFIG        "/etc/quoit/ring.conf"

struct ring_call {
    struct ring_plan plan;
    bool is_json;
    bool has_host; /* of join: --host and --hosts were given */
    bool has_host_count;
    char config[RING_PATH_BYTES]; /* "": RING_CONFIG, if it exists */
    const char *command;
    const char *number; /* of the host, for exec and shell; of the link */
    char **words;       /* what exec runs, ends with NULL */
};

/* Says what is wrong with the call; returns the exit status. */
__attribute__((format(printf, 1, 2))) int ring_refuse(const char *format, ...);
bool ring_take_number(const char *text, uint64_t least, uint64_t most, uint32_t *number_out);
/* Takes the words behind the command, and for `join` first the configuration file. An exit status, or -1: go on. */
int ring_call_take(struct ring_call *call, int argc, char **argv);

#endif
