/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every collective does what coll.h says, byte for byte, for all kinds of teams, in succession without barriers,
 * and accesses a member's buffers only between its entry and its return. Method: hosts and PEs in one process (a proxy
 * thread per host, a thread per PE). All PEs draw the same random sequence of operations, teams, sizes and roots from
 * one seed; contents are functions of (operation, member, position), so each PE computes its expected result itself.
 * Each PE fills its dest and a margin around it, delays at random, checks that it is unchanged before entry, compares
 * all of it afterwards, and overwrites its source at once. Teams come and go on the same pieces. QUOIT_SEED replays a
 * failure. */
#include "base/prng.h"
#include "coll/team.h"
#include "env/clock.h"
#include "fabric/proxies_rig.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PES_MAX      16
#define SIZE_MAX_LOG 20
#define SIDE_BYTES   (3u << 20) /* source and dest of a PE: one of these each */
#define MARGIN       64u
#define HEAP_BYTES   (2 * SIDE_BYTES + 4096)

struct pe;

/* What runs on which hosts. */
struct play {
    uint32_t host_count;
    uint32_t pe_count;
    uint64_t window_bytes; /* of the memory windows; 0: all of the memory */
    uint32_t step_count;
    uint32_t size_log_max;
    void (*run)(struct pe *pe); /* before the steps */
    bool is_network;            /* teams take their hosts for those of a network */
    uint64_t schedules;         /* of such teams */
};

struct world {
    struct proxies_rig rig;
    uint64_t seed;
    struct play play;
    _Atomic uint32_t error_count;
};

struct pe {
    struct world *world;
    struct quoit_fabric *fabric;
    uint32_t index;
    pthread_t thread;
    struct quoit_prng common;  /* the same on all PEs */
    struct quoit_prng private; /* delays */
    uint64_t step;
    struct quoit_team_state *world_team;
    uint64_t next_flag;            /* of teams that were deleted */
    struct quoit_team_state *team; /* in use */
    struct quoit_team_range range;
    uint32_t rank;
    unsigned char *model; /* [SIDE_BYTES] */
    unsigned char *block; /* [SIDE_BYTES] */
};

/* --- Contents --- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The source of member `rank` at the current step. */
static void fill_source(const struct pe *pe, uint32_t rank, unsigned char *to, size_t bytes)
{
    uint64_t key = mix(pe->world->seed * 1000003 + pe->step) + rank * 0x9e3779b97f4a7c15u;
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        uint64_t word = mix(key + at);
        memcpy(to + at, &word, 8);
    }
    for (; at < bytes; at++)
        to[at] = (unsigned char)mix(key + at);
}

/* Makes doubles that hold small whole numbers: their sums are exact in any order. */
static void make_whole(unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, 8);
        double number = (double)(word % 100000);
        memcpy(bytes + 8 * i, &number, 8);
    }
}

static void delay(struct pe *pe)
{
    switch (quoit_prng_choose(&pe->private, 40)) {
    case 0:
        quoit_clock_sleep_ns(1000 * quoit_prng_choose(&pe->private, 300));
        break;
    case 1:
    case 2:
        sched_yield();
        break;
    default:
        break;
    }
}

static void note_error(const struct pe *pe, const char *what, size_t at)
{
    if (atomic_fetch_add(&pe->world->error_count, 1) < 8)
        fprintf(stderr, "PE %u of %u on %u hosts, step %llu, team %u:%u:%u: %s at byte %zu (QUOIT_SEED=%llu)\n",
                pe->index, pe->world->rig.job.pe_count, pe->world->rig.job.host_count, (unsigned long long)pe->step,
                pe->range.start, pe->range.stride, pe->range.size, what, at, (unsigned long long)pe->world->seed);
}

/* --- One operation: buffers, and how they are checked --- */

struct buffers {
    uint64_t offset_source;
    uint64_t offset_dest;
    unsigned char *source;
    unsigned char *dest;
    size_t source_bytes;
    size_t dest_bytes;
};

static unsigned char canary(size_t at)
{
    return (unsigned char)(0xa5 + at * 7);
}

/* Random places; the caller fills the source, this function the dest and its margins. */
static struct buffers place(struct pe *pe, size_t source_bytes, size_t dest_bytes, size_t align)
{
    uint64_t heap = pe->fabric->self.layout.segment_heap;
    struct buffers buffers = {.source_bytes = source_bytes, .dest_bytes = dest_bytes};
    size_t room_source = SIDE_BYTES - source_bytes - 2 * MARGIN, room_dest = SIDE_BYTES - dest_bytes - 2 * MARGIN;
    if (room_source > 8192)
        room_source = 8192;
    if (room_dest > 8192)
        room_dest = 8192;
    buffers.offset_source = heap + MARGIN + quoit_prng_choose(&pe->common, room_source) / align * align;
    buffers.offset_dest = heap + SIDE_BYTES + MARGIN + quoit_prng_choose(&pe->common, room_dest) / align * align;
    buffers.source = quoit_coll_address(pe->fabric, buffers.offset_source);
    buffers.dest = quoit_coll_address(pe->fabric, buffers.offset_dest);
    for (size_t i = 0; i < dest_bytes + 2 * MARGIN; i++)
        buffers.dest[i - MARGIN] = canary(i);
    return buffers;
}

static void check_canaries(const struct pe *pe, const struct buffers *buffers, size_t from, size_t to, const char *what)
{
    for (size_t i = from; i < to; i++)
        if (buffers->dest[i - MARGIN] != canary(i)) {
            note_error(pe, what, i);
            return;
        }
}

static void enter(struct pe *pe, const struct buffers *buffers)
{
    delay(pe);
    if (buffers->dest != buffers->source)
        check_canaries(pe, buffers, 0, buffers->dest_bytes + 2 * MARGIN, "dest changed before entry");
}

/* dest must equal the model, and nothing around it may have changed. */
static void leave(struct pe *pe, const struct buffers *buffers, const char *what)
{
    memset(buffers->source, 0x3c, buffers->dest == buffers->source ? 0 : buffers->source_bytes);
    delay(pe);
    for (size_t i = 0; i < buffers->dest_bytes; i++)
        if (buffers->dest[i] != pe->model[i]) {
            note_error(pe, what, i);
            break;
        }
    if (buffers->dest == buffers->source)
        return;
    check_canaries(pe, buffers, 0, MARGIN, what);
    check_canaries(pe, buffers, MARGIN + buffers->dest_bytes, buffers->dest_bytes + 2 * MARGIN, what);
}

static size_t draw_bytes(struct pe *pe, size_t limit)
{
    size_t most = (size_t)1 << quoit_prng_choose(&pe->common, pe->world->play.size_log_max + 1);
    if (most > limit)
        most = limit;
    return quoit_prng_choose(&pe->common, most + 1);
}

/* --- The operations --- */

static void broadcast(struct pe *pe, size_t bytes, uint32_t root)
{
    bool has_root_copy = quoit_prng_choose(&pe->common, 2);
    struct buffers buffers = place(pe, bytes, bytes, 1);
    fill_source(pe, root, pe->model, bytes);
    if (pe->rank == root)
        memcpy(buffers.source, pe->model, bytes);
    else
        memset(buffers.source, 0x11, bytes);
    if (pe->rank == root && !has_root_copy)
        memcpy(pe->model, buffers.dest, bytes);
    enter(pe, &buffers);
    quoit_coll_broadcast(pe->team, buffers.offset_dest, buffers.offset_source, bytes, root, has_root_copy, "broadcast");
    leave(pe, &buffers, "broadcast");
}

static void step_broadcast(struct pe *pe)
{
    size_t bytes = draw_bytes(pe, 1u << SIZE_MAX_LOG);
    broadcast(pe, bytes, (uint32_t)quoit_prng_choose(&pe->common, pe->range.size));
}

/* A root that does not wait runs ahead of a sleeping member until the slots are used up. */
static void step_broadcasts_in_a_row(struct pe *pe)
{
    uint32_t root = (uint32_t)quoit_prng_choose(&pe->common, pe->range.size);
    uint32_t sleeper = (uint32_t)quoit_prng_choose(&pe->common, pe->range.size);
    for (uint32_t i = 0; i < 25; i++) {
        if (pe->rank == sleeper && i % 5 == 0)
            quoit_clock_sleep_ns(200000);
        pe->step++;
        broadcast(pe, 1 + quoit_prng_choose(&pe->common, 64), root);
    }
}

static void step_collect(struct pe *pe)
{
    bool is_equal = quoit_prng_choose(&pe->common, 2);
    size_t limit = (1u << SIZE_MAX_LOG) / pe->range.size;
    size_t bytes = draw_bytes(pe, limit), own_bytes = 0, total = 0;
    for (uint32_t rank = 0; rank < pe->range.size; rank++) {
        size_t count = is_equal ? bytes : quoit_prng_choose(&pe->common, bytes + 1);
        fill_source(pe, rank, pe->model + total, count);
        if (rank == pe->rank)
            own_bytes = count;
        total += count;
    }
    struct buffers buffers = place(pe, limit, total, 1);
    buffers.source_bytes = own_bytes;
    fill_source(pe, pe->rank, buffers.source, own_bytes);
    enter(pe, &buffers);
    uint64_t offset_dest = total == 0 ? QUOIT_COLL_NOWHERE : buffers.offset_dest;
    uint64_t offset_source = own_bytes == 0 ? QUOIT_COLL_NOWHERE : buffers.offset_source;
    if (!quoit_coll_collect(pe->team, offset_dest, offset_source, own_bytes, is_equal, "collect"))
        note_error(pe, "collect is refused", 0);
    leave(pe, &buffers, is_equal ? "fcollect" : "collect");
}

static void step_alltoall(struct pe *pe)
{
    size_t bytes = draw_bytes(pe, (1u << SIZE_MAX_LOG) / pe->range.size);
    size_t all = bytes * pe->range.size;
    struct buffers buffers = place(pe, all, all, 1);
    for (uint32_t rank = 0; rank < pe->range.size; rank++) {
        fill_source(pe, rank, pe->block, all);
        memcpy(pe->model + rank * bytes, pe->block + pe->rank * bytes, bytes);
        if (rank == pe->rank)
            memcpy(buffers.source, pe->block, all);
    }
    enter(pe, &buffers);
    quoit_coll_alltoall(pe->team, buffers.offset_dest, buffers.offset_source, bytes, "alltoall");
    leave(pe, &buffers, "alltoall");
}

static void step_alltoalls(struct pe *pe)
{
    struct quoit_alltoalls blocks = {.element_bytes = 1u << quoit_prng_choose(&pe->common, 5),
                                     .dest_stride = 1 + (ptrdiff_t)quoit_prng_choose(&pe->common, 3),
                                     .source_stride = 1 + (ptrdiff_t)quoit_prng_choose(&pe->common, 3)};
    size_t element_bytes = blocks.element_bytes, all = 0;
    blocks.count = draw_bytes(pe, 20000 / pe->range.size) / element_bytes;
    all = blocks.count * pe->range.size;
    struct buffers buffers = place(pe, all * element_bytes * (size_t)blocks.source_stride,
                                   all * element_bytes * (size_t)blocks.dest_stride, 1);
    memcpy(pe->model, buffers.dest, buffers.dest_bytes);
    for (uint32_t rank = 0; rank < pe->range.size; rank++) {
        fill_source(pe, rank, pe->block, buffers.source_bytes);
        for (size_t i = 0; i < blocks.count; i++)
            memcpy(pe->model + (rank * blocks.count + i) * (size_t)blocks.dest_stride * element_bytes,
                   pe->block + (pe->rank * blocks.count + i) * (size_t)blocks.source_stride * element_bytes,
                   element_bytes);
    }
    fill_source(pe, pe->rank, buffers.source, buffers.source_bytes);
    blocks.offset_dest = buffers.offset_dest;
    blocks.offset_source = buffers.offset_source;
    enter(pe, &buffers);
    quoit_coll_alltoalls(pe->team, &blocks, "alltoalls");
    leave(pe, &buffers, "alltoalls");
}

static void add_bytes(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint8_t *)into)[i] += ((const uint8_t *)from)[i];
}

static void add_words(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)into)[i] += ((const uint64_t *)from)[i];
}

static void add_doubles(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((double *)into)[i] += ((const double *)from)[i];
}

static void add_quads(void *into, const void *from, size_t count)
{
    add_words(into, from, 4 * count);
}

/* Keeps the later word: a combination whose order is visible, for scans. */
static void join_words(void *into, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((uint64_t *)into)[i] = ((uint64_t *)into)[i] * 3 + ((const uint64_t *)from)[i] % 1000;
}

struct kind {
    quoit_combine *combine;
    size_t element_bytes;
};

static struct kind draw_kind(struct pe *pe)
{
    static const struct kind kinds[] = {{add_bytes, 1}, {add_words, 8}, {add_doubles, 8}, {add_quads, 32}};
    return kinds[quoit_prng_choose(&pe->common, 4)];
}

/* Fills sources; doubles are made so that order does not matter. */
static void fill_numbers(const struct pe *pe, const struct kind *kind, uint32_t rank, unsigned char *to, size_t count)
{
    fill_source(pe, rank, to, count * kind->element_bytes);
    if (kind->combine == add_doubles)
        make_whole(to, count);
}

static struct buffers place_numbers(struct pe *pe, const struct kind *kind, size_t count)
{
    size_t bytes = count * kind->element_bytes;
    bool is_in_place = quoit_prng_choose(&pe->common, 3) == 0;
    struct buffers buffers = place(pe, bytes, bytes, 32);
    if (is_in_place) {
        buffers.offset_dest = buffers.offset_source;
        buffers.dest = buffers.source;
    }
    fill_numbers(pe, kind, pe->rank, buffers.source, count);
    return buffers;
}

static void step_reduce(struct pe *pe)
{
    struct kind kind = draw_kind(pe);
    size_t count = draw_bytes(pe, 1u << SIZE_MAX_LOG) / kind.element_bytes;
    struct buffers buffers = place_numbers(pe, &kind, count);
    fill_numbers(pe, &kind, 0, pe->model, count);
    for (uint32_t rank = 1; rank < pe->range.size; rank++) {
        fill_numbers(pe, &kind, rank, pe->block, count);
        kind.combine(pe->model, pe->block, count);
    }
    enter(pe, &buffers);
    quoit_coll_reduce(pe->team, buffers.offset_dest, buffers.offset_source, count, kind.element_bytes, kind.combine,
                      "reduce");
    leave(pe, &buffers, "reduce");
}

static void step_scan(struct pe *pe)
{
    struct kind kind = draw_kind(pe);
    bool is_inclusive = quoit_prng_choose(&pe->common, 2);
    size_t count = draw_bytes(pe, 1u << 17) / kind.element_bytes;
    struct buffers buffers = place_numbers(pe, &kind, count);
    memset(pe->model, 0, buffers.dest_bytes);
    for (uint32_t rank = 0; rank < pe->rank + (is_inclusive ? 1 : 0); rank++) {
        fill_numbers(pe, &kind, rank, pe->block, count);
        kind.combine(pe->model, pe->block, count); /* zero is neutral */
    }
    enter(pe, &buffers);
    quoit_coll_scan(pe->team, buffers.offset_dest, buffers.offset_source, count, kind.element_bytes, kind.combine,
                    is_inclusive, "scan");
    leave(pe, &buffers, is_inclusive ? "inclusive scan" : "exclusive scan");
}

/* On one host the order is that of the ranks. */
static void step_order(struct pe *pe)
{
    size_t count = draw_bytes(pe, 1u << 17) / 8;
    if (pe->world->rig.job.host_count > 1)
        return;
    struct buffers buffers = place(pe, 8 * count, 8 * count, 8);
    fill_source(pe, pe->rank, buffers.source, 8 * count);
    fill_source(pe, 0, pe->model, 8 * count);
    for (uint32_t rank = 1; rank < pe->range.size; rank++) {
        fill_source(pe, rank, pe->block, 8 * count);
        join_words(pe->model, pe->block, count);
    }
    enter(pe, &buffers);
    quoit_coll_reduce(pe->team, buffers.offset_dest, buffers.offset_source, count, 8, join_words, "ordered reduce");
    leave(pe, &buffers, "ordered reduce");
}

static void step_agree(struct pe *pe)
{
    uint64_t all = 0, largest = 0, own = 0;
    for (uint32_t rank = 0; rank < pe->range.size; rank++) {
        uint64_t value = quoit_prng_next(&pe->common) >> quoit_prng_choose(&pe->common, 64);
        all |= value;
        largest = value > largest ? value : largest;
        own = rank == pe->rank ? value : own;
    }
    delay(pe);
    if (quoit_coll_agree(pe->team, own, "agree") != all)
        note_error(pe, "agree", 0);
    if (quoit_coll_largest(pe->team, own, "largest") != largest)
        note_error(pe, "largest", 0);
}

/* Before a sync each member writes the step's number where the next member looks after the sync: one word for the world
 * and one for other teams, since the next member may still be in another team. */
static void step_sync(struct pe *pe)
{
    uint64_t offset = pe->fabric->self.layout.segment_heap + 2 * SIDE_BYTES + (pe->team == pe->world_team ? 0 : 64);
    uint32_t behind = pe->range.start + (pe->rank + 1) % pe->range.size * pe->range.stride;
    uint64_t *mark = quoit_coll_address(pe->fabric, offset);
    delay(pe);
    quoit_fabric_put(pe->fabric, &pe->fabric->default_context, offset, &pe->step, 8, behind);
    quoit_fabric_quiet(pe->fabric, &pe->fabric->default_context);
    quoit_coll_sync(pe->team, "sync");
    if (*(volatile uint64_t *)mark != pe->step)
        note_error(pe, "sync", 0);
    quoit_coll_sync(pe->team, "sync");
}

static void step(struct pe *pe)
{
    static void (*const steps[])(struct pe *) = {
        step_broadcast,
        step_broadcast,
        step_collect,
        step_collect,
        step_alltoall,
        step_alltoalls,
        step_broadcasts_in_a_row,
        step_reduce,
        step_reduce,
        step_scan,
        step_order,
        step_agree,
        step_sync,
    };
    pe->step++;
    steps[quoit_prng_choose(&pe->common, sizeof steps / sizeof steps[0])](pe);
}

/* --- Teams --- */

/* Small windows cover the first segments of a host, and only its first PE may enter a barrier between hosts. */
static void check_leader(const struct pe *pe)
{
    for (uint32_t i = 0; i < pe->team->local_count; i++)
        if (quoit_team_workspace(pe->team, i) < pe->team->leader_workspace)
            note_error(pe, "a segment stands before the leader's", 0);
}

static void use_team(struct pe *pe, struct quoit_team_state *team, struct quoit_team_range range, uint32_t rank)
{
    pe->team = team;
    pe->range = range;
    pe->rank = rank;
    check_leader(pe);
}

/* What carries its messages is the ring, whatever a team takes it for. */
static struct quoit_team_state *new_team(struct pe *pe, const struct quoit_team_range *range, uint32_t piece,
                                         uint64_t first_flag)
{
    struct quoit_team_state *team = quoit_team_new(pe->fabric, range, piece, first_flag);
    if (!team)
        abort();
    if (pe->world->play.is_network)
        team->has_links = team->are_neighbours = false;
    return team;
}

static void leave_team(struct pe *pe, const struct quoit_team_range *world)
{
    quoit_coll_sync(pe->team, "delete");
    uint64_t next_flag = quoit_team_next_flag(pe->team);
    pe->next_flag = pe->next_flag > next_flag ? pe->next_flag : next_flag;
    quoit_team_delete(pe->team);
    use_team(pe, pe->world_team, *world, pe->index);
}

/* Splits the PEs into teams, every stride-th PE in ascending or descending order, on pieces that were in use before.
 * Each team runs some steps of its own; then the world synchronises. */
static void run_split(struct pe *pe, const struct quoit_team_range *world)
{
    uint32_t stride = 1 + (uint32_t)quoit_prng_choose(&pe->common, world->size);
    uint32_t piece = 1 + (uint32_t)quoit_prng_choose(&pe->common, 2) * (QUOIT_TEAM_PIECES - 2);
    uint32_t step_count = (uint32_t)quoit_prng_choose(&pe->common, 12);
    bool is_descending = quoit_prng_choose(&pe->common, 4) == 0;
    uint32_t first = pe->index % stride;
    uint32_t size = (world->size - first + stride - 1) / stride;
    struct quoit_team_range range = {.start = first, .stride = stride, .size = size};
    uint32_t rank = pe->index / stride;
    if (is_descending) {
        range.start = first + (size - 1) * stride;
        range.stride = 0u - stride;
        rank = size - 1 - rank;
    }
    uint64_t first_flag = quoit_coll_largest(pe->world_team, pe->next_flag, "split");
    struct quoit_team_state *team = new_team(pe, &range, piece, first_flag);
    quoit_coll_sync(pe->world_team, "split");
    use_team(pe, team, range, rank);
    struct quoit_prng saved = pe->common;
    uint64_t step_before = pe->step;
    pe->common.state ^= first * 0x9e3779b97f4a7c15u; /* a sequence of its own for each team */
    for (uint32_t i = 0; i < step_count; i++)
        step(pe);
    pe->common = saved;
    pe->step = step_before + 1000; /* the same again on all PEs */
    leave_team(pe, world);
}

/* Compares how many rounds with the neighbours an operation took. */
static void check_rounds(struct pe *pe, const char *what, uint64_t before, uint64_t wanted)
{
    uint64_t found = pe->world_team->round - before;
    if (found != wanted && atomic_fetch_add(&pe->world->error_count, 1) < 8)
        fprintf(stderr, "PE %u: %s took %llu rounds, not %llu\n", pe->index, what, (unsigned long long)found,
                (unsigned long long)wanted);
}

/* Flags of the next team in the same place are above all that this one has used, whichever it used most. */
static void check_next_flag(struct pe *pe)
{
    struct quoit_team_state *team = pe->world_team;
    uint64_t *const counts[] = {&team->phase,
                                &team->publish_count,
                                &team->round,
                                &team->sent_count[1],
                                &team->come_count[0],
                                &team->dissemination_count,
                                &team->come_count[1],
                                &team->tree_sent_count[1],
                                &team->tree_come_count[2],
                                &team->post_sent_count[3],
                                &team->post_come_count[1],
                                &team->halving_count};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t saved = *counts[i];
        *counts[i] = 1000000;
        if (quoit_team_next_flag(team) != team->flag_base + 1000001)
            note_error(pe, "a flag of before would be used again: count", i);
        *counts[i] = saved;
    }
}

/* One PE a host: what fits comes from two more hosts in each round, what does not travels round the hosts and back,
 * each time to all but the own one, and a broadcast over links asks the neighbours alone. */
static void run_counted(struct pe *pe)
{
    struct quoit_team_state *team = pe->world_team;
    uint64_t from = pe->fabric->self.layout.segment_heap, to = from + SIDE_BYTES, before = team->round;
    size_t slice = quoit_team_slice_bytes(team), gather = team->space.gather_bytes;
    size_t count = (slice < gather ? slice : gather) / sizeof(double); /* the one on 5 hosts, the other on 3 */
    quoit_coll_reduce(team, to, from, count, sizeof(double), add_doubles, "reduce");
    check_rounds(pe, "a reduction that just fits", before, team->host_count / 2);
    before = team->round;
    quoit_coll_reduce(team, to, from, count + 1, sizeof(double), add_doubles, "reduce");
    check_rounds(pe, "a reduction", before, 2 * ((uint64_t)team->host_count - 1));
    if (slice < gather) {
        before = team->round;
        quoit_coll_reduce(team, to, from, gather / sizeof(double), sizeof(double), add_doubles, "reduce");
        check_rounds(pe, "a reduction in two slices", before, 2 * ((uint64_t)team->host_count - 1));
    }
    before = team->round;
    quoit_coll_broadcast(team, to, from, 1u << 20, 0, true, "broadcast");
    check_rounds(pe, "a broadcast", before, 1);
    check_next_flag(pe);
}

/* One PE a host of a network: the leaders exchange once. */
static void run_exchanged(struct pe *pe)
{
    struct quoit_team_state *team = pe->world_team;
    uint64_t from = pe->fabric->self.layout.segment_heap, to = from + SIDE_BYTES, before = team->round;
    size_t most = team->space.gather_bytes / team->range.size / team->range.size;
    quoit_coll_alltoall(team, to, from, most, "alltoall");
    check_rounds(pe, "an alltoall of few bytes", before, team->host_count / 2);
    before = team->round;
    if (!quoit_coll_collect(team, to, from, 1 + team->rank, false, "collect"))
        note_error(pe, "a collect of few bytes is refused", 0);
    check_rounds(pe, "a collect of few bytes", before, team->host_count / 2);
}

/* One PE a host of a network: halving takes fewer rounds than going round however many pieces there are. */
static void run_halving(struct pe *pe)
{
    struct quoit_team_state *team = pe->world_team;
    uint64_t from = pe->fabric->self.layout.segment_heap, to = from + SIDE_BYTES, rounds = team->round;
    size_t piece = team->space.halving_bytes / 8 / (team->host_count - 1) * team->host_count;
    uint64_t wanted = 0;
    for (size_t pieces = 1; pieces * piece <= SIDE_BYTES / 8; pieces++) {
        wanted += pieces;
        quoit_coll_reduce(team, to, from, pieces * piece, sizeof(double), add_doubles, "reduce");
        if (team->halving_count != wanted)
            note_error(pe, "a reduction has other pieces", pieces);
    }
    check_rounds(pe, "reductions by halving", rounds, 0);
}

/* The same in a team whose pieces are small: many of them go round, in fewer rounds. */
static void run_small_pieces(struct pe *pe)
{
    const struct quoit_team_range world = pe->range;
    const uint64_t from = pe->fabric->self.layout.segment_heap, to = from + SIDE_BYTES;
    struct quoit_team_state *team = new_team(pe, &world, 1, 0);
    const size_t piece = team->space.halving_bytes / 8 / (team->host_count - 1) * team->host_count;
    quoit_coll_sync(pe->world_team, "split");
    use_team(pe, team, world, pe->rank);
    quoit_coll_reduce(team, to, from, piece, sizeof(double), add_doubles, "reduce");
    if (team->halving_count != 1 || team->round != 0)
        note_error(pe, "a reduction of one piece is not halved", 0);
    quoit_coll_reduce(team, to, from, SIDE_BYTES / 8, sizeof(double), add_doubles, "reduce");
    if (team->halving_count != 1 || team->round == 0)
        note_error(pe, "a reduction of too many pieces is halved", 0);
    leave_team(pe, &world);
}

static void *run_pe(void *arg)
{
    struct pe *pe = arg;
    struct world *world = pe->world;
    const struct quoit_team_range range = {.start = 0, .stride = 1, .size = world->rig.job.pe_count};
    pe->fabric = rig_open_fabric(&world->rig, pe->index);
    pe->common.state = world->seed;
    pe->private.state = world->seed * 1000 + pe->index;
    pe->model = malloc(SIDE_BYTES);
    pe->block = malloc(SIDE_BYTES);
    pe->world_team = new_team(pe, &range, 0, 0);
    use_team(pe, pe->world_team, range, pe->index);
    if (world->play.run)
        world->play.run(pe);
    for (uint32_t i = 0; i < world->play.step_count; i++) {
        if (quoit_prng_choose(&pe->common, 25) == 0)
            run_split(pe, &range);
        else
            step(pe);
        if (i % 16 == 0 && quoit_coll_agree(pe->team, world->error_count, "end") != 0)
            break;
    }
    quoit_coll_sync(pe->world_team, "end");
    quoit_team_delete(pe->world_team);
    free(pe->model);
    free(pe->block);
    rig_close_fabric(&world->rig, pe->fabric);
    return NULL;
}

/* --- The tests --- */

static void run_play(struct play play)
{
    const char *seed = getenv("QUOIT_SEED");
    struct world *world = calloc(1, sizeof *world);
    struct pe pes[PES_MAX];
    world->rig.job = (struct quoit_job_config){.host_count = play.host_count,
                                               .pe_count = play.pe_count,
                                               .lane_count = 1,
                                               .slot_count = 4,
                                               .chunk_bytes = 4096,
                                               .data_bytes = 4096,
                                               .heap_bytes = HEAP_BYTES,
                                               .schedules = play.schedules};
    world->rig.policy = quoit_wait_policy_for(play.pe_count, 2);
    world->rig.knobs.window_bytes[QUOIT_WINDOW_MEMORY] = play.window_bytes;
    world->seed = seed ? strtoull(seed, NULL, 10) : 1;
    world->play = play;
    rig_start(&world->rig);
    for (uint32_t i = 0; i < play.pe_count; i++) {
        pes[i] = (struct pe){.world = world, .index = i};
        assert_int_equal(pthread_create(&pes[i].thread, NULL, run_pe, &pes[i]), 0);
    }
    for (uint32_t i = 0; i < play.pe_count; i++)
        pthread_join(pes[i].thread, NULL);
    assert_int_equal(world->error_count, 0);
    rig_stop(&world->rig);
    rig_end(&world->rig);
    free(world);
}

static void run_world(uint32_t host_count, uint32_t pe_count, uint64_t window_bytes, uint32_t step_count,
                      uint32_t size_log_max)
{
    run_play((struct play){.host_count = host_count,
                           .pe_count = pe_count,
                           .window_bytes = window_bytes,
                           .step_count = step_count,
                           .size_log_max = size_log_max});
}

static void test_rounds_are_no_more_than_needed(void **state)
{
    (void)state;
    for (uint32_t host_count = 3; host_count <= 5; host_count += 2)
        run_play((struct play){.host_count = host_count, .pe_count = host_count, .run = run_counted});
    for (uint32_t host_count = 2; host_count <= 5; host_count++)
        run_play(
            (struct play){.host_count = host_count, .pe_count = host_count, .run = run_exchanged, .is_network = true});
}

static void test_one_host(void **state)
{
    (void)state;
    for (uint32_t pe_count = 1; pe_count <= 12; pe_count++)
        run_world(1, pe_count, 0, 300, 13);
}

static void test_one_host_large(void **state)
{
    (void)state;
    for (uint32_t pe_count = 1; pe_count <= 6; pe_count++)
        run_world(1, pe_count, 0, 40, SIZE_MAX_LOG);
}

static void test_rings(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 8; host_count++)
        run_world(host_count, host_count, 0, 60, 14);
}

/* Every other host of the ring: too many, and too far apart, for an exchange with neighbours. */
static void test_many_hosts(void **state)
{
    (void)state;
    run_world(16, 16, 0, 40, 10);
}

static void test_rings_large(void **state)
{
    (void)state;
    run_world(2, 2, 0, 30, SIZE_MAX_LOG);
    run_world(5, 5, 0, 30, SIZE_MAX_LOG);
}

static void test_blocks_of_pes(void **state)
{
    (void)state;
    run_world(2, 5, 0, 60, 14);
    run_world(3, 9, 0, 60, 14);
    run_world(5, 12, 0, 60, 14);
}

/* Over a network hosts are no neighbours: from some number of them on, data travels along trees, and exchanges and
 * barriers disseminate. On 4 hosts a broadcast goes round them, whatever its size; on 9 it depends. Reductions are
 * halved up to some size. */
static void test_hosts_that_are_no_neighbours(void **state)
{
    (void)state;
    for (uint32_t host_count = 4; host_count <= 14; host_count += 5)
        run_play((struct play){.host_count = host_count,
                               .pe_count = host_count,
                               .step_count = 40,
                               .size_log_max = 17,
                               .run = run_halving,
                               .is_network = true});
    for (uint32_t host_count = 8; host_count <= 12; host_count += 4)
        run_play((struct play){
            .host_count = host_count, .pe_count = host_count, .run = run_small_pieces, .is_network = true});
    run_play((struct play){.host_count = 7, .pe_count = 15, .step_count = 40, .size_log_max = 17, .is_network = true});
}

static void run_forced(struct pe *pe)
{
    struct quoit_team_state *team = pe->world_team;
    uint64_t from = pe->fabric->self.layout.segment_heap, to = from + SIDE_BYTES, hosts = team->host_count;
    const uint64_t schedules = pe->world->rig.job.schedules;
    bool is_log = quoit_schedules_choose(schedules, QUOIT_COLLECTIVE_REDUCE, 0) == QUOIT_SCHEDULE_LOG;
    uint64_t rounds = team->round, halvings = team->halving_count, disseminations = team->dissemination_count;
    quoit_coll_reduce(team, to, from, 64, sizeof(double), add_doubles, "reduce");
    quoit_coll_sync(team, "sync");
    check_rounds(pe, "a small reduction and a barrier", rounds, is_log ? 0 : 2 * (hosts - 1) + hosts / 2);
    uint64_t streams = team->sent_count[0] + team->come_count[0];
    quoit_coll_broadcast(team, to, from, 1u << 16, 0, true, "broadcast");
    bool has_streamed = team->sent_count[0] + team->come_count[0] != streams;
    disseminations = team->dissemination_count - disseminations; /* of the barrier, and before the tree */
    if (team->halving_count - halvings != is_log || has_streamed == is_log || disseminations != (is_log ? 2 : 0))
        note_error(pe, "a forced schedule does not run", 0);
}

/* Tables of any bits, so that schedules change from size to size: for teams on all hosts, and for any. Forced ones. */
static void test_tables_of_schedules(void **state)
{
    (void)state;
    static const char *const texts[] = {"broadcast:tree,reduce:halving,exchange:dissemination",
                                        "broadcast:around,reduce:around,exchange:around"};
    for (uint32_t hosts = 2; hosts <= 11; hosts += 3)
        for (enum quoit_schedules_source source = QUOIT_SCHEDULES_TUNED; source <= QUOIT_SCHEDULES_FORCED; source++) {
            const uint64_t bits = UINT64_C(0x9e3779b97f4a7c15) * (2 * hosts + source) >> 4;
            run_play((struct play){.host_count = hosts,
                                   .pe_count = hosts + hosts / 4,
                                   .step_count = 40,
                                   .size_log_max = 17,
                                   .is_network = true,
                                   .schedules = quoit_schedules_from(bits, source)});
        }
    for (uint32_t i = 0; i < 4; i++) {
        struct play play = {
            .host_count = 3 + i / 2 * 6, .pe_count = 3 + i / 2 * 6, .run = run_forced, .is_network = true};
        assert_true(quoit_schedules_force(texts[i % 2], &play.schedules, (char[QUOIT_SCHEDULES_PROBLEM_BYTES]){0}));
        run_play(play);
    }
}

/* Windows that cover only part of a host's memory: some data, and some flags, go through the slots. */
static void test_small_windows(void **state)
{
    (void)state;
    run_world(3, 7, 1u << 23, 60, 16);
    run_world(4, 4, 1u << 21, 60, 16);
}

/* The thread sanitizer cannot follow synchronisation between hosts, because each end of a link maps the same memory at
 * an address of its own. It gets one host. */
#if defined(__SANITIZE_THREAD__)
#define SEES_RINGS false
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_RINGS false
#endif
#endif
#ifndef SEES_RINGS
#define SEES_RINGS true
#endif

int main(void)
{
    const struct CMUnitTest on_one_host[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_one_host_large),
    };
    const struct CMUnitTest on_rings[] = {
        cmocka_unit_test(test_rings),
        cmocka_unit_test(test_many_hosts),
        cmocka_unit_test(test_rings_large),
        cmocka_unit_test(test_blocks_of_pes),
        cmocka_unit_test(test_small_windows),
        cmocka_unit_test(test_rounds_are_no_more_than_needed),
        cmocka_unit_test(test_hosts_that_are_no_neighbours),
        cmocka_unit_test(test_tables_of_schedules),
    };
    int failed_count = cmocka_run_group_tests(on_one_host, NULL, NULL);
    if (SEES_RINGS)
        failed_count += cmocka_run_group_tests(on_rings, NULL, NULL);
    return failed_count;
}
