/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program for ethernet.py: messages of all magnitudes between all pairs, and sums over all, every word checked.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS_MAX (1u << 18)
#define TURNS     2

static unsigned word_of(int from, int to, unsigned at)
{
    return (unsigned)from * 2654435761u ^ (unsigned)to * 40503u ^ at;
}

/* To the process `distance` further on, from the one as far behind; returns how many words were wrong. */
static long exchange(int rank, int size, int distance, unsigned count, unsigned *out, unsigned *in)
{
    int to = (rank + distance) % size, from = (rank - distance + size) % size;
    long wrong = 0;
    for (unsigned i = 0; i < count; i++)
        out[i] = word_of(rank, to, i);
    MPI_Sendrecv(out, (int)count, MPI_UNSIGNED, to, (int)count, in, (int)count, MPI_UNSIGNED, from, (int)count,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (unsigned i = 0; i < count; i++)
        wrong += in[i] != word_of(from, rank, i);
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned *out = malloc(WORDS_MAX * sizeof *out), *in = malloc(WORDS_MAX * sizeof *in);
    long wrong = 0, all_wrong = 0;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < TURNS; turn++)
        for (unsigned count = 1; count <= WORDS_MAX; count *= 8)
            for (int distance = 1; distance < size; distance++)
                wrong += exchange(rank, size, distance, count, out, in);
    for (int turn = 0; turn < 20; turn++) {
        long one = rank + turn, sum;
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != (long)size * turn + (long)size * (size - 1) / 2;
    }
    MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all_wrong == 0)
        printf("%d processes, nothing wrong\n", size);
    else if (rank == 0)
        printf("%d processes, %ld words wrong\n", size, all_wrong);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0); /* MPI_Finalize of MPICH 4.0.2 over UCX may wait for ever for one that waits for PMI already */
}
