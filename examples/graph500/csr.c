/* SPDX-License-Identifier: BSD-3-Clause */
/* csr.c - kernel 1: from the list of edges to the neighbours of each own vertex. */
#include "graph500.h"

#include <stdlib.h>

#include <shmem.h>

static unsigned long coming; /* symmetric: edge ends that will arrive here */

/* Informs each PE how many words it will receive. */
static uint64_t count_coming(const struct world *world, const struct edge *edges)
{
    uint64_t *count = memory((size_t)world->pe_count, sizeof(*count));
    for (uint64_t i = 0; i < world->edge_count; i++) {
        if (edges[i].from == edges[i].to)
            continue;
        count[owner_of(world, edges[i].from)]++;
        count[owner_of(world, edges[i].to)]++;
    }
    for (int pe = 0; pe < world->pe_count; pe++)
        shmem_ulong_atomic_add(&coming, count[pe], pe);
    free(count);
    shmem_barrier_all();
    uint64_t words = coming;
    coming = 0;
    return words;
}

/* Each end goes to the owner of the other: its own vertex there, as a local number, and that vertex's neighbour. */
static uint64_t send_ends(const struct world *world, struct exchange *exchange, const struct edge *edges)
{
    for (uint64_t i = 0; i < world->edge_count; i++) {
        uint32_t a = edges[i].from, b = edges[i].to;
        if (a == b)
            continue;
        int owner_a = owner_of(world, a), owner_b = owner_of(world, b);
        exchange_send(exchange, owner_a, (uint64_t)(a - (uint32_t)owner_a * world->block) << 32 | b);
        exchange_send(exchange, owner_b, (uint64_t)(b - (uint32_t)owner_b * world->block) << 32 | a);
    }
    return exchange_finish(exchange);
}

struct csr csr_make(const struct world *world, struct exchange *exchange, const struct edge *edges)
{
    exchange_room(exchange, count_coming(world, edges));
    uint64_t count = send_ends(world, exchange, edges);
    struct csr csr = {
        .first = memory((size_t)world->mine_count + 2, sizeof(*csr.first)),
        .target = memory(count, sizeof(*csr.target)),
    };
    uint64_t *next = csr.first + 1; /* next[v] runs from the start of v to its end, which is the start of v + 1 */
    for (uint64_t i = 0; i < count; i++)
        next[(exchange->inbox[i] >> 32) + 1]++;
    for (uint32_t v = 0; v < world->mine_count; v++)
        next[v + 1] += next[v];
    for (uint64_t i = 0; i < count; i++)
        csr.target[next[exchange->inbox[i] >> 32]++] = (uint32_t)exchange->inbox[i];
    shmem_barrier_all(); /* no PE sends again before all have read their inbox */
    return csr;
}

void csr_free(struct csr *csr)
{
    free(csr->first);
    free(csr->target);
}
