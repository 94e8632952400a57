/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that the library does not support: their N processes would be N jobs of one PE each, with nothing wrong but
 * the results. */
#include "boot/launcher.h"
#include "base/log.h"

#include <dlfcn.h>
#include <stdlib.h>

/* What a launcher leaves in the environment of its processes. */
static const struct stranger {
    const char *launcher;
    const char *size; /* a variable with the number of processes; more than one means an unsupported job */
    const char *rank; /* where no number is available: a variable that is set whenever the launcher is used; NULL */
} strangers[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", NULL},
    {"srun of Slurm", "SLURM_STEP_NUM_TASKS", NULL},
    {"MVAPICH's mpirun_rsh", "MV2_COMM_WORLD_SIZE", NULL},
    {"an mpiexec (PMI)", "PMI_SIZE", NULL},
    {"an mpiexec (PMI)", "MPI_LOCALNRANKS", NULL},
    {"flux run", "FLUX_JOB_SIZE", NULL},
    {"jsrun", "JSM_NAMESPACE_SIZE", NULL},
    {"aprun or mpiexec of PALS", "PALS_LOCAL_SIZE", NULL},
    {"a launcher with PMIx", "PMIX_SIZE", NULL},
    {"a launcher with PMIx", NULL, "PMIX_RANK"}, /* last, because the others give the size */
};

enum quoit_status quoit_boot_refuse_strangers(void)
{
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        const struct stranger *stranger = &strangers[i];
        const char *size = stranger->size ? getenv(stranger->size) : NULL;
        const char *rank = stranger->rank ? getenv(stranger->rank) : NULL;
        if (size && atoi(size) > 1) {
            quoit_say("started by %s (%s=%.16s), which Quoit does not speak: this would be %.16s jobs of one PE each "
                      "[Q0301]\n"
                      "  start it with: oshrun -n %.16s PROGRAM%s",
                      stranger->launcher, stranger->size, size, size, size,
                      stranger->size[0] == 'S' ? " (no --mpi= of srun makes one job of them)" : "");
            return QUOIT_UNSUPPORTED;
        }
        if (rank) {
            quoit_say("started by %s (%s=%.16s), which Quoit does not speak: each process would be a job of one PE "
                      "[Q0301]\n"
                      "  start it with: oshrun -n N PROGRAM; for one PE alone: env -u %s PROGRAM",
                      stranger->launcher, stranger->rank, rank, stranger->rank);
            return QUOIT_UNSUPPORTED;
        }
    }
    return QUOIT_OK;
}

void quoit_boot_warn_of_mpi(const struct quoit_boot *boot)
{
    if (boot->ops == &quoit_boot_oshrun && boot->pe == 0 && boot->layout.job.pe_count > 1 &&
        dlsym(RTLD_DEFAULT, "MPI_Init"))
        quoit_say("this program is linked with MPI, which oshrun does not start: MPI_Init makes an MPI job of one "
                  "process in each of the %u PEs [Q0307]",
                  boot->layout.job.pe_count);
}
