/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric sources and destinations that are reused as soon as that is allowed, in several contexts at once.
 *
 * A source is overwritten when the put has returned, or after quiet if it is non-blocking; a destination when the data
 * has been compared, and must then keep the new contents. Each context has its own part of a piece, so that nothing
 * orders one context after another. In the workload `threads` each part belongs to a thread, which has a context of its
 * own or shares one.
 */
#include "base/assert.h"
#include "sim/workload.h"

#include <string.h>

#define CONTEXTS    3
#define PART_BYTES  (SIM_PIECE_BYTES / CONTEXTS)
#define SOURCE_AT   0    /* in the heap: a source for each context */
#define DEST_AT     3072 /* likewise a destination */
#define BATCH_MOST  6    /* non-blocking puts before one quiet */
#define CROWD_MOST  150  /* gets outstanding at once */
#define CROWD_BYTES 24
#define JOIN_NS     10000 /* between two checks whether the threads have ended */
#define SIGNAL_AT   6144  /* a word for each source PE and context */
#define SIGNALS_MAX ((SIM_PIECES_START - SIGNAL_AT) / 8)

/* A thread of a PE. */
struct user {
    struct sim_pe *pe;
    struct sim_pieces *pieces;
    struct quoit_context *contexts[CONTEXTS]; /* for each part */
    struct quoit_prng prng;
    uint32_t only; /* the part that it works on; CONTEXTS: all of them */
    uint32_t *live_count;
};

static struct quoit_context *context_of(struct user *user, uint32_t index)
{
    return user->contexts[index];
}

static uint32_t next_part(const struct user *user, uint32_t index)
{
    return user->only == CONTEXTS ? (index + 1) % CONTEXTS : index;
}

static char *own(const struct user *user, uint64_t at)
{
    return user->pe->fabric->self.segment + user->pe->fabric->self.layout.segment_heap + at;
}

static uint32_t choose(struct user *user, uint32_t n)
{
    return (uint32_t)quoit_prng_choose(&user->prng, n);
}

/* A put from the source of a context to its part of this PE's piece at `to`. */
static void put_from(struct user *user, uint32_t index, uint32_t to, size_t at, size_t bytes, bool is_nbi)
{
    struct sim_pe *pe = user->pe;
    const char *source = own(user, SOURCE_AT + index * PART_BYTES + at);
    uint64_t in_piece = index * PART_BYTES + at;
    uint64_t offset = sim_pieces_offset(user->pieces, &pe->host->layout, pe->index) + in_piece;
    memcpy(sim_pieces_model(user->pieces, pe->index, to) + in_piece, source, bytes);
    if (is_nbi)
        quoit_fabric_put_nbi(pe->fabric, context_of(user, index), offset, source, bytes, to);
    else
        quoit_fabric_put(pe->fabric, context_of(user, index), offset, source, bytes, to);
}

static void refill(struct user *user, uint32_t index)
{
    sim_fill(&user->prng, own(user, SOURCE_AT + index * PART_BYTES), PART_BYTES);
}

static void reuse_after_put(struct user *user, uint32_t index)
{
    quoit_fabric_fence(user->pe->fabric, context_of(user, index));
    size_t bytes = 1 + choose(user, PART_BYTES);
    put_from(user, index, choose(user, user->pieces->pe_count), choose(user, (uint32_t)(PART_BYTES - bytes + 1)), bytes,
             false);
    refill(user, index);
}

/* Several from one source, to disjoint places. */
static void reuse_after_quiet(struct user *user, uint32_t index)
{
    uint32_t count = 1 + choose(user, BATCH_MOST), room = PART_BYTES / count;
    quoit_fabric_quiet(user->pe->fabric, context_of(user, index));
    for (uint32_t i = 0; i < count; i++) {
        size_t bytes = 1 + choose(user, room);
        put_from(user, index, choose(user, user->pieces->pe_count), i * room, bytes, true);
    }
    quoit_fabric_quiet(user->pe->fabric, context_of(user, index));
    refill(user, index);
}

static void compare(struct user *user, const void *got, uint32_t from, uint64_t in_piece, size_t bytes,
                    const char *what)
{
    if (memcmp(got, sim_pieces_model(user->pieces, user->pe->index, from) + in_piece, bytes) != 0)
        sim_fail(user->pe->world, "PE %u got from PE %u other bytes than it had put there, %s", user->pe->index, from,
                 what);
}

static void reuse_after_get(struct user *user, uint32_t index)
{
    struct sim_pe *pe = user->pe;
    size_t bytes = 1 + choose(user, PART_BYTES);
    uint64_t in_piece = index * PART_BYTES + choose(user, (uint32_t)(PART_BYTES - bytes + 1));
    uint32_t from = choose(user, user->pieces->pe_count);
    char *to = own(user, DEST_AT + index * PART_BYTES);
    unsigned char kept[PART_BYTES];
    uint64_t offset = sim_pieces_offset(user->pieces, &pe->host->layout, pe->index) + in_piece;
    bool is_nbi = choose(user, 2);
    quoit_fabric_quiet(pe->fabric, context_of(user, index));
    memset(to, 0xee, bytes);
    if (is_nbi) {
        quoit_fabric_get_nbi(pe->fabric, context_of(user, index), to, offset, bytes, from);
        quoit_fabric_quiet(pe->fabric, context_of(user, index));
    } else {
        quoit_fabric_get(pe->fabric, context_of(user, index), to, offset, bytes, from);
    }
    compare(user, to, from, in_piece, bytes, "into symmetric memory");
    sim_fill(&user->prng, kept, bytes);
    memcpy(to, kept, bytes);
    reuse_after_put(user, next_part(user, index));
    if (memcmp(to, kept, bytes) != 0)
        sim_fail(pe->world, "a get of PE %u wrote after it had ended", pe->index);
}

/* More gets than a channel has requests, from all PEs, before one quiet. */
static void get_crowd(struct user *user, uint32_t index)
{
    struct sim_pe *pe = user->pe;
    unsigned char got[CROWD_MOST][CROWD_BYTES];
    uint32_t from[CROWD_MOST], count = 1 + choose(user, CROWD_MOST);
    uint64_t in_piece[CROWD_MOST];
    quoit_fabric_quiet(pe->fabric, context_of(user, index));
    memset(got, 0xee, sizeof got);
    for (uint32_t i = 0; i < count; i++) {
        from[i] = choose(user, user->pieces->pe_count);
        in_piece[i] = index * PART_BYTES + choose(user, PART_BYTES - CROWD_BYTES);
        quoit_fabric_get_nbi(pe->fabric, context_of(user, index), got[i],
                             sim_pieces_offset(user->pieces, &pe->host->layout, pe->index) + in_piece[i], CROWD_BYTES,
                             from[i]);
    }
    quoit_fabric_quiet(pe->fabric, context_of(user, index));
    for (uint32_t i = 0; i < count; i++)
        compare(user, got[i], from[i], in_piece[i], CROWD_BYTES, "one of many");
}

/* The signal is seen after all of its data, which may be several chunks. */
static void signal_from(struct user *user, uint32_t index)
{
    struct sim_pe *pe = user->pe;
    uint32_t to = choose(user, user->pieces->pe_count);
    struct quoit_signal signal = {.offset =
                                      pe->host->layout.segment_heap + SIGNAL_AT + 8ull * (pe->index * CONTEXTS + index),
                                  .value = 1,
                                  .op = QUOIT_AMO_ADD};
    const char *source = own(user, SOURCE_AT + index * PART_BYTES);
    unsigned char back[PART_BYTES];
    size_t bytes = 1 + choose(user, PART_BYTES);
    uint64_t offset = sim_pieces_offset(user->pieces, &pe->host->layout, pe->index) + index * PART_BYTES;
    if (user->pieces->pe_count * CONTEXTS > SIGNALS_MAX)
        return;
    struct quoit_context *context = context_of(user, index), *other = context_of(user, next_part(user, index));
    quoit_fabric_quiet(pe->fabric, context);
    uint64_t before = quoit_fabric_amo_fetch(pe->fabric, other, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, to);
    memcpy(sim_pieces_model(user->pieces, pe->index, to) + index * PART_BYTES, source, bytes);
    quoit_fabric_put_signal(pe->fabric, context, offset, source, bytes, &signal, to, true);
    while (quoit_fabric_amo_fetch(pe->fabric, other, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, to) != before + 1)
        sim_spend(pe->world, pe->world->model.poll_ns);
    quoit_fabric_get(pe->fabric, other, back, offset, bytes, to);
    compare(user, back, to, index * PART_BYTES, bytes, "after its signal");
    quoit_fabric_quiet(pe->fabric, context);
    refill(user, index);
}

static void run_steps(struct user *user)
{
    const uint32_t from = user->only == CONTEXTS ? 0 : user->only, to = user->only == CONTEXTS ? CONTEXTS : from + 1;
    for (uint32_t i = from; i < to; i++)
        refill(user, i);
    uint32_t step_count = (user->only == CONTEXTS ? 3 : 1) * user->pe->world->config.step_count;
    for (uint32_t step = 0; step < step_count; step++) {
        uint32_t index = from + choose(user, to - from);
        switch (choose(user, 8)) {
        case 0:
        case 1:
        case 2:
            reuse_after_put(user, index);
            break;
        case 3:
        case 4:
            reuse_after_quiet(user, index);
            break;
        case 5:
            reuse_after_get(user, index);
            break;
        case 6:
            signal_from(user, index);
            break;
        default:
            get_crowd(user, index);
        }
    }
    for (uint32_t i = from; i < to; i++)
        quoit_fabric_quiet(user->pe->fabric, context_of(user, i));
}

static void run_reuse(struct sim_pe *pe)
{
    struct quoit_context contexts[CONTEXTS - 1];
    struct user user = {.pe = pe, .pieces = pe->world->workload_state, .prng = pe->prng, .only = CONTEXTS};
    user.contexts[0] = pe->context;
    for (uint32_t i = 1; i < CONTEXTS; i++) {
        quoit_context_init(&contexts[i - 1], i);
        user.contexts[i] = &contexts[i - 1];
    }
    run_steps(&user);
}

static void run_thread(void *arg)
{
    struct user *user = arg;
    run_steps(user);
    --*user->live_count;
}

static void run_threads(struct sim_pe *pe)
{
    struct quoit_context contexts[CONTEXTS];
    struct user users[CONTEXTS];
    bool is_shared = quoit_prng_choose(&pe->prng, 2);
    uint32_t live_count = CONTEXTS;
    char name[24];
    pe->fabric->self.has_threads = true;
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        quoit_context_init(&contexts[i], i);
        users[i] = (struct user){.pe = pe,
                                 .pieces = pe->world->workload_state,
                                 .prng.state = quoit_prng_next(&pe->prng),
                                 .only = i,
                                 .live_count = &live_count};
        users[i].contexts[i] = is_shared ? pe->context : &contexts[i];
        snprintf(name, sizeof name, "PE %u thread %u", pe->index, i);
        if (i > 0)
            sim_task_start(pe->host, name, run_thread, &users[i]);
    }
    run_thread(&users[0]);
    while (live_count > 0)
        sim_block(pe->world, pe->world->now_ns + JOIN_NS);
}

const struct sim_workload sim_workload_reuse = {
    .name = "reuse",
    .sentence = "symmetric sources and destinations used again at once, in three contexts, many requests under way",
    .setup = sim_pieces_setup_world,
    .run = run_reuse,
    .check = sim_pieces_check_world,
    .teardown = sim_pieces_free_world,
};

const struct sim_workload sim_workload_threads = {
    .name = "threads",
    .sentence = "the same by three threads of each PE, in contexts of their own or in one",
    .setup = sim_pieces_setup_world,
    .run = run_threads,
    .check = sim_pieces_check_world,
    .teardown = sim_pieces_free_world,
};
