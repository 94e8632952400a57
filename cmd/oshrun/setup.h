/* SPDX-License-Identifier: BSD-3-Clause */
/* setup.h - what an agent must know to do its part: oshrun's command line, environment and folder, and which machine of
 * which it is. As one block of bytes. */
#ifndef OSHRUN_SETUP_H
#define OSHRUN_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machines.h"

struct setup {
    uint32_t host;
    struct machines machines; /* placed */
    const char *rsh;          /* what starts agents; "": ssh */
    uint64_t schedules;       /* of the job config: the file may be on oshrun's machine alone */
    int argc;
    char **argv;
    char **environment;
    const char *folder;
};

/* malloc'd; NULL: no memory. */
char *setup_pack(const struct setup *setup, size_t *bytes_out);
/* The texts stay in `bytes`, and lists are malloc'd, for good. False: these are no such bytes, or no memory. */
bool setup_unpack(char *bytes, size_t count, struct setup *setup_out);
/* The environment of a process on this machine: oshrun's, but for variables that belong to the machine or to the remote
 * shell's session, which are this process's own. */
char **setup_environment(char **oshruns, char **own);

#endif
