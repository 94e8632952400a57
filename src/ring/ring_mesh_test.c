/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whole rings of hosts keep the promises of ring.h in any order of events: nothing is stuck, lost, executed twice
 * or out of order, and everything is home at the end.
 * Method: real rings over model queues in one process. Each step picks a random host and a random action: deliver a
 * frame, tell a credit, read a credit, submit, send a reply, take completions. Hosts differ in speed, some hosts have
 * no PE, half of the seeds start their flows just before the numbers wrap. The model knows each operation by its
 * trace number: what it must carry, where it must land, what it must return. Each source PE owns a region of each PE,
 * so that the order of a pair decides its content; bytes only count up, so that a get can be judged while puts are
 * under way. At the end all memory must equal the reference. Seeds: QUOIT_SEED is the first (default 1), QUOIT_SEEDS
 * their count (default 300).
 */
#include "ring/ring.h"

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
#define COUNTER_COUNT  8u  /* words at the start of each area that all PEs add to */
#define REGION_BYTES   64u /* of each source PE: a signal, a word for atomics, then data */
#define REGION_DATA    16u
#define DATA_BYTES     (REGION_BYTES - REGION_DATA)
#define AREA_BYTES     (COUNTER_COUNT * 8 + PES_MAX * REGION_BYTES)
#define OPS_MAX        400u
#define STEPS_MAX      4000000u
#define STEPS_IDLE_MAX 3000u /* without progress, before every action of every host is tried */
#define NO_OP          UINT32_MAX

enum workload { ALL_TO_ALL, HOT_SPOT, GETS, FETCH_ADDS, MIX, WORKLOAD_COUNT };
enum action { DELIVER, TELL_CREDIT, READ_CREDIT, SUBMIT, SEND_REPLY, COMPLETE, ACTION_COUNT };

struct op {
    struct quoit_frame frame; /* as submitted */
    uint32_t source_pe;       /* numbers of the job */
    uint32_t dest_pe;
    uint8_t payload[CHUNK_BYTES];  /* of a put */
    uint8_t before[CHUNK_BYTES];   /* of a get: what was submitted before it leaves this there, or later bytes */
    uint8_t snapshot[CHUNK_BYTES]; /* of a get: what was there when the answer left */
    uint64_t value;                /* of a fetch: what execution found */
    uint64_t value_expected;       /* of a fetch from the own region */
    bool is_value_known;
    uint32_t execute_count;
    bool is_answered;
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
};

struct pe {
    uint32_t host;
    uint32_t left_count; /* operations still to be made */
    uint32_t offered;    /* the operation that waits to be accepted, or NO_OP */
    uint32_t under_way_count;
    uint32_t under_way_max;
    uint8_t area[AREA_BYTES];
    uint8_t reference[AREA_BYTES];
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
    uint32_t lazy; /* one in so many tells is an idle one */
    uint64_t now_ns;
    uint64_t step_count;
    bool is_deaf; /* host 0 reads no credits */
    uint32_t op_count;
    uint32_t complete_count;
    struct host hosts[HOSTS_MAX];
    struct pe pes[PES_MAX];
    struct op ops[OPS_MAX];
    /* of each (source PE, destination PE): the operation executed last, and completed last of plain and of asking */
    uint32_t executed_last[PES_MAX][PES_MAX];
    uint32_t completed_last[2][PES_MAX][PES_MAX];
};

/* For the handler of SIGABRT, so that a failed assertion of the ring names the seed too. */
static volatile uint64_t seed_now;

static void print_replay(void)
{
    char line[160];
    int length =
        snprintf(line, sizeof line, "seed %llu; replay: QUOIT_SEED=%llu QUOIT_SEEDS=1 unit_ring_ring_mesh_test\n",
                 (unsigned long long)seed_now, (unsigned long long)seed_now);
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

/* Executes a request at an area: the memory of a PE, or its reference. Returns the old value of an atomic. */
static uint64_t execute(uint8_t *area, const struct quoit_frame *frame, const uint8_t *payload)
{
    uint64_t old;
    switch (frame->kind) {
    case QUOIT_FRAME_PUT_SIGNAL:
        old = load_word(area + frame->operand2, 8) + frame->operand;
        memcpy(area + frame->operand2, &old, 8);
        memcpy(area + frame->offset, payload, frame->bytes);
        return 0;
    case QUOIT_FRAME_PUT:
        memcpy(area + frame->offset, payload, frame->bytes);
        return 0;
    case QUOIT_FRAME_PUT_STRIDED:
        for (uint32_t i = 0; i < frame->bytes / frame->size; i++)
            memcpy(area + frame->offset + (int64_t)frame->operand * i, payload + i * frame->size, frame->size);
        return 0;
    case QUOIT_FRAME_AMO:
    case QUOIT_FRAME_AMO_FETCH:
        old = load_word(area + frame->offset, frame->size);
        memcpy(area + frame->offset, &(uint64_t){amo_result(frame, old)}, frame->size);
        return old;
    default:
        return 0;
    }
}

/* The bytes that a get (or its DATA, size 0 when not strided) gathers. */
static void gather(const uint8_t *area, const struct quoit_frame *frame, bool is_strided, uint8_t *out)
{
    if (!is_strided) {
        memcpy(out, area + frame->offset, frame->bytes);
        return;
    }
    for (uint32_t i = 0; i < frame->bytes / frame->size; i++)
        memcpy(out + i * frame->size, area + frame->offset + (int64_t)frame->operand * i, frame->size);
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
        return (uint8_t)(QUOIT_FRAME_PUT + choose(mesh, QUOIT_FRAME_AMO_FETCH));
    }
}

/* A range of the source's own data in the destination's area. */
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
    frame->op = (uint8_t)choose(mesh, frame->kind == QUOIT_FRAME_AMO_FETCH ? QUOIT_AMO_COUNT : QUOIT_AMO_FETCH);
    frame->size = choose(mesh, 2) ? 8 : 4;
    frame->offset = region + 8;
    frame->operand = quoit_prng_next(&mesh->prng);
    frame->operand2 = choose(mesh, 2) ? load_word(reference + frame->offset, frame->size) : 77;
    op->is_value_known = true;
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
    bool is_strided = frame->kind == QUOIT_FRAME_PUT_STRIDED || frame->kind == QUOIT_FRAME_GET_STRIDED;
    gather(dest->reference, frame, is_strided, op->before);
    for (uint32_t i = 0; i < frame->bytes; i++)
        op->payload[i] = (uint8_t)(op->before[i] + 1);
    op->value_expected = execute(dest->reference, frame, op->payload);
    pe->left_count--;
    return index;
}

/* ---- actions: each returns whether anything moved ---- */

static uint32_t global_pe(const struct mesh *mesh, uint32_t host, uint32_t local)
{
    return mesh->hosts[host].pe_first + local;
}

/* The deadlock argument rests on this: somewhere in each cycle of queues a slot is free. */
static void check_bubble(const struct mesh *mesh, enum quoit_side side, enum quoit_class class)
{
    uint32_t free_count = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        uint32_t next = quoit_ring_neighbour(mesh->host_count, side, h);
        uint64_t sent = mesh->hosts[h].ring->outbound[side][class].sent_total;
        uint64_t consumed = mesh->hosts[next].ring->inbound[quoit_ring_opposite(side)][class].consumed_total;
        require(sent - consumed <= mesh->config.slot_count, "host %u wrote a slot that was not free", h);
        free_count += mesh->config.slot_count - (uint32_t)(sent - consumed);
    }
    require(free_count >= 1, "no bubble left: side %d class %d", side, class);
}

static void write_slot(struct mesh *mesh, uint32_t host, const struct quoit_verdict *verdict, const uint8_t *payload)
{
    uint32_t next = quoit_ring_neighbour(mesh->host_count, verdict->side, host);
    enum quoit_side there = quoit_ring_opposite(verdict->side);
    struct slot *slot = &mesh->hosts[next].inbound[there][verdict->class][verdict->slot_index];
    require(verdict->is_last_hop == (verdict->frame.dest_host == next), "last hop of host %u", host);
    require(quoit_frame_class(verdict->frame.kind) == verdict->class, "class of kind %u", verdict->frame.kind);
    slot->frame = verdict->frame;
    memcpy(slot->payload, payload, quoit_frame_payload_bytes(&verdict->frame));
    check_bubble(mesh, verdict->side, verdict->class);
}

static struct op *op_of(struct mesh *mesh, const struct quoit_frame *frame)
{
    require(frame->trace >= 1 && frame->trace <= mesh->op_count, "trace %llu", (unsigned long long)frame->trace);
    return &mesh->ops[frame->trace - 1];
}

static void execute_request(struct mesh *mesh, struct quoit_ring *ring, const struct quoit_frame *frame,
                            const uint8_t *payload)
{
    struct op *op = op_of(mesh, frame);
    struct quoit_frame expected = op->frame;
    expected.sequence = frame->sequence;
    expected.token = frame->token;
    expected.flow_sequence = frame->flow_sequence;
    expected.flags |= frame->flags & QUOIT_FRAME_RIGHT;
    require(memcmp(&expected, frame, sizeof expected) == 0, "operation %llu arrived changed",
            (unsigned long long)frame->trace);
    require(memcmp(op->payload, payload, quoit_frame_payload_bytes(frame)) == 0, "payload of %llu",
            (unsigned long long)frame->trace);
    require(op->execute_count++ == 0, "operation %llu executed again", (unsigned long long)frame->trace);
    uint32_t *last = &mesh->executed_last[op->source_pe][op->dest_pe];
    require(*last < frame->trace, "order: %llu after %u", (unsigned long long)frame->trace, *last);
    *last = (uint32_t)frame->trace;
    op->value = execute(mesh->pes[op->dest_pe].area, frame, payload);
    if (quoit_frame_asks(frame->kind))
        quoit_ring_reply(ring, frame, op->value);
}

static void take_answer(struct mesh *mesh, const struct quoit_verdict *verdict, const uint8_t *payload)
{
    const struct quoit_frame *frame = &verdict->frame;
    struct op *op = op_of(mesh, frame);
    require(verdict->cookie == frame->trace, "cookie %llu", (unsigned long long)verdict->cookie);
    require(!op->is_answered, "operation %llu answered again", (unsigned long long)frame->trace);
    require(op->execute_count == 1, "answer before execution of %llu", (unsigned long long)frame->trace);
    require(frame->dest_pe == op->frame.source_pe, "answer for PE %u", frame->dest_pe);
    op->is_answered = true;
    if (frame->kind == QUOIT_FRAME_VALUE) {
        require(frame->operand == op->value, "value of %llu", (unsigned long long)frame->trace);
        require(!op->is_value_known || op->value == op->value_expected, "fetched %llx instead of %llx",
                (unsigned long long)op->value, (unsigned long long)op->value_expected);
        return;
    }
    uint8_t now[CHUNK_BYTES];
    gather(mesh->pes[op->dest_pe].reference, &op->frame, op->frame.kind == QUOIT_FRAME_GET_STRIDED, now);
    require(frame->bytes == op->frame.bytes, "bytes of %llu", (unsigned long long)frame->trace);
    require(memcmp(payload, op->snapshot, frame->bytes) == 0, "data of %llu", (unsigned long long)frame->trace);
    for (uint32_t i = 0; i < frame->bytes; i++)
        require((uint8_t)(payload[i] - op->before[i]) <= (uint8_t)(now[i] - op->before[i]),
                "get %llu byte %u is %u: not between %u and %u", (unsigned long long)frame->trace, i, payload[i],
                op->before[i], now[i]);
}

static bool deliver(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class)
{
    struct host *host = &mesh->hosts[h];
    uint64_t expected = quoit_ring_expected(host->ring, side, class);
    const struct slot *slot = &host->inbound[side][class][(expected - 1) % mesh->config.slot_count];
    if (slot->frame.sequence != expected)
        return false;
    struct quoit_verdict verdict;
    enum quoit_status status = quoit_ring_receive(host->ring, side, class, &slot->frame, mesh->now_ns, &verdict);
    require(status == QUOIT_OK, "host %u refused a frame of kind %u", h, slot->frame.kind);
    if (verdict.kind == QUOIT_VERDICT_HOLD)
        return false;
    if (verdict.kind == QUOIT_VERDICT_SEND)
        write_slot(mesh, h, &verdict, slot->payload);
    else if (class == QUOIT_CLASS_REQUEST)
        execute_request(mesh, host->ring, &verdict.frame, slot->payload);
    else if (verdict.frame.kind != QUOIT_FRAME_ACK)
        take_answer(mesh, &verdict, slot->payload);
    return true;
}

static bool tell_credit(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class, bool is_idle)
{
    struct quoit_ring *ring = mesh->hosts[h].ring;
    if (!quoit_ring_credit_due(ring, side, class, is_idle))
        return false;
    uint32_t neighbour = quoit_ring_neighbour(mesh->host_count, side, h);
    mesh->hosts[neighbour].credit_word[quoit_ring_opposite(side)][class] = quoit_ring_consumed_total(ring, side, class);
    quoit_ring_credit_told(ring, side, class);
    return true;
}

static bool read_credit(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class)
{
    struct host *host = &mesh->hosts[h];
    uint64_t total = host->credit_word[side][class];
    if (mesh->is_deaf && h == 0)
        return false;
    bool is_new = total != host->ring->outbound[side][class].credited_total;
    require(quoit_ring_credit(host->ring, side, class, total) == QUOIT_OK, "host %u refused a credit", h);
    return is_new;
}

static bool submit(struct mesh *mesh, uint32_t source)
{
    struct pe *pe = &mesh->pes[source];
    if (pe->offered == NO_OP) {
        if (pe->left_count == 0 || pe->under_way_count >= pe->under_way_max)
            return false;
        pe->offered = make_op(mesh, source);
    }
    struct op *op = &mesh->ops[pe->offered];
    struct quoit_verdict verdict;
    quoit_ring_submit(mesh->hosts[pe->host].ring, &op->frame, op->source_pe + op->dest_pe, op->frame.trace,
                      mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_HOLD)
        return false;
    require(verdict.kind == QUOIT_VERDICT_SEND, "verdict %d", verdict.kind);
    write_slot(mesh, pe->host, &verdict, op->payload);
    pe->offered = NO_OP;
    pe->under_way_count++;
    return true;
}

static bool send_next_reply(struct mesh *mesh, uint32_t h)
{
    struct quoit_verdict verdict;
    uint8_t payload[CHUNK_BYTES] = {0};
    quoit_ring_next_reply(mesh->hosts[h].ring, mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_HOLD)
        return false;
    if (verdict.frame.kind == QUOIT_FRAME_DATA) {
        struct op *op = op_of(mesh, &verdict.frame);
        uint32_t asked = global_pe(mesh, h, verdict.frame.source_pe);
        require(asked == op->dest_pe, "data of %llu is read from PE %u", (unsigned long long)verdict.frame.trace,
                asked);
        gather(mesh->pes[asked].area, &verdict.frame, verdict.frame.size != 0, payload);
        memcpy(op->snapshot, payload, sizeof payload);
    }
    write_slot(mesh, h, &verdict, payload);
    return true;
}

static bool complete(struct mesh *mesh, uint32_t h)
{
    uint64_t cookie;
    bool has_any = false;
    while (quoit_ring_next_completion(mesh->hosts[h].ring, &cookie)) {
        require(cookie >= 1 && cookie <= mesh->op_count, "cookie %llu", (unsigned long long)cookie);
        struct op *op = &mesh->ops[cookie - 1];
        bool is_asking = quoit_frame_asks(op->frame.kind);
        require(op->source_pe >= mesh->hosts[h].pe_first && mesh->pes[op->source_pe].host == h, "host of %llu",
                (unsigned long long)cookie);
        require(!op->is_complete, "operation %llu complete again", (unsigned long long)cookie);
        require(op->execute_count == 1, "operation %llu complete before execution", (unsigned long long)cookie);
        require(op->is_answered == is_asking, "operation %llu complete without its answer", (unsigned long long)cookie);
        uint32_t *last = &mesh->completed_last[is_asking][op->source_pe][op->dest_pe];
        require(*last < cookie, "completion: %llu after %u", (unsigned long long)cookie, *last);
        *last = (uint32_t)cookie;
        op->is_complete = true;
        mesh->pes[op->source_pe].under_way_count--;
        mesh->complete_count++;
        has_any = true;
    }
    return has_any;
}

/* ---- running ---- */

static bool act(struct mesh *mesh, uint32_t h, enum action action)
{
    enum quoit_side side = (enum quoit_side)choose(mesh, QUOIT_SIDE_COUNT);
    enum quoit_class class = (enum quoit_class)choose(mesh, QUOIT_CLASS_COUNT);
    switch (action) {
    case DELIVER:
        return deliver(mesh, h, side, class);
    case TELL_CREDIT:
        return tell_credit(mesh, h, side, class, choose(mesh, mesh->lazy) == 0);
    case READ_CREDIT:
        return read_credit(mesh, h, side, class);
    case SUBMIT:
        if (mesh->pe_counts[h] == 0)
            return false;
        return submit(mesh, global_pe(mesh, h, choose(mesh, mesh->pe_counts[h])));
    case SEND_REPLY:
        return send_next_reply(mesh, h);
    default:
        return complete(mesh, h);
    }
}

static uint32_t pick_weighted(struct mesh *mesh, const uint32_t *weights, uint32_t sum)
{
    uint32_t at = choose(mesh, sum);
    uint32_t i = 0;
    while (at >= weights[i])
        at -= weights[i++];
    return i;
}

static bool step(struct mesh *mesh)
{
    uint32_t weights[HOSTS_MAX];
    uint32_t action_sum = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++)
        weights[h] = mesh->hosts[h].weight;
    for (int i = 0; i < ACTION_COUNT; i++)
        action_sum += mesh->action_weights[i];
    uint32_t h = pick_weighted(mesh, weights, mesh->weight_sum);
    enum action action = (enum action)pick_weighted(mesh, mesh->action_weights, action_sum);
    mesh->now_ns += choose(mesh, 8);
    mesh->step_count++;
    bool has_moved = act(mesh, h, action);
    if (has_moved)
        quoit_ring_check_invariants(mesh->hosts[h].ring);
    return has_moved;
}

/* Every action of every host once, with all credits told. Rests of transit are over by then. */
static bool sweep(struct mesh *mesh)
{
    bool has_moved = false;
    mesh->now_ns += mesh->config.hold_after_ns + mesh->config.hold_for_ns;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        for (int queue = 0; queue < QUOIT_SIDE_COUNT * QUOIT_CLASS_COUNT; queue++) {
            enum quoit_side side = (enum quoit_side)(queue & 1);
            enum quoit_class class = (enum quoit_class)(queue >> 1);
            has_moved |= deliver(mesh, h, side, class);
            has_moved |= tell_credit(mesh, h, side, class, true);
            has_moved |= read_credit(mesh, h, side, class);
        }
        for (uint32_t i = 0; i < mesh->pe_counts[h]; i++)
            has_moved |= submit(mesh, global_pe(mesh, h, i));
        has_moved |= send_next_reply(mesh, h);
        has_moved |= complete(mesh, h);
        quoit_ring_check_invariants(mesh->hosts[h].ring);
    }
    return has_moved;
}

static bool is_all_done(const struct mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        if (mesh->pes[i].left_count > 0 || mesh->pes[i].offered != NO_OP || mesh->pes[i].under_way_count > 0)
            return false;
    return true;
}

/* A rest may have just begun in one sweep, so only a few sweeps without a move in a row are a deadlock. */
static bool can_move(struct mesh *mesh)
{
    for (int i = 0; i < 4; i++)
        if (sweep(mesh))
            return true;
    return false;
}

static void run_until_done(struct mesh *mesh)
{
    uint32_t idle_count = 0;
    while (!is_all_done(mesh)) {
        idle_count = step(mesh) ? 0 : idle_count + 1;
        if (idle_count == STEPS_IDLE_MAX) {
            require(can_move(mesh), "deadlock after %llu steps: %u hosts, %u slots, %u of %u operations complete",
                    (unsigned long long)mesh->step_count, mesh->host_count, mesh->config.slot_count,
                    mesh->complete_count, mesh->op_count);
            idle_count = 0;
        }
        require(mesh->step_count < STEPS_MAX, "livelock: %u of %u operations complete", mesh->complete_count,
                mesh->op_count);
    }
}

static void check_end(struct mesh *mesh)
{
    for (int i = 0; i < 100 && sweep(mesh); i++)
        ;
    require(mesh->complete_count == mesh->op_count, "%u of %u complete", mesh->complete_count, mesh->op_count);
    for (uint32_t i = 0; i < mesh->op_count; i++)
        require(mesh->ops[i].execute_count == 1 && mesh->ops[i].is_complete, "operation %u", i + 1);
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        const struct quoit_ring *ring = mesh->hosts[h].ring;
        require(quoit_ring_is_quiescent(ring), "host %u is not quiescent", h);
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            for (int c = 0; c < QUOIT_CLASS_COUNT; c++)
                require(quoit_ring_free_slots(&ring->outbound[side][c], mesh->config.slot_count) ==
                            mesh->config.slot_count,
                        "host %u side %d class %d lost a credit", h, side, c);
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        require(memcmp(mesh->pes[i].area, mesh->pes[i].reference, AREA_BYTES) == 0, "memory of PE %u", i);
}

/* ---- making a mesh ---- */

static void place_pes(struct mesh *mesh, bool with_empty_hosts)
{
    uint32_t inhabited_count = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->pe_counts[h] = with_empty_hosts ? choose(mesh, PES_A_HOST_MAX + 1) : 1 + choose(mesh, PES_A_HOST_MAX);
        inhabited_count += mesh->pe_counts[h] > 0;
    }
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        if (inhabited_count < 2)
            mesh->pe_counts[h] = 1;
        mesh->hosts[h].pe_first = mesh->pe_count;
        for (uint32_t i = 0; i < mesh->pe_counts[h]; i++, mesh->pe_count++) {
            struct pe *pe = &mesh->pes[mesh->pe_count];
            pe->host = h;
            pe->offered = NO_OP;
            pe->under_way_max = choose(mesh, 3) ? 100 : 1;
            for (uint32_t b = 0; b < AREA_BYTES; b++)
                pe->area[b] = (uint8_t)choose(mesh, 256);
            memcpy(pe->reference, pe->area, AREA_BYTES);
        }
    }
}

static void start_rings(struct mesh *mesh, uint32_t flow_start)
{
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        struct quoit_ring_config config = mesh->config;
        config.host_self = h;
        config.outstanding_max = mesh->pe_counts[h] > 0 ? config.outstanding_max : 0;
        size_t bytes = quoit_ring_bytes(&config);
        void *memory = aligned_alloc(64, bytes);
        assert_non_null(memory);
        memset(memory, 0, bytes);
        struct quoit_ring *ring = quoit_ring_init(memory, &config);
        mesh->hosts[h].ring = ring;
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            for (uint32_t other = 0; other < mesh->host_count; other++) {
                ring->flows_out[side][other].sent = ring->flows_out[side][other].acknowledged = flow_start;
                ring->flows_in[side][other].executed = ring->flows_in[side][other].told = flow_start;
            }
        quoit_ring_check_invariants(ring);
        assert_true(quoit_ring_is_quiescent(ring));
    }
}

static struct mesh *make_mesh(uint64_t seed, uint32_t host_count)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    assert_non_null(mesh);
    seed_now = mesh->seed = mesh->prng.state = seed;
    mesh->host_count = host_count > 0 ? host_count : 2 + choose(mesh, HOSTS_MAX - 1);
    mesh->workload = (enum workload)(seed % WORKLOAD_COUNT);
    mesh->lazy = 1 + choose(mesh, 20);
    place_pes(mesh, choose(mesh, 3) == 0);
    mesh->config = (struct quoit_ring_config){
        .slot_count = 2 + choose(mesh, SLOTS_MAX - 1),
        .outstanding_max = 1 + choose(mesh, 12),
        .pending_reply_max = 1 + choose(mesh, 4),
        .hold_after_ns = 100 + choose(mesh, 2000),
        .hold_for_ns = 100 + choose(mesh, 1000),
        .limits = {.host_count = mesh->host_count,
                   .chunk_bytes = CHUNK_BYTES,
                   .area_bytes = AREA_BYTES,
                   .pe_counts = mesh->pe_counts},
    };
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->hosts[h].weight = choose(mesh, 4) ? 8 : 1;
        mesh->weight_sum += mesh->hosts[h].weight;
    }
    for (int i = 0; i < ACTION_COUNT; i++)
        mesh->action_weights[i] = 1 + choose(mesh, 4);
    mesh->action_weights[DELIVER] += 2;
    start_rings(mesh, choose(mesh, 2) ? 0 : UINT32_MAX - choose(mesh, 6));
    return mesh;
}

static void free_mesh(struct mesh *mesh)
{
    for (uint32_t h = 0; h < mesh->host_count; h++)
        free(mesh->hosts[h].ring);
    free(mesh);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_schedules_keep_every_promise(void **state)
{
    (void)state;
    uint64_t first = number_from("QUOIT_SEED", 1);
    uint64_t seed_count = number_from("QUOIT_SEEDS", 300);
    uint64_t step_count = 0, op_count = 0;
    for (uint64_t seed = first; seed < first + seed_count; seed++) {
        struct mesh *mesh = make_mesh(seed, 0);
        uint32_t each = (60 + choose(mesh, 60)) / mesh->pe_count + 1;
        for (uint32_t i = 0; i < mesh->pe_count; i++)
            mesh->pes[i].left_count = each;
        run_until_done(mesh);
        check_end(mesh);
        step_count += mesh->step_count;
        op_count += mesh->op_count;
        free_mesh(mesh);
    }
    print_message("%llu seeds, %llu operations, %llu steps\n", (unsigned long long)seed_count,
                  (unsigned long long)op_count, (unsigned long long)step_count);
}

/* The canary: a host that hears of no credit stops the ring, and this is seen; when it hears again all ends well. */
static void a_stuck_ring_is_noticed(void **state)
{
    (void)state;
    struct mesh *mesh = make_mesh(5, 5);
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        mesh->pes[i].left_count = 10;
    mesh->is_deaf = true;
    for (uint32_t idle_count = 0; idle_count < STEPS_IDLE_MAX;)
        idle_count = step(mesh) ? 0 : idle_count + 1;
    while (sweep(mesh))
        ;
    assert_false(is_all_done(mesh));
    assert_false(can_move(mesh));
    mesh->is_deaf = false;
    assert_true(can_move(mesh));
    run_until_done(mesh);
    check_end(mesh);
    free_mesh(mesh);
}

/* ---- one adversarial schedule ---- */

/* What arrived at `h` from the left; 1 if it was passed on. */
static uint32_t relay_one(struct mesh *mesh, uint32_t h)
{
    struct host *host = &mesh->hosts[h];
    uint64_t expected = quoit_ring_expected(host->ring, QUOIT_LEFT, QUOIT_CLASS_REQUEST);
    struct slot *slot = &host->inbound[QUOIT_LEFT][QUOIT_CLASS_REQUEST][(expected - 1) % mesh->config.slot_count];
    struct quoit_verdict verdict;
    if (slot->frame.sequence != expected)
        return 0;
    assert_int_equal(
        quoit_ring_receive(host->ring, QUOIT_LEFT, QUOIT_CLASS_REQUEST, &slot->frame, mesh->now_ns, &verdict),
        QUOIT_OK);
    if (verdict.kind == QUOIT_VERDICT_HOLD && verdict.hold_until_ns > 0)
        assert_in_range(verdict.hold_until_ns, mesh->now_ns + 1, mesh->now_ns + mesh->config.hold_for_ns);
    if (verdict.kind != QUOIT_VERDICT_SEND)
        return 0;
    write_slot(mesh, h, &verdict, slot->payload);
    return 1;
}

static bool pour_one(struct mesh *mesh, uint32_t h)
{
    static const uint8_t nothing[CHUNK_BYTES];
    struct quoit_frame frame = {.kind = QUOIT_FRAME_AMO, .op = QUOIT_AMO_ADD, .size = 8, .dest_host = 2};
    struct quoit_verdict verdict;
    quoit_ring_submit(mesh->hosts[h].ring, &frame, 0, 1, mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_SEND)
        write_slot(mesh, h, &verdict, nothing);
    return verdict.kind == QUOIT_VERDICT_SEND;
}

/* Host 0 pours to host 2 through host 1, which wants to speak too. Host 1 is shown the transit first after each credit,
 * so that two slots are never free at once unless transit rests. */
static void transit_does_not_starve_injection(void **state)
{
    (void)state;
    struct mesh *mesh = make_mesh(1, 5);
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->pe_counts[h] = 1;
        free(mesh->hosts[h].ring);
    }
    mesh->config.slot_count = 2;
    mesh->config.outstanding_max = 2000;
    mesh->config.hold_after_ns = 40;
    mesh->config.hold_for_ns = 10;
    start_rings(mesh, 0);
    uint32_t relayed_count = 0;
    uint32_t spoken_count = 0;
    for (mesh->now_ns = 0; mesh->now_ns < 1000; mesh->now_ns++) {
        for (uint32_t h = 2; h >= 1; h--) {
            relayed_count += relay_one(mesh, h);
            tell_credit(mesh, h, QUOIT_LEFT, QUOIT_CLASS_REQUEST, true);
            read_credit(mesh, h - 1, QUOIT_RIGHT, QUOIT_CLASS_REQUEST);
        }
        if (relayed_count > 10)
            spoken_count += pour_one(mesh, 1);
        pour_one(mesh, 0);
    }
    assert_true(relayed_count > 300);
    assert_in_range(spoken_count, 1000 / 50 - 4, 1000 / 40);
    free_mesh(mesh);
}

int main(void)
{
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_keep_every_promise),
        cmocka_unit_test(a_stuck_ring_is_noticed),
        cmocka_unit_test(transit_does_not_starve_injection),
    };
    return cmocka_run_group_tests_name("ring.mesh", tests, NULL, NULL);
}
