/* SPDX-License-Identifier: BSD-3-Clause */
/* share.c - distributes a graph over all PEs, in blocks of vertices. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>

#include <shmem.h>

void *symmetric_zeroed(size_t count, size_t bytes)
{
    void *memory = shmem_calloc(count + 1, bytes);
    if (memory == NULL) {
        if (shmem_my_pe() == 0) {
            fprintf(stderr, "pkggraph: the symmetric heap has no room for %zu x %zu bytes; give SHMEM_SYMMETRIC_SIZE\n",
                    count, bytes);
            shmem_global_exit(2);
        }
        shmem_barrier_all(); /* PE 0 ends the job */
    }
    return memory;
}

uint32_t share_first(uint32_t vertex_count, int pe)
{
    return (uint32_t)((uint64_t)vertex_count * (uint64_t)pe / (uint64_t)shmem_n_pes());
}

int share_owner(uint32_t vertex_count, uint32_t vertex)
{
    return (int)((((uint64_t)vertex + 1) * (uint64_t)shmem_n_pes() - 1) / vertex_count);
}

/* PE 0: sends each PE its rows, counted from its own first edge, and its targets, by two puts. */
static void send_rows(const struct graph *graph, const struct share *share)
{
    uint64_t *rows = private_zeroed((size_t)share->mine_max + 1, sizeof(*rows));
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        uint32_t begin = share_first(graph->vertex_count, pe), end = share_first(graph->vertex_count, pe + 1);
        for (uint32_t v = begin; v <= end; v++)
            rows[v - begin] = graph->first[v] - graph->first[begin];
        shmem_uint64_put(share->first, rows, end - begin + 1, pe);
        shmem_uint32_put(share->target, graph->target + graph->first[begin], rows[end - begin], pe);
    }
    free(rows);
}

struct share share_deal(const struct graph *graph)
{
    static uint64_t size[2]; /* symmetric: vertices; the most edges of one PE */
    int pe_count = shmem_n_pes();
    if (graph != NULL) {
        size[0] = graph->vertex_count;
        size[1] = 0;
        for (int pe = 0; pe < pe_count; pe++) {
            uint64_t edges = graph->first[share_first(graph->vertex_count, pe + 1)] -
                             graph->first[share_first(graph->vertex_count, pe)];
            size[1] = edges > size[1] ? edges : size[1];
        }
        for (int pe = 1; pe < pe_count; pe++)
            shmem_uint64_put(size, size, 2, pe);
    }
    shmem_barrier_all();

    struct share share = {.vertex_count = (uint32_t)size[0]};
    share.mine_first = share_first(share.vertex_count, shmem_my_pe());
    share.mine_count = share_first(share.vertex_count, shmem_my_pe() + 1) - share.mine_first;
    share.mine_max = share.vertex_count / (uint32_t)pe_count + 1;
    share.first = symmetric_zeroed((size_t)share.mine_max + 1, sizeof(*share.first));
    share.target = symmetric_zeroed(size[1], sizeof(*share.target));
    if (graph != NULL)
        send_rows(graph, &share);
    shmem_barrier_all();
    return share;
}

void share_free(struct share *share)
{
    shmem_free(share->target);
    shmem_free(share->first);
    *share = (struct share){0};
}
