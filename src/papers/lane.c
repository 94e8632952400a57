/* SPDX-License-Identifier: BSD-3-Clause */
#include "papers/lane.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "ring/route.h"

#include <stdlib.h>
#include <string.h>

#define SOURCE_COUNT 3

/* The payload in the place of a buffer that was filled as the `count`th, from 0. */
static const char *payload_of(const struct quoit_lane *lane, enum quoit_side side, uint32_t buffer, uint64_t count)
{
    uint32_t place = buffer * QUOIT_BYPASS_DEPTH + (uint32_t)(count % QUOIT_BYPASS_DEPTH);
    uint64_t at = quoit_bypass_offset(lane->layout, lane->index, place);
    return lane->memory + lane->layout->slots[side] + at + QUOIT_FRAME_BYTES;
}

static enum quoit_status refuse(const struct quoit_lane *lane, enum quoit_side side, const struct quoit_frame *frame)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    const struct quoit_port *port = lane->ports[side];
    uint32_t epoch = quoit_link_port_epoch(&header->links[side]);
    if (!quoit_port_link_is_up(port) || quoit_port_link_epoch(port) != epoch)
        return QUOIT_LINK_DOWN; /* scratchpads are wiped with the link */
    quoit_log(QUOIT_LOG_ERROR, "scratchpads that no correct host writes came from the %s: kind %u",
              side == QUOIT_LEFT ? "left" : "right", frame->kind);
    return QUOIT_INVALID;
}

static void take_head(struct quoit_frame *frame, const char *head)
{
    memcpy(&frame->operand, head, QUOIT_SCRATCHPAD_HEAD_BYTES);
    frame->op = (uint8_t)frame->topology_version;
    frame->size = (uint8_t)(frame->topology_version >> 8);
    frame->topology_version = 0;
}

/* The oldest transfer in a buffer, or NULL. */
static const struct quoit_bypass *first_of(const struct quoit_arrivals *arrivals, uint32_t buffer)
{
    uint64_t emptied_count = arrivals->emptied_count[buffer];
    if (arrivals->filled_count[buffer] == emptied_count)
        return NULL;
    return &arrivals->places[buffer][emptied_count % QUOIT_BYPASS_DEPTH];
}

/* Reads the scratchpads and queues the transfer; its place in the queue is reserved. */
static enum quoit_status take_arrival(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_arrivals *arrivals = &papers->arrivals[side];
    struct quoit_frame_limits limits = quoit_lane_limits(lane);
    struct quoit_frame frame = {.kind = QUOIT_FRAME_NONE};
    uint32_t words[QUOIT_METADATA_WORDS], set = quoit_metadata_set(lane, side);
    bool has_head;
    for (uint32_t i = 0; i < QUOIT_METADATA_WORDS; i++)
        words[i] = quoit_port_scratchpad_read(lane->ports[side], set * QUOIT_METADATA_WORDS + i);
    if (quoit_scratchpad_unpack(words, (arrivals->count + 1) * QUOIT_LANES_MAX + lane->index, &frame, &has_head) !=
            QUOIT_OK ||
        frame.kind >= QUOIT_FRAME_KIND_COUNT)
        return refuse(lane, side, &frame);
    uint32_t buffer = quoit_bypass_of(&frame, lane->layout->host);
    uint64_t filled_count = arrivals->filled_count[buffer];
    if (has_head)
        take_head(&frame, payload_of(lane, side, buffer, filled_count) - QUOIT_FRAME_BYTES);
    if (quoit_frame_check(&frame, quoit_frame_class(frame.kind), &limits) != QUOIT_OK ||
        side != quoit_ring_opposite(quoit_transfer_heading(&frame)) ||
        !quoit_ring_is_on_route(limits.host_count, lane->layout->host, quoit_ring_opposite(side), &frame) ||
        filled_count - arrivals->emptied_count[buffer] == QUOIT_BYPASS_DEPTH)
        return refuse(lane, side, &frame);
    arrivals->places[buffer][filled_count % QUOIT_BYPASS_DEPTH].frame = frame;
    arrivals->filled_count[buffer]++;
    arrivals->count++;
    quoit_scratchpad_respond(lane, side, QUOIT_RESPONSE_READ, arrivals->count);
    return QUOIT_OK;
}

static uint32_t receive(struct quoit_lane *lane, enum quoit_side side)
{
    uint64_t bit = quoit_doorbell_of_lane(&lane->own_doorbells[side], lane->index);
    if ((quoit_port_doorbell_read(lane->ports[side]) & bit) == 0)
        return 0;
    quoit_port_doorbell_clear(lane->ports[side], bit);
    enum quoit_status status = take_arrival(lane, side);
    if (status != QUOIT_OK)
        quoit_lane_fail(lane, status);
    return 1;
}

/* The open request that a reply is for, or NULL. */
static struct quoit_open *find_open(const struct quoit_lane *lane, const struct quoit_frame *frame)
{
    const struct quoit_papers_lane *papers = lane->state;
    struct quoit_open *open = frame->token < papers->open_count ? &papers->open[frame->token] : NULL;
    if (!open || !open->is_open || open->reply_kind != frame->kind || open->dest_host != frame->source_host)
        return NULL;
    const struct quoit_papers_request *request = &open->request;
    uint64_t cookie = quoit_lane_cookie(request->local, request->index);
    if (frame->kind == QUOIT_FRAME_DATA && frame->bytes != request->channel_lane->issued[cookie].bytes)
        return NULL;
    return open;
}

/* A reply has reached its requester: the request is complete. */
static enum quoit_status finish_request(struct quoit_lane *lane, enum quoit_side side, const struct quoit_frame *frame,
                                        const char *payload)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_open *open = find_open(lane, frame);
    if (!open)
        return refuse(lane, side, frame);
    struct quoit_papers_request request = open->request;
    struct quoit_verdict verdict = {
        .kind = QUOIT_VERDICT_DELIVER, .cookie = quoit_lane_cookie(request.local, request.index), .frame = *frame};
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    open->is_open = false;
    papers->free_tokens[papers->free_count++] = (uint16_t)frame->token;
    if (frame->kind != QUOIT_FRAME_ACK)
        quoit_lane_deliver(request.channel_lane, &verdict, payload);
    quoit_lane_trace_frame(lane, QUOIT_TRACE_DELIVER, frame, side, begin_ns);
    if (open->is_put) {
        quoit_lane_count_up(&lane->shared->put_count, 1);
        quoit_lane_count_up(&lane->shared->put_ns[QUOIT_PUT_TURNAROUND], quoit_clock_now_ns() - request.seen_ns);
    }
    quoit_papers_pool_complete(&papers->shared->pool, &request);
    return QUOIT_OK;
}

/* Queues the reply, which continues around the ring. */
static void respond(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_reply_queue *replies = &papers->replies;
    quoit_assert(replies->tail - replies->head < QUOIT_REPLIES_MAX);
    replies->frames[replies->tail++ % QUOIT_REPLIES_MAX] = quoit_scratchpad_reply(request, value);
}

/* Executes from the queue of local delivery. A request stays in it while there is no room for its reply. */
static uint32_t deliver(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class)
{
    struct quoit_papers_lane *papers = lane->state;
    uint32_t buffer = class * (QUOIT_BYPASS_COUNT / QUOIT_CLASS_COUNT);
    struct quoit_arrivals *arrivals = &papers->arrivals[side];
    const struct quoit_bypass *bypass = first_of(arrivals, buffer);
    if (!bypass)
        return 0;
    const char *payload = payload_of(lane, side, buffer, arrivals->emptied_count[buffer]);
    quoit_scratchpad_ring_responses(lane, side); /* so that the neighbour need not wait for the scratchpads during the
                                                  * copy */
    if (class == QUOIT_CLASS_REPLY) {
        enum quoit_status status = finish_request(lane, side, &bypass->frame, payload);
        if (status != QUOIT_OK)
            quoit_lane_fail(lane, status);
    } else {
        const struct quoit_reply_queue *replies = &papers->replies;
        if (replies->tail - replies->head == QUOIT_REPLIES_MAX)
            return 0;
        struct quoit_verdict verdict = {.kind = QUOIT_VERDICT_DELIVER, .frame = bypass->frame};
        uint64_t begin_ns = quoit_lane_trace_now(lane);
        quoit_lane_deliver(lane, &verdict, payload);
        quoit_lane_trace_frame(lane, QUOIT_TRACE_DELIVER, &bypass->frame, side, begin_ns);
    }
    quoit_scratchpad_empty(lane, side, buffer);
    return 1;
}

/* The relay queues: what arrived on the other side and leaves by `side`. */
static bool begin_relay(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    enum quoit_side relay_side = quoit_ring_opposite(side);
    struct quoit_arrivals *arrivals = &papers->arrivals[relay_side];
    for (uint32_t i = QUOIT_BYPASS_COUNT; i-- > 0;) { /* replies first, because requests wait for them */
        const struct quoit_bypass *bypass = first_of(arrivals, i);
        if (quoit_bypass_is_local(i) || !bypass)
            continue;
        struct quoit_outgoing out = {.frame = bypass->frame,
                                     .payload = payload_of(lane, relay_side, i, arrivals->emptied_count[i]),
                                     .is_relay = true,
                                     .relay_buffer = i,
                                     .relay_side = relay_side};
        if (quoit_scratchpad_begin(lane, side, &out))
            return true;
    }
    return false;
}

static bool begin_reply(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_reply_queue *replies = &papers->replies;
    if (replies->head == replies->tail)
        return false;
    struct quoit_outgoing out = {.frame = replies->frames[replies->head % QUOIT_REPLIES_MAX]};
    if (quoit_transfer_heading(&out.frame) != side)
        return false;
    if (out.frame.kind == QUOIT_FRAME_DATA) {
        out.payload = quoit_lane_reply_payload(lane, &out.frame);
        out.must_copy = out.payload == lane->gather;
    }
    if (!quoit_scratchpad_begin(lane, side, &out))
        return false;
    replies->head++;
    return true;
}

static uint8_t reply_kind_of(uint8_t request_kind)
{
    if (!quoit_frame_needs_response(request_kind))
        return QUOIT_FRAME_ACK;
    return request_kind == QUOIT_FRAME_AMO_FETCH ? QUOIT_FRAME_VALUE : QUOIT_FRAME_DATA;
}

void quoit_papers_call(struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_papers_pool *pool = &papers->shared->pool;
    for (uint32_t i = 1, called = 0; i < lane->layout->job.lane_count && called < pool->waiting_count; i++) {
        uint32_t other = (lane->index + i) % lane->layout->job.lane_count;
        if ((atomic_fetch_and(&pool->idle_lanes, ~(1u << other)) & 1u << other) == 0)
            continue;
        quoit_park_wake(&quoit_memory_lane(lane->layout, lane->memory, other)->park);
        called++;
    }
}

/* Pairs with quoit_papers_call(): either that sees the lane idle, or the lane's next step sees what waits. */
static void note_idle(struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    bool is_idle = papers->transfers[QUOIT_LEFT].state == QUOIT_TRANSFER_FREE &&
                   papers->transfers[QUOIT_RIGHT].state == QUOIT_TRANSFER_FREE;
    if (is_idle)
        atomic_fetch_or(&papers->shared->pool.idle_lanes, 1u << lane->index);
    else
        atomic_fetch_and(&papers->shared->pool.idle_lanes, ~(1u << lane->index));
}

struct begin {
    const struct quoit_lane *lane;
    enum quoit_side side;
};

static bool may_begin(void *arg, const struct quoit_frame *frame)
{
    const struct begin *begin = arg;
    return quoit_transfer_heading(frame) == begin->side && quoit_scratchpad_may_begin(begin->lane, begin->side, frame);
}

static bool begin_request(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct begin begin = {.lane = lane, .side = side};
    struct quoit_papers_request request;
    uint32_t spread;
    if (papers->free_count == 0 || !quoit_papers_pool_take(&papers->shared->pool, may_begin, &begin, &request))
        return false;
    struct quoit_outgoing out = {.wanted_ns = request.seen_ns};
    enum quoit_status status =
        quoit_lane_take_request(request.channel_lane, request.local, request.index, &out.frame, &spread);
    if (status == QUOIT_OK && !may_begin(&begin, &out.frame))
        status = QUOIT_INVALID; /* its PE has changed it since */
    if (status != QUOIT_OK) {
        quoit_lane_fail(lane, status);
        return false;
    }
    uint16_t token = papers->free_tokens[--papers->free_count];
    const struct quoit_issued *issued = &request.channel_lane->issued[quoit_lane_cookie(request.local, request.index)];
    out.frame.flags |= side == QUOIT_RIGHT ? QUOIT_FRAME_RIGHT : 0;
    out.frame.token = token;
    out.payload = lane->memory + issued->data_offset;
    out.is_put = out.frame.kind == QUOIT_FRAME_PUT;
    papers->open[token] = (struct quoit_open){.is_open = true,
                                              .reply_kind = reply_kind_of(out.frame.kind),
                                              .dest_host = out.frame.dest_host,
                                              .is_put = out.is_put,
                                              .request = request};
    bool has_begun = quoit_scratchpad_begin(lane, side, &out);
    quoit_assert(has_begun);
    return true;
}

/* The source that was served last is tried last, so that no source starves another. */
static uint32_t begin_next(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    static bool (*const sources[SOURCE_COUNT])(struct quoit_lane *, enum quoit_side) = {begin_relay, begin_reply,
                                                                                        begin_request};
    struct quoit_transfer *transfer = &papers->transfers[side];
    if (transfer->state != QUOIT_TRANSFER_FREE)
        return 0;
    for (uint32_t i = 0; i < SOURCE_COUNT; i++) {
        uint32_t source = (transfer->turn + i) % SOURCE_COUNT;
        if (sources[source](lane, side)) {
            transfer->turn = source + 1;
            quoit_scratchpad_advance(lane, side);
            return 1;
        }
    }
    return 0;
}

static uint32_t step(struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    uint32_t done_count = 0;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        done_count += receive(lane, side);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        done_count += deliver(lane, side, QUOIT_CLASS_REPLY);
        done_count += deliver(lane, side, QUOIT_CLASS_REQUEST);
        quoit_scratchpad_ring_responses(lane, side);
    }
    uint32_t seen_count = quoit_papers_pool_look(&papers->shared->pool);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        done_count += quoit_scratchpad_advance(lane, side);
        done_count += begin_next(lane, side);
        quoit_scratchpad_ring_responses(lane, quoit_ring_opposite(side)); /* for what was forwarded */
    }
    note_idle(lane);
    if (seen_count > 0)
        quoit_papers_call(lane);
    return done_count;
}

static enum quoit_status group_open(struct quoit_lane_group *group)
{
    struct quoit_papers_shared *shared = calloc(1, sizeof *shared);
    group->shared = shared;
    return shared ? quoit_papers_pool_open(&shared->pool, group->layout, group->memory) : QUOIT_NO_MEMORY;
}

static void group_close(struct quoit_lane_group *group)
{
    struct quoit_papers_shared *shared = group->shared;
    if (!shared)
        return;
    quoit_papers_pool_close(&shared->pool);
    free(shared);
}

static enum quoit_status open(struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = calloc(1, sizeof *papers);
    lane->state = papers;
    if (!papers)
        return QUOIT_NO_MEMORY;
    papers->shared = lane->group->shared;
    papers->shared->pool.lanes[lane->index] = lane;
    papers->open_count = lane->layout->local_count * QUOIT_REQUESTS_A_CHANNEL;
    papers->open = calloc(papers->open_count, sizeof *papers->open);
    papers->free_tokens = calloc(papers->open_count, sizeof *papers->free_tokens);
    if (!papers->open || !papers->free_tokens)
        return QUOIT_NO_MEMORY;
    while (papers->free_count < papers->open_count) {
        papers->free_tokens[papers->free_count] = (uint16_t)papers->free_count;
        papers->free_count++;
    }
    /* The lane's own bit is not cleared as a hint: here it is the message itself and stays set until it is taken. */
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        lane->hint_bits[side] = quoit_doorbell_of_responses(&lane->own_doorbells[side]);
    lane->waiter.policy = (struct quoit_wait_policy){0}; /* the papers' threads sleep until an interrupt */
    return QUOIT_OK;
}

static void close(struct quoit_lane *lane)
{
    struct quoit_papers_lane *papers = lane->state;
    if (!papers)
        return;
    free(papers->free_tokens);
    free(papers->open);
    free(papers);
}

/* A link that comes up has fresh words and buffers. */
static void clean(const struct quoit_layout *layout, void *memory, enum quoit_side side)
{
    (void)layout, (void)memory, (void)side;
}

/* Responses to transfers wake all lanes, since any of them may wait for the scratchpads. */
static struct quoit_port_vector vector(const struct quoit_layout *layout, uint32_t index, uint32_t count)
{
    (void)count;
    return (struct quoit_port_vector){
        .park_offset = layout->lanes + offsetof(struct quoit_lane_shared, park),
        .park_stride = sizeof(struct quoit_lane_shared),
        .park_count = index == 0 ? layout->job.lane_count : 0,
    };
}

const struct quoit_lane_engine quoit_papers_engine = {
    .group_open = group_open,
    .group_close = group_close,
    .open = open,
    .close = close,
    .step = step,
    .respond = respond,
    .clean = clean,
    .vector = vector,
    .is_quiescent = quoit_papers_is_quiescent,
    .check = quoit_papers_check,
};
