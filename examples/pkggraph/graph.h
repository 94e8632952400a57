/* SPDX-License-Identifier: BSD-3-Clause */
/* graph.h - a directed graph with named vertices, and the same graph distributed over all PEs.
 *
 * Vertices are numbered 0..vertex_count-1. In both forms the edges of vertex v are target[first[v]] up to, not
 * including, target[first[v + 1]].
 */
#ifndef PKGGRAPH_GRAPH_H
#define PKGGRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Growing sets of names and edges, from which a graph is made. Zeroed: empty. */
struct names {
    char **name;     /* owned */
    uint32_t *table; /* open addressing; number + 1 of a name, 0: free */
    uint32_t count, room, table_size;
};
struct edges {
    struct edge {
        uint32_t from, to;
    } * edge;
    size_t count, room;
};

#define NO_NAME UINT32_MAX
uint32_t names_find(const struct names *names, const char *name, size_t length); /* NO_NAME if absent */
uint32_t names_add(struct names *names, const char *name, size_t length);
void names_free(struct names *names);
void edges_add(struct edges *edges, uint32_t from, uint32_t to);

struct graph {
    uint32_t vertex_count;
    uint64_t *first; /* [vertex_count + 1] */
    uint32_t *target;
};

/* Duplicate edges are merged; self-loops are kept. */
struct graph graph_make(const struct edges *edges, uint32_t vertex_count);
struct graph graph_reversed(const struct graph *graph);
void graph_free(struct graph *graph);

/* Reads a file of packages (starting with "Package:") or else an edge list. False after a message on stderr. */
bool read_graph_file(const char *path, struct names *names, struct edges *edges, bool *is_packages_out);

/* One PE's part: the vertices pe_first(pe)..pe_first(pe + 1)-1 with their edges, in symmetric memory. */
struct share {
    uint32_t vertex_count;                     /* of the whole graph */
    uint32_t mine_first, mine_count, mine_max; /* mine_max: the largest mine_count of all PEs */
    uint64_t *first;                           /* [mine_count + 1], counted from this PE's first edge */
    uint32_t *target;
};

uint32_t share_first(uint32_t vertex_count, int pe);
int share_owner(uint32_t vertex_count, uint32_t vertex);
/* Collective. PE 0 passes a graph, the others NULL. Ends the job if memory is exhausted. */
struct share share_deal(const struct graph *graph);
void share_free(struct share *share);

/* Zeroed symmetric memory; ends the job with a message if exhausted. Collective. */
void *symmetric_zeroed(size_t count, size_t bytes);
void *private_zeroed(size_t count, size_t bytes);

/* Collective: rank[] (symmetric, this PE's vertices) until two rounds differ by less than 1e-10 in total; returns the
 * number of rounds. */
int pagerank(const struct share *share, double *rank);
int pagerank_alone(const struct graph *graph, double *rank);

/* Collective: depth[] (symmetric, this PE's vertices), -1 if not reachable from the root. Returns the number of levels.
 */
int bfs(const struct share *share, uint32_t root, int32_t *depth);
void bfs_alone(const struct graph *graph, uint32_t root, int32_t *depth);

#endif
