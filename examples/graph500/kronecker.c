/* SPDX-License-Identifier: BSD-3-Clause */
/* kronecker.c - the generator of the specification: each of `scale` steps picks a quadrant of the adjacency matrix with
 * probabilities A 0.57, B 0.19, C 0.19, D 0.05; then the vertex numbers are permuted. */
#include "graph500.h"

/* Of 2^32: the lower half of the rows has C + D; the right half has B of A + B, and D of C + D. */
#define LOWER_HALF     ((uint32_t)(0.24 * 4294967296.0))
#define RIGHT_OF_UPPER ((uint32_t)(0.19 / 0.76 * 4294967296.0))
#define RIGHT_OF_LOWER ((uint32_t)(0.05 / 0.24 * 4294967296.0))

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t random_of(uint64_t seed, uint64_t i)
{
    return mix(mix(seed + 0x9e3779b97f4a7c15u) + i * 0x9e3779b97f4a7c15u);
}

/* A permutation of 0..2^scale-1: odd factors and right shifts are invertible. */
static uint32_t mix_vertex(const struct world *world, uint64_t v)
{
    uint64_t mask = world->vertex_count - 1, key = random_of(world->seed, UINT64_MAX);
    for (int round = 0; round < 3; round++) {
        v = (v * ((key >> (round * 16)) | 1) + (key >> 32)) & mask;
        v ^= v >> (world->scale / 2 + 1);
    }
    return (uint32_t)v;
}

struct edge kronecker_edge(const struct world *world, uint64_t i)
{
    uint64_t from = 0, to = 0;
    for (uint32_t step = 0; step < world->scale; step++) {
        uint64_t r = random_of(world->seed, i * SCALE_MAX + step);
        bool is_lower = (uint32_t)r < LOWER_HALF;
        bool is_right = (uint32_t)(r >> 32) < (is_lower ? RIGHT_OF_LOWER : RIGHT_OF_UPPER);
        from = from << 1 | is_lower;
        to = to << 1 | is_right;
    }
    return (struct edge){.from = mix_vertex(world, from), .to = mix_vertex(world, to)};
}
