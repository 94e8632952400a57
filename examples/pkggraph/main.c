/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - finds the packages on which most others depend: PageRank and breadth-first search over a graph on all PEs.
 *
 * PE 0 reads the graph and distributes it; all PEs compute; PE 0 computes the same alone and compares.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#include "graph.h"

#define PACKAGES_PATH  "/var/lib/dpkg/status"
#define RANK_TOLERANCE 1e-9
#define TOP_COUNT      10

enum way { WAY_DEFAULT, WAY_FORWARD, WAY_BACKWARD };

struct request {
    const char *path, *root; /* root NULL: the vertex of highest rank */
    enum way way;
};

static const char usage[] =
    "use: pkggraph [--root NAME] [--forward | --backward] [FILE]\n"
    "  FILE        a list of edges (\"a b\" on each line, names or numbers, # comments) or a dpkg status file;\n"
    "              " PACKAGES_PATH " unless given\n"
    "  --root      where the breadth-first search starts; the vertex of highest rank unless given\n"
    "  --forward   search along the edges (unless given: for lists of edges)\n"
    "  --backward  search against the edges: who needs the root? (unless given: for packages)\n";

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool parse(int argc, char **argv, struct request *request)
{
    static const struct option options[] = {{"root", required_argument, NULL, 'r'},
                                            {"forward", no_argument, NULL, 'f'},
                                            {"backward", no_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    int option;
    *request = (struct request){.path = PACKAGES_PATH};
    opterr = shmem_my_pe() == 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'r')
            request->root = optarg;
        else if (option == 'f')
            request->way = WAY_FORWARD;
        else if (option == 'b')
            request->way = WAY_BACKWARD;
        else
            return false;
    }
    if (optind < argc)
        request->path = argv[optind++];
    return optind == argc;
}

/* PE 0 ends the job after its message; the others wait for that. */
static void end_job(void)
{
    if (shmem_my_pe() == 0)
        shmem_global_exit(2);
    shmem_barrier_all();
}

/* On PE 0: the whole graph and its results. */
struct whole {
    struct names names;
    struct graph graph;
    struct graph searched; /* the graph in the direction of the search */
    bool is_backward;
    double *rank, *rank_alone;
    int32_t *depth, *depth_alone;
    uint32_t *by_rank; /* vertices, highest rank first */
};

static struct whole read_whole(const struct request *request)
{
    struct whole whole = {0};
    struct edges edges = {0};
    bool is_packages;
    if (!read_graph_file(request->path, &whole.names, &edges, &is_packages))
        end_job();
    uint32_t n = whole.names.count;
    if (n == 0) {
        fprintf(stderr, "pkggraph: %s: there is no vertex in it\n", request->path);
        end_job();
    }
    if (request->root != NULL && names_find(&whole.names, request->root, strlen(request->root)) == NO_NAME) {
        fprintf(stderr, "pkggraph: --root %s: not in %s\n", request->root, request->path);
        end_job();
    }
    whole.is_backward = request->way == WAY_BACKWARD || (request->way == WAY_DEFAULT && is_packages);
    whole.graph = graph_make(&edges, n);
    whole.searched = whole.is_backward ? graph_reversed(&whole.graph) : graph_make(&edges, n);
    whole.rank = private_zeroed(n, sizeof(*whole.rank));
    whole.rank_alone = private_zeroed(n, sizeof(*whole.rank_alone));
    whole.depth = private_zeroed(n, sizeof(*whole.depth));
    whole.depth_alone = private_zeroed(n, sizeof(*whole.depth_alone));
    whole.by_rank = private_zeroed(n, sizeof(*whole.by_rank));
    free(edges.edge);
    printf("%s: %u %s, %llu %s, on %d PEs\n", request->path, n, is_packages ? "packages" : "vertices",
           (unsigned long long)whole.graph.first[n], is_packages ? "dependencies" : "edges", shmem_n_pes());
    return whole;
}

static void free_whole(struct whole *whole)
{
    free(whole->by_rank);
    free(whole->depth_alone);
    free(whole->depth);
    free(whole->rank_alone);
    free(whole->rank);
    graph_free(&whole->searched);
    graph_free(&whole->graph);
    names_free(&whole->names);
}

static const double *rank_to_compare; /* qsort passes no argument to it */

static int compare_ranks(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    double l = rank_to_compare[left], r = rank_to_compare[right];
    return l != r ? (l < r) - (l > r) : (left > right) - (left < right);
}

/* PE 0: fetches the ranks of all PEs, prints the highest, and compares. */
static bool show_ranks(struct whole *whole, const double *rank, int round_count, double seconds)
{
    uint32_t n = whole->graph.vertex_count;
    double difference = 0, sum = 0;
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        shmem_double_get(whole->rank + share_first(n, pe), rank, share_first(n, pe + 1) - share_first(n, pe), pe);
    pagerank_alone(&whole->graph, whole->rank_alone);
    for (uint32_t v = 0; v < n; v++) {
        whole->by_rank[v] = v;
        sum += whole->rank[v];
        difference = fmax(difference, fabs(whole->rank[v] - whole->rank_alone[v]));
    }
    rank_to_compare = whole->rank;
    qsort(whole->by_rank, n, sizeof(*whole->by_rank), compare_ranks);
    bool is_right = difference <= RANK_TOLERANCE && fabs(sum - 1) <= RANK_TOLERANCE;
    printf("\nPageRank: %d rounds in %.4f s; differs from one PE alone by %.1e: %s\n", round_count, seconds, difference,
           is_right ? "verified" : "WRONG");
    for (uint32_t i = 0; i < n && i < TOP_COUNT; i++)
        printf("%4u  %-32s %.6f\n", i + 1, whole->names.name[whole->by_rank[i]], whole->rank[whole->by_rank[i]]);
    return is_right;
}

/* PE 0: fetches the depths of all PEs, prints how many vertices have each, and compares. */
static bool show_depths(struct whole *whole, const int32_t *depth, uint32_t root, int level_count, double seconds)
{
    uint32_t n = whole->graph.vertex_count, wrong_count = 0, unreached_count = 0, most = 1;
    uint32_t *count = private_zeroed((size_t)level_count, sizeof(*count));
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        shmem_int32_get(whole->depth + share_first(n, pe), depth, share_first(n, pe + 1) - share_first(n, pe), pe);
    bfs_alone(&whole->searched, root, whole->depth_alone);
    for (uint32_t v = 0; v < n; v++) {
        wrong_count += whole->depth[v] != whole->depth_alone[v];
        if (whole->depth[v] < 0 || whole->depth[v] >= level_count)
            unreached_count++;
        else
            count[whole->depth[v]]++;
    }
    printf("\nBreadth-first search from %s, %s: %d levels in %.4f s; %u of %u depths differ from one PE alone: %s\n",
           whole->names.name[root], whole->is_backward ? "against the edges (who needs it?)" : "along the edges",
           level_count, seconds, wrong_count, n, wrong_count == 0 ? "verified" : "WRONG");
    for (int level = 0; level < level_count; level++)
        most = count[level] > most ? count[level] : most;
    for (int level = 0; level < level_count; level++) {
        int bar = (int)((uint64_t)count[level] * 50 / most);
        printf("%4d %8u%s%.*s\n", level, count[level], bar > 0 ? "  " : "", bar,
               "##################################################");
    }
    printf("not reached: %u\n", unreached_count);
    free(count);
    return wrong_count == 0;
}

/* Collective. PE 0 passes `whole`; true there if both results are right. */
static bool compute(const struct request *request, struct whole *whole)
{
    static uint32_t root; /* symmetric */
    bool is_right = true;
    struct share share = share_deal(whole == NULL ? NULL : &whole->graph);
    double *rank = symmetric_zeroed(share.mine_max, sizeof(*rank));
    int32_t *depth = symmetric_zeroed(share.mine_max, sizeof(*depth));

    double start = seconds_now();
    int rounds = pagerank(&share, rank);
    double seconds = seconds_now() - start;
    share_free(&share);
    if (whole != NULL) {
        is_right = show_ranks(whole, rank, rounds, seconds);
        root =
            request->root == NULL ? whole->by_rank[0] : names_find(&whole->names, request->root, strlen(request->root));
        for (int pe = 1; pe < shmem_n_pes(); pe++)
            shmem_uint32_p(&root, root, pe);
    }

    share = share_deal(whole == NULL ? NULL : &whole->searched);
    start = seconds_now();
    int levels = bfs(&share, root, depth);
    seconds = seconds_now() - start;
    if (whole != NULL)
        is_right = show_depths(whole, depth, root, levels, seconds) && is_right;
    shmem_barrier_all();
    share_free(&share);
    shmem_free(depth);
    shmem_free(rank);
    return is_right;
}

int main(int argc, char **argv)
{
    static int is_wrong; /* symmetric */
    struct request request;
    shmem_init();
    if (!parse(argc, argv, &request)) {
        if (shmem_my_pe() == 0)
            fputs(usage, stderr);
        end_job();
    }
    if (shmem_my_pe() == 0) {
        struct whole whole = read_whole(&request);
        int wrong = !compute(&request, &whole);
        printf("\n%s\n", wrong ? "pkggraph: WRONG results" : "verified");
        for (int pe = 0; pe < shmem_n_pes(); pe++)
            shmem_int_p(&is_wrong, wrong, pe);
        free_whole(&whole);
    } else {
        compute(&request, NULL);
    }
    shmem_barrier_all();
    int status = is_wrong;
    shmem_finalize();
    return status;
}
