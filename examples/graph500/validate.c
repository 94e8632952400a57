/* SPDX-License-Identifier: BSD-3-Clause */
/* validate.c - checks that the parents form a breadth-first tree. Every PE collects all parents, computes the depth of
 * every vertex from them, and then checks its part of the edge list from which the graph was made. */
#include "graph500.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define NO_DEPTH UINT32_MAX

/* Walks from each vertex up to one whose depth is known, and back down. Check 1: every walk is finite, and none ends at
 * a vertex without a parent. */
static bool find_depths(const struct world *world, uint32_t root, const uint32_t *parent, uint32_t *depth)
{
    uint32_t *path = memory(world->vertex_count, sizeof(*path));
    bool is_tree = parent[root] == root;
    memset(depth, 0xff, world->vertex_count * sizeof(*depth));
    depth[root] = 0;
    for (uint32_t v = 0; v < world->vertex_count && is_tree; v++) {
        uint32_t length = 0, at = v;
        if (parent[v] == NO_VERTEX)
            continue;
        while (is_tree && depth[at] == NO_DEPTH) {
            path[length++] = at;
            at = parent[at];
            is_tree = at < world->vertex_count && length < world->vertex_count;
        }
        while (is_tree && length > 0) {
            length--;
            depth[path[length]] = depth[parent[path[length]]] + 1;
        }
    }
    free(path);
    return is_tree;
}

/* Checks 3 and 4: both ends of every edge are reached, at depths that differ by at most one, or neither is. Also
 * records where an edge joins a vertex to its parent, and counts the edges reached. */
static int64_t look_at_edges(const struct world *world, const struct edge *edges, const uint32_t *parent,
                             const uint32_t *depth, uint64_t *is_joined, int64_t *reached_out)
{
    int64_t wrong = 0, reached = 0;
    for (uint64_t i = 0; i < world->edge_count; i++) {
        uint32_t a = edges[i].from, b = edges[i].to;
        if ((depth[a] == NO_DEPTH) != (depth[b] == NO_DEPTH)) {
            wrong++;
            continue;
        }
        if (depth[a] == NO_DEPTH)
            continue;
        reached++;
        wrong += depth[a] > depth[b] + 1 || depth[b] > depth[a] + 1;
        if (parent[a] == b)
            is_joined[a / 64] |= 1ull << (a % 64);
        if (parent[b] == a)
            is_joined[b / 64] |= 1ull << (b % 64);
    }
    *reached_out = reached;
    return wrong;
}

bool validate(const struct world *world, const struct edge *edges, uint32_t root, const uint32_t *parent,
              int64_t *edges_out)
{
    uint32_t *parents = symmetric((size_t)world->block * (size_t)world->pe_count, sizeof(*parents));
    uint32_t *depth = memory(world->vertex_count, sizeof(*depth));
    size_t words = world->vertex_count / 64 + 1;
    uint64_t *is_joined = memory(words, sizeof(*is_joined));
    int64_t wrong = 1;

    collect_from_all(parents, parent, world->block);
    *edges_out = 0;
    const char *what = "the parents do not form a tree";
    if (find_depths(world, root, parents, depth)) { /* the same on every PE */
        int64_t reached;
        what = "an edge joins depths more than one apart, or leaves the tree";
        wrong = sum_of_all(look_at_edges(world, edges, parents, depth, is_joined, &reached));
        *edges_out = sum_of_all(reached);
        or_of_all(is_joined, words);
        /* Checks 2 and 5: parent and child are joined by an edge; their depths differ by one by construction. */
        for (uint32_t v = 0; v < world->vertex_count && wrong == 0; v++) {
            if (v != root && depth[v] != NO_DEPTH && !(is_joined[v / 64] >> (v % 64) & 1)) {
                what = "a vertex and its parent are not joined by an edge";
                wrong++;
            }
        }
    }
    if (wrong > 0 && world->me == 0)
        fprintf(stderr, "graph500: the tree from root %u is wrong: %s\n", root, what);
    free(is_joined);
    free(depth);
    shmem_free(parents);
    return wrong == 0;
}
