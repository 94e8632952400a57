/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_page - the page micro-benchmark of TreadMarks: PE 0 touches 1024 pages and becomes their home; then all other
 * PEs read a word of each at once. Prints the time per page, the mean over these PEs.
 *
 * Use: DSM_PREFETCH=1 DSM_PROTOCOL=newgendsm oshrun --hosts 2 -n 2 dsm_page [PAGES] */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_WORDS 512

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count, char **words)
{
    long pages = count > 1 ? atol(words[1]) : 1024, wrong = 0;
    if (pages < 1) {
        fprintf(stderr, "dsm_page: PAGES is at least 1\n");
        return 2;
    }
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes();
    volatile long *block = dsm_all_malloc((size_t)pages * PAGE_WORDS * sizeof *block);
    double *times = dsm_all_malloc((size_t)pes * PAGE_WORDS * sizeof *times);
    for (long i = 0; me == 0 && i < pages; i++)
        block[i * PAGE_WORDS] = i + 1;
    dsm_barrier_all();
    double since = seconds();
    for (long i = 0; me != 0 && i < pages; i++)
        wrong += block[i * PAGE_WORDS] != i + 1;
    times[me * PAGE_WORDS] = seconds() - since;
    if (wrong != 0)
        fprintf(stderr, "dsm_page: PE %d read %ld wrong words\n", me, wrong);
    dsm_barrier_all();
    if (me == 0 && pes > 1) {
        double sum = 0;
        for (int pe = 1; pe < pes; pe++)
            sum += times[pe * PAGE_WORDS];
        printf("%ld pages, %d PEs: %.3f us a page\n", pages, pes, sum / (pes - 1) / (double)pages * 1e6);
    }
    dsm_barrier_all();
    dsm_finalize();
    return wrong != 0;
}
