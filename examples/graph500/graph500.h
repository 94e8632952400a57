/* SPDX-License-Identifier: BSD-3-Clause */
/* graph500.h - the Graph500 benchmark, kernels 1 and 2 (graph500.org/specification): breadth-first search in a
 * Kronecker graph whose vertices and edges are distributed over all PEs.
 *
 * Vertices are numbered 0..2^scale-1 and distributed in blocks: owner_of(), local_of(). The routines of OpenSHMEM 1.4
 * are enough, so that the same source runs on any library.
 */
#ifndef GRAPH500_H
#define GRAPH500_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_VERTEX UINT32_MAX /* so scale is at most 31 */
#define SCALE_MAX 31

struct edge {
    uint32_t from, to; /* edges are undirected */
};

/* The same on every PE, except the last members. */
struct world {
    int me, pe_count;
    uint32_t scale, edge_factor;
    uint64_t seed;
    uint32_t vertex_count;
    uint32_t block;                  /* vertices per PE; the last PEs may have fewer */
    uint32_t mine_first, mine_count; /* vertices of this PE */
    uint64_t edge_first, edge_count; /* this PE's part of the edge list */
};

static inline int owner_of(const struct world *world, uint32_t vertex)
{
    return (int)(vertex / world->block);
}

static inline uint32_t local_of(const struct world *world, uint32_t vertex)
{
    return vertex - world->mine_first; /* of an own vertex */
}

/* kronecker.c: the edge list. Edge i depends on seed and i only, not on the number of PEs. */
struct edge kronecker_edge(const struct world *world, uint64_t i);
uint64_t random_of(uint64_t seed, uint64_t i);

/* exchange.c: words to other PEs, collected into batches. A batch costs one fetch-and-add, which reserves room in the
 * inbox there, and one put. Between two calls of exchange_finish every PE may send, and none may read. Symmetric: the
 * inbox. exchange_start, exchange_room, exchange_finish and exchange_end are collective. */
struct exchange {
    const struct world *world;
    uint64_t *inbox;
    uint64_t room;         /* words of inbox; the same on every PE */
    uint64_t *outbox;      /* [PE][EXCHANGE_BATCH] */
    uint32_t *outbox_fill; /* [PE] */
};
#define EXCHANGE_BATCH 512
void exchange_start(struct exchange *exchange, const struct world *world);
void exchange_room(struct exchange *exchange, uint64_t words); /* at least that many; the inbox loses its contents */
void exchange_flush(struct exchange *exchange, int pe);
uint64_t exchange_finish(struct exchange *exchange); /* the number of words received, which are in inbox */
void exchange_end(struct exchange *exchange);

static inline void exchange_send(struct exchange *exchange, int pe, uint64_t word)
{
    uint32_t fill = exchange->outbox_fill[pe]++;
    exchange->outbox[(size_t)pe * EXCHANGE_BATCH + fill] = word;
    if (fill + 1 == EXCHANGE_BATCH)
        exchange_flush(exchange, pe);
}

/* collective.c: reductions and collections over all PEs. */
int64_t sum_of_all(int64_t value);
int64_t max_of_all(int64_t value);
void or_of_all(uint64_t *words, size_t count);                           /* any memory; every PE gets the result */
void collect_from_all(uint32_t *to, const uint32_t *from, size_t count); /* both symmetric */
double seconds_now(void);
void *memory(size_t count, size_t bytes);    /* zeroed; ends the job if memory is exhausted */
void *symmetric(size_t count, size_t bytes); /* collective; as above */

/* csr.c: kernel 1. Self-loops are dropped; duplicate edges are kept. */
struct csr {
    uint64_t *first;  /* [mine_count + 1] */
    uint32_t *target; /* of this PE's vertex v: target[first[v]] up to, not including, target[first[v + 1]] */
};
struct csr csr_make(const struct world *world, struct exchange *exchange, const struct edge *edges);
void csr_free(struct csr *csr);

/* bfs.c: kernel 2. parent is of this PE's vertices; NO_VERTEX: not reachable from the root. The inbox must have room
 * for bfs_inbox_words(). */
struct bfs {
    uint64_t *is_sent;            /* a bit per vertex: reached here, or sent to its owner */
    uint32_t *frontier, *reached; /* this PE's vertices, as local numbers */
};
uint64_t bfs_inbox_words(const struct world *world);
void bfs_start(struct bfs *bfs, const struct world *world);
void bfs_search(struct bfs *bfs, const struct world *world, struct exchange *exchange, const struct csr *csr,
                uint32_t root, uint32_t *parent);
void bfs_end(struct bfs *bfs);

/* validate.c: the five checks of the specification, from edge list and parents only. parent is symmetric, block words.
 * *edges_out: edges of the list within the component of the root. False after a message. */
bool validate(const struct world *world, const struct edge *edges, uint32_t root, const uint32_t *parent,
              int64_t *edges_out);

#endif
