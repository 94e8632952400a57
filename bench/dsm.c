/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm - what pages, releases, barriers and locks of libqdsm cost, beside the goals; bench/dsm_bars runs it in every
 * setting that has a goal.
 *
 * Each figure is the minimum and the median of several rounds, per page or per call. Run it with two PEs or more and a
 * protocol that moves pages: DSM_PROTOCOL=newgendsm oshrun -n 2 dsm; DSM_PREFETCH=1 for one page a fault. Acquires drop
 * copies of the pages, so that each round fetches them.
 *
 * Use: dsm [PART]: fetch, release, barrier or lock; without PART these four. size: barriers after 96 MiB were written
 * by one PE and read by the others. ring: on hosts in a ring, PEs 1 and 2 read pages of PE 0, beside a shmem_getmem of
 * 4 KiB. */
#include <dsm.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE        4096
#define PAGES       512
#define LARGE_BYTES (96u << 20)
#define ROUNDS      15
#define CALLS       200
#define RING_GOAL   1.3 /* of a plain get */

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

static void print_from(int pe, const char *what, double *times, double goal)
{
    qsort(times, ROUNDS, sizeof *times, compare);
    if (dsm_my_pe() == pe)
        printf("%-36s min %9.3f us  median %9.3f us  goal %6.1f  ratio %5.2f\n", what, times[0], times[ROUNDS / 2],
               goal, times[0] / goal);
    fflush(stdout);
}

static void print(const char *what, double *times, double goal)
{
    print_from(1 % dsm_n_pes(), what, times, goal);
}

/* PE 0 is the home and changes each page; the reader then reads a word of each page. Time per page. */
static double fetch_once(volatile long *pages, int reader, int round)
{
    for (int i = 0; dsm_my_pe() == 0 && i < PAGES; i++)
        pages[i * (PAGE / 8)] = round;
    dsm_barrier_all();
    double since = now_us();
    for (int i = 0; dsm_my_pe() == reader && i < PAGES; i++)
        (void)pages[i * (PAGE / 8)];
    double took = (now_us() - since) / PAGES;
    dsm_barrier_all();
    return took;
}

static bool is_single_page(void)
{
    const char *prefetch = getenv("DSM_PREFETCH");
    return prefetch && atoi(prefetch) == 1;
}

static void fetches(volatile long *pages)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++)
        times[round] = fetch_once(pages, 1, round);
    print(is_single_page() ? "page fetch, one page a fault" : "page fetch, with prefetch", times,
          is_single_page() ? 4.5 : 0.6);
}

static void ring(volatile long *pages)
{
    char *source = shmem_malloc(PAGES * PAGE), *copy = malloc(PAGES * PAGE);
    memset(source, 1, PAGES * PAGE);
    memset(copy, 1, PAGES * PAGE);
    for (int reader = 1; reader <= 2 && reader < dsm_n_pes(); reader++) {
        double gets[ROUNDS], fetched[ROUNDS];
        char what[64];
        for (int round = 0; round < ROUNDS; round++) {
            shmem_barrier_all();
            double since = now_us();
            for (int i = 0; dsm_my_pe() == reader && i < PAGES; i++)
                shmem_getmem(copy + i * PAGE, source + i * PAGE, PAGE, 0);
            gets[round] = (now_us() - since) / PAGES;
            fetched[round] = fetch_once(pages, reader, round);
        }
        qsort(gets, ROUNDS, sizeof *gets, compare);
        snprintf(what, sizeof what, "page fetch by PE %d%s, a get is %.2f us", reader,
                 is_single_page() ? "" : ", with prefetch", gets[0]);
        print_from(reader, what, fetched, RING_GOAL * gets[0]);
        shmem_barrier_all();
    }
    free(copy);
    shmem_free(source);
}

/* PE 1 changes every step-th word of pages whose home is PE 0, and releases. */
static void release(long *pages, int step, const char *what)
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

static void releases(long *pages)
{
    release(pages, PAGE / 8, "release of a page, one word");
    release(pages, 2, "release of a page, every 2nd word");
    release(pages, 1, "release of a page, all of it");
}

static void barrier(const char *what)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double since = now_us();
        for (int i = 0; i < CALLS; i++)
            dsm_barrier_all();
        times[round] = (now_us() - since) / CALLS;
    }
    print(what, times, dsm_n_pes() > 2 ? 100 : 3);
}

static void barriers_of_large(void)
{
    volatile char *large = dsm_all_malloc(LARGE_BYTES);
    for (size_t i = 0; dsm_my_pe() == 0 && i < LARGE_BYTES; i += PAGE)
        large[i] = 1;
    dsm_barrier_all();
    for (size_t i = 0; i < LARGE_BYTES; i += PAGE)
        (void)large[i];
    dsm_barrier_all();
    barrier("barrier, 96 MiB touched");
}

static void locks(void)
{
    dsm_lock_t *lock = dsm_all_malloc(PAGE);
    long *counter = dsm_all_malloc(PAGE);
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

static bool is_asked(const char *part, const char *only)
{
    return only[0] == '\0' || strcmp(only, part) == 0;
}

int main(int count, char **words)
{
    const char *only = count > 1 ? words[1] : "";
    dsm_init();
    if (dsm_n_pes() < 2) {
        fprintf(stderr, "dsm: wants two PEs or more\n");
        return 2;
    }
    const struct dsm_attributes on_pe_0 = {.placement = DSM_ON_PE, .copies = DSM_COPIES_INVALIDATE};
    long *pages, **shared = dsm_all_malloc(sizeof *shared);
    if (dsm_my_pe() == 0)
        *shared = dsm_malloc_with((size_t)PAGES * PAGE, &on_pe_0);
    dsm_barrier_all();
    pages = *shared;
    if (is_asked("fetch", only))
        fetches(pages);
    if (is_asked("release", only))
        releases(pages);
    if (is_asked("barrier", only))
        barrier("barrier, nothing dirty");
    if (is_asked("lock", only))
        locks();
    if (strcmp(only, "size") == 0)
        barriers_of_large();
    if (strcmp(only, "ring") == 0)
        ring(pages);
    dsm_finalize();
    return 0;
}
