/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - which file a program of the command line is, and whether it can run. */
#ifndef OSHRUN_PROGRAM_H
#define OSHRUN_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* Of oshrun. */
#define STATUS_BAD_USAGE    2
#define STATUS_NOT_RUNNABLE 126
#define STATUS_NOT_FOUND    127
#define STATUS_CANNOT_START 1
#define STATUS_TIMEOUT      124
#define PLAN_GO_ON          (-1)

struct plan_program {
    uint32_t pe_count; /* 0: not given */
    const char *wdir;  /* NULL: where oshrun runs */
    char **exports;    /* NAME=value, NULL at the end */
    uint32_t export_count;
    char **argv; /* as the program sees it */
    int argc;
    char *path; /* what to execute; found in PATH */
};

/* Finds its path, as the shell does, in its folder (--wdir). PLAN_GO_ON; else it was reported, and this is oshrun's
 * status. is_elsewhere: the PEs run on machines whose agents look again, so that the folder need not be here. */
int program_check(struct plan_program *program, bool is_elsewhere);

#endif
