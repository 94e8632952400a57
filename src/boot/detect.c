/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/detect.h"
#include "base/log.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOINED_VARIABLE "QUOIT_JOINED" /* by which programs that a PE starts learn that they are not PEs */

/* What a launcher leaves in the environment of its processes. */
static const struct launcher {
    const char *name;
    const char *rank;   /* a variable with the number of the process */
    const char *size;   /* with the number of processes; more than one means a job */
    const char *job;    /* that differs from one job to another; NULL: none */
    const char *remedy; /* what makes the launcher offer PMI or PMIx */
} launchers[] = {
    {"srun of Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "srun --mpi=pmi2, or --mpi=pmix"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, "an mpirun of Open MPI 2 or later"},
    {"an mpiexec (PMI)", "PMI_RANK", "PMI_SIZE", NULL, "no wrapper that closes the descriptor PMI_FD"},
    {"an mpiexec (PMI)", "PMI_ID", "MPI_LOCALNRANKS", "PMI_PORT", "no wrapper that closes the descriptor PMI_FD"},
    {"flux run", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_ID", "flux run -o pmi=simple"},
    {"MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL, "mpiexec.hydra"},
    {"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", NULL, "jsrun with its PMIx"},
    {"aprun or mpiexec of PALS", "PALS_RANKID", "PALS_LOCAL_SIZE", "PALS_APID", "mpiexec --pmi=pmix"},
    {"a launcher with PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_NAMESPACE", "PMIX_NAMESPACE left in the environment"},
};

#define LAUNCHER_COUNT (sizeof launchers / sizeof launchers[0])

static uint64_t add_value(uint64_t digest, const char *variable)
{
    const char *value = variable ? getenv(variable) : NULL;
    for (const char *at = value ? value : "-"; *at; at++)
        digest = (digest ^ (unsigned char)*at) * 0x100000001b3u;
    return (digest ^ ',') * 0x100000001b3u;
}

/* Of the variables whose values launchers set per process, or per job. */
static uint64_t digest_of_place(void)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < LAUNCHER_COUNT; i++)
        digest = add_value(add_value(digest, launchers[i].rank), launchers[i].job);
    return digest;
}

void quoit_detect_mark_joined(void)
{
    char text[48];
    snprintf(text, sizeof text, "%d:%llx", (int)getpid(), (unsigned long long)digest_of_place());
    setenv(JOINED_VARIABLE, text, 1);
}

bool quoit_detect_has_joined(void)
{
    const char *joined = getenv(JOINED_VARIABLE);
    return joined && atoi(joined) == getpid();
}

bool quoit_detect_is_inherited(void)
{
    const char *joined = getenv(JOINED_VARIABLE), *colon = joined ? strchr(joined, ':') : NULL;
    return colon && !quoit_detect_has_joined() && strtoull(colon + 1, NULL, 16) == digest_of_place();
}

bool quoit_detect_is_silent(void)
{
    for (size_t i = 0; i < LAUNCHER_COUNT; i++) {
        const char *rank = getenv(launchers[i].rank);
        if (rank && atoi(rank) > 0)
            return !quoit_detect_is_inherited();
    }
    return false;
}

/* A descriptor or name that a launcher has left, but that leads nowhere. */
static enum quoit_status report_broken(const char *variable, const char *value, const char *what)
{
    quoit_say("%s is \"%.40s\", but %s: this process cannot find its job [Q0301]\n"
              "  to run it as one PE alone: QUOIT_LAUNCHER=none",
              variable, value, what);
    return QUOIT_UNSUPPORTED;
}

enum quoit_status quoit_detect_refuse_unsupported(void)
{
    if (quoit_detect_is_inherited())
        return QUOIT_OK;
    for (size_t i = 0; i < LAUNCHER_COUNT; i++) {
        const struct launcher *launcher = &launchers[i];
        const char *size = getenv(launcher->size);
        if (!size || atoi(size) <= 1)
            continue;
        if (!quoit_detect_is_silent())
            quoit_say("started by %s (%s=%.16s) without PMI and PMIx: this would be %.16s jobs of one PE each [Q0301]\n"
                      "  needed: %s; on one host also: oshrun -n %.16s PROGRAM",
                      launcher->name, launcher->size, size, size, launcher->remedy, size);
        return QUOIT_UNSUPPORTED;
    }
    const char *rank = getenv("PMIX_RANK"), *fd = getenv("PMI_FD");
    if (rank)
        return report_broken("PMIX_RANK", rank, "PMIX_NAMESPACE is not set");
    if (fd)
        return report_broken("PMI_FD", fd, "that descriptor is no connection to a launcher");
    return QUOIT_OK;
}
