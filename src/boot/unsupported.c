/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that the library does not support: their N processes would be N jobs of one PE each, with nothing wrong but
 * the results. */
#include "boot/launcher.h"
#include "base/log.h"

#include <stdlib.h>

/* What a launcher leaves in the environment of its processes, beside PMI and PMIx. */
static const struct unsupported {
    const char *launcher;
    const char *size;   /* a variable with the number of processes; more than one means a job */
    const char *remedy; /* what makes the launcher offer PMI or PMIx */
} unsupported_launchers[] = {
    {"srun of Slurm", "SLURM_STEP_NUM_TASKS", "srun --mpi=pmi2, or --mpi=pmix"},
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "an mpirun of Open MPI 2 or later"},
    {"an mpiexec (PMI)", "PMI_SIZE", "no wrapper that closes the descriptor PMI_FD"},
    {"an mpiexec (PMI)", "MPI_LOCALNRANKS", "no wrapper that closes the descriptor PMI_FD"},
    {"flux run", "FLUX_JOB_SIZE", "flux run -o pmi=simple"},
    {"MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_SIZE", "mpiexec.hydra"},
    {"jsrun", "JSM_NAMESPACE_SIZE", "jsrun with its PMIx"},
    {"aprun or mpiexec of PALS", "PALS_LOCAL_SIZE", "mpiexec --pmi=pmix"},
    {"a launcher with PMIx", "PMIX_SIZE", "PMIX_NAMESPACE left in the environment"},
};

/* A descriptor or name that a launcher has left, but that leads nowhere. */
static enum quoit_status say_broken(const char *variable, const char *value, const char *what)
{
    quoit_say("%s is \"%.40s\", but %s: this process cannot find its job [Q0301]\n"
              "  to run it as one PE alone: QUOIT_LAUNCHER=none",
              variable, value, what);
    return QUOIT_UNSUPPORTED;
}

enum quoit_status quoit_boot_refuse_unsupported_launchers(void)
{
    if (quoit_boot_is_inherited())
        return QUOIT_OK;
    for (size_t i = 0; i < sizeof unsupported_launchers / sizeof unsupported_launchers[0]; i++) {
        const struct unsupported *unsupported = &unsupported_launchers[i];
        const char *size = getenv(unsupported->size);
        if (!size || atoi(size) <= 1)
            continue;
        if (!quoit_boot_is_silent())
            quoit_say("started by %s (%s=%.16s) without PMI and PMIx: this would be %.16s jobs of one PE each [Q0301]\n"
                      "  needed: %s; on one host also: oshrun -n %.16s PROGRAM",
                      unsupported->launcher, unsupported->size, size, size, unsupported->remedy, size);
        return QUOIT_UNSUPPORTED;
    }
    const char *rank = getenv("PMIX_RANK"), *fd = getenv("PMI_FD");
    if (rank)
        return say_broken("PMIX_RANK", rank, "PMIX_NAMESPACE is not set");
    if (fd)
        return say_broken("PMI_FD", fd, "that descriptor is no connection to a launcher");
    return QUOIT_OK;
}
