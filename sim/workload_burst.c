/* SPDX-License-Identifier: BSD-3-Clause */
/* Hundreds of operations before one quiet: more than a journal or a channel holds.
 *
 * Nothing orders operations that are under way, so the PE fences before an operation that touches bytes which an
 * earlier one touched. Gets read from a book that never changes. After the quiet all that was got, and some of what was
 * put, is compared.
 */
#include "base/assert.h"
#include "sim/workload.h"

#include <stdlib.h>
#include <string.h>

#define OPERATIONS_MOST 100
#define DEEP_BYTES      (192u << 10) /* of puts alone: more than a journal holds */
#define GETS_MOST       48
#define GET_BYTES       40u
#define SOURCE_AT       0 /* in the heap: the source of some bursts */
#define BOOK_AT         SIM_PIECE_BYTES
#define BOOK_BYTES      2048u
#define COUNTERS_AT     (BOOK_AT + BOOK_BYTES) /* a word for each PE, which adds to it */
#define COUNTERS_MOST   ((SIM_PIECES_START - COUNTERS_AT) / 8)

struct state {
    struct sim_pieces *pieces;
    uint64_t *added; /* [source][destination] */
};

struct burst {
    struct sim_pe *pe;
    struct sim_pieces *pieces;
    uint64_t *added;  /* by this PE, at each */
    uint32_t *filled; /* of this PE's piece at each PE: bytes put since the last fence */
    const unsigned char *source;
    uint32_t get_count;
    uint32_t got_from[GETS_MOST];
    uint32_t got_at[GETS_MOST];
    unsigned char got[GETS_MOST][GET_BYTES];
};

static uint32_t choose(struct burst *burst, uint32_t n)
{
    return (uint32_t)quoit_prng_choose(&burst->pe->prng, n);
}

static uint64_t heap_of(const struct burst *burst)
{
    return burst->pe->fabric->self.layout.segment_heap;
}

/* Returns where in the piece at `to` so many bytes are free to be put. */
static uint32_t place(struct burst *burst, uint32_t to, uint32_t bytes)
{
    if (burst->filled[to] + bytes > SIM_PIECE_BYTES) {
        quoit_fabric_fence(burst->pe->fabric, burst->pe->context);
        memset(burst->filled, 0, burst->pieces->pe_count * sizeof *burst->filled);
    }
    uint32_t at = burst->filled[to];
    burst->filled[to] += bytes;
    return at;
}

static uint32_t choose_bytes(struct burst *burst)
{
    static const uint32_t most[] = {8, 64, 512};
    return 1 + choose(burst, most[choose(burst, 3)]);
}

static void put(struct burst *burst, uint32_t to, uint32_t bytes)
{
    struct sim_pe *pe = burst->pe;
    uint32_t at = place(burst, to, bytes);
    uint64_t offset = sim_pieces_offset(burst->pieces, &pe->host->layout, pe->index) + at;
    const unsigned char *from = burst->source + choose(burst, SIM_PIECE_BYTES - bytes + 1);
    memcpy(sim_pieces_model(burst->pieces, pe->index, to) + at, from, bytes);
    if (choose(burst, 2))
        quoit_fabric_put(pe->fabric, pe->context, offset, from, bytes, to);
    else
        quoit_fabric_put_nbi(pe->fabric, pe->context, offset, from, bytes, to);
}

/* Every second word. */
static void put_strided(struct burst *burst, uint32_t to)
{
    struct sim_pe *pe = burst->pe;
    uint32_t count = 1 + choose(burst, 32), at = place(burst, to, 16 * count);
    struct quoit_strided strided = {.offset = sim_pieces_offset(burst->pieces, &pe->host->layout, pe->index) + at,
                                    .remote_stride = 16,
                                    .private_stride = 8,
                                    .count = count,
                                    .element_bytes = 8};
    unsigned char *model = sim_pieces_model(burst->pieces, pe->index, to) + at;
    for (uint32_t i = 0; i < count; i++)
        memcpy(model + 16 * i, burst->source + 8 * i, 8);
    quoit_fabric_iput(pe->fabric, pe->context, &strided, burst->source, to);
}

static void add(struct burst *burst, uint32_t to)
{
    struct sim_pe *pe = burst->pe;
    if (burst->pieces->pe_count > COUNTERS_MOST)
        return;
    burst->added[to]++;
    quoit_fabric_amo(pe->fabric, pe->context, QUOIT_AMO_ADD, 8, heap_of(burst) + COUNTERS_AT + 8ull * pe->index, 1, to);
}

static unsigned char book_byte(uint32_t pe, uint32_t at)
{
    return (unsigned char)(pe * 37 + at * 11 + at / 256 + 1);
}

static void get(struct burst *burst, uint32_t from)
{
    struct sim_pe *pe = burst->pe;
    if (burst->get_count == GETS_MOST)
        return;
    uint32_t index = burst->get_count++;
    burst->got_from[index] = from;
    burst->got_at[index] = choose(burst, BOOK_BYTES - GET_BYTES);
    quoit_fabric_get_nbi(pe->fabric, pe->context, burst->got[index], heap_of(burst) + BOOK_AT + burst->got_at[index],
                         GET_BYTES, from);
}

static void check_gets(const struct burst *burst)
{
    for (uint32_t i = 0; i < burst->get_count; i++)
        for (uint32_t byte = 0; byte < GET_BYTES; byte++)
            if (burst->got[i][byte] != book_byte(burst->got_from[i], burst->got_at[i] + byte))
                sim_fail(burst->pe->world, "PE %u got a wrong byte %u of the book of PE %u, one of %u gets",
                         burst->pe->index, burst->got_at[i] + byte, burst->got_from[i], burst->get_count);
}

/* `hot`: all of it goes there; pe_count: to any. */
static void run_burst(struct burst *burst, uint32_t hot)
{
    uint32_t pe_count = burst->pieces->pe_count, operation_count = 1 + choose(burst, OPERATIONS_MOST);
    for (uint32_t i = 0; i < operation_count; i++) {
        uint32_t to = hot == pe_count ? choose(burst, pe_count) : hot, kind = choose(burst, 8);
        if (kind < 5)
            put(burst, to, choose_bytes(burst));
        else if (kind == 5)
            put_strided(burst, to);
        else if (kind == 6)
            add(burst, to);
        else
            get(burst, to);
    }
}

/* Only puts, which fill a journal if they are direct. */
static void run_deep_burst(struct burst *burst, uint32_t to)
{
    uint32_t bytes;
    for (uint32_t left = choose(burst, DEEP_BYTES); left > 0; left -= left < bytes ? left : bytes) {
        bytes = 1 + choose(burst, SIM_PIECE_BYTES);
        put(burst, to, bytes);
    }
}

/* Every other burst goes to one PE, often one of a neighbour. */
static void run_bursts(struct sim_pe *pe)
{
    const struct sim_config *config = &pe->world->config;
    struct state *state = pe->world->workload_state;
    uint32_t pe_count = state->pieces->pe_count;
    unsigned char own[SIM_PIECE_BYTES];
    struct burst burst = {.pe = pe,
                          .pieces = state->pieces,
                          .added = state->added + (size_t)pe->index * pe_count,
                          .filled = calloc(pe_count, sizeof *burst.filled)};
    quoit_assert(burst.filled != NULL);
    for (uint32_t step = 0; step < 1 + config->step_count / 3; step++) {
        unsigned char *symmetric = (unsigned char *)pe->fabric->self.segment + heap_of(&burst) + SOURCE_AT;
        unsigned char *source = choose(&burst, 2) ? symmetric : own;
        uint32_t next = (pe->index + 1) % pe_count, any = choose(&burst, pe_count), to = choose(&burst, 2) ? next : any;
        sim_fill(&pe->prng, source, SIM_PIECE_BYTES);
        burst.source = source;
        burst.get_count = 0;
        if (choose(&burst, 2) == 0)
            run_burst(&burst, pe_count);
        else if (config->has_posted_puts)
            run_deep_burst(&burst, next);
        else
            run_burst(&burst, to);
        quoit_fabric_quiet(pe->fabric, pe->context);
        memset(burst.filled, 0, pe_count * sizeof *burst.filled);
        check_gets(&burst);
        sim_pieces_get(pe, burst.pieces, to, false);
    }
    free(burst.filled);
}

static void setup_bursts(struct sim_world *world)
{
    size_t pe_count = world->config.job.pe_count;
    struct state *state = calloc(1, sizeof *state);
    quoit_assert(state != NULL);
    world->workload_state = state;
    state->added = calloc(pe_count * pe_count, sizeof *state->added);
    quoit_assert(state->added != NULL);
    state->pieces = sim_pieces_new(world, SIM_PIECE_BYTES);
    for (uint32_t pe = 0; pe < pe_count; pe++) {
        char *book = sim_pe_segment(world, pe) + world->hosts[0].layout.segment_heap + BOOK_AT;
        for (uint32_t i = 0; i < BOOK_BYTES; i++)
            book[i] = (char)book_byte(pe, i);
    }
}

static void check_bursts(struct sim_world *world)
{
    struct state *state = world->workload_state;
    uint32_t pe_count = world->config.job.pe_count;
    sim_pieces_check(world, state->pieces);
    for (uint32_t to = 0; to < pe_count && pe_count <= COUNTERS_MOST; to++) {
        const char *counters = sim_pe_segment(world, to) + world->hosts[0].layout.segment_heap + COUNTERS_AT;
        for (uint32_t from = 0; from < pe_count; from++) {
            uint64_t count, added = state->added[(size_t)from * pe_count + to];
            memcpy(&count, counters + 8ull * from, sizeof count);
            if (count != added)
                sim_fail(world, "PE %u added %llu to its counter at PE %u, which is %llu", from,
                         (unsigned long long)added, to, (unsigned long long)count);
        }
    }
}

static void teardown_bursts(struct sim_world *world)
{
    struct state *state = world->workload_state;
    sim_pieces_free(state->pieces);
    free(state->added);
    free(state);
    world->workload_state = NULL;
}

const struct sim_workload sim_workload_burst = {
    .name = "burst",
    .sentence = "hundreds of puts, gets and atomics of each PE before one quiet",
    .setup = setup_bursts,
    .run = run_bursts,
    .check = check_bursts,
    .teardown = teardown_bursts,
};
