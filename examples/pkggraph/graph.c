/* SPDX-License-Identifier: BSD-3-Clause */
/* graph.c - names, edges, and the graph as rows of targets. One PE. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *private_zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "pkggraph: out of memory for %zu x %zu bytes\n", count, bytes);
        abort();
    }
    return memory;
}

static void *grown(void *memory, size_t count, size_t bytes)
{
    memory = realloc(memory, count * bytes);
    if (memory == NULL) {
        fprintf(stderr, "pkggraph: out of memory for %zu x %zu bytes\n", count, bytes);
        abort();
    }
    return memory;
}

/* The entry of the name in the table, or where it would be inserted. */
static uint32_t *place_of(const struct names *names, const char *name, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211u;
    for (uint32_t at = (uint32_t)(hash ^ hash >> 32);; at++) {
        uint32_t *entry = &names->table[at & (names->table_size - 1)];
        if (*entry == 0)
            return entry;
        const char *other = names->name[*entry - 1];
        if (strncmp(other, name, length) == 0 && other[length] == '\0')
            return entry;
    }
}

uint32_t names_find(const struct names *names, const char *name, size_t length)
{
    return names->count == 0 ? NO_NAME : *place_of(names, name, length) - 1; /* a free entry, 0, gives NO_NAME */
}

uint32_t names_add(struct names *names, const char *name, size_t length)
{
    if (names->count == names->room) { /* the table is always at most half full */
        names->room = names->room == 0 ? 1024 : 2 * names->room;
        names->name = grown(names->name, names->room, sizeof(*names->name));
        free(names->table);
        names->table_size = 2 * names->room;
        names->table = private_zeroed(names->table_size, sizeof(*names->table));
        for (uint32_t i = 0; i < names->count; i++)
            *place_of(names, names->name[i], strlen(names->name[i])) = i + 1;
    }
    uint32_t *entry = place_of(names, name, length);
    if (*entry == 0) {
        char *copy = private_zeroed(length + 1, 1);
        memcpy(copy, name, length);
        names->name[names->count++] = copy;
        *entry = names->count;
    }
    return *entry - 1;
}

void names_free(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
    free(names->table);
    *names = (struct names){0};
}

void edges_add(struct edges *edges, uint32_t from, uint32_t to)
{
    if (edges->count == edges->room) {
        edges->room = edges->room == 0 ? 4096 : 2 * edges->room;
        edges->edge = grown(edges->edge, edges->room, sizeof(*edges->edge));
    }
    edges->edge[edges->count++] = (struct edge){from, to};
}

static int compare_targets(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* Sorts each row and removes duplicates. */
static void tidy_rows(struct graph *graph)
{
    uint64_t kept = 0, start = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        uint64_t end = graph->first[v + 1];
        qsort(graph->target + start, end - start, sizeof(*graph->target), compare_targets);
        graph->first[v] = kept;
        for (uint64_t e = start; e < end; e++)
            if (e == start || graph->target[e] != graph->target[e - 1])
                graph->target[kept++] = graph->target[e];
        start = end;
    }
    graph->first[graph->vertex_count] = kept;
}

struct graph graph_make(const struct edges *edges, uint32_t vertex_count)
{
    struct graph graph = {.vertex_count = vertex_count};
    graph.first = private_zeroed((size_t)vertex_count + 1, sizeof(*graph.first));
    graph.target = private_zeroed(edges->count, sizeof(*graph.target));
    for (size_t i = 0; i < edges->count; i++)
        graph.first[edges->edge[i].from + 1]++;
    for (uint32_t v = 0; v < vertex_count; v++)
        graph.first[v + 1] += graph.first[v];
    uint64_t *next = private_zeroed(vertex_count, sizeof(*next));
    memcpy(next, graph.first, vertex_count * sizeof(*next));
    for (size_t i = 0; i < edges->count; i++)
        graph.target[next[edges->edge[i].from]++] = edges->edge[i].to;
    free(next);
    tidy_rows(&graph);
    return graph;
}

struct graph graph_reversed(const struct graph *graph)
{
    struct edges backwards = {0};
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        for (uint64_t e = graph->first[v]; e < graph->first[v + 1]; e++)
            edges_add(&backwards, graph->target[e], v);
    struct graph reversed = graph_make(&backwards, graph->vertex_count);
    free(backwards.edge);
    return reversed;
}

void graph_free(struct graph *graph)
{
    free(graph->first);
    free(graph->target);
    *graph = (struct graph){0};
}
