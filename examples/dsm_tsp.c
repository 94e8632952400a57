/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_tsp - the shortest tour through cities by branch and bound, on shared pages: a stack of partial tours and the
 * best length so far, each under its lock. PE 0 verifies the length by dynamic programming, alone.
 *
 * Use: oshrun -n 4 dsm_tsp [CITIES [SEED]] */
#include <dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CITIES_MAX 16
#define STACK_MAX  65536
#define SPLIT      4 /* tours of this many cities are completed by one PE */

struct tour {
    long length;
    int count;
    signed char cities[CITIES_MAX];
};

struct shared {
    dsm_lock_t stack_lock, best_lock;
    dsm_cond_t changed;
    long best, count, busy;
    struct tour stack[STACK_MAX];
};

static struct {
    struct shared *shared;
    long distance[CITIES_MAX][CITIES_MAX], least[CITIES_MAX];
    int cities;
    long best; /* as last read: only a bound */
} tsp = {.cities = 12};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void make_map(unsigned long seed)
{
    for (int from = 0; from < tsp.cities; from++) {
        tsp.least[from] = 1000000;
        for (int to = 0; to < tsp.cities; to++) {
            seed = seed * 6364136223846793005ul + 1442695040888963407ul;
            tsp.distance[from][to] = (long)(seed >> 33) % 1000 + 1;
            if (to != from && tsp.distance[from][to] < tsp.least[from])
                tsp.least[from] = tsp.distance[from][to];
        }
    }
}

static void offer(long length)
{
    struct shared *shared = tsp.shared;
    dsm_lock(&shared->best_lock);
    if (length < shared->best)
        shared->best = length;
    tsp.best = shared->best;
    dsm_unlock(&shared->best_lock);
}

static void search(struct tour *tour, unsigned visited, long rest)
{
    int last = tour->cities[tour->count - 1];
    if (tour->count == tsp.cities) {
        long length = tour->length + tsp.distance[last][0];
        if (length < tsp.best)
            offer(length);
        return;
    }
    for (int city = 1; city < tsp.cities; city++) {
        long length = tour->length + tsp.distance[last][city];
        if ((visited & 1u << city) || length + rest - tsp.least[last] >= tsp.best)
            continue;
        tour->cities[tour->count++] = (signed char)city;
        long before = tour->length;
        tour->length = length;
        search(tour, visited | 1u << city, rest - tsp.least[last]);
        tour->length = before;
        tour->count--;
    }
}

static void search_below(struct tour *tour)
{
    unsigned visited = 0;
    long rest = 0;
    for (int i = 0; i < tour->count; i++)
        visited |= 1u << tour->cities[i];
    for (int city = 0; city < tsp.cities; city++) {
        if (!(visited & 1u << city) || city == tour->cities[tour->count - 1])
            rest += tsp.least[city];
    }
    dsm_lock(&tsp.shared->best_lock);
    tsp.best = tsp.shared->best;
    dsm_unlock(&tsp.shared->best_lock);
    search(tour, visited, rest);
}

/* Pushes each extension of a tour by one city; the caller holds the stack's lock. */
static void push_longer(const struct tour *tour)
{
    struct shared *shared = tsp.shared;
    for (int city = 1; city < tsp.cities; city++) {
        if (memchr(tour->cities, city, (size_t)tour->count))
            continue;
        struct tour *longer = &shared->stack[shared->count++];
        *longer = *tour;
        longer->length += tsp.distance[tour->cities[tour->count - 1]][city];
        longer->cities[longer->count++] = (signed char)city;
    }
}

/* Until the stack is empty and no PE can push. */
static void work(void)
{
    struct shared *shared = tsp.shared;
    dsm_lock(&shared->stack_lock);
    for (;;) {
        while (shared->count == 0 && shared->busy > 0)
            dsm_cond_wait(&shared->changed, &shared->stack_lock);
        if (shared->count == 0)
            break;
        struct tour tour = shared->stack[--shared->count];
        if (tour.count < SPLIT && tour.count < tsp.cities) {
            push_longer(&tour);
            dsm_cond_broadcast(&shared->changed);
            continue;
        }
        shared->busy++;
        dsm_unlock(&shared->stack_lock);
        search_below(&tour);
        dsm_lock(&shared->stack_lock);
        shared->busy--;
        if (shared->busy == 0)
            dsm_cond_broadcast(&shared->changed);
    }
    dsm_unlock(&shared->stack_lock);
}

/* Held and Karp: the shortest path over a set of cities to the last of them. */
static long shortest(void)
{
    int others = tsp.cities - 1;
    size_t sets = (size_t)1 << others;
    long *best = malloc(sets * (size_t)others * sizeof *best), found = 1l << 40;
    for (size_t set = 1; set < sets; set++) {
        for (int last = 0; last < others; last++) {
            long *here = &best[set * (size_t)others + (size_t)last];
            size_t before = set & ~((size_t)1 << last);
            *here = before == 0 ? tsp.distance[0][last + 1] : 1l << 40;
            for (int via = 0; before != set && via < others; via++) {
                long length = best[before * (size_t)others + (size_t)via] + tsp.distance[via + 1][last + 1];
                if ((before & (size_t)1 << via) && length < *here)
                    *here = length;
            }
        }
    }
    for (int last = 0; last < others; last++) {
        long length = best[(sets - 1) * (size_t)others + (size_t)last] + tsp.distance[last + 1][0];
        found = length < found ? length : found;
    }
    free(best);
    return found;
}

int main(int count, char **words)
{
    tsp.cities = count > 1 ? atoi(words[1]) : tsp.cities;
    if (tsp.cities < 3 || tsp.cities > CITIES_MAX) {
        fprintf(stderr, "dsm_tsp: CITIES is 3 to %d\n", CITIES_MAX);
        return 2;
    }
    make_map(count > 2 ? strtoul(words[2], NULL, 10) : 1);
    tsp.shared = dsm_all_malloc(sizeof *tsp.shared);
    int is_right = 1;
    if (dsm_my_pe() == 0) {
        tsp.shared->best = 1l << 40;
        tsp.shared->busy = 0;
        tsp.shared->count = 1;
        tsp.shared->stack[0] = (struct tour){.count = 1};
    }
    dsm_barrier_all();
    double since = seconds();
    work();
    dsm_barrier_all();
    double took = seconds() - since;
    if (dsm_my_pe() == 0) {
        is_right = tsp.shared->best == shortest();
        printf("length %ld\nverification %s\n%d cities, %d PEs: %.4f s\n", tsp.shared->best,
               is_right ? "PASSED" : "FAILED", tsp.cities, dsm_n_pes(), took);
    }
    dsm_barrier_all();
    dsm_all_free(tsp.shared);
    dsm_finalize();
    return is_right ? 0 : 1;
}
