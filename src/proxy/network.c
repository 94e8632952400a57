/* SPDX-License-Identifier: BSD-3-Clause */
/* A lane over a network. It has one flow to each other host: frames, in order, many in a message. The other host's lane
 * executes them in that order and acknowledges the last; replies bring values and strided data back.
 *
 * Large payload goes by itself, from memory to memory: a put that no fence precedes is a put of the network, and the
 * frame that follows it, LANDED, wakes the destination, and carries the signal if it has one. A get is a get of the
 * network.
 *
 * Order: frames of a flow keep theirs. A put of the network may overtake frames and be overtaken, so what must not pass
 * the puts of its PE to the host waits until they are done: a frame that is ORDERED or has a signal, and LANDED
 * (proxy/network_transfers.h), before which the payload of a put with a signal starts at once. Payload of an ORDERED
 * put travels in frames, in parts.
 *
 * Acknowledgements: a put with a signal is mostly followed by a message of the PE that it wakes, and the
 * acknowledgement travels with that. It goes alone when it has waited for PENDING_STEPS steps, when PENDING_MOST are
 * pending, before the lane sleeps, or as soon as a request comes whose PE may be waiting. */
#include "proxy/network.h"
#include "base/assert.h"
#include "base/log.h"
#include "lane/network.h"
#include "lane/outbox.h"
#include "net/net.h"
#include "proxy/network_join.h"
#include "proxy/network_sleep.h"
#include "proxy/network_transfers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_COUNT  32 /* requests of one PE before the others have their turn */
#define FRAMED_BYTES QUOIT_NETWORK_FRAMED_BYTES
#define FLOW_BYTES   65536u    /* waiting in a flow, before it takes no more requests; replies are always taken */
#define LEAVE_NS     300000000 /* for the farewell of all hosts; a launcher stops their proxies at the same time */

/* Of acknowledgements that wait for company. A PE that sends to several hosts must not run out of requests by it. */
#define PENDING_STEPS 64
#define PENDING_MOST  8

enum open_state { OPEN_NONE, OPEN_UNTIL_ACK, OPEN_UNTIL_REPLY, OPEN_PUT, OPEN_GET };

/* An outstanding request of a local PE, by its cookie, which is its token. */
struct open {
    uint8_t state; /* enum open_state */
    uint8_t reply_kind;
    uint32_t part_count;      /* UNTIL_REPLY: replies that are missing */
    uint32_t sequence;        /* UNTIL_ACK: of its last frame */
    uint32_t next;            /* UNTIL_ACK: the next of the flow, as cookie + 1; 0: none */
    struct quoit_frame frame; /* dest_host; PUT: what follows it */
};

/* Of one other host, or of this one, to which frames go and from which they come. */
struct flow {
    char *out; /* frames that no message has taken yet, from out_head to out_tail */
    uint64_t out_head, out_tail, out_bytes;
    uint32_t sent_sequence; /* of requests that are acknowledged */
    uint32_t acknowledged;
    uint32_t executed_sequence; /* of the other host's requests */
    uint32_t told_sequence;
    uint32_t first_open, last_open; /* UNTIL_ACK, in order, as cookie + 1; 0: none */
    uint32_t open_count;            /* UNTIL_ACK and UNTIL_REPLY */
    uint32_t pending_steps;         /* since an acknowledgement is pending */
    bool is_ack_due;                /* now; else it may wait */
    bool is_busy;                   /* in the list of those that may have something to send */
    bool is_lost_told;
};

struct network {
    struct quoit_lane *lane;
    struct quoit_net *net;
    const struct quoit_net_region *region;
    struct quoit_network_sleep *sleep;
    uint32_t part_bytes;                 /* payload of a frame, at most */
    struct open *open;                   /* [local PE][request], then those of messages between hosts */
    struct quoit_network_reach *reaches; /* [host] */
    struct flow *flows; /* [host], then [pe_endpoint]: ends of PEs elsewhere, from which frames come, too */
    uint32_t pe_endpoint_count;
    uint32_t sender;      /* whose message is taken */
    uint16_t *busy_hosts; /* a list of busy_count */
    uint32_t busy_count;
    struct quoit_network_transfers transfers;
    bool is_arming; /* the lane is about to sleep: what is pending goes now */
};

_Static_assert(QUOIT_MANY_BYTES_MAX <= FRAMED_BYTES, "a PUT_MANY is never cut into parts");

static uint32_t padded(uint32_t bytes)
{
    return (bytes + 7) & ~7u;
}

/* Flows */

static void mark_busy(struct network *network, uint32_t host)
{
    struct flow *flow = &network->flows[host];
    if (flow->is_busy)
        return;
    flow->is_busy = true;
    network->busy_hosts[network->busy_count++] = (uint16_t)host;
}

/* Room for one more record. Replies have no limit of their own: there are as many as the other host's PEs may ask. */
static char *reserve(struct network *network, struct flow *flow, uint32_t bytes)
{
    if (flow->out_head == flow->out_tail)
        flow->out_head = flow->out_tail = 0;
    if (flow->out_tail + bytes > flow->out_bytes) {
        uint64_t used = flow->out_tail - flow->out_head;
        if (flow->out_head > 0)
            memmove(flow->out, flow->out + flow->out_head, used);
        flow->out_head = 0;
        flow->out_tail = used;
        if (used + bytes > flow->out_bytes) {
            uint64_t more = 2 * (used + bytes) + FLOW_BYTES;
            char *out = realloc(flow->out, more);
            if (!out) {
                quoit_lane_fail(network->lane, QUOIT_NO_MEMORY);
                return NULL;
            }
            flow->out = out;
            flow->out_bytes = more;
        }
    }
    return flow->out + flow->out_tail;
}

static void append(struct network *network, uint32_t host, const struct quoit_frame *frame, const char *payload)
{
    struct flow *flow = &network->flows[host];
    uint64_t begin_ns = quoit_lane_trace_now(network->lane);
    uint32_t bytes = quoit_frame_payload_bytes(frame), whole = QUOIT_FRAME_BYTES + padded(bytes);
    char *to = reserve(network, flow, whole);
    if (!to)
        return;
    memcpy(to, frame, QUOIT_FRAME_BYTES);
    if (bytes > 0) {
        memset(to + whole - 8, 0, 8);
        memcpy(to + QUOIT_FRAME_BYTES, payload, bytes);
    }
    flow->out_tail += whole;
    mark_busy(network, host);
    quoit_lane_trace_frame(network->lane, QUOIT_TRACE_SEND, frame, QUOIT_RIGHT, begin_ns);
}

static uint32_t record_bytes(const char *record)
{
    struct quoit_frame frame;
    memcpy(&frame, record, sizeof frame);
    return QUOIT_FRAME_BYTES + padded(quoit_frame_payload_bytes(&frame));
}

static void count_one(_Atomic uint64_t *count, _Atomic uint64_t *byte_count, uint64_t bytes)
{
    quoit_lane_count_up(count, 1);
    quoit_lane_count_up(byte_count, bytes);
}

/* Sends whole records, as many as a message holds. True: nothing waits any more. */
static bool send_flow(struct network *network, uint32_t host)
{
    struct flow *flow = &network->flows[host];
    struct quoit_network_count *counts = &network->lane->shared->network;
    uint32_t most = quoit_net_limits(network->net)->message_bytes;
    while (flow->out_head < flow->out_tail) {
        uint32_t bytes = 0;
        for (uint64_t at = flow->out_head; at < flow->out_tail;) {
            uint32_t record = record_bytes(flow->out + at);
            if (bytes + record > most)
                break;
            bytes += record;
            at += record;
        }
        quoit_assert(bytes > 0);
        enum quoit_status status = quoit_net_send(network->net, host, flow->out + flow->out_head, bytes);
        if (status == QUOIT_FULL)
            return false;
        if (status != QUOIT_OK) { /* it has gone, and on_lost says so */
            flow->out_head = flow->out_tail = 0;
            return true;
        }
        flow->out_head += bytes;
        count_one(&counts->message_count, &counts->message_bytes, bytes);
    }
    return true;
}

static bool has_pending_ack(const struct flow *flow)
{
    return flow->told_sequence != flow->executed_sequence;
}

/* Whether an acknowledgement goes now, alone or with what else waits for the host. */
static bool acknowledges_now(const struct network *network, struct flow *flow)
{
    return has_pending_ack(flow) &&
           (flow->is_ack_due || network->is_arming || flow->out_head != flow->out_tail ||
            flow->executed_sequence - flow->told_sequence >= PENDING_MOST || ++flow->pending_steps >= PENDING_STEPS);
}

static void acknowledge(struct network *network, uint32_t host)
{
    struct flow *flow = &network->flows[host];
    flow->told_sequence = flow->executed_sequence;
    flow->is_ack_due = false;
    flow->pending_steps = 0;
    append(network, host,
           &(struct quoit_frame){.kind = QUOIT_FRAME_ACK,
                                 .source_host = (uint16_t)network->lane->layout->host,
                                 .dest_host = (uint16_t)quoit_contacts_host_of(&network->lane->layout->job, host),
                                 .flow_sequence = flow->executed_sequence},
           NULL);
}

/* Returns how many acknowledgements it has sent. */
static uint32_t send_all(struct network *network)
{
    uint32_t kept_count = 0, told_count = 0;
    for (uint32_t i = 0; i < network->busy_count; i++) {
        uint32_t host = network->busy_hosts[i];
        struct flow *flow = &network->flows[host];
        if (acknowledges_now(network, flow)) {
            acknowledge(network, host);
            told_count++;
        }
        bool has_sent = send_flow(network, host);
        flow->is_busy = !has_sent || has_pending_ack(flow);
        if (flow->is_busy)
            network->busy_hosts[kept_count++] = (uint16_t)host;
    }
    network->busy_count = kept_count;
    return told_count;
}

/* Requests of local PEs */

static void append_request(struct network *network, struct quoit_frame *frame, const char *payload)
{
    if (!quoit_frame_needs_response(frame->kind))
        frame->flow_sequence = ++network->flows[frame->dest_host].sent_sequence;
    append(network, frame->dest_host, frame, payload);
}

/* How many bytes of a request fit one frame: whole elements, and words that a PE may wait for. */
static uint32_t part_of(const struct network *network, const struct quoit_frame *frame)
{
    bool is_strided = frame->kind == QUOIT_FRAME_PUT_STRIDED || frame->kind == QUOIT_FRAME_GET_STRIDED;
    uint32_t unit = is_strided ? frame->size : 8;
    return network->part_bytes / unit * unit;
}

/* A request in one frame, or in parts. Returns the number of frames. */
static uint32_t append_parts(struct network *network, const struct quoit_frame *whole, const char *payload)
{
    uint32_t part_bytes = part_of(network, whole), part_count = 0, at = 0;
    bool is_strided = whole->kind == QUOIT_FRAME_PUT_STRIDED || whole->kind == QUOIT_FRAME_GET_STRIDED;
    do {
        struct quoit_frame frame = *whole;
        bool is_last = whole->bytes - at <= part_bytes;
        if (!is_last) {
            frame.bytes = part_bytes;
            if (frame.kind == QUOIT_FRAME_PUT_SIGNAL)
                frame.kind = QUOIT_FRAME_PUT; /* the signal follows the last one */
        } else {
            frame.bytes = whole->bytes - at;
        }
        frame.offset += is_strided ? (uint64_t)((int64_t)(at / whole->size) * (int64_t)whole->operand) : at;
        if (frame.kind == QUOIT_FRAME_GET_STRIDED)
            frame.operand2 = at; /* comes back with the data */
        append_request(network, &frame, payload + at);
        part_count++;
        at += frame.bytes;
    } while (at < whole->bytes && network->lane->status == QUOIT_OK);
    return part_count;
}

/* Of requests to the host that a message from there will end there is one more, or one less. */
static void count_open(struct network *network, uint32_t host, bool is_more)
{
    struct flow *flow = &network->flows[host];
    uint32_t before = flow->open_count;
    flow->open_count = is_more ? before + 1 : before - 1;
    if (before == 0 || flow->open_count == 0)
        quoit_net_await(network->net, host, is_more);
}

/* Behind those that wait already. */
static void wait_in_flow(struct network *network, struct flow *flow, uint64_t cookie)
{
    network->open[cookie].next = 0;
    if (flow->last_open)
        network->open[flow->last_open - 1].next = (uint32_t)cookie + 1;
    else
        flow->first_open = (uint32_t)cookie + 1;
    flow->last_open = (uint32_t)cookie + 1;
}

static void wait_for_ack(struct network *network, uint64_t cookie)
{
    struct open *open = &network->open[cookie];
    struct flow *flow = &network->flows[open->frame.dest_host];
    open->state = OPEN_UNTIL_ACK;
    open->sequence = flow->sent_sequence;
    wait_in_flow(network, flow, cookie);
}

static void complete(struct network *network, uint64_t cookie)
{
    struct open *open = &network->open[cookie];
    if (open->state == OPEN_UNTIL_ACK || open->state == OPEN_UNTIL_REPLY)
        count_open(network, open->frame.dest_host, false);
    open->state = OPEN_NONE;
    quoit_lane_complete(network->lane, cookie);
}

/* Messages to the host are done: nobody acknowledges them any more. Requests of PEs stay open, and the job ends. */
static void drop_messages(struct network *network, uint32_t host)
{
    struct flow *flow = &network->flows[host];
    uint64_t first_message = quoit_lane_cookie(network->lane->layout->local_count, 0);
    uint32_t next = flow->first_open;
    flow->first_open = flow->last_open = 0;
    while (next) {
        uint64_t cookie = next - 1;
        next = network->open[cookie].next;
        if (cookie >= first_message)
            complete(network, cookie);
        else
            wait_in_flow(network, flow, cookie);
    }
}

static void lose(struct network *network, uint32_t host, bool is_silent)
{
    const struct quoit_lane_network *config = network->lane->group->network;
    struct flow *flow = &network->flows[host];
    drop_messages(network, host);
    if (flow->is_lost_told || quoit_lane_is_stopping(network->lane))
        return;
    flow->is_lost_told = true;
    config->on_lost(config->arg, host, is_silent);
}

/* Payload from memory to memory. False: not now, or never: then the lane has failed or the host is lost. */
static bool begin_transfer(struct network *network, uint64_t cookie, const struct quoit_frame *frame)
{
    struct quoit_lane *lane = network->lane;
    const struct quoit_network_reach *reach = &network->reaches[frame->dest_host];
    char *memory = lane->memory + lane->issued[cookie].data_offset;
    uint64_t offset = reach->segments + frame->dest_pe * lane->layout->segment_stride + frame->offset;
    bool is_put = frame->kind != QUOIT_FRAME_GET;
    enum quoit_status status =
        is_put ? quoit_net_put(network->net, reach->window, offset, memory, network->region, frame->bytes, cookie)
               : quoit_net_get(network->net, reach->window, offset, memory, network->region, frame->bytes, cookie);
    if (status == QUOIT_GONE)
        lose(network, frame->dest_host, false);
    else if (status != QUOIT_OK && status != QUOIT_FULL)
        quoit_lane_fail(lane, status);
    if (status != QUOIT_OK)
        return false;
    struct quoit_network_count *counts = &lane->shared->network;
    if (is_put)
        count_one(&counts->put_count, &counts->put_bytes, frame->bytes);
    else
        count_one(&counts->get_count, &counts->get_bytes, frame->bytes);
    network->open[cookie].state = is_put ? OPEN_PUT : OPEN_GET;
    quoit_network_transfers_begin(&network->transfers, cookie, frame);
    return true;
}

/* Whether the payload of a put is a put of the network. */
static bool lands(const struct quoit_frame *frame)
{
    return (frame->kind == QUOIT_FRAME_PUT || frame->kind == QUOIT_FRAME_PUT_SIGNAL) &&
           (frame->flags & QUOIT_FRAME_ORDERED) == 0 && frame->bytes > FRAMED_BYTES;
}

/* False: not now. */
static bool begin(struct network *network, uint64_t cookie, const struct quoit_frame *frame)
{
    struct quoit_lane *lane = network->lane;
    struct open *open = &network->open[cookie];
    bool is_ordered = (frame->flags & QUOIT_FRAME_ORDERED) != 0;
    bool has_signal = frame->kind == QUOIT_FRAME_PUT_SIGNAL;
    quoit_assert(open->state == OPEN_NONE);
    open->frame = *frame;
    open->frame.token = (uint32_t)cookie;
    if (has_signal)
        open->frame.flags |= QUOIT_FRAME_PATIENT;
    if (frame->kind == QUOIT_FRAME_GET)
        return begin_transfer(network, cookie, frame);
    if (lands(frame))
        return begin_transfer(network, cookie, frame);
    if ((is_ordered || has_signal) &&
        quoit_network_transfers_pending(&network->transfers, frame->source_pe, frame->dest_host))
        return false;
    const struct flow *flow = &network->flows[frame->dest_host];
    if (flow->out_tail - flow->out_head > FLOW_BYTES)
        return false;
    open->part_count = append_parts(network, &open->frame, lane->memory + lane->issued[cookie].data_offset);
    count_open(network, frame->dest_host, true);
    open->state = OPEN_UNTIL_REPLY;
    open->reply_kind = frame->kind == QUOIT_FRAME_AMO_FETCH ? QUOIT_FRAME_VALUE : QUOIT_FRAME_DATA;
    if (!quoit_frame_needs_response(frame->kind))
        wait_for_ack(network, cookie);
    return true;
}

static uint32_t poll_pe(struct network *network, uint32_t local)
{
    struct quoit_lane *lane = network->lane;
    struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
    uint32_t tail = atomic_load_explicit(&channel->submit_tail, memory_order_acquire), done_count = 0;
    while (lane->submit_heads[local] != tail && done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        uint16_t index = channel->submit[lane->submit_heads[local] % QUOIT_REQUESTS_A_CHANNEL];
        struct quoit_frame frame;
        uint32_t spread;
        enum quoit_status status = quoit_lane_take_request(lane, local, index, &frame, &spread);
        uint64_t cookie = quoit_lane_cookie(local, index);
        if (status == QUOIT_OK && network->open[cookie].state != OPEN_NONE) {
            quoit_log(QUOIT_LOG_ERROR, "PE %u handed over request %u twice: its memory is damaged",
                      lane->layout->first_pe + local, index);
            status = QUOIT_INVALID;
        }
        if (status != QUOIT_OK) {
            quoit_lane_fail(lane, status);
            break;
        }
        if (!begin(network, cookie, &frame))
            break; /* what makes room for it comes through the network, and wakes the lane */
        lane->submit_heads[local]++;
        done_count++;
    }
    return done_count;
}

/* Messages of this host; their cookies follow those of the PEs. */
static uint32_t poll_outbox(struct network *network)
{
    struct quoit_lane *lane = network->lane;
    struct quoit_outbox *outbox = lane->group->outbox;
    const struct quoit_frame *frame;
    uint32_t done_count = 0, entry;
    while (outbox && lane->status == QUOIT_OK && (frame = quoit_outbox_next(outbox, &entry)) != NULL) {
        uint64_t cookie = quoit_lane_cookie(lane->layout->local_count, entry);
        struct open *open = &network->open[cookie];
        quoit_assert(open->state == OPEN_NONE);
        open->frame = *frame;
        append_request(network, &open->frame, lane->memory + quoit_layout_message(lane->layout, entry));
        count_open(network, frame->dest_host, true);
        wait_for_ack(network, cookie);
        quoit_outbox_taken(outbox);
        if (!quoit_net_is_connected(network->net, frame->dest_host))
            lose(network, frame->dest_host, false);
        done_count++;
    }
    return done_count;
}

/* What arrives */

static bool take_ack(struct network *network, uint32_t host, uint32_t sequence)
{
    struct flow *flow = &network->flows[host];
    if (sequence - flow->acknowledged > flow->sent_sequence - flow->acknowledged)
        return false;
    flow->acknowledged = sequence;
    while (flow->first_open) {
        struct open *open = &network->open[flow->first_open - 1];
        uint64_t cookie = flow->first_open - 1;
        if ((int32_t)(sequence - open->sequence) < 0)
            break;
        flow->first_open = open->next;
        if (!flow->first_open)
            flow->last_open = 0;
        complete(network, cookie);
    }
    return true;
}

static bool take_reply(struct network *network, const struct quoit_frame *frame, const char *payload)
{
    struct quoit_lane *lane = network->lane;
    uint64_t cookie = frame->token;
    if (cookie >= quoit_lane_cookie(lane->layout->local_count, 0))
        return false;
    struct open *open = &network->open[cookie];
    const struct quoit_issued *issued = &lane->issued[cookie];
    if (open->state != OPEN_UNTIL_REPLY || open->reply_kind != frame->kind ||
        open->frame.dest_host != frame->source_host || cookie / QUOIT_REQUESTS_A_CHANNEL != frame->dest_pe)
        return false;
    if (frame->kind == QUOIT_FRAME_VALUE) {
        quoit_lane_deliver(lane, &(struct quoit_verdict){.frame = *frame, .cookie = cookie}, payload);
    } else { /* a part of it */
        if (frame->operand2 > issued->bytes || frame->bytes > issued->bytes - frame->operand2)
            return false;
        memcpy(lane->memory + issued->data_offset + frame->operand2, payload, frame->bytes);
    }
    if (--open->part_count == 0)
        complete(network, cookie);
    return true;
}

/* quoit_lane_deliver() calls respond(), which counts it or replies. */
static bool take_request(struct network *network, const struct quoit_frame *frame, const char *payload)
{
    struct flow *flow = &network->flows[network->sender];
    if (quoit_frame_needs_response(frame->kind)) {
        if (frame->kind == QUOIT_FRAME_GET || frame->bytes > network->part_bytes)
            return false; /* its data would not fit a reply */
    } else if (frame->flow_sequence != flow->executed_sequence + 1) {
        return false;
    }
    quoit_lane_deliver(network->lane, &(struct quoit_verdict){.kind = QUOIT_VERDICT_DELIVER, .frame = *frame}, payload);
    return true;
}

/* What PEs send by themselves: see engine/ring/pe_endpoint.h. */
static bool is_of_pe_endpoint(const struct network *network, const struct quoit_frame *frame)
{
    static const uint32_t kinds =
        1u << QUOIT_FRAME_PUT | 1u << QUOIT_FRAME_PUT_SIGNAL | 1u << QUOIT_FRAME_AMO | 1u << QUOIT_FRAME_AMO_FETCH;
    const struct quoit_job_config *job = &network->lane->layout->job;
    uint32_t pe = quoit_job_config_first_pe(job, frame->source_host) + frame->source_pe;
    return (kinds >> frame->kind & 1) != 0 && pe == network->sender - job->host_count;
}

static bool take(struct network *network, const struct quoit_frame *frame, const char *payload)
{
    const struct quoit_frame_limits limits = quoit_lane_limits(network->lane);
    enum quoit_class class = quoit_frame_class(frame->kind);
    if (quoit_frame_check(frame, class, &limits) != QUOIT_OK ||
        frame->source_host != quoit_contacts_host_of(&network->lane->layout->job, network->sender) ||
        frame->dest_host != network->lane->layout->host || frame->kind == QUOIT_FRAME_TOPOLOGY ||
        (network->sender >= limits.host_count && !is_of_pe_endpoint(network, frame)))
        return false;
    if (frame->kind == QUOIT_FRAME_ACK)
        return take_ack(network, network->sender, frame->flow_sequence);
    uint64_t begin_ns = quoit_lane_trace_now(network->lane);
    bool is_taken =
        class == QUOIT_CLASS_REPLY ? take_reply(network, frame, payload) : take_request(network, frame, payload);
    quoit_lane_trace_frame(network->lane, QUOIT_TRACE_DELIVER, frame, QUOIT_LEFT, begin_ns);
    return is_taken;
}

static void on_message(void *arg, uint32_t host, const void *message, uint32_t bytes)
{
    struct network *network = arg;
    uint32_t at = 0;
    network->sender = host;
    while (at < bytes && network->lane->status == QUOIT_OK) {
        struct quoit_frame frame = {0};
        const char *record = (const char *)message + at;
        uint32_t rest = bytes - at, payload_bytes = 0;
        if (rest >= QUOIT_FRAME_BYTES) {
            memcpy(&frame, record, sizeof frame);
            payload_bytes = quoit_frame_payload_bytes(&frame);
            rest -= QUOIT_FRAME_BYTES;
        }
        if (payload_bytes > rest || !take(network, &frame, record + QUOIT_FRAME_BYTES)) {
            quoit_log(QUOIT_LOG_ERROR, "a malformed frame came from host %u: kind %u",
                      quoit_contacts_host_of(&network->lane->layout->job, host), frame.kind);
            quoit_lane_fail(network->lane, QUOIT_INVALID);
            return;
        }
        at += QUOIT_FRAME_BYTES + padded(payload_bytes);
    }
}

static void respond(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value)
{
    struct network *network = lane->state;
    if (!quoit_frame_needs_response(request->kind)) {
        struct flow *flow = &network->flows[network->sender];
        flow->executed_sequence++;
        flow->is_ack_due |= !(request->flags & QUOIT_FRAME_PATIENT);
        mark_busy(network, network->sender);
        return;
    }
    struct quoit_frame reply = *request;
    reply.kind = request->kind == QUOIT_FRAME_AMO_FETCH ? QUOIT_FRAME_VALUE : QUOIT_FRAME_DATA;
    reply.flags = 0;
    reply.source_host = request->dest_host;
    reply.source_pe = request->dest_pe;
    reply.dest_host = request->source_host;
    reply.dest_pe = request->source_pe;
    if (reply.kind == QUOIT_FRAME_VALUE)
        reply.operand = value;
    append(network, network->sender, &reply,
           reply.kind == QUOIT_FRAME_DATA ? quoit_lane_reply_payload(lane, &reply) : NULL);
}

/* The frame of a put of the network, which wakes the PE; nothing waits for it unless it has a signal. */
static void tell_landed(struct network *network, uint64_t cookie)
{
    struct open *open = &network->open[cookie];
    open->frame.flags |= QUOIT_FRAME_LANDED;
    append_request(network, &open->frame, NULL);
    if (open->frame.kind == QUOIT_FRAME_PUT_SIGNAL) {
        count_open(network, open->frame.dest_host, true);
        wait_for_ack(network, cookie);
    } else {
        complete(network, cookie);
    }
}

/* A put or get of the network. */
static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    struct network *network = arg;
    struct open *open = &network->open[cookie];
    uint32_t pe = open->frame.source_pe;
    if (status != QUOIT_OK) /* the host is lost, and the job ends */
        return;
    quoit_network_transfers_done(&network->transfers, cookie, &open->frame);
    if (open->state == OPEN_GET) {
        complete(network, cookie);
        return;
    }
    while (quoit_network_transfers_told(&network->transfers, pe, host, &cookie))
        tell_landed(network, cookie);
}

static void on_lost(void *arg, uint32_t host, enum quoit_status status)
{
    struct network *network = arg;
    struct flow *flow = &network->flows[host];
    if (host >= network->lane->layout->job.host_count) { /* a PE has closed its end */
        *flow = (struct flow){.out = flow->out, .out_bytes = flow->out_bytes, .is_busy = flow->is_busy};
        return;
    }
    const char *why = quoit_net_why(network->net);
    if (why[0] && !quoit_lane_is_stopping(network->lane))
        quoit_say("host %u does not reach host %u %s [Q0130]", network->lane->layout->host, host, why);
    quoit_log(QUOIT_LOG_INFO, "host %u is lost: %s", host, quoit_status_text(status));
    quoit_lane_count_up(&network->lane->shared->network.lost_count, 1);
    lose(network, host, status == QUOIT_TIMEOUT);
}

static void on_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns)
{
    const struct quoit_lane *lane = ((const struct network *)arg)->lane;
    const struct quoit_lane_network *config = lane->group->network;
    if (config->on_silence && !quoit_lane_is_stopping(lane))
        config->on_silence(config->arg, host, silence, silent_ns, dark_ns);
}

/* Of several links it is the smallest. */
static void on_narrowed(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes)
{
    const struct quoit_lane *lane = ((const struct network *)arg)->lane;
    const struct quoit_job_config *job = &lane->layout->job;
    struct quoit_contacts *contacts = quoit_memory_contacts(lane->layout, lane->memory);
    if (contacts)
        atomic_store_explicit(&contacts->segment_bytes, bytes, memory_order_relaxed);
    if (lost_bytes != 0 && host < job->host_count)
        quoit_say(
            "host %u goes on with packets of TCP that carry %u bytes: on the way to host %u those of %u get lost, "
            "and nobody reports it: is the MTU of a link there smaller? [Q0133]",
            lane->layout->host, bytes, host, lost_bytes);
}

static uint64_t sign_age_ns(void *arg, uint32_t host)
{
    const struct quoit_lane_network *config = ((const struct network *)arg)->lane->group->network;
    return config->sign_age_ns ? config->sign_age_ns(config->arg, host) : UINT64_MAX;
}

static void on_left(void *arg, uint32_t host)
{
    drop_messages(arg, host);
}

/* The engine */

static uint32_t step(struct quoit_lane *lane)
{
    struct network *network = lane->state;
    uint32_t local_count = lane->layout->local_count;
    uint32_t done_count = quoit_net_progress(network->net);
    for (uint32_t i = 0; i < local_count; i++)
        done_count += poll_pe(network, (lane->first_pe_turn + i) % local_count);
    lane->first_pe_turn = (lane->first_pe_turn + 1) % local_count;
    done_count += poll_outbox(network);
    uint32_t told_count = send_all(network);
    if (network->is_arming) { /* what was sent since the network was armed may need progress */
        network->is_arming = false;
        done_count += told_count;
    }
    return done_count;
}

static enum quoit_status open_and_join(struct network *network, const struct quoit_lane_network *config,
                                       struct quoit_network_retry *retry)
{
    struct quoit_lane *lane = network->lane;
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config net = {.driver = config->driver,
                                         .provider = config->provider,
                                         .device = retry->device[0] ? retry->device : config->device,
                                         .ports = config->ports,
                                         .host = lane->layout->host,
                                         .host_count = lane->layout->job.host_count,
                                         .pe_endpoint_count = network->pe_endpoint_count,
                                         .tag = config->tag,
                                         .lost_limit_ns = config->lost_limit_ns,
                                         .start_limit_ns = config->start_limit_ns,
                                         .memory = lane->memory,
                                         .memory_bytes = lane->layout->total_bytes,
                                         .on_done = on_done,
                                         .on_message = on_message,
                                         .on_lost = on_lost,
                                         .on_left = on_left,
                                         .on_silence = on_silence,
                                         .sign_age_ns = sign_age_ns,
                                         .on_narrowed = on_narrowed,
                                         .arg = network};
    quoit_net_close(network->net);
    network->net = NULL;
    enum quoit_status status = quoit_net_open(&net, &network->net, problem);
    if (status != QUOIT_OK) {
        quoit_say("host %u cannot join the network: %s [Q0222]", lane->layout->host, problem);
        return status;
    }
    const struct quoit_net_limits *limits = quoit_net_limits(network->net);
    network->part_bytes = limits->message_bytes - QUOIT_FRAME_BYTES;
    if (network->part_bytes < FRAMED_BYTES || limits->alignment > 1 ||
        limits->transfer_bytes < lane->layout->job.chunk_bytes) {
        quoit_say("the network's driver %s cannot carry a job [Q0222]", quoit_net_choice(network->net)->driver);
        return QUOIT_UNSUPPORTED;
    }
    network->region = quoit_net_region(network->net);
    return quoit_network_join(lane, network->net, network->pe_endpoint_count > 0, retry, network->reaches);
}

static enum quoit_status join(struct network *network, const struct quoit_lane_network *config)
{
    struct quoit_lane *lane = network->lane;
    struct quoit_network_retry retry = {.is_due = false};
    enum quoit_status status;
    do
        status = open_and_join(network, config, &retry);
    while (status == QUOIT_OK && retry.is_due);
    quoit_network_retry_close(&retry);
    if (status != QUOIT_OK)
        return status;
    status = quoit_network_sleep_open(network->net, lane->waiter.park, &network->sleep);
    if (status == QUOIT_SYSTEM)
        quoit_say("host %u cannot join the network: no descriptor to wait for it: %s (ulimit -n) [Q0222]",
                  lane->layout->host, strerror(errno));
    return status;
}

static enum quoit_status open(struct quoit_lane *lane)
{
    struct network *network = calloc(1, sizeof *network);
    uint32_t host_count = lane->layout->job.host_count, local_count = lane->layout->local_count;
    lane->state = network;
    if (!network)
        return QUOIT_NO_MEMORY;
    quoit_assert(lane->index == lane->layout->link_lane_count);
    network->lane = lane;
    network->open = calloc(quoit_lane_cookie(local_count, QUOIT_MESSAGES_MAX), sizeof *network->open);
    network->pe_endpoint_count = quoit_contacts_pe_endpoint_count(&lane->layout->job);
    network->reaches = calloc(host_count, sizeof *network->reaches);
    network->flows = calloc(host_count + network->pe_endpoint_count, sizeof *network->flows);
    network->busy_hosts = calloc(host_count + network->pe_endpoint_count, sizeof *network->busy_hosts);
    if (!network->open || !network->reaches || !network->flows || !network->busy_hosts ||
        quoit_network_transfers_open(&network->transfers, lane, quoit_lane_cookie(local_count, 0)) != QUOIT_OK)
        return QUOIT_NO_MEMORY;
    return join(network, lane->group->network);
}

static void close(struct quoit_lane *lane)
{
    struct network *network = lane->state;
    if (!network)
        return;
    quoit_network_sleep_close(network->sleep);
    if (network->net && quoit_net_leave(network->net, LEAVE_NS) != QUOIT_OK)
        quoit_log(QUOIT_LOG_DEBUG, "some hosts have ended without a farewell");
    quoit_net_close(network->net);
    for (uint32_t i = 0; i < lane->layout->job.host_count + network->pe_endpoint_count && network->flows; i++)
        free(network->flows[i].out);
    quoit_network_transfers_close(&network->transfers);
    free(network->busy_hosts);
    free(network->flows);
    free(network->reaches);
    free(network->open);
    free(network);
}

static void arm(struct quoit_lane *lane)
{
    struct network *network = lane->state;
    network->is_arming = true;
    quoit_network_sleep_arm(network->sleep);
}

static bool is_quiescent(const struct quoit_lane *lane)
{
    const struct network *network = lane->state;
    for (uint64_t cookie = 0; cookie < quoit_lane_cookie(lane->layout->local_count, QUOIT_MESSAGES_MAX); cookie++)
        if (network->open[cookie].state != OPEN_NONE)
            return false;
    return network->busy_count == 0;
}

static void check(const struct quoit_lane *lane)
{
    const struct network *network = lane->state;
    for (uint32_t i = 0; i < lane->layout->job.host_count + network->pe_endpoint_count; i++) {
        const struct flow *flow = &network->flows[i];
        quoit_assert(flow->out_head <= flow->out_tail);
        quoit_assert(flow->out_tail <= flow->out_bytes);
        quoit_assert((flow->first_open == 0) == (flow->last_open == 0));
    }
}

const struct quoit_lane_engine quoit_network_engine = {
    .open = open,
    .close = close,
    .step = step,
    .respond = respond,
    .arm = arm,
    .is_quiescent = is_quiescent,
    .check = check,
};
