/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c - the verdict on each request, frame and reply. */
#include "ring/ring.h"

#include "base/assert.h"
#include "ring/state.h"

#define ALIGN_BYTES 64u
_Static_assert(2 * QUOIT_RING_HOSTS_MAX <= QUOIT_LINK_ENDS_MAX, "an update names any end");

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* One per host and flow side; those of the host itself are never used. */
static size_t flow_count(const struct quoit_ring_config *config)
{
    return (size_t)QUOIT_SIDE_COUNT * config->limits.host_count;
}

size_t quoit_ring_bytes(const struct quoit_ring_config *config)
{
    uint32_t host_count = config->limits.host_count;
    return aligned(sizeof(struct quoit_ring)) + aligned(config->outstanding_max * sizeof(struct quoit_ring_entry)) +
           aligned(config->pending_reply_max * sizeof(struct quoit_ring_reply_entry)) +
           aligned(flow_count(config) * sizeof(struct quoit_ring_flow_out)) +
           aligned(flow_count(config) * sizeof(struct quoit_ring_flow_in)) +
           aligned(flow_count(config) * config->fetch_max * sizeof(struct quoit_ring_response_cache_entry)) +
           aligned(2 * (size_t)host_count * sizeof(struct quoit_ring_end));
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
    quoit_assert(config->fetch_max >= 1);
    quoit_assert(config->fetch_max <= QUOIT_RING_OUTSTANDING_MAX);
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
    ring->flows_out = (struct quoit_ring_flow_out *)at;
    at += aligned(flow_count(config) * sizeof(struct quoit_ring_flow_out));
    ring->flows_in = (struct quoit_ring_flow_in *)at;
    at += aligned(flow_count(config) * sizeof(struct quoit_ring_flow_in));
    for (size_t i = 0; i < flow_count(config); i++) {
        quoit_ring_flow_out_init(&ring->flows_out[i]);
        ring->flows_in[i].cache.entries = (struct quoit_ring_response_cache_entry *)at + i * config->fetch_max;
    }
    at += aligned(flow_count(config) * config->fetch_max * sizeof(struct quoit_ring_response_cache_entry));
    quoit_ring_links_init(&ring->links, (struct quoit_ring_end *)at, host_count, config->host_self);
    at += aligned(2 * (size_t)host_count * sizeof(struct quoit_ring_end));
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        quoit_ring_ack_queue_init(&ring->acks[side]);
        ring->resending[side] = QUOIT_RING_NONE;
    }
    quoit_assert(at == (char *)memory + quoit_ring_bytes(config));
    return ring;
}

static void no_resource(struct quoit_verdict *verdict, uint64_t until_ns)
{
    verdict->kind = QUOIT_VERDICT_NO_RESOURCE;
    verdict->retry_at_ns = until_ns;
}

/* Takes the next slot, which the caller knows to be free, of an outbound queue for verdict->frame. */
static void send(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, struct quoit_verdict *verdict)
{
    struct quoit_ring_outbound *out = &ring->outbound[side][class];
    uint32_t neighbour = quoit_ring_neighbour(ring->config.limits.host_count, side, ring->config.host_self);
    quoit_ring_take_slot(out, &ring->config);
    verdict->kind = QUOIT_VERDICT_SEND;
    verdict->side = side;
    verdict->class = class;
    verdict->slot_index = (uint32_t)((out->sent_total - 1) % ring->config.slot_count);
    verdict->may_land = verdict->frame.dest_host == neighbour && !(verdict->frame.flags & QUOIT_FRAME_ORDERED) &&
                        quoit_ring_links_may_land(&ring->links, side);
    verdict->frame.sequence = out->sent_total;
}

/* A frame of this host or one of its PEs leaves by `side`. */
static void inject(struct quoit_ring *ring, enum quoit_side side, struct quoit_verdict *verdict)
{
    verdict->frame.topology_version = ring->links.topology_version;
    send(ring, side, quoit_frame_class(verdict->frame.kind), verdict);
}

/* Link-state updates go first: a host that gets a reply has adopted the topology version of the host that forwarded it.
 */
static bool must_wait_for_update(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    return class == QUOIT_CLASS_REPLY && ring->links.links[side].pending_count > 0;
}

/* *retry_at_ns_inout becomes now_ns if it is only transit's turn. */
static bool may_inject(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, uint64_t now_ns,
                       uint64_t *retry_at_ns_inout)
{
    uint64_t retry_at_ns;
    if (!quoit_ring_links_is_open(&ring->links, side) || must_wait_for_update(ring, side, class))
        return false;
    if (quoit_ring_may_inject(&ring->outbound[side][class], &ring->config, now_ns, &retry_at_ns))
        return true;
    if (retry_at_ns != 0)
        *retry_at_ns_inout = retry_at_ns;
    return false;
}

static uint32_t flow_index(const struct quoit_ring *ring, enum quoit_side flow_side, uint32_t host)
{
    return flow_side * ring->config.limits.host_count + host;
}

/* The first flow with something to retransmit by a side, or QUOIT_RING_NONE. */
static uint32_t first_resending(struct quoit_ring *ring, enum quoit_side side)
{
    uint32_t *head = &ring->resending[side];
    while (*head != QUOIT_RING_NONE &&
           quoit_ring_flow_peek_resend(&ring->pool, &ring->flows_out[*head]) == QUOIT_RING_NONE)
        *head = ring->flows_out[*head].next_resending;
    return *head;
}

void quoit_ring_submit(struct quoit_ring *ring, const struct quoit_frame *request, uint32_t spread, uint64_t cookie,
                       uint64_t now_ns, struct quoit_verdict *verdict_out)
{
    quoit_assert(!ring->is_response_due);
    uint32_t host_self = ring->config.host_self;
    enum quoit_side flow_side = quoit_ring_route(host_self, ring->config.limits.host_count, request->dest_host, spread);
    struct quoit_ring_flow_out *flow = &ring->flows_out[flow_index(ring, flow_side, request->dest_host)];
    struct quoit_frame frame = *request;
    enum quoit_side side;
    uint64_t retry_at_ns = 0;
    frame.source_host = (uint16_t)host_self;
    frame.flags = (request->flags & QUOIT_FRAME_ORDERED) | (flow_side == QUOIT_RIGHT ? QUOIT_FRAME_RIGHT : 0);
    quoit_assert(quoit_frame_check(&frame, QUOIT_CLASS_REQUEST, &ring->config.limits) == QUOIT_OK);
    bool is_fetch_too_many = frame.kind == QUOIT_FRAME_AMO_FETCH && flow->fetch_count >= ring->config.fetch_max;
    if (ring->pool.free.count == 0 || is_fetch_too_many ||
        !quoit_ring_links_side_to(&ring->links, flow_side, frame.dest_host, &side) ||
        first_resending(ring, side) != QUOIT_RING_NONE ||
        !may_inject(ring, side, QUOIT_CLASS_REQUEST, now_ns, &retry_at_ns)) {
        no_resource(verdict_out, retry_at_ns);
        return;
    }
    uint32_t index = quoit_ring_pool_take(&ring->pool, &frame, cookie);
    quoit_ring_flow_send(&ring->pool, flow, index);
    verdict_out->frame = ring->pool.entries[index].frame;
    inject(ring, side, verdict_out);
}

void quoit_ring_next_resend(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out)
{
    uint64_t retry_at_ns = 0;
    quoit_assert(!ring->is_response_due);
    for (int i = 0; i < QUOIT_SIDE_COUNT; i++) {
        enum quoit_side side = (enum quoit_side)i;
        uint32_t index = first_resending(ring, side);
        if (index == QUOIT_RING_NONE || !may_inject(ring, side, QUOIT_CLASS_REQUEST, now_ns, &retry_at_ns))
            continue;
        struct quoit_ring_flow_out *flow = &ring->flows_out[index];
        struct quoit_ring_entry *entry = &ring->pool.entries[quoit_ring_flow_peek_resend(&ring->pool, flow)];
        /* It may already be executed; a landing must not undo what was written there since. */
        entry->frame.flags |= QUOIT_FRAME_ORDERED;
        quoit_ring_flow_pass_resend(&ring->pool, flow);
        verdict_out->frame = entry->frame;
        verdict_out->cookie = entry->cookie;
        inject(ring, side, verdict_out);
        return;
    }
    no_resource(verdict_out, retry_at_ns);
}

/* The side by which responses and acknowledgements of a flow leave: back towards where its requests come from. */
static enum quoit_side reply_side(const struct quoit_ring *ring, enum quoit_side flow_side, uint32_t host)
{
    enum quoit_side side;
    quoit_ring_links_side_to(&ring->links, quoit_ring_opposite(flow_side), host, &side);
    return side;
}

/* On a line of hosts a queue carries frames of each host behind this one, and of this one. */
static void set_turns(struct quoit_ring *ring, enum quoit_side side)
{
    for (int class = 0; class < QUOIT_CLASS_COUNT; class ++)
        quoit_ring_set_turn(&ring->outbound[side][class],
                            quoit_ring_links_reach_on_line(&ring->links, quoit_ring_opposite(side)));
}

/* The topology version has grown. Everything in flight is outdated: sources retransmit from the oldest outstanding
 * request on, so responses pending here will be requested again. */
static void adopt(struct quoit_ring *ring)
{
    uint32_t host_count = ring->config.limits.host_count;
    quoit_ring_replies_clear(&ring->replies);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        quoit_ring_ack_queue_init(&ring->acks[side]);
        ring->response_count[side] = 0;
        ring->resending[side] = QUOIT_RING_NONE;
        set_turns(ring, (enum quoit_side)side);
    }
    for (uint32_t index = 0; index < QUOIT_SIDE_COUNT * host_count; index++) {
        enum quoit_side flow_side = index < host_count ? QUOIT_LEFT : QUOIT_RIGHT;
        uint32_t host = index % host_count;
        struct quoit_ring_flow_out *out = &ring->flows_out[index];
        enum quoit_side side;
        quoit_ring_flow_start_resend(out);
        if (quoit_ring_flow_peek_resend(&ring->pool, out) != QUOIT_RING_NONE &&
            quoit_ring_links_side_to(&ring->links, flow_side, host, &side)) {
            out->next_resending = ring->resending[side];
            ring->resending[side] = index;
        }
        if (ring->flows_in[index].is_ack_pending)
            quoit_ring_flow_queue_ack(&ring->acks[reply_side(ring, flow_side, host)], ring->flows_in, index);
    }
}

void quoit_ring_link_down(struct quoit_ring *ring, enum quoit_side side)
{
    quoit_assert(!ring->is_response_due);
    for (int c = 0; c < QUOIT_CLASS_COUNT; c++) {
        ring->outbound[side][c] = (struct quoit_ring_outbound){0};
        ring->inbound[side][c] = (struct quoit_ring_inbound){0};
    }
    quoit_ring_links_down(&ring->links, side);
    adopt(ring);
}

void quoit_ring_link_up(struct quoit_ring *ring, enum quoit_side side, uint32_t epoch)
{
    quoit_assert(!ring->is_response_due);
    quoit_ring_links_up(&ring->links, side, epoch);
    adopt(ring);
}

bool quoit_ring_link_is_up(const struct quoit_ring *ring, enum quoit_side side)
{
    return quoit_ring_links_is_up(&ring->links, side);
}

void quoit_ring_topology(const struct quoit_ring *ring, struct quoit_ring_topology *topology_out)
{
    quoit_ring_links_describe(&ring->links, topology_out);
}

uint64_t quoit_ring_expected(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    return ring->inbound[side][class].consumed_total + 1;
}

static void consume(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    ring->inbound[side][class].consumed_total++;
}

/* A frame for another host: forwarded to the next queue of its class. */
static enum quoit_status receive_transit(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                         uint64_t now_ns, struct quoit_verdict *verdict)
{
    enum quoit_side onward = quoit_ring_opposite(side);
    uint64_t until_ns = 0;
    if (verdict->frame.flags & QUOIT_FRAME_LANDED)
        return QUOIT_INVALID;
    if (!quoit_ring_links_is_open(&ring->links, onward)) {
        /* The source's topology is older than ours. It will learn of the change and retransmit the frame. */
        verdict->kind = QUOIT_VERDICT_CONSUMED;
        consume(ring, side, class);
        return QUOIT_OK;
    }
    if (must_wait_for_update(ring, onward, class) ||
        !quoit_ring_may_transit(&ring->outbound[onward][class], &ring->config, now_ns, &until_ns)) {
        no_resource(verdict, until_ns);
        return QUOIT_OK;
    }
    consume(ring, side, class);
    send(ring, onward, class, verdict);
    return QUOIT_OK;
}

static void make_response(const struct quoit_frame *request_due, uint64_t value, struct quoit_frame *response_out)
{
    *response_out = (struct quoit_frame){
        .kind = QUOIT_FRAME_VALUE,
        .flags = request_due->flags & QUOIT_FRAME_RIGHT,
        .source_host = request_due->dest_host,
        .dest_host = request_due->source_host,
        .source_pe = request_due->dest_pe,
        .dest_pe = request_due->source_pe,
        .token = request_due->token,
        .operand = value,
        .trace = request_due->trace,
    };
    if (request_due->kind != QUOIT_FRAME_AMO_FETCH) {
        response_out->kind = QUOIT_FRAME_DATA;
        response_out->size = request_due->kind == QUOIT_FRAME_GET_STRIDED ? request_due->size : 0;
        response_out->bytes = request_due->bytes;
        response_out->offset = request_due->offset;
        response_out->operand = request_due->operand;
    }
}

static void append_response(struct quoit_ring *ring, const struct quoit_frame *request_due, uint64_t value)
{
    struct quoit_frame response;
    make_response(request_due, value, &response);
    quoit_ring_replies_append(&ring->replies,
                              reply_side(ring, quoit_ring_flow_side(request_due), request_due->source_host), &response);
}

/* A request that was executed before, whose response was lost: respond again. */
static enum quoit_status receive_repeated(struct quoit_ring *ring, uint32_t index, struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    uint64_t value = 0;
    if (frame->kind == QUOIT_FRAME_AMO_FETCH &&
        !quoit_ring_response_cache_find(&ring->flows_in[index].cache, ring->config.fetch_max, frame->flow_sequence,
                                        &value))
        return QUOIT_INVALID;
    if (quoit_frame_needs_response(frame->kind))
        append_response(ring, frame, value);
    enum quoit_side side = reply_side(ring, quoit_ring_flow_side(frame), frame->source_host);
    quoit_ring_flow_repeat(&ring->acks[side], ring->flows_in, index, frame->flow_sequence);
    verdict->kind = QUOIT_VERDICT_CONSUMED;
    return QUOIT_OK;
}

static enum quoit_status receive_request(struct quoit_ring *ring, struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    enum quoit_side flow_side = quoit_ring_flow_side(frame);
    uint32_t index = flow_index(ring, flow_side, frame->source_host);
    struct quoit_ring_flow_in *flow = &ring->flows_in[index];
    bool needs_response = quoit_frame_needs_response(frame->kind);
    if (quoit_ring_is_before(flow->executed + 1, frame->flow_sequence))
        return QUOIT_INVALID;
    if (!ring->links.is_quiesced || (needs_response && !quoit_ring_replies_has_room(&ring->replies))) {
        no_resource(verdict, 0);
        return QUOIT_OK;
    }
    if (frame->flow_sequence != flow->executed + 1)
        return receive_repeated(ring, index, verdict);
    verdict->kind = QUOIT_VERDICT_DELIVER;
    quoit_ring_flow_execute(&ring->acks[reply_side(ring, flow_side, frame->source_host)], ring->flows_in, index);
    if (needs_response) {
        ring->request_due = *frame;
        ring->is_response_due = true;
    }
    return QUOIT_OK;
}

/* Replies are always accepted: none of them waits here. */
static enum quoit_status receive_reply(struct quoit_ring *ring, struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    struct quoit_ring_flow_out *flow =
        &ring->flows_out[flow_index(ring, quoit_ring_flow_side(frame), frame->source_host)];
    bool is_response = frame->kind != QUOIT_FRAME_ACK;
    verdict->kind = is_response ? QUOIT_VERDICT_DELIVER : QUOIT_VERDICT_CONSUMED;
    return is_response ? quoit_ring_flow_complete(&ring->pool, flow, frame, &verdict->cookie)
                       : quoit_ring_flow_acknowledge(&ring->pool, flow, frame->flow_sequence);
}

static enum quoit_status receive_link_update(struct quoit_ring *ring, enum quoit_side side,
                                             struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    bool is_new;
    if (frame->dest_host != ring->config.host_self ||
        frame->source_host != quoit_ring_neighbour(ring->config.limits.host_count, side, ring->config.host_self))
        return QUOIT_INVALID;
    verdict->kind = QUOIT_VERDICT_CONSUMED;
    enum quoit_status status = quoit_ring_links_learn(&ring->links, side, frame, &is_new);
    if (status == QUOIT_OK && is_new)
        adopt(ring);
    return status;
}

static enum quoit_status receive_here(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                      struct quoit_verdict *verdict)
{
    enum quoit_status status;
    if (verdict->frame.kind == QUOIT_FRAME_TOPOLOGY)
        status = receive_link_update(ring, side, verdict);
    else if (class == QUOIT_CLASS_REQUEST)
        status = receive_request(ring, verdict);
    else
        status = receive_reply(ring, verdict);
    if (status == QUOIT_OK && verdict->kind != QUOIT_VERDICT_NO_RESOURCE)
        consume(ring, side, class);
    return status;
}

enum quoit_status quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                     const struct quoit_frame *frame, uint64_t now_ns,
                                     struct quoit_verdict *verdict_out)
{
    quoit_assert(!ring->is_response_due);
    quoit_assert(quoit_ring_link_is_up(ring, side));
    const struct quoit_frame_limits *limits = &ring->config.limits;
    struct quoit_frame *copy = &verdict_out->frame;
    *copy = *frame; /* copied first, because a peer may keep writing to the slot */
    if (copy->sequence != quoit_ring_expected(ring, side, class))
        return QUOIT_INVALID;
    if (quoit_frame_check(copy, class, limits) != QUOIT_OK)
        return QUOIT_INVALID;
    if (!quoit_ring_is_on_route(limits->host_count, ring->config.host_self, quoit_ring_opposite(side), copy))
        return QUOIT_INVALID;
    if (copy->kind == QUOIT_FRAME_TOPOLOGY)
        return receive_here(ring, side, class, verdict_out);
    if (copy->topology_version < ring->links.topology_version) {
        verdict_out->kind = QUOIT_VERDICT_CONSUMED;
        consume(ring, side, class);
        return QUOIT_OK;
    }
    if (copy->topology_version > ring->links.topology_version) {
        /* The update is sent in the class of replies, ahead of any reply forwarded under it. */
        no_resource(verdict_out, 0);
        return class == QUOIT_CLASS_REPLY ? QUOIT_INVALID : QUOIT_OK;
    }
    if (copy->dest_host != ring->config.host_self)
        return receive_transit(ring, side, class, now_ns, verdict_out);
    return receive_here(ring, side, class, verdict_out);
}

void quoit_ring_reply(struct quoit_ring *ring, const struct quoit_frame *request, uint64_t value)
{
    const struct quoit_frame *request_due = &ring->request_due;
    quoit_assert(ring->is_response_due);
    quoit_assert(request->source_host == request_due->source_host);
    quoit_assert(request->token == request_due->token);
    if (request_due->kind == QUOIT_FRAME_AMO_FETCH) {
        uint32_t index = flow_index(ring, quoit_ring_flow_side(request_due), request_due->source_host);
        quoit_ring_response_cache_add(&ring->flows_in[index].cache, ring->config.fetch_max, request_due->flow_sequence,
                                      value);
    }
    append_response(ring, request_due, value);
    ring->is_response_due = false;
}

/* The acknowledgement of the flow of that index. */
static void make_acknowledgement(const struct quoit_ring *ring, uint32_t index, struct quoit_frame *frame_out)
{
    uint32_t host_count = ring->config.limits.host_count;
    *frame_out = (struct quoit_frame){
        .kind = QUOIT_FRAME_ACK,
        .flags = index >= host_count ? QUOIT_FRAME_RIGHT : 0,
        .source_host = (uint16_t)ring->config.host_self,
        .dest_host = (uint16_t)(index % host_count),
    };
}

/* Advertises pending updates to the neighbour of `side`. They may take the last slot: the neighbour consumes it at
 * once, in any state. */
static bool send_link_update(struct quoit_ring *ring, enum quoit_side side, struct quoit_verdict *verdict)
{
    const struct quoit_ring_outbound *out = &ring->outbound[side][QUOIT_CLASS_REPLY];
    uint32_t host_self = ring->config.host_self;
    if (ring->links.links[side].pending_count == 0 || quoit_ring_free_slots(out, ring->config.slot_count) == 0)
        return false;
    verdict->frame = (struct quoit_frame){
        .kind = QUOIT_FRAME_TOPOLOGY,
        .source_host = (uint16_t)host_self,
        .dest_host = (uint16_t)quoit_ring_neighbour(ring->config.limits.host_count, side, host_self),
    };
    quoit_ring_links_advertise(&ring->links, side, &verdict->frame);
    inject(ring, side, verdict);
    return true;
}

/* Sends what is pending on `side`, if anything is and a slot is free. */
static bool send_reply(struct quoit_ring *ring, enum quoit_side side, uint64_t now_ns, struct quoit_verdict *verdict,
                       uint64_t *retry_at_ns_inout)
{
    struct quoit_ring_ack_queue *acks = &ring->acks[side];
    bool has_response = ring->replies.waiting[side].count > 0;
    if (!has_response && acks->count == 0)
        return false;
    if (!may_inject(ring, side, QUOIT_CLASS_REPLY, now_ns, retry_at_ns_inout))
        return false;
    bool is_turn_of_ack = acks->count > 0 && ring->response_count[side] >= QUOIT_RING_RESPONSES_BEFORE_ACK;
    if (has_response && !is_turn_of_ack) {
        quoit_ring_replies_pop(&ring->replies, side, &verdict->frame);
        ring->response_count[side]++;
    } else {
        make_acknowledgement(ring, acks->head, &verdict->frame);
        ring->response_count[side] = 0;
    }
    uint32_t index = flow_index(ring, quoit_ring_flow_side(&verdict->frame), verdict->frame.dest_host);
    verdict->frame.flow_sequence = quoit_ring_flow_take_ack(acks, ring->flows_in, index);
    if (acks->count == 0)
        ring->response_count[side] = 0;
    inject(ring, side, verdict);
    return true;
}

void quoit_ring_next_reply(struct quoit_ring *ring, uint64_t now_ns, struct quoit_verdict *verdict_out)
{
    uint64_t retry_at_ns = 0;
    quoit_assert(!ring->is_response_due);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (send_link_update(ring, (enum quoit_side)side, verdict_out))
            return;
    enum quoit_side first = ring->reply_side;
    if (send_reply(ring, first, now_ns, verdict_out, &retry_at_ns) ||
        send_reply(ring, quoit_ring_opposite(first), now_ns, verdict_out, &retry_at_ns)) {
        ring->reply_side = quoit_ring_opposite(verdict_out->side);
        return;
    }
    no_resource(verdict_out, retry_at_ns);
}

bool quoit_ring_next_completion(struct quoit_ring *ring, uint64_t *cookie_out)
{
    return quoit_ring_pool_next_completed(&ring->pool, cookie_out);
}

uint64_t quoit_ring_consumed_total(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    return quoit_ring_free_total(&ring->inbound[side][class]);
}

void quoit_ring_keep_slots(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, uint32_t count)
{
    struct quoit_ring_inbound *in = &ring->inbound[side][class];
    quoit_assert(count <= in->consumed_total - in->advertised_total);
    in->in_use = count;
}

bool quoit_ring_credit_due(const struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, bool is_idle)
{
    return quoit_ring_is_credit_due(&ring->inbound[side][class], ring->config.slot_count, is_idle);
}

void quoit_ring_credit_advertised(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class)
{
    ring->inbound[side][class].advertised_total = quoit_ring_free_total(&ring->inbound[side][class]);
}

enum quoit_status quoit_ring_credit(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                    uint64_t consumed_total)
{
    quoit_assert(quoit_ring_link_is_up(ring, side));
    return quoit_ring_take_credit(&ring->outbound[side][class], consumed_total);
}

bool quoit_ring_is_quiescent(const struct quoit_ring *ring)
{
    if (ring->pool.free.count != ring->pool.entry_count || ring->replies.free_count != ring->replies.entry_count)
        return false;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        if (ring->acks[side].count > 0 || ring->links.links[side].pending_count > 0)
            return false;
        for (int c = 0; c < QUOIT_CLASS_COUNT; c++) {
            const struct quoit_ring_outbound *out = &ring->outbound[side][c];
            const struct quoit_ring_inbound *in = &ring->inbound[side][c];
            if (out->sent_total != out->credited_total || in->consumed_total != in->advertised_total)
                return false;
        }
    }
    return true;
}

/* Flows with something to retransmit are in a list, unless both directions to their host are cut. */
static void check_resending(const struct quoit_ring *ring)
{
    uint32_t host_count = ring->config.limits.host_count;
    uint32_t listed_count = 0;
    uint32_t due_count = 0;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t at = ring->resending[side];
        for (uint32_t i = 0; at != QUOIT_RING_NONE; at = ring->flows_out[at].next_resending, i++) {
            quoit_assert(i < QUOIT_SIDE_COUNT * host_count);
            listed_count += quoit_ring_flow_peek_resend(&ring->pool, &ring->flows_out[at]) != QUOIT_RING_NONE;
        }
    }
    for (uint32_t at = 0; at < QUOIT_SIDE_COUNT * host_count; at++) {
        enum quoit_side side;
        bool is_due = quoit_ring_flow_peek_resend(&ring->pool, &ring->flows_out[at]) != QUOIT_RING_NONE;
        enum quoit_side flow_side = at < host_count ? QUOIT_LEFT : QUOIT_RIGHT;
        due_count += is_due && quoit_ring_links_side_to(&ring->links, flow_side, at % host_count, &side);
    }
    quoit_assert(listed_count == due_count);
}

void quoit_ring_check_invariants(const struct quoit_ring *ring)
{
    uint32_t host_count = ring->config.limits.host_count;
    uint32_t entry_count = 0;
    uint32_t ack_count = 0;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (int c = 0; c < QUOIT_CLASS_COUNT; c++) {
            quoit_ring_check_outbound(&ring->outbound[side][c], ring->config.slot_count);
            quoit_ring_check_inbound(&ring->inbound[side][c], ring->config.slot_count);
        }
        for (uint32_t host = 0; host < host_count; host++)
            entry_count +=
                quoit_ring_check_flow_out(&ring->pool, &ring->flows_out[flow_index(ring, (enum quoit_side)side, host)],
                                          host, (enum quoit_side)side);
        ack_count += quoit_ring_check_ack_queue(&ring->acks[side], ring->flows_in, QUOIT_SIDE_COUNT * host_count);
        quoit_assert(ring->response_count[side] == 0 || ring->acks[side].count > 0);
    }
    quoit_ring_check_flows_in(ring->flows_in, QUOIT_SIDE_COUNT * host_count, ack_count);
    quoit_ring_check_pool(&ring->pool, entry_count);
    quoit_ring_check_replies(&ring->replies);
    quoit_ring_check_links(&ring->links);
    check_resending(ring);
    quoit_assert(!ring->is_response_due);
}
