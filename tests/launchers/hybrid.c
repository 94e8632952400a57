/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI and OpenSHMEM in one program, as the specification's examples have it. ORDER: which begins and which ends first.
 *   ms: MPI_Init, shmem_init, shmem_finalize, MPI_Finalize     sm: shmem_init, MPI_Init, MPI_Finalize, shmem_finalize
 *   mm: MPI_Init, shmem_init, MPI_Finalize, shmem_finalize     after: shmem_init, shmem_finalize, MPI_Init,
 * MPI_Finalize none: linked with MPI, which is not used                   exit: ms, but PE 1 ends with status 3 in the
 * middle */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int from_left;

/* Each PE tells its right neighbour its rank by OpenSHMEM, and MPI adds up what arrived. */
static int exchange(void)
{
    int rank, size, sum = 0, me = shmem_my_pe(), count = shmem_n_pes();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != me || size != count) {
        fprintf(stderr, "rank %d of %d is PE %d of %d\n", rank, size, me, count);
        return 1;
    }
    shmem_int_p(&from_left, rank, (me + 1) % count);
    shmem_barrier_all();
    MPI_Allreduce(&from_left, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != count * (count - 1) / 2)
        return 1;
    if (me == 0)
        printf("sum %d of %d\n", sum, count);
    return 0;
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "ms";
    int is_mpi_first = order[0] == 'm' || order[0] == 'e', status = 0;
    if (is_mpi_first)
        MPI_Init(&argc, &argv);
    shmem_init();
    if (strcmp(order, "sm") == 0)
        MPI_Init(&argc, &argv);
    if (is_mpi_first || strcmp(order, "sm") == 0)
        status = exchange();
    if (strcmp(order, "exit") == 0 && shmem_my_pe() == 1)
        exit(3);
    if (strcmp(order, "exit") == 0)
        shmem_barrier_all();
    if (strcmp(order, "sm") == 0 || strcmp(order, "mm") == 0)
        MPI_Finalize();
    shmem_finalize();
    if (strcmp(order, "after") == 0)
        MPI_Init(&argc, &argv);
    if (strcmp(order, "ms") == 0 || strcmp(order, "exit") == 0 || strcmp(order, "after") == 0)
        MPI_Finalize();
    return status;
}
