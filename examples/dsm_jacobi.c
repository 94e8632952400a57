/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_jacobi - heat in a square plate, on shared pages: each PE relaxes its rows, and reads its neighbours' with plain
 * loads. Prints the time, and a checksum that is the same for every number of PEs.
 *
 * Use: oshrun -n 4 dsm_jacobi [SIZE [STEPS]] */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void relax(const double *from, double *to, long size, long first, long end)
{
    for (long row = first; row < end; row++) {
        for (long column = 1; column < size - 1; column++) {
            const double *at = from + row * size + column;
            to[row * size + column] = 0.25 * (at[-size] + at[size] + at[-1] + at[1]);
        }
    }
}

int main(int count, char **words)
{
    long size = count > 1 ? atol(words[1]) : 1024, steps = count > 2 ? atol(words[2]) : 50;
    if (size < 3 || steps < 0) {
        fprintf(stderr, "dsm_jacobi: SIZE is at least 3 and STEPS at least 0\n");
        return 2;
    }
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes();
    double *plates[2];
    for (int i = 0; i < 2; i++)
        plates[i] = dsm_all_malloc((size_t)(size * size) * sizeof(double));
    long rows = size - 2, first = 1 + rows * me / pes, end = 1 + rows * (me + 1) / pes;
    for (long row = me == 0 ? 0 : first; row < (me == pes - 1 ? size : end); row++) {
        for (long column = 0; column < size; column++)
            plates[0][row * size + column] = plates[1][row * size + column] = row == 0 ? 100.0 : 0.0;
    }
    dsm_barrier_all();
    double since = seconds();
    for (long step = 0; step < steps; step++) {
        relax(plates[step % 2], plates[(step + 1) % 2], size, first, end);
        dsm_barrier_all();
    }
    double took = seconds() - since;
    if (me == 0) {
        double sum = 0;
        for (long i = 0; i < size * size; i++)
            sum += plates[steps % 2][i];
        printf("checksum %.10e\n%ld x %ld, %ld steps, %d PEs: %.4f s\n", sum, size, size, steps, pes, took);
    }
    dsm_finalize();
    return 0;
}
