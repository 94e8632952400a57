/* SPDX-License-Identifier: BSD-3-Clause */
/* graph500 - breadth-first search from many roots in a large random graph, every tree validated.
 *
 * Use: graph500 [--scale N] [--edge-factor N] [--roots N] [--seed N]
 *   2^scale vertices (20), edge factor (16) times as many edges, roots (64), seed (1).
 * Prints the output that the specification requires; TEPS are traversed edges per second. The status is 1 if a tree was
 * invalid.
 * Symmetric memory of each PE: 8 bytes per edge end that it stores, for scale 20 some 280 MiB at 1 PE, 140 at 2.
 */
#include "graph500.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define ROOTS_MAX 1024

struct run {
    double construction, seconds[ROOTS_MAX], edges[ROOTS_MAX], teps[ROOTS_MAX];
    unsigned root_count;
};

static unsigned long number(const char *name, const char *text, unsigned long least, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text != NULL ? text : "", &end, 10);
    if (text == NULL || end == text || *end != 0 || value < least || value > most) {
        fprintf(stderr, "graph500: %s is %s, but must be %lu..%lu\n", name, text != NULL ? text : "missing", least,
                most);
        exit(2);
    }
    return value;
}

static void read_arguments(int argc, char **argv, struct world *world, struct run *run)
{
    *world = (struct world){.scale = 20, .edge_factor = 16, .seed = 1};
    run->root_count = 64;
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--scale") == 0) {
            world->scale = (uint32_t)number(name, value, 1, SCALE_MAX);
        } else if (strcmp(name, "--edge-factor") == 0) {
            world->edge_factor = (uint32_t)number(name, value, 1, 1024);
        } else if (strcmp(name, "--roots") == 0) {
            run->root_count = (unsigned)number(name, value, 1, ROOTS_MAX);
        } else if (strcmp(name, "--seed") == 0) {
            world->seed = number(name, value, 0, UINT32_MAX);
        } else {
            fprintf(stderr, "graph500: %s is unknown; there are --scale, --edge-factor, --roots and --seed\n", name);
            exit(2);
        }
    }
}

static void deal_out(struct world *world)
{
    uint64_t pe_count = (uint64_t)shmem_n_pes(), me = (uint64_t)shmem_my_pe();
    uint64_t edge_count;
    world->me = (int)me;
    world->pe_count = (int)pe_count;
    world->vertex_count = 1u << world->scale;
    world->block = (uint32_t)((world->vertex_count + pe_count - 1) / pe_count);
    uint64_t first = me * world->block, end = first + world->block;
    first = first < world->vertex_count ? first : world->vertex_count;
    end = end < world->vertex_count ? end : world->vertex_count;
    world->mine_first = (uint32_t)first;
    world->mine_count = (uint32_t)(end - first);
    edge_count = (uint64_t)world->vertex_count * world->edge_factor;
    world->edge_first = edge_count * me / pe_count;
    world->edge_count = edge_count * (me + 1) / pe_count - world->edge_first;
}

/* The next root of a fixed random order that has an edge to another vertex and was not used before; NO_VERTEX: there is
 * none. The same on all PEs. */
static uint32_t next_root(const struct world *world, const struct csr *csr, const uint32_t *taken, unsigned taken_count,
                          uint64_t *try)
{
    for (uint64_t end = *try + 64ull * world->vertex_count; *try < end;) {
        uint32_t root = (uint32_t)(random_of(world->seed + 1, (*try)++) % world->vertex_count);
        bool is_new = true;
        for (unsigned i = 0; i < taken_count; i++)
            is_new = is_new && taken[i] != root;
        uint32_t v = local_of(world, root);
        if (is_new && sum_of_all(v < world->mine_count && csr->first[v] < csr->first[v + 1]) > 0)
            return root;
    }
    return NO_VERTEX;
}

/* Returns whether every tree was valid. */
static bool search_all(const struct world *world, struct exchange *exchange, const struct csr *csr,
                       const struct edge *edges, struct run *run)
{
    uint32_t *parent = symmetric(world->block, sizeof(*parent)), taken[ROOTS_MAX];
    struct bfs bfs;
    uint64_t try = 0;
    bool is_right = true;
    double said = seconds_now();
    memset(parent, 0xff, world->block * sizeof(*parent)); /* NO_VERTEX, also after the last vertex */
    bfs_start(&bfs, world);
    exchange_room(exchange, bfs_inbox_words(world));
    for (unsigned i = 0; i < run->root_count && is_right; i++) {
        taken[i] = next_root(world, csr, taken, i, &try);
        if (taken[i] == NO_VERTEX) {
            run->root_count = i; /* a small graph */
            break;
        }
        shmem_barrier_all();
        double start = seconds_now();
        bfs_search(&bfs, world, exchange, csr, taken[i], parent);
        run->seconds[i] = seconds_now() - start;
        int64_t reached;
        is_right = validate(world, edges, taken[i], parent, &reached);
        run->edges[i] = (double)reached;
        run->teps[i] = run->edges[i] / run->seconds[i];
        if (world->me == 0 && seconds_now() > said + 2) {
            said = seconds_now();
            fprintf(stderr, "graph500: %u of %u roots\n", i + 1, run->root_count);
        }
    }
    bfs_end(&bfs);
    shmem_free(parent);
    return is_right;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean (arithmetic or harmonic) and its standard deviation, as the specification defines them. */
static void print_mean(const char *name, const double *value, unsigned count, bool is_harmonic)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < count; i++)
        sum += is_harmonic ? 1 / value[i] : value[i];
    double mean = sum / count;
    for (unsigned i = 0; i < count; i++) {
        double off = (is_harmonic ? 1 / value[i] : value[i]) - mean;
        squares += off * off;
    }
    double deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
    if (is_harmonic) {
        mean = 1 / mean;
        deviation = count > 1 ? deviation / sqrt(count - 1.0) * mean * mean : 0;
    }
    printf("%s%s: %g\n%s%s: %g\n", is_harmonic ? "harmonic_mean_" : "mean_", name, mean,
           is_harmonic ? "harmonic_stddev_" : "stddev_", name, deviation);
}

static void print_quartiles(const char *name, double *value, unsigned count, bool is_harmonic)
{
    qsort(value, count, sizeof(*value), compare);
    printf("min_%s: %g\nfirstquartile_%s: %g\nmedian_%s: %g\nthirdquartile_%s: %g\nmax_%s: %g\n", name, value[0], name,
           value[(count - 1) / 4], name, value[(count - 1) / 2], name, value[(count - 1) * 3 / 4], name,
           value[count - 1]);
    print_mean(name, value, count, is_harmonic);
}

int main(int argc, char **argv)
{
    struct world world;
    struct run run;
    struct exchange exchange;
    read_arguments(argc, argv, &world, &run);
    shmem_init();
    deal_out(&world);
    exchange_start(&exchange, &world);

    struct edge *edges = memory(world.edge_count, sizeof(*edges));
    double start = seconds_now();
    for (uint64_t i = 0; i < world.edge_count; i++)
        edges[i] = kronecker_edge(&world, world.edge_first + i);
    shmem_barrier_all();
    double generation = seconds_now() - start;
    start = seconds_now();
    struct csr csr = csr_make(&world, &exchange, edges);
    run.construction = seconds_now() - start;
    bool is_right = search_all(&world, &exchange, &csr, edges, &run);
    if (world.me == 0 && run.root_count > 0) {
        printf("SCALE: %u\nedgefactor: %u\nNBFS: %u\nnum_shmem_pes: %d\ngraph_generation: %g\nconstruction_time: %g\n",
               world.scale, world.edge_factor, run.root_count, world.pe_count, generation, run.construction);
        if (is_right) {
            print_quartiles("time", run.seconds, run.root_count, false);
            print_quartiles("nedge", run.edges, run.root_count, false);
            print_quartiles("TEPS", run.teps, run.root_count, true);
        }
        printf("graph500: %s\n", is_right ? "verified" : "WRONG");
    }
    csr_free(&csr);
    exchange_end(&exchange);
    free(edges);
    shmem_finalize();
    return is_right && run.root_count > 0 ? 0 : 1;
}
