/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the verdicts: what becomes of each request, frame and reply. */
#include "ring/ring.h"

#include "base/assert.h"
#include "ring/state.h"

#define ALIGN_BYTES 64u

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t quoit_ring_bytes(const struct quoit_ring_config *config)
{
    uint32_t host_count = config->limits.host_count;
    return aligned(sizeof(struct quoit_ring)) + aligned(config->outstanding_max * sizeof(struct quoit_ring_entry)) +
           aligned(config->pending_reply_max * sizeof(struct quoit_ring_reply_entry)) +
           QUOIT_SIDE_COUNT * aligned(host_count * sizeof(struct quoit_ring_flow_out)) +
           QUOIT_SIDE_COUNT * aligned(host_count * sizeof(struct quoit_ring_flow_in));
}

static void check_config(const struct quoit_ring_config *config)
{
    quoit_assert(config->limits.host_count >= 2);
    quoit_assert(config->limits.host_count <= QUOIT_RING_HOSTS_MAX);
    quoit_assert(config->host_self < config->limits.host_count);
    quoit_assert(config->limits.chunk_bytes <= QUOIT_CHUNK_BYTES_MAX);
    quoit_assert(config->slot_count >= QUOIT_RING_SLOTS_MIN);
    quoit_assert(config->outstanding_max <= QUOIT_RING_OUTSTANDING_MAX);
    quoit_assert(config->pending_reply_max >= 1);
}

struct quoit_ring *quoit_ring_init(void *memory, const struct quoit_ring_config *config)
{
    check_config(config);
    quoit_assert((uintptr_t)memory % ALIGN_BYTES == 0);
    struct quoit_ring *ring = memory;
    uint32_t host_count = config->limits.host_count;
    ring->config = *config;
    char *at = (char *)memory + aligned(sizeof *ring);
    quoit_ring_pool_init(&ring->pool, (struct quoit_ring_entry *)at, config->outstanding_max);
    at += aligned(config->outstanding_max * sizeof(struct quoit_ring_entry));
    quoit_ring_replies_init(&ring->replies, (struct quoit_ring_reply_entry *)at, config->pending_reply_max);
    at += aligned(config->pending_reply_max * sizeof(struct quoit_ring_reply_entry));
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        ring->flows_out[side] = (struct quoit_ring_flow_out *)at;
        at += aligned(host_count * sizeof(struct quoit_ring_flow_out));
        ring->flows_in[side] = (struct quoit_ring_flow_in *)at;
        at += aligned(host_count * sizeof(struct quoit_ring_flow_in));
        for (uint32_t host = 0; host < host_count; host++)
            quoit_ring_flow_out_init(&ring->flows_out[side][host]);
        quoit_ring_owing_init(&ring->owing[side]);
    }
    quoit_assert(at == (char *)memory + quoit_ring_bytes(config));
    return ring;
}

static void hold(struct quoit_verdict *verdict, uint64_t until_ns)
{
    verdict->kind = QUOIT_VERDICT_HOLD;
    verdict->hold_until_ns = until_ns;
}

/* Takes the next slot of an outbound queue for verdict->frame, which the caller has seen to be free. */
static void send(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, struct quoit_verdict *verdict)
{
    struct quoit_ring_outbound *out = &ring->outbound[side][class];
    uint32_t neighbour = quoit_ring_neighbour(ring->config.limits.host_count, side, ring->config.host_self);
    quoit_ring_take_slot(out, &ring->config);
    verdict->kind = QUOIT_VERDICT_SEND;
    verdict->side = side;
    verdict->class = class;
    verdict->slot_index = (uint32_t)((out->sent_total - 1) % ring->config.slot_count);
    verdict->is_last_hop = verdict->frame.dest_host == neighbour;
    verdict->frame.sequence = out->sent_total;
}

void quoit_ring_submit(struct quoit_ring *ring, const struct quoit_frame *request, uint32_t spread, uint64_t cookie,
                       uint64_t now_ns, struct quoit_verdict *verdict_out)
{
    quoit_assert(!ring->is_answer_due);
    uint32_t host_self = ring->config.host_self;
    enum quoit_side side = quoit_ring_route(host_self, ring->config.limits.host_count, request->dest_host, spread);
    struct quoit_frame frame = *request;
    frame.source_host = (uint16_t)host_self;
    frame.flags = (request->flags & QUOIT_FRAME_ORDERED) | (side == QUOIT_RIGHT ? QUOIT_FRAME_RIGHT : 0);
    quoit_assert(quoit_frame_check(&frame, QUOIT_CLASS_REQUEST, &ring->config.limits) == QUOIT_OK);
    if (ring->pool.free.count == 0 ||
        !quoit_ring_may_inject(&ring->outbound[side][QUOIT_CLASS_REQUEST], &ring->config, now_ns)) {
        hold(verdict_out, 0);
        return;
    }
    uint32_t index = quoit_ring_pool_take(&ring->pool, &frame, cookie);
    quoit_ring_flow_send(&ring->pool, &ring->flows_out[side][frame.dest_host], index);
    verdict_out->frame = ring->pool.entries[index].frame;
    send(ring, side, QUOIT_CLASS_REQUEST, verdict_out);
}

uint64_t quoit_ring_expected(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    return ring->inbound[side][class].consumed_total + 1;
}

/* A frame for another host: on to the next queue of its class. */
static enum quoit_status receive_transit(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                         uint64_t now_ns, struct quoit_verdict *verdict)
{
    enum quoit_side onward = quoit_ring_opposite(side);
    uint64_t until_ns = 0;
    if (verdict->frame.flags & QUOIT_FRAME_LANDED)
        return QUOIT_INVALID;
    if (!quoit_ring_may_transit(&ring->outbound[onward][class], &ring->config, now_ns, &until_ns)) {
        hold(verdict, until_ns);
        return QUOIT_OK;
    }
    ring->inbound[side][class].consumed_total++;
    send(ring, onward, class, verdict);
    return QUOIT_OK;
}

static enum quoit_status receive_request(struct quoit_ring *ring, struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    enum quoit_side injected = quoit_ring_heading(frame);
    struct quoit_ring_flow_in *flow = &ring->flows_in[injected][frame->source_host];
    bool is_asking = quoit_frame_asks(frame->kind);
    if (frame->flow_sequence != flow->executed + 1)
        return QUOIT_INVALID;
    if (is_asking && !quoit_ring_replies_has_room(&ring->replies)) {
        hold(verdict, 0);
        return QUOIT_OK;
    }
    verdict->kind = QUOIT_VERDICT_DELIVER;
    quoit_ring_flow_execute(&ring->owing[injected], ring->flows_in[injected], frame->source_host);
    if (is_asking) {
        ring->asked = *frame;
        ring->is_answer_due = true;
    }
    return QUOIT_OK;
}

/* Replies always sink: nothing here waits. */
static enum quoit_status receive_reply(struct quoit_ring *ring, struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    enum quoit_side injected = quoit_ring_opposite(quoit_ring_heading(frame));
    struct quoit_ring_flow_out *flow = &ring->flows_out[injected][frame->source_host];
    verdict->kind = QUOIT_VERDICT_DELIVER;
    if (frame->kind != QUOIT_FRAME_ACK)
        return quoit_ring_flow_answer(&ring->pool, flow, frame, &verdict->cookie);
    /* An acknowledgement is only sent when it says something new. */
    if (frame->flow_sequence == flow->acknowledged)
        return QUOIT_INVALID;
    return quoit_ring_flow_acknowledge(&ring->pool, flow, frame->flow_sequence);
}

enum quoit_status quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                     const struct quoit_frame *frame, uint64_t now_ns,
                                     struct quoit_verdict *verdict_out)
{
    quoit_assert(!ring->is_answer_due);
    const struct quoit_frame_limits *limits = &ring->config.limits;
    struct quoit_ring_inbound *in = &ring->inbound[side][class];
    verdict_out->frame = *frame; /* first: a peer may go on writing what it wrote */
    if (verdict_out->frame.sequence != in->consumed_total + 1)
        return QUOIT_INVALID;
    if (quoit_frame_check(&verdict_out->frame, class, limits) != QUOIT_OK)
        return QUOIT_INVALID;
    if (quoit_ring_heading(&verdict_out->frame) != quoit_ring_opposite(side) ||
        !quoit_ring_is_on_way(limits->host_count, ring->config.host_self, &verdict_out->frame))
        return QUOIT_INVALID;
    if (verdict_out->frame.dest_host != ring->config.host_self)
        return receive_transit(ring, side, class, now_ns, verdict_out);
    enum quoit_status status =
        class == QUOIT_CLASS_REQUEST ? receive_request(ring, verdict_out) : receive_reply(ring, verdict_out);
    if (status == QUOIT_OK && verdict_out->kind == QUOIT_VERDICT_DELIVER)
        in->consumed_total++;
    return status;
}

void quoit_ring_reply(struct quoit_ring *ring, const struct quoit_frame *request, uint64_t value)
{
    quoit_assert(ring->is_answer_due);
    quoit_assert(request->source_host == ring->asked.source_host);
    quoit_assert(request->token == ring->asked.token);
    const struct quoit_frame *asked = &ring->asked;
    struct quoit_frame answer = {
        .kind = QUOIT_FRAME_VALUE,
        .flags = asked->flags & QUOIT_FRAME_RIGHT,
        .source_host = asked->dest_host,
        .dest_host = asked->source_host,
        .source_pe = asked->dest_pe,
        .dest_pe = asked->source_pe,
        .token = asked->token,
        .operand = value,
        .trace = asked->trace,
    };
    if (asked->kind != QUOIT_FRAME_AMO_FETCH) {
        answer.kind = QUOIT_FRAME_DATA;
        answer.size = asked->kind == QUOIT_FRAME_GET_STRIDED ? asked->size : 0;
        answer.bytes = asked->bytes;
        answer.offset = asked->offset;
        answer.operand = asked->operand;
    }
    quoit_ring_replies_append(&ring->replies, quoit_ring_heading(&answer), &answer);
    ring->is_answer_due = false;
}

static void make_acknowledgement(struct quoit_ring *ring, enum quoit_side injected, struct quoit_frame *frame_out)
{
    *frame_out = (struct quoit_frame){
        .kind = QUOIT_FRAME_ACK,
        .flags = injected == QUOIT_RIGHT ? QUOIT_FRAME_RIGHT : 0,
        .source_host = (uint16_t)ring->config.host_self,
        .dest_host = (uint16_t)ring->owing[injected].head,
    };
}

/* Sends what waits for `side`, if anything does and there is a slot for it. */
static bool send_reply(struct quoit_ring *ring, enum quoit_side side, uint64_t now_ns, struct quoit_verdict *verdict)
{
    enum quoit_side injected = quoit_ring_opposite(side);
    struct quoit_ring_owing *owing = &ring->owing[injected];
    bool has_answer = ring->replies.waiting[side].count > 0;
    if (!has_answer && owing->count == 0)
        return false;
    if (!quoit_ring_may_inject(&ring->outbound[side][QUOIT_CLASS_REPLY], &ring->config, now_ns))
        return false;
    bool is_turn_of_ack = owing->count > 0 && ring->answer_count[side] >= QUOIT_RING_ANSWERS_BEFORE_ACK;
    if (has_answer && !is_turn_of_ack) {
        quoit_ring_replies_pop(&ring->replies, side, &verdict->frame);
        ring->answer_count[side]++;
    } else {
        make_acknowledgement(ring, injected, &verdict->frame);
        ring->answer_count[side] = 0;
    }
    verdict->frame.flow_sequence = quoit_ring_flow_tell(owing, ring->flows_in[injected], verdict->frame.dest_host);
    if (owing->count == 0)
        ring->answer_count[side] = 0;
    send(ring, side, QUOIT_CLASS_REPLY, verdict);
    return true;
}

void quoit_ring_next_reply(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out)
{
    quoit_assert(!ring->is_answer_due);
    enum quoit_side first = ring->reply_side;
    if (send_reply(ring, first, now_ns, verdict_out) ||
        send_reply(ring, quoit_ring_opposite(first), now_ns, verdict_out)) {
        ring->reply_side = quoit_ring_opposite(verdict_out->side);
        return;
    }
    hold(verdict_out, 0);
}

bool quoit_ring_next_completion(struct quoit_ring *ring, uint64_t *cookie_out)
{
    return quoit_ring_pool_next_completed(&ring->pool, cookie_out);
}

uint64_t quoit_ring_consumed_total(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    return ring->inbound[side][class].consumed_total;
}

bool quoit_ring_credit_due(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, bool is_idle)
{
    return quoit_ring_is_credit_due(&ring->inbound[side][class], ring->config.slot_count, is_idle);
}

void quoit_ring_credit_told(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    ring->inbound[side][class].told_total = ring->inbound[side][class].consumed_total;
}

enum quoit_status quoit_ring_credit(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                    uint64_t consumed_total)
{
    return quoit_ring_take_credit(&ring->outbound[side][class], consumed_total);
}

bool quoit_ring_is_quiescent(const struct quoit_ring *ring)
{
    if (ring->pool.free.count != ring->pool.entry_count || ring->replies.free_count != ring->replies.entry_count)
        return false;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        if (ring->owing[side].count > 0)
            return false;
        for (int c = 0; c < QUOIT_CLASS_COUNT; c++) {
            const struct quoit_ring_outbound *out = &ring->outbound[side][c];
            const struct quoit_ring_inbound *in = &ring->inbound[side][c];
            if (out->sent_total != out->credited_total || in->consumed_total != in->told_total)
                return false;
        }
    }
    return true;
}

void quoit_ring_check_invariants(const struct quoit_ring *ring)
{
    uint32_t host_count = ring->config.limits.host_count;
    uint32_t entry_count = 0;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (int c = 0; c < QUOIT_CLASS_COUNT; c++) {
            quoit_ring_check_outbound(&ring->outbound[side][c], ring->config.slot_count);
            quoit_ring_check_inbound(&ring->inbound[side][c], ring->config.slot_count);
        }
        for (uint32_t host = 0; host < host_count; host++)
            entry_count +=
                quoit_ring_check_flow_out(&ring->pool, &ring->flows_out[side][host], host, (enum quoit_side)side);
        quoit_ring_check_owing(&ring->owing[side], ring->flows_in[side], host_count);
        quoit_assert(ring->answer_count[side] == 0 || ring->owing[quoit_ring_opposite(side)].count > 0);
    }
    quoit_ring_check_pool(&ring->pool, entry_count);
    quoit_ring_check_replies(&ring->replies);
    quoit_assert(!ring->is_answer_due);
}
