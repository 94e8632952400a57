/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_sor - red-black over-relaxation of a plate in place, on shared pages: a PE relaxes its rows with plain loads of
 * its neighbours' edges, and rows of two PEs may share a page. Prints a checksum that is the same for every number of
 * PEs.
 *
 * Use: oshrun -n 4 dsm_sor [SIZE [STEPS]] */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define OMEGA 1.8

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Points of one colour have neighbours of the other only, so their order does not matter. */
static void relax(double *plate, long size, long first, long end, long colour)
{
    for (long row = first; row < end; row++) {
        for (long column = 1 + (row + colour) % 2; column < size - 1; column += 2) {
            double *at = plate + row * size + column;
            *at += OMEGA * (0.25 * (at[-size] + at[size] + at[-1] + at[1]) - *at);
        }
    }
}

int main(int count, char **words)
{
    long size = count > 1 ? atol(words[1]) : 1000, steps = count > 2 ? atol(words[2]) : 50;
    if (size < 3 || steps < 0) {
        fprintf(stderr, "dsm_sor: SIZE is at least 3 and STEPS at least 0\n");
        return 2;
    }
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes();
    double *plate = dsm_all_malloc((size_t)(size * size) * sizeof *plate);
    long rows = size - 2, first = 1 + rows * me / pes, end = 1 + rows * (me + 1) / pes;
    for (long row = me == 0 ? 0 : first; row < (me == pes - 1 ? size : end); row++) {
        for (long column = 0; column < size; column++)
            plate[row * size + column] = row == 0 ? 100.0 : 0.0;
    }
    dsm_barrier_all();
    double since = seconds();
    for (long step = 0; step < 2 * steps; step++) {
        relax(plate, size, first, end, step % 2);
        dsm_barrier_all();
    }
    double took = seconds() - since;
    if (me == 0) {
        double sum = 0;
        for (long i = 0; i < size * size; i++)
            sum += plate[i];
        printf("checksum %.10e\n%ld x %ld, %ld steps, %d PEs: %.4f s\n", sum, size, size, steps, pes, took);
    }
    dsm_barrier_all();
    dsm_all_free(plate);
    dsm_finalize();
    return 0;
}
