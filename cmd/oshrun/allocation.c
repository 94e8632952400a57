/* SPDX-License-Identifier: BSD-3-Clause */
#include "allocation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool add_slurm(struct machines *machines, const char *names, char problem_out[MACHINES_PROBLEM_BYTES])
{
    return machines_add_slurm(machines, names, getenv("SLURM_TASKS_PER_NODE"), problem_out);
}

/* A task that PBS starts, for pbsdsh or pbs_tmrsh, has /dev/null as its input and prints into the job's output, so no
 * conversation goes through it: ssh. What qrsh starts on its own machine takes one of that machine's slots, of which
 * the job script may hold the only one. srun gives an agent all processors of its machine, where an interactive step
 * has some. */
static const struct system {
    const char *job;      /* the variable that a job of it has, */
    const char *machines; /* and the one with its machines: a list, or the path of a file */
    bool (*add)(struct machines *machines, const char *value, char problem_out[MACHINES_PROBLEM_BYTES]);
    struct allocation allocation;
} systems[] = {
    {"SLURM_JOB_ID",
     "SLURM_JOB_NODELIST",
     add_slurm,
     {"srun --overlap --quiet --unbuffered --mpi=none -N1 -n1 -w", ALLOCATION_OWN_AS_OTHERS, true}},
    {"PBS_JOBID", "PBS_NODEFILE", machines_add_file, {"", ALLOCATION_OWN_BY_LABEL, false}},
    {"OAR_JOB_ID", "OAR_NODEFILE", machines_add_file, {"oarsh", ALLOCATION_OWN_BY_LABEL, false}},
    {"OAR_JOB_ID", "OAR_NODE_FILE", machines_add_file, {"oarsh", ALLOCATION_OWN_BY_LABEL, false}},
    {"JOB_ID", "PE_HOSTFILE", machines_add_grid, {"qrsh -inherit", ALLOCATION_OWN_BY_LABEL, true}},
};

bool allocation_find(struct machines *machines, struct allocation *allocation_out,
                     char problem_out[MACHINES_PROBLEM_BYTES])
{
    char problem[MACHINES_PROBLEM_BYTES];
    for (size_t i = 0; i < sizeof systems / sizeof systems[0]; i++) {
        const char *value = getenv(systems[i].machines);
        if (!value || !getenv(systems[i].job))
            continue;
        *allocation_out = systems[i].allocation;
        bool is_good = systems[i].add(machines, value, problem);
        if (!is_good)
            snprintf(problem_out, MACHINES_PROBLEM_BYTES, "%s: %.340s", systems[i].machines, problem);
        return is_good;
    }
    return true;
}

/* The length of a name up to its domain. */
static size_t label_of(const char *name)
{
    return strcspn(name, ".");
}

static bool is_own_name(const char *name, bool by_label)
{
    char own[256];
    if (strcmp(name, "localhost") == 0)
        return true;
    if (gethostname(own, sizeof own) != 0)
        return false;
    own[sizeof own - 1] = '\0';
    size_t label = label_of(name);
    bool has_one_domain = !name[label] != !own[label_of(own)];
    if (by_label && has_one_domain)
        return label == label_of(own) && memcmp(name, own, label) == 0;
    return strcmp(name, own) == 0;
}

bool allocation_is_here(const char *name)
{
    return is_own_name(name, true);
}

bool allocation_is_own(const struct allocation *allocation, const char *name)
{
    return allocation->own != ALLOCATION_OWN_AS_OTHERS && is_own_name(name, allocation->own == ALLOCATION_OWN_BY_LABEL);
}
