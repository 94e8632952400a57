/* SPDX-License-Identifier: BSD-3-Clause */
/* bfs.c - breadth-first search, level by level, on all PEs and, for comparison, on one.
 *
 * In each level a PE collects the vertices that its edges reach by owner, reserves room in each owner's inbox by one
 * fetch-and-add and sends them by one put. It sends a vertex at most once in the whole search.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include <shmem.h>

static uint64_t filled; /* symmetric: words of this PE's inbox reserved in this level */

struct search {
    uint32_t *frontier; /* this PE's vertices of this level, as local numbers */
    uint32_t frontier_count;
    uint32_t *outbox;    /* as many entries as vertices: words for a PE are placed where its own vertices would be */
    uint32_t *out_count; /* [PE] */
    bool *is_sent;       /* [vertex] */
    uint32_t *inbox;     /* symmetric: room for every PE to send each vertex of this one */
};

static void expand(const struct share *share, struct search *search)
{
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    uint32_t n = share->vertex_count;
    memset(search->out_count, 0, (size_t)pe_count * sizeof(*search->out_count));
    for (uint32_t i = 0; i < search->frontier_count; i++) {
        uint32_t v = search->frontier[i];
        for (uint64_t e = share->first[v]; e < share->first[v + 1]; e++) {
            uint32_t target = share->target[e];
            if (!search->is_sent[target]) {
                int owner = share_owner(n, target);
                search->is_sent[target] = true;
                search->outbox[share_first(n, owner) + search->out_count[owner]++] = target;
            }
        }
    }
    for (int i = 1; i <= pe_count; i++) {
        int pe = (me + i) % pe_count; /* each PE starts with another one */
        uint32_t count = search->out_count[pe];
        if (count > 0) {
            uint64_t at = shmem_uint64_atomic_fetch_add(&filled, count, pe);
            shmem_uint32_put_nbi(search->inbox + at, search->outbox + share_first(n, pe), count, pe);
        }
    }
    shmem_barrier_all(); /* everything sent has arrived */
}

/* The new frontier: received vertices that had no depth yet. */
static void collect(const struct share *share, struct search *search, int32_t *depth, int32_t level)
{
    uint64_t count = shmem_uint64_atomic_swap(&filled, 0, shmem_my_pe());
    search->frontier_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t v = search->inbox[i] - share->mine_first;
        if (depth[v] < 0) {
            depth[v] = level;
            search->frontier[search->frontier_count++] = v;
        }
    }
}

int bfs(const struct share *share, uint32_t root, int32_t *depth)
{
    static uint64_t found_here, found; /* symmetric: vertices of a level */
    size_t pe_count = (size_t)shmem_n_pes();
    struct search search = {
        .frontier = private_zeroed(share->mine_count, sizeof(*search.frontier)),
        .outbox = private_zeroed(share->vertex_count, sizeof(*search.outbox)),
        .out_count = private_zeroed(pe_count, sizeof(*search.out_count)),
        .is_sent = private_zeroed(share->vertex_count, sizeof(*search.is_sent)),
        .inbox = symmetric_zeroed(pe_count * share->mine_max, sizeof(*search.inbox)),
    };
    for (uint32_t v = 0; v < share->mine_count; v++)
        depth[v] = -1;
    if (root - share->mine_first < share->mine_count) {
        depth[root - share->mine_first] = 0;
        search.frontier[search.frontier_count++] = root - share->mine_first;
    }
    int32_t level = 0;
    do {
        level++;
        expand(share, &search);
        collect(share, &search, depth, level);
        found_here = search.frontier_count;
        shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &found, &found_here, 1);
    } while (found > 0);
    shmem_free(search.inbox);
    free(search.is_sent);
    free(search.out_count);
    free(search.outbox);
    free(search.frontier);
    return level;
}

void bfs_alone(const struct graph *graph, uint32_t root, int32_t *depth)
{
    uint32_t *queue = private_zeroed(graph->vertex_count, sizeof(*queue));
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        depth[v] = -1;
    depth[root] = 0;
    queue[tail++] = root;
    while (head < tail) {
        uint32_t v = queue[head++];
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
            uint32_t target = graph->target[e];
            if (depth[target] < 0) {
                depth[target] = depth[v] + 1;
                queue[tail++] = target;
            }
        }
    }
    free(queue);
}
