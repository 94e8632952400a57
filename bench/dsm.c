/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm - what pages, releases, barriers and locks of libqdsm cost, beside the goals.
 *
 * Each figure is the minimum and the median of several rounds, per page or per call. Run it with two PEs or more and a
 * protocol that moves pages: DSM_PROTOCOL=newgendsm oshrun -n 2 dsm; DSM_PREFETCH=1 for one page a fault. */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE   4096
#define PAGES  512
#define ROUNDS 15
#define CALLS  200

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, double *times, double goal)
{
    qsort(times, ROUNDS, sizeof *times, compare);
    if (dsm_my_pe() == 1 % dsm_n_pes())
        printf("%-36s min %9.3f us  median %9.3f us  goal %6.1f  ratio %5.2f\n", what, times[0], times[ROUNDS / 2],
               goal, times[0] / goal);
}

/* PE 0 is the home and changes each page; PE 1 then reads a word of each page. */
static void fetches(volatile long *pages)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; dsm_my_pe() == 0 && i < PAGES; i++)
            pages[i * (PAGE / 8)] = round;
        dsm_barrier_all();
        double since = now_us();
        for (int i = 0; dsm_my_pe() == 1 && i < PAGES; i++)
            (void)pages[i * (PAGE / 8)];
        times[round] = (now_us() - since) / PAGES;
        dsm_barrier_all();
    }
    print(getenv("DSM_PREFETCH") ? "page fetch, DSM_PREFETCH as set" : "page fetch, with prefetch", times,
          getenv("DSM_PREFETCH") && atoi(getenv("DSM_PREFETCH")) == 1 ? 4.5 : 0.6);
}

/* PE 1 changes every step-th word of pages whose home is PE 0, and releases. */
static void releases(long *pages, int step, const char *what)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        times[round] = 0;
        if (dsm_my_pe() == 1) {
            for (int i = 0; i < PAGES * (PAGE / 8); i += step)
                pages[i]++;
            double since = now_us();
            dsm_release(pages, PAGES * PAGE);
            times[round] = (now_us() - since) / PAGES;
        }
        dsm_barrier_all();
    }
    print(what, times, 0.5);
}

static void barriers(void)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double since = now_us();
        for (int i = 0; i < CALLS; i++)
            dsm_barrier_all();
        times[round] = (now_us() - since) / CALLS;
    }
    print("barrier, nothing dirty", times, dsm_n_pes() > 2 ? 100 : 3);
}

static void locks(dsm_lock_t *lock, long *counter)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double since = now_us();
        for (int i = 0; dsm_my_pe() == 1 && i < CALLS; i++) {
            dsm_lock(lock);
            dsm_unlock(lock);
        }
        times[round] = (now_us() - since) / CALLS;
        dsm_barrier_all();
    }
    print("lock and unlock, alone", times, 1);
    for (int round = 0; round < ROUNDS; round++) {
        dsm_barrier_all();
        double since = now_us();
        for (int i = 0; i < CALLS; i++) {
            dsm_lock(lock);
            ++*counter;
            dsm_unlock(lock);
        }
        dsm_barrier_all();
        times[round] = (now_us() - since) / CALLS / dsm_n_pes();
    }
    print("contended counter, per increment", times, 12);
}

int main(void)
{
    dsm_init();
    long *pages, **shared = dsm_all_malloc(sizeof *shared);
    if (dsm_my_pe() == 0)
        *shared = dsm_malloc_placed((size_t)PAGES * PAGE, DSM_ON_PE, 0);
    dsm_barrier_all();
    pages = *shared;
    dsm_lock_t *lock = dsm_all_malloc(PAGE);
    long *counter = dsm_all_malloc(PAGE);
    fetches(pages);
    releases(pages, PAGE / 8, "release of a page, one word");
    releases(pages, 2, "release of a page, every 2nd word");
    releases(pages, 1, "release of a page, all of it");
    barriers();
    locks(lock, counter);
    dsm_finalize();
    return 0;
}
