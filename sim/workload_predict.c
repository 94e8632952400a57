/* SPDX-License-Identifier: BSD-3-Clause */
/* What a ring of so many hosts is worth: latencies and rates of one PE on each host, with all links and with one dead.
 * All-to-all is sampled: each PE puts to hosts at SHIFT_MAX distances spread evenly over the ring, so that links carry
 * in proportion what they carry when each puts to all, and the work does not grow with the square of the hosts. */
#include "base/assert.h"
#include "sim/fault.h"
#include "sim/workload.h"

#include <stdlib.h>

#define REPEAT_COUNT 4
#define SHIFT_MAX    8u
#define GATE_NS      5000
#define GATHER_NS    100000   /* for the others to come to the next barrier, where they wait awake */
#define SETTLE_NS    20000000 /* for all hosts to hear of the dead link */

/* When the last PE began what all do now, and how many have begun and ended. */
struct span {
    uint64_t start_ns;
    uint32_t begun_count;
    uint32_t ended_count;
};

static uint64_t buffer_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap;
}

static char *own_buffer(const struct sim_pe *pe)
{
    return pe->fabric->self.segment + buffer_offset(pe) + pe->world->config.bytes;
}

static void put_to(struct sim_pe *pe, uint32_t shift, uint64_t bytes)
{
    uint32_t to = (pe->index + shift) % pe->fabric->self.pe_count;
    quoit_fabric_put_nbi(pe->fabric, pe->context, buffer_offset(pe), own_buffer(pe), bytes, to);
}

static void put_neighbours(struct sim_pe *pe)
{
    put_to(pe, 1, pe->world->config.bytes);
    put_to(pe, pe->fabric->self.pe_count - 1, pe->world->config.bytes);
}

static void put_opposite(struct sim_pe *pe)
{
    put_to(pe, pe->fabric->self.pe_count / 2, pe->world->config.bytes);
}

static uint32_t shift_count(const struct sim_pe *pe)
{
    uint32_t others = pe->fabric->self.pe_count - 1;
    return others < SHIFT_MAX ? others : SHIFT_MAX;
}

/* What one PE puts to each of those. */
static uint64_t share_bytes(const struct sim_pe *pe)
{
    return pe->world->config.bytes / shift_count(pe) / 64 * 64;
}

static void put_all(struct sim_pe *pe)
{
    uint32_t count = shift_count(pe);
    for (uint32_t i = 0; i < count; i++)
        put_to(pe, 1 + i * (pe->fabric->self.pe_count - 1) / count, share_bytes(pe));
}

/* All PEs at once, after a sync; the sum of what they put, by the time from the last to begin to the last to end. */
static void measure_rate(struct sim_pe *pe, const char *name, void (*put)(struct sim_pe *pe), uint64_t bytes_of_each)
{
    struct sim_world *world = pe->world;
    struct span *span = world->workload_state;
    span->begun_count++;
    while (span->begun_count < pe->fabric->self.pe_count)
        sim_block(world, world->now_ns + GATE_NS); /* in a line of hosts some leave the sync long before others */
    span->start_ns = world->now_ns;
    put(pe);
    quoit_fabric_quiet(pe->fabric, pe->context);
    if (++span->ended_count < pe->fabric->self.pe_count)
        return;
    sim_metric_add(world, name, "MB/s",
                   (double)bytes_of_each * pe->fabric->self.pe_count * 1000 / (double)(world->now_ns - span->start_ns));
    span->begun_count = span->ended_count = 0;
}

/* One PE alone, from the put to knowing that it is there. */
static void measure_put(struct sim_pe *pe, const char *name, uint32_t shift, uint64_t bytes, bool is_rate)
{
    struct sim_world *world = pe->world;
    if (pe->index == 0)
        sim_block(world, world->now_ns + GATHER_NS);
    for (uint32_t i = 0; i <= REPEAT_COUNT && pe->index == 0; i++) {
        uint64_t start_ns = world->now_ns;
        put_to(pe, shift, bytes);
        quoit_fabric_quiet(pe->fabric, pe->context);
        uint64_t took_ns = world->now_ns - start_ns;
        if (i == 0) /* it wakes whoever slept on the way */
            continue;
        sim_metric_add(world, name, is_rate ? "MB/s" : "us",
                       is_rate ? (double)bytes * 1000 / (double)took_ns : (double)took_ns / 1000);
    }
}

static void measure_barrier(struct sim_pe *pe, const char *name, uint32_t count)
{
    struct sim_world *world = pe->world;
    for (uint32_t i = 0; i < count; i++)
        quoit_coll_sync(pe->team, name); /* wakes whoever slept while others measured */
    uint64_t start_ns = world->now_ns;
    for (uint32_t i = 0; i < count; i++)
        quoit_coll_sync(pe->team, name);
    if (pe->index == 0)
        sim_metric_add(world, name, "us", (double)(world->now_ns - start_ns) / 1000 / count);
}

static void add_words(void *into, const void *from, size_t count)
{
    uint64_t *to = into;
    const uint64_t *more = from;
    for (size_t i = 0; i < count; i++)
        to[i] += more[i];
}

static void measure_allreduce(struct sim_pe *pe, const char *name, size_t word_count)
{
    struct sim_world *world = pe->world;
    quoit_coll_sync(pe->team, name);
    uint64_t start_ns = world->now_ns;
    quoit_coll_reduce(pe->team, buffer_offset(pe), buffer_offset(pe) + world->config.bytes, word_count, 8, add_words,
                      name);
    if (pe->index == 0)
        sim_metric_add(world, name, "us", (double)(world->now_ns - start_ns) / 1000);
}

static void run_predict(struct sim_pe *pe)
{
    struct sim_world *world = pe->world;
    uint64_t bytes = world->config.bytes;
    uint32_t farthest = pe->fabric->self.pe_count / 2;
    uint64_t all_bytes = shift_count(pe) * share_bytes(pe);
    struct quoit_team_shape job = {.start = 0, .stride = 1, .size = pe->fabric->self.pe_count};
    pe->team = quoit_team_new(pe->fabric, &job, 0, 0);
    if (!pe->team)
        sim_fail(world, "PE %u cannot make its team", pe->index);
    measure_put(pe, "put 8 B, neighbour", 1, 8, false);
    measure_put(pe, "put 8 B, farthest", farthest, 8, false);
    measure_put(pe, "one stream", 1, bytes, true);
    measure_barrier(pe, "barrier", REPEAT_COUNT);
    measure_allreduce(pe, "allreduce 8 B", 1);
    measure_allreduce(pe, "allreduce, large", bytes / 8);
    quoit_coll_sync(pe->team, "predict");
    measure_rate(pe, "neighbours", put_neighbours, 2 * bytes);
    quoit_coll_sync(pe->team, "predict");
    measure_rate(pe, "all-to-all", put_all, all_bytes);
    quoit_coll_sync(pe->team, "predict");
    measure_rate(pe, "bisection", put_opposite, bytes);
    quoit_coll_sync(pe->team, "predict");
    if (pe->index == 0)
        sim_link_kill(world, 0);
    sim_block(world, world->now_ns + SETTLE_NS);
    measure_put(pe, "put 8 B, round a dead link", 1, 8, false);
    measure_barrier(pe, "barrier, one link dead", 1); /* one is long: each round waits for the long way */
    measure_rate(pe, "all-to-all, one link dead", put_all, all_bytes);
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

static void setup_predict(struct sim_world *world)
{
    world->workload_state = calloc(1, sizeof(struct span));
    quoit_assert(world->workload_state != NULL);
}

static void teardown_predict(struct sim_world *world)
{
    free(world->workload_state);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_predict = {
    .name = "predict",
    .sentence = "latencies and rates of a whole ring, then with one dead link",
    .measures = true,
    .setup = setup_predict,
    .run = run_predict,
    .teardown = teardown_predict,
};
