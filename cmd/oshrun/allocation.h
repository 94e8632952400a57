/* SPDX-License-Identifier: BSD-3-Clause */
/* allocation.h - the machines that a batch system has given to the job in which oshrun was started, and what starts
 * agents on them: Slurm, PBS and Torque, OAR, Grid Engine. */
#ifndef OSHRUN_ALLOCATION_H
#define OSHRUN_ALLOCATION_H

#include <stdbool.h>

#include "machines.h"

/* How the agent on oshrun's own machine starts. */
enum allocation_own {
    ALLOCATION_OWN_BY_NAME,  /* directly, where a machine has this one's name */
    ALLOCATION_OWN_BY_LABEL, /* the same, and names may differ in that one has a domain */
    ALLOCATION_OWN_AS_OTHERS,
};

struct allocation {
    const char *rsh; /* as --rsh; "": ssh */
    enum allocation_own own;
    bool is_for_head; /* rsh is used on oshrun's machine alone */
};

/* Reads the environment. In no allocation no machine is added. False: problem_out says what is wrong. */
bool allocation_find(struct machines *machines, struct allocation *allocation_out,
                     char problem_out[MACHINES_PROBLEM_BYTES]);
/* Whether a batch system means this machine by that name, which may have a domain more or less than its own. */
bool allocation_is_here(const char *name);
/* Whether a machine of that name is this one, whose agent needs no remote shell. */
bool allocation_is_own(const struct allocation *allocation, const char *name);

#endif
