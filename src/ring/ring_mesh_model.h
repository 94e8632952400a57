/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_mesh_model.h - for tests: the hosts, PEs and operations of a mesh, and what memory must become. See ring_mesh.h.
 */
#ifndef QUOIT_RING_RING_MESH_MODEL_H
#define QUOIT_RING_RING_MESH_MODEL_H

#include "ring/ring.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/prng.h"
#include "ring/state.h"

#define HOSTS_MAX      9
#define PES_A_HOST_MAX 3
#define PES_MAX        (HOSTS_MAX * PES_A_HOST_MAX)
#define SLOTS_MAX      4
#define CHUNK_BYTES    32u
#define COUNTER_COUNT  8u  /* words at the start of each segment that all PEs add to */
#define REGION_BYTES   64u /* of each source PE: a signal, a word for atomics, then data */
#define REGION_DATA    16u
#define DATA_BYTES     (REGION_BYTES - REGION_DATA)
#define SEGMENT_BYTES  (COUNTER_COUNT * 8 + PES_MAX * REGION_BYTES)
#define OPS_MAX        400u
#define STEPS_MAX      4000000u
#define STEPS_IDLE_MAX 3000u /* steps without progress, before every action of every host is tried */
#define NO_OP          UINT32_MAX

enum workload { ALL_TO_ALL, HOT_SPOT, GETS, FETCH_ADDS, MIX, WORKLOAD_COUNT };
enum action { DELIVER, ADVERTISE_CREDIT, READ_CREDIT, SUBMIT, RETRANSMIT, SEND_REPLY, COMPLETE, ATTEND, ACTION_COUNT };

struct op {
    struct quoit_frame frame; /* as submitted */
    uint32_t source_pe;       /* numbers of the job */
    uint32_t dest_pe;
    uint8_t payload[CHUNK_BYTES];  /* of a put */
    uint8_t before[CHUNK_BYTES];   /* of a get: what was submitted before it leaves this there, or later bytes */
    uint8_t snapshot[CHUNK_BYTES]; /* of a get: what was there when the response left */
    uint64_t value;                /* of a fetch: what execution found */
    uint64_t value_expected;       /* of a fetch from the own region */
    uint64_t returned;             /* of a fetch: the value in the response */
    bool is_value_known;
    uint32_t execute_count;
    bool has_response;
    bool is_complete;
};

struct slot {
    struct quoit_frame frame;
    uint8_t payload[CHUNK_BYTES];
};

struct host {
    struct quoit_ring *ring;
    struct slot inbound[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT][SLOTS_MAX];
    uint64_t credit_word[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT]; /* written by the neighbour for our outbound queues */
    uint32_t weight;
    uint32_t pe_first;
    bool must_notice[QUOIT_SIDE_COUNT]; /* the link was lost and the port will report it */
    bool is_clean[QUOIT_SIDE_COUNT];    /* down, and the memory of that side is zeroed */
};

/* Link l joins host l and host l + 1. */
struct link {
    bool is_cut; /* writes to it vanish */
    uint32_t epoch;
};

/* Faults are workloads too; all zero: none. */
struct faults {
    uint32_t cut_count;       /* still to be made */
    uint32_t period;          /* one in so many steps cuts or restores a link */
    uint32_t dead_max;        /* links that may be down at once */
    bool is_one_end_blind;    /* one end of a cut link detects it late, or only from the other one */
    bool is_eager_to_land;    /* everything that may land does; otherwise half of it */
    bool is_tearing;          /* links may also be cut between a landing and its slot */
    bool is_last_cut_forever; /* the link cut last stays so */
};

struct pe {
    uint32_t host;
    uint32_t left_count; /* operations still to be made */
    uint32_t offered;    /* the operation that waits to be accepted, or NO_OP */
    uint32_t under_way_count;
    uint32_t under_way_max;
    uint8_t segment[SEGMENT_BYTES];
    uint8_t reference[SEGMENT_BYTES];
};

struct mesh {
    uint64_t seed;
    struct quoit_prng prng;
    enum workload workload;
    struct quoit_ring_config config;
    uint32_t host_count;
    uint32_t pe_count;
    uint32_t pe_counts[HOSTS_MAX];
    uint32_t weight_sum;
    uint32_t action_weights[ACTION_COUNT];
    uint32_t lazy; /* one in so many credit updates is an idle one */
    uint64_t now_ns;
    uint64_t step_count;
    bool is_deaf; /* host 0 reads no credits */
    uint32_t op_count;
    uint32_t complete_count;
    struct faults faults;
    uint32_t lost_count; /* writes that vanished */
    uint32_t resend_count;
    uint32_t landing_count;
    struct host hosts[HOSTS_MAX];
    struct link links[HOSTS_MAX];
    struct pe pes[PES_MAX];
    struct op ops[OPS_MAX];
    /* of each (source PE, destination PE): the operation executed last, and the ones completed last without and with
     * response */
    uint32_t executed_last[PES_MAX][PES_MAX];
    uint32_t completed_last[2][PES_MAX][PES_MAX];
};

/* For the handler of SIGABRT, so that a failed assertion of the ring names the seed too. */
static volatile uint64_t seed_now;

static void print_replay(void)
{
    char line[160];
    int length = snprintf(line, sizeof line, "seed %llu; replay: QUOIT_SEED=%llu QUOIT_SEEDS=1 %s\n",
                          (unsigned long long)seed_now, (unsigned long long)seed_now, program_invocation_short_name);
    if (write(STDERR_FILENO, line, (size_t)length) != length)
        _exit(1);
}

static void on_abort(int signal_number)
{
    (void)signal_number;
    print_replay();
}

#define require(condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_replay();                                                                                            \
            print_error(__VA_ARGS__);                                                                                  \
            print_error("\n");                                                                                         \
            fail_msg("failed: %s", #condition);                                                                        \
        }                                                                                                              \
    } while (0)

static uint32_t choose(struct mesh *mesh, uint32_t n)
{
    return (uint32_t)quoit_prng_choose(&mesh->prng, n);
}

static uint64_t load_word(const uint8_t *at, uint32_t size)
{
    uint64_t value = 0;
    memcpy(&value, at, size);
    return value;
}

static uint64_t amo_result(const struct quoit_frame *frame, uint64_t old)
{
    switch (frame->op) {
    case QUOIT_AMO_ADD:
        return old + frame->operand;
    case QUOIT_AMO_AND:
        return old & frame->operand;
    case QUOIT_AMO_OR:
        return old | frame->operand;
    case QUOIT_AMO_XOR:
        return old ^ frame->operand;
    case QUOIT_AMO_COMPARE_SWAP:
        return old == frame->operand2 ? frame->operand : old;
    case QUOIT_AMO_FETCH:
        return old;
    default:
        return frame->operand;
    }
}

/* What a put writes, unless it has landed. */
static void store_payload(uint8_t *segment, const struct quoit_frame *frame, const uint8_t *payload)
{
    if (frame->flags & QUOIT_FRAME_LANDED)
        return;
    if (frame->kind != QUOIT_FRAME_PUT_STRIDED) {
        memcpy(segment + frame->offset, payload, frame->bytes);
        return;
    }
    for (uint32_t i = 0; i < frame->bytes / frame->size; i++)
        memcpy(segment + frame->offset + (int64_t)frame->operand * i, payload + i * frame->size, frame->size);
}

/* Executes a request at a segment: the memory of a PE, or its reference. Returns the old value of an atomic. */
static uint64_t execute(uint8_t *segment, const struct quoit_frame *frame, const uint8_t *payload)
{
    uint64_t old;
    switch (frame->kind) {
    case QUOIT_FRAME_PUT_SIGNAL:
        store_payload(segment, frame, payload);
        old = load_word(segment + frame->operand2, 8) + frame->operand;
        memcpy(segment + frame->operand2, &old, 8);
        return 0;
    case QUOIT_FRAME_MESSAGE: /* for a host; the mesh records its arrival */
    case QUOIT_FRAME_PUT:
    case QUOIT_FRAME_PUT_STRIDED:
        store_payload(segment, frame, payload);
        return 0;
    case QUOIT_FRAME_AMO:
    case QUOIT_FRAME_AMO_FETCH:
        old = load_word(segment + frame->offset, frame->size);
        memcpy(segment + frame->offset, &(uint64_t){amo_result(frame, old)}, frame->size);
        return old;
    default:
        return 0;
    }
}

/* The bytes that a get (or its DATA, size 0 when not strided) gathers. */
static void gather(const uint8_t *segment, const struct quoit_frame *frame, bool is_strided, uint8_t *out)
{
    if (!is_strided) {
        memcpy(out, segment + frame->offset, frame->bytes);
        return;
    }
    for (uint32_t i = 0; i < frame->bytes / frame->size; i++)
        memcpy(out + i * frame->size, segment + frame->offset + (int64_t)frame->operand * i, frame->size);
}

/* ---- making operations ---- */

static uint32_t pick_dest(struct mesh *mesh, uint32_t source)
{
    uint32_t host = mesh->pes[source].host;
    uint32_t dest = mesh->workload == HOT_SPOT ? 0 : choose(mesh, mesh->pe_count);
    if (mesh->workload == ALL_TO_ALL)
        dest = (source + mesh->pes[source].left_count) % mesh->pe_count;
    while (mesh->pes[dest].host == host)
        dest = choose(mesh, mesh->pe_count);
    return dest;
}

static uint8_t pick_kind(struct mesh *mesh)
{
    static const uint8_t hot[] = {QUOIT_FRAME_PUT, QUOIT_FRAME_GET, QUOIT_FRAME_AMO_FETCH, QUOIT_FRAME_PUT_SIGNAL};
    switch (mesh->workload) {
    case ALL_TO_ALL:
        return QUOIT_FRAME_PUT;
    case GETS:
        return choose(mesh, 4) ? QUOIT_FRAME_GET : QUOIT_FRAME_GET_STRIDED;
    case FETCH_ADDS:
        return QUOIT_FRAME_AMO_FETCH;
    case HOT_SPOT:
        return hot[choose(mesh, 4)];
    default:
        return (uint8_t)(QUOIT_FRAME_PUT + choose(mesh, QUOIT_FRAME_MESSAGE));
    }
}

/* A range of the source's own data in the destination's segment. */
static void make_range(struct mesh *mesh, struct op *op, uint32_t region)
{
    struct quoit_frame *frame = &op->frame;
    uint32_t data = region + REGION_DATA;
    if (frame->kind != QUOIT_FRAME_PUT_STRIDED && frame->kind != QUOIT_FRAME_GET_STRIDED) {
        frame->bytes = 1 + choose(mesh, CHUNK_BYTES);
        frame->offset = data + choose(mesh, DATA_BYTES - frame->bytes + 1);
        return;
    }
    frame->size = (uint8_t)(1u << choose(mesh, 3));
    uint32_t stride = frame->size * (1 + choose(mesh, 2));
    uint32_t count = 1 + choose(mesh, CHUNK_BYTES / 2 / frame->size);
    uint32_t span = stride * (count - 1);
    frame->bytes = frame->size * count;
    frame->offset = data + choose(mesh, DATA_BYTES - span - frame->size + 1);
    frame->operand = stride;
    if (choose(mesh, 2)) {
        frame->offset += span;
        frame->operand = (uint64_t)0 - stride;
    }
}

static void make_amo(struct mesh *mesh, struct op *op, uint32_t region)
{
    struct quoit_frame *frame = &op->frame;
    const uint8_t *reference = mesh->pes[op->dest_pe].reference;
    if (mesh->workload == FETCH_ADDS || choose(mesh, 2)) {
        frame->op = QUOIT_AMO_ADD;
        frame->size = 8;
        frame->offset = 8 * choose(mesh, COUNTER_COUNT);
        frame->operand = 1 + choose(mesh, 1000);
        return;
    }
    frame->op = (uint8_t)choose(mesh, frame->kind == QUOIT_FRAME_AMO_FETCH ? QUOIT_AMO_TAKE : QUOIT_AMO_FETCH);
    frame->size = choose(mesh, 2) ? 8 : 4;
    frame->offset = region + 8;
    frame->operand = quoit_prng_next(&mesh->prng);
    frame->operand2 = choose(mesh, 2) ? load_word(reference + frame->offset, frame->size) : 77;
    op->is_value_known = true;
}

static bool is_put(const struct quoit_frame *frame)
{
    return frame->kind == QUOIT_FRAME_PUT || frame->kind == QUOIT_FRAME_PUT_STRIDED ||
           frame->kind == QUOIT_FRAME_PUT_SIGNAL;
}

/* Whether it writes where a landing put might write too. */
static bool is_write(const struct quoit_frame *frame)
{
    return is_put(frame) || frame->kind == QUOIT_FRAME_MESSAGE;
}

/* The bytes from the first to the last that a put touches. */
static void find_span(const struct quoit_frame *frame, uint64_t *first_out, uint64_t *end_out)
{
    *first_out = frame->offset;
    *end_out = frame->offset + frame->bytes;
    if (frame->kind != QUOIT_FRAME_PUT_STRIDED)
        return;
    uint64_t last = frame->offset + frame->operand * (frame->bytes / frame->size - 1);
    *first_out = frame->offset < last ? frame->offset : last;
    *end_out = (frame->offset < last ? last : frame->offset) + frame->size;
}

/* Whether a put would have to be fenced against an earlier outstanding one of its pair. */
static bool must_keep_order(const struct mesh *mesh, uint32_t index)
{
    const struct op *op = &mesh->ops[index];
    uint64_t first, end;
    if (!is_write(&op->frame))
        return false;
    find_span(&op->frame, &first, &end);
    for (uint32_t i = 0; i < index; i++) {
        const struct op *other = &mesh->ops[i];
        uint64_t other_first, other_end;
        if (other->is_complete || !is_write(&other->frame) || other->source_pe != op->source_pe ||
            other->dest_pe != op->dest_pe)
            continue;
        find_span(&other->frame, &other_first, &other_end);
        if (first < other_end && other_first < end)
            return true;
    }
    return false;
}

/* Makes the next operation of a PE and applies it to the reference. */
static uint32_t make_op(struct mesh *mesh, uint32_t source)
{
    struct pe *pe = &mesh->pes[source];
    uint32_t index = mesh->op_count++;
    struct op *op = &mesh->ops[index];
    op->source_pe = source;
    op->dest_pe = pick_dest(mesh, source);
    struct pe *dest = &mesh->pes[op->dest_pe];
    uint32_t region = COUNTER_COUNT * 8 + source * REGION_BYTES;
    struct quoit_frame *frame = &op->frame;
    frame->kind = pick_kind(mesh);
    frame->source_host = (uint16_t)pe->host;
    frame->dest_host = (uint16_t)dest->host;
    frame->source_pe = (uint16_t)(source - mesh->hosts[pe->host].pe_first);
    frame->dest_pe = (uint16_t)(op->dest_pe - mesh->hosts[dest->host].pe_first);
    frame->trace = index + 1;
    frame->flags = choose(mesh, 4) ? 0 : QUOIT_FRAME_ORDERED;
    if (frame->kind == QUOIT_FRAME_AMO || frame->kind == QUOIT_FRAME_AMO_FETCH)
        make_amo(mesh, op, region);
    else
        make_range(mesh, op, region);
    if (frame->kind == QUOIT_FRAME_PUT_SIGNAL) {
        frame->op = QUOIT_AMO_ADD;
        frame->operand = 1 + choose(mesh, 9);
        frame->operand2 = region;
    }
    if (frame->kind == QUOIT_FRAME_MESSAGE)
        frame->op = (uint8_t)choose(mesh, QUOIT_MESSAGE_PORTS);
    bool is_strided = frame->kind == QUOIT_FRAME_PUT_STRIDED || frame->kind == QUOIT_FRAME_GET_STRIDED;
    gather(dest->reference, frame, is_strided, op->before);
    for (uint32_t i = 0; i < frame->bytes; i++)
        op->payload[i] = (uint8_t)(op->before[i] + 1);
    if (must_keep_order(mesh, index))
        frame->flags |= QUOIT_FRAME_ORDERED;
    op->value_expected = execute(dest->reference, frame, op->payload);
    pe->left_count--;
    return index;
}

static uint32_t global_pe(const struct mesh *mesh, uint32_t host, uint32_t local)
{
    return mesh->hosts[host].pe_first + local;
}

static struct op *op_of(struct mesh *mesh, const struct quoit_frame *frame)
{
    require(frame->trace >= 1 && frame->trace <= mesh->op_count, "trace %llu", (unsigned long long)frame->trace);
    return &mesh->ops[frame->trace - 1];
}

#endif
