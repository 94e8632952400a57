/* SPDX-License-Identifier: BSD-3-Clause */
/* bfs.c - kernel 2: breadth-first search, level by level.
 *
 * A PE follows the edges of its own vertices of the level. A bit per vertex marks those it has already sent. A word to
 * the owner names the vertex, as a local number there, and its parent; the first to arrive wins.
 */
#include "graph500.h"

#include <stdlib.h>
#include <string.h>

static bool take_bit(uint64_t *bits, uint32_t i)
{
    uint64_t bit = 1ull << (i % 64), old = bits[i / 64];
    bits[i / 64] = old | bit;
    return !(old & bit);
}

/* Every other PE sends each of this PE's vertices at most once in a search. */
uint64_t bfs_inbox_words(const struct world *world)
{
    return (uint64_t)world->block * (uint64_t)world->pe_count;
}

void bfs_start(struct bfs *bfs, const struct world *world)
{
    *bfs = (struct bfs){
        .is_sent = memory(world->vertex_count / 64 + 1, sizeof(*bfs->is_sent)),
        .frontier = memory(world->mine_count, sizeof(*bfs->frontier)),
        .reached = memory(world->mine_count, sizeof(*bfs->reached)),
    };
}

void bfs_end(struct bfs *bfs)
{
    free(bfs->is_sent);
    free(bfs->frontier);
    free(bfs->reached);
}

/* This PE's vertices are reached at once, others by a word to their owner. Returns how many were reached here. */
static uint32_t expand(struct bfs *bfs, const struct world *world, struct exchange *exchange, const struct csr *csr,
                       uint32_t frontier_count, uint32_t *parent)
{
    uint32_t reached_count = 0;
    for (uint32_t i = 0; i < frontier_count; i++) {
        uint32_t v = bfs->frontier[i];
        for (uint64_t e = csr->first[v]; e < csr->first[v + 1]; e++) {
            uint32_t target = csr->target[e];
            if (!take_bit(bfs->is_sent, target))
                continue;
            uint32_t local = local_of(world, target);
            if (local < world->mine_count) { /* less than mine_first wraps to a large number */
                parent[local] = world->mine_first + v;
                bfs->reached[reached_count++] = local;
            } else {
                int owner = owner_of(world, target);
                exchange_send(exchange, owner,
                              (uint64_t)(target - (uint32_t)owner * world->block) << 32 | (world->mine_first + v));
            }
        }
    }
    return reached_count;
}

static uint32_t take_in(struct bfs *bfs, const struct world *world, const struct exchange *exchange,
                        uint64_t word_count, uint32_t reached_count, uint32_t *parent)
{
    for (uint64_t i = 0; i < word_count; i++) {
        uint32_t local = (uint32_t)(exchange->inbox[i] >> 32);
        if (take_bit(bfs->is_sent, world->mine_first + local)) {
            parent[local] = (uint32_t)exchange->inbox[i];
            bfs->reached[reached_count++] = local;
        }
    }
    return reached_count;
}

void bfs_search(struct bfs *bfs, const struct world *world, struct exchange *exchange, const struct csr *csr,
                uint32_t root, uint32_t *parent)
{
    memset(bfs->is_sent, 0, (world->vertex_count / 64 + 1) * sizeof(*bfs->is_sent));
    memset(parent, 0xff, world->mine_count * sizeof(*parent)); /* NO_VERTEX */
    uint32_t count = 0;
    if (local_of(world, root) < world->mine_count) {
        take_bit(bfs->is_sent, root);
        parent[local_of(world, root)] = root;
        bfs->frontier[count++] = local_of(world, root);
    }
    do {
        uint32_t reached = expand(bfs, world, exchange, csr, count, parent);
        uint64_t words = exchange_finish(exchange);
        count = take_in(bfs, world, exchange, words, reached, parent);
        uint32_t *previous = bfs->frontier;
        bfs->frontier = bfs->reached;
        bfs->reached = previous;
    } while (sum_of_all(count) > 0);
}
