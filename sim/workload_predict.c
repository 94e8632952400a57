/* SPDX-License-Identifier: BSD-3-Clause */
/* Predictions for a ring of a given size: latencies and rates of one PE on each host, with all links and with one dead.
 * All-to-all is sampled: each PE puts to hosts at SHIFT_MAX distances spread evenly over the ring, so that links carry
 * the same proportions as when each PE puts to all, and the work does not grow with the square of the hosts. Rates are
 * those of a steady state: see measure_rate(). */
#include "base/assert.h"
#include "sim/fault.h"
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#define REPEAT_COUNT     4
#define SHIFT_MAX        8u
#define STEADY_BYTES     (64u << 20)
#define ROUNDS_MIN       16 /* of the largest puts, each of hundreds of chunks */
#define ROUNDS_MAX       32
#define ROUNDS_WARM_PART 8
#define GATE_NS          5000
#define GATHER_NS        100000   /* for the others to reach the next barrier, where they wait awake */
#define QUIESCE_NS       20000000 /* for all hosts to learn of the dead link */

/* State of all PEs together. */
struct span {
    uint64_t start_ns;
    uint32_t begun_count;
    uint32_t warm_count; /* PEs that have completed their first rounds */
    bool has_ended;
    uint32_t *done;        /* by PE: rounds known to have arrived */
    uint32_t *done_before; /* the same at start_ns */
};

static uint64_t buffer_offset(const struct sim_pe *pe)
{
    return pe->fabric->self.layout.segment_heap;
}

static char *own_buffer(const struct sim_pe *pe)
{
    return pe->fabric->self.segment + buffer_offset(pe) + pe->world->config.bytes;
}

static void put_to(struct sim_pe *pe, struct quoit_context *context, uint32_t shift, uint64_t bytes)
{
    uint32_t to = (pe->index + shift) % pe->fabric->self.pe_count;
    quoit_fabric_put_nbi(pe->fabric, context, buffer_offset(pe), own_buffer(pe), bytes, to);
}

static void put_neighbours(struct sim_pe *pe, struct quoit_context *context)
{
    put_to(pe, context, 1, pe->world->config.bytes);
    put_to(pe, context, pe->fabric->self.pe_count - 1, pe->world->config.bytes);
}

static void put_opposite(struct sim_pe *pe, struct quoit_context *context)
{
    put_to(pe, context, pe->fabric->self.pe_count / 2, pe->world->config.bytes);
}

static uint32_t shift_count(const struct sim_pe *pe)
{
    uint32_t others = pe->fabric->self.pe_count - 1;
    return others < SHIFT_MAX ? others : SHIFT_MAX;
}

/* The size of a put of one PE to each of those. */
static uint64_t share_bytes(const struct sim_pe *pe)
{
    return pe->world->config.bytes / shift_count(pe) / 64 * 64;
}

static void put_all(struct sim_pe *pe, struct quoit_context *context)
{
    uint32_t count = shift_count(pe);
    for (uint32_t i = 0; i < count; i++)
        put_to(pe, context, 1 + i * (pe->fabric->self.pe_count - 1) / count, share_bytes(pe));
}

struct rate {
    const char *name;
    const char *share_name;
    void (*put)(struct sim_pe *pe, struct quoit_context *context);
    uint64_t bytes_of_each;
};

static uint32_t round_count(const struct sim_pe *pe)
{
    uint64_t count = STEADY_BYTES / pe->world->config.bytes;
    return (uint32_t)(count < ROUNDS_MIN ? ROUNDS_MIN : count > ROUNDS_MAX ? ROUNDS_MAX : count);
}

/* The work of all PEs since the last one became warm. */
static void finish(struct sim_pe *pe, const struct rate *rate)
{
    struct sim_world *world = pe->world;
    const struct span *span = world->workload_state;
    uint32_t least = UINT32_MAX, sum = 0;
    for (uint32_t i = 0; i < pe->fabric->self.pe_count; i++) {
        uint32_t count = span->done[i] - span->done_before[i];
        least = count < least ? count : least;
        sum += count;
    }
    sim_metric_add(world, rate->name, "MB/s",
                   (double)rate->bytes_of_each * sum * 1000 / (double)(world->now_ns - span->start_ns));
    sim_metric_add(world, rate->share_name, "%", 100.0 * least * pe->fabric->self.pe_count / sum);
}

static void end_round(struct sim_pe *pe, const struct rate *rate)
{
    struct span *span = pe->world->workload_state;
    uint32_t pe_count = pe->fabric->self.pe_count, round_max = round_count(pe);
    uint32_t warm = round_max / ROUNDS_WARM_PART, done = ++span->done[pe->index];
    if (done == warm && ++span->warm_count == pe_count) {
        span->start_ns = pe->world->now_ns;
        memcpy(span->done_before, span->done, pe_count * sizeof *span->done);
    }
    if (span->warm_count == pe_count && done - span->done_before[pe->index] == round_max - warm && !span->has_ended) {
        span->has_ended = true;
        finish(pe, rate);
    }
}

/* All PEs at once, after a sync, one round of puts after another, two outstanding, until the measurement ends. Two
 * metrics: the rate of all puts from the time when the last PE is warm (has done some rounds) until a PE has done all
 * that are counted; and the lowest rate of a PE, in percent of a fair share. Slow PEs do not shorten the time that is
 * measured. Rates over single bursts would be those of the slots, which absorb data that does not move yet. */
static void measure_rate(struct sim_pe *pe, const struct rate *rate)
{
    struct sim_world *world = pe->world;
    struct span *span = world->workload_state;
    struct quoit_context contexts[2];
    quoit_context_init(&contexts[0], 0);
    quoit_context_init(&contexts[1], 1);
    span->begun_count++;
    while (span->begun_count < pe->fabric->self.pe_count)
        sim_block(world, world->now_ns + GATE_NS); /* on a line of hosts some leave the sync long before others */
    for (uint32_t i = 0; !span->has_ended; i++) {
        quoit_fabric_quiet(pe->fabric, &contexts[i % 2]);
        if (i >= 2)
            end_round(pe, rate);
        rate->put(pe, &contexts[i % 2]);
    }
    quoit_fabric_quiet(pe->fabric, &contexts[0]);
    quoit_fabric_quiet(pe->fabric, &contexts[1]);
    quoit_coll_sync(pe->team, rate->name);
    memset(span->done, 0, pe->fabric->self.pe_count * sizeof *span->done);
    span->begun_count = span->warm_count = 0;
    span->has_ended = false;
    quoit_coll_sync(pe->team, rate->name);
}

/* One PE alone to its neighbour, two puts outstanding: the rate from one arrival to another, with the next put under
 * way at both. */
static void measure_stream(struct sim_pe *pe, const char *name)
{
    struct sim_world *world = pe->world;
    struct quoit_context contexts[2];
    uint32_t count = round_count(pe), warm_count = count / ROUNDS_WARM_PART;
    uint64_t start_ns = 0, end_ns = 0;
    if (pe->index != 0)
        return;
    quoit_context_init(&contexts[0], 0);
    quoit_context_init(&contexts[1], 1);
    sim_block(world, world->now_ns + GATHER_NS);
    for (uint32_t i = 0; i < count + 2; i++) {
        quoit_fabric_quiet(pe->fabric, &contexts[i % 2]); /* put i - 2 */
        if (i == warm_count + 1)
            start_ns = world->now_ns;
        if (i == count)
            end_ns = world->now_ns;
        if (i < count)
            put_to(pe, &contexts[i % 2], 1, world->config.bytes);
    }
    sim_metric_add(world, name, "MB/s",
                   (double)world->config.bytes * (count - 1 - warm_count) * 1000 / (double)(end_ns - start_ns));
}

/* One PE alone, from the put until it is known to have arrived. */
static void measure_put(struct sim_pe *pe, const char *name, uint32_t shift)
{
    struct sim_world *world = pe->world;
    if (pe->index == 0)
        sim_block(world, world->now_ns + GATHER_NS);
    for (uint32_t i = 0; i <= REPEAT_COUNT && pe->index == 0; i++) {
        uint64_t start_ns = world->now_ns;
        put_to(pe, pe->context, shift, 8);
        quoit_fabric_quiet(pe->fabric, pe->context);
        if (i > 0) /* the first wakes sleeping threads on the route */
            sim_metric_add(world, name, "us", (double)(world->now_ns - start_ns) / 1000);
    }
}

static void measure_barrier(struct sim_pe *pe, const char *name, uint32_t count)
{
    struct sim_world *world = pe->world;
    for (uint32_t i = 0; i < count; i++)
        quoit_coll_sync(pe->team, name); /* wakes threads that slept while others measured */
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
    struct quoit_team_range job = {.start = 0, .stride = 1, .size = pe->fabric->self.pe_count};
    pe->team = quoit_team_new(pe->fabric, &job, 0, 0);
    if (!pe->team)
        sim_fail(world, "PE %u cannot make its team", pe->index);
    measure_put(pe, "put 8 B, neighbour", 1);
    measure_put(pe, "put 8 B, farthest", farthest);
    measure_stream(pe, "one stream");
    measure_barrier(pe, "barrier", REPEAT_COUNT);
    measure_allreduce(pe, "allreduce 8 B", 1);
    measure_allreduce(pe, "allreduce, large", bytes / 8);
    quoit_coll_sync(pe->team, "predict");
    measure_rate(pe, &(struct rate){"neighbours", "neighbours, least share", put_neighbours, 2 * bytes});
    measure_rate(pe, &(struct rate){"all-to-all", "all-to-all, least share", put_all, all_bytes});
    measure_rate(pe, &(struct rate){"bisection", "bisection, least share", put_opposite, bytes});
    quoit_coll_sync(pe->team, "predict");
    if (pe->index == 0)
        sim_link_kill(world, 0);
    sim_block(world, world->now_ns + QUIESCE_NS);
    measure_put(pe, "put 8 B, round a dead link", 1);
    measure_barrier(pe, "barrier, one link dead",
                    1); /* one is long: each round uses the long direction around the ring */
    measure_rate(pe, &(struct rate){"all-to-all, one link dead", "one link dead, least share", put_all, all_bytes});
    quoit_team_delete(pe->team);
    pe->team = NULL;
}

static void setup_predict(struct sim_world *world)
{
    struct span *span = calloc(1, sizeof *span);
    quoit_assert(span != NULL);
    span->done = calloc(world->config.job.pe_count, sizeof *span->done);
    span->done_before = calloc(world->config.job.pe_count, sizeof *span->done);
    quoit_assert(span->done && span->done_before);
    world->workload_state = span;
}

static void teardown_predict(struct sim_world *world)
{
    struct span *span = world->workload_state;
    free(span->done);
    free(span->done_before);
    free(span);
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
