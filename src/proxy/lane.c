/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/lane.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/observer.h"
#include "env/clock.h"
#include "proxy/scratchpad_lane.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_COUNT       16  /* frames of one queue, requests of one PE, before the others have their turn */
#define INLINE_BYTES      512 /* up to here payload and header go out in one write */
#define LAND_BYTES        512 /* beyond it the last hop writes straight into the segment: one copy less */
#define PENDING_REPLY_MAX 64
#define HOLD_AFTER_NS     50000
#define HOLD_FOR_NS       20000

/* What a write through a port came to. A frame lost with its link is the ring's to send again. */
static void note_write(struct quoit_lane *lane, enum quoit_status status)
{
    if (status != QUOIT_OK && status != QUOIT_LINK_DOWN)
        quoit_lane_fail(lane, status);
}

static bool is_up(const struct quoit_lane *lane, enum quoit_side side)
{
    return atomic_load_explicit(&lane->reached[side], memory_order_relaxed) & 1;
}

static void hold(struct quoit_lane *lane, const struct quoit_verdict *verdict)
{
    if (verdict->hold_until_ns && (!lane->hold_until_ns || verdict->hold_until_ns < lane->hold_until_ns))
        lane->hold_until_ns = verdict->hold_until_ns;
}

/* Payload of a put whose destination is the neighbour goes straight to where it belongs, if the window reaches there.
 */
static bool lands(const struct quoit_lane *lane, const struct quoit_verdict *verdict, uint64_t *at_out)
{
    const struct quoit_frame *frame = &verdict->frame;
    if (!verdict->may_land || frame->bytes <= LAND_BYTES ||
        (frame->kind != QUOIT_FRAME_PUT && frame->kind != QUOIT_FRAME_PUT_SIGNAL))
        return false;
    uint64_t at = frame->dest_pe * lane->layout->segment_stride + frame->offset;
    uint64_t covered = lane->landing_bytes[verdict->side];
    if (at > covered || frame->bytes > covered - at)
        return false;
    *at_out = at;
    return true;
}

/* Payload pointer that is valid for memcpy of zero bytes too. */
static const char no_payload[1];

/* Writes the header, with the payload behind it if that is small, then, alone and last, the sequence that makes the
 * slot valid. */
static void publish(struct quoit_lane *lane, enum quoit_side side, uint64_t slot_at, const struct quoit_frame *frame,
                    const char *payload, uint32_t inline_bytes)
{
    struct quoit_port *port = lane->ports[side];
    char header[QUOIT_FRAME_BYTES + INLINE_BYTES];
    memcpy(header, frame, QUOIT_FRAME_BYTES);
    memcpy(header + QUOIT_FRAME_BYTES, payload, inline_bytes);
    enum quoit_status status =
        quoit_port_write(port, QUOIT_WINDOW_SLOTS, slot_at + sizeof(uint64_t), header + sizeof(uint64_t),
                         QUOIT_FRAME_BYTES + inline_bytes - sizeof(uint64_t));
    if (status == QUOIT_OK)
        status = quoit_port_write64(port, QUOIT_WINDOW_SLOTS, slot_at, frame->sequence);
    note_write(lane, status);
    lane->must_ring[side] = true;
}

/* A payload that travels apart from its header. True: it is there. False: it is under way, and the header goes when it
 * has arrived; or it is lost with its link. */
static bool place(struct quoit_lane *lane, const struct quoit_move *move, const struct quoit_departure *departure)
{
    uint32_t index;
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    if (move->source != lane->gather && quoit_mover_start(lane->mover, move, &index)) {
        lane->departures[index] = *departure;
        lane->departures[index].begin_ns = begin_ns;
        quoit_lane_count_up(&lane->shared->out[move->side].dma_count, move->bytes);
        return false;
    }
    enum quoit_status status =
        quoit_port_write(lane->ports[move->side], move->window, move->offset, move->source, move->bytes);
    note_write(lane, status);
    return status == QUOIT_OK;
}

/* `from` names the inbound slot of what is relayed; NULL: it starts here. */
static void depart(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload,
                   const struct quoit_departure *from)
{
    uint32_t bytes = quoit_frame_payload_bytes(&verdict->frame);
    struct quoit_link_count *count = &lane->shared->out[verdict->side];
    quoit_lane_count_up(&count->byte_count, bytes);
    quoit_lane_count_up(&count->message_count, 1);
    quoit_lane_count_up(&count->relay_count, from != NULL);
    lane->settling.moved_bytes += bytes;

    struct quoit_departure departure = from ? *from : (struct quoit_departure){0};
    departure.frame = verdict->frame;
    departure.side = verdict->side;
    departure.slot_at = quoit_layout_slot(lane->layout, lane->index, verdict->class, verdict->slot_index);
    struct quoit_move move = {.side = verdict->side,
                              .window = QUOIT_WINDOW_SLOTS,
                              .offset = departure.slot_at + QUOIT_FRAME_BYTES,
                              .source = payload,
                              .bytes = bytes};
    if (lands(lane, verdict, &move.offset)) {
        departure.frame.flags |= QUOIT_FRAME_LANDED;
        move.window = QUOIT_WINDOW_MEMORY;
    } else if (bytes <= INLINE_BYTES) {
        publish(lane, verdict->side, departure.slot_at, &departure.frame, payload, bytes);
        return;
    }
    if (place(lane, &move, &departure))
        publish(lane, verdict->side, departure.slot_at, &departure.frame, payload, 0);
}

static void send(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload,
                 const struct quoit_departure *from)
{
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    depart(lane, verdict, payload, from);
    quoit_lane_trace_frame(lane, from ? QUOIT_TRACE_RELAY : QUOIT_TRACE_SEND, &verdict->frame, verdict->side, begin_ns);
}

static void deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload,
                    enum quoit_side side)
{
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    quoit_lane_deliver(lane, verdict, payload);
    lane->settling.moved_bytes += verdict->frame.bytes;
    quoit_lane_trace_frame(lane, QUOIT_TRACE_DELIVER, &verdict->frame, side, begin_ns);
}

/* Slots that departures still read are not given back. */
static void keep_slots(struct quoit_lane *lane)
{
    uint32_t counts[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT] = {{0}};
    if (!lane->keeps_slots && lane->mover->busy == 0)
        return;
    lane->keeps_slots = lane->mover->busy != 0;
    for (uint64_t left = lane->mover->busy; left; left &= left - 1) {
        const struct quoit_departure *departure = &lane->departures[__builtin_ctzll(left)];
        if (departure->from_sequence == 0)
            continue;
        uint32_t *count = &counts[departure->from_side][departure->from_class];
        uint64_t back =
            quoit_ring_expected(lane->ring, departure->from_side, departure->from_class) - departure->from_sequence;
        *count = back > *count ? (uint32_t)back : *count;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++)
            quoit_ring_keep_slots(lane->ring, side, class, counts[side][class]);
}

/* What has arrived by DMA is announced; what was lost with its link is the ring's to send again. */
static uint32_t announce_departures(struct quoit_lane *lane)
{
    uint32_t index, done_count = 0;
    enum quoit_status status;
    while (lane->status == QUOIT_OK && quoit_mover_next(lane->mover, &index, &status)) {
        const struct quoit_departure *departure = &lane->departures[index];
        quoit_lane_trace_dma(lane, &departure->frame, departure->side, index, departure->begin_ns);
        if (status == QUOIT_OK)
            publish(lane, departure->side, departure->slot_at, &departure->frame, no_payload, 0);
        note_write(lane, status);
        done_count++;
    }
    keep_slots(lane);
    return done_count;
}

static void answer(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value)
{
    if (quoit_frame_asks(request->kind)) /* the ring acknowledges the others */
        quoit_ring_reply(lane->ring, request, value);
}

static uint32_t poll_queue(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class, uint64_t now_ns)
{
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK && is_up(lane, side)) {
        uint64_t expected = quoit_ring_expected(lane->ring, side, class);
        uint32_t slot_index = (uint32_t)((expected - 1) % lane->layout->job.slot_count);
        char *slot =
            lane->memory + lane->layout->slots[side] + quoit_layout_slot(lane->layout, lane->index, class, slot_index);
        if (__atomic_load_n((uint64_t *)slot, __ATOMIC_ACQUIRE) != expected) /* pairs with the neighbour's write64 */
            break;
        struct quoit_frame frame;
        struct quoit_verdict verdict;
        memcpy(&frame, slot, sizeof frame);
        if (frame.kind == QUOIT_FRAME_TOPOLOGY && !quoit_mover_rest(lane->mover))
            break; /* what was sent under the old topology arrives before anybody hears of the new one */
        quoit_observe(frame_received, lane, &frame);
        enum quoit_status status = quoit_ring_receive(lane->ring, side, class, &frame, now_ns, &verdict);
        quoit_observe(frame_taken, lane, side, class, &frame, status, &verdict);
        if (status != QUOIT_OK) {
            quoit_log(QUOIT_LOG_ERROR, "a malformed frame came from the %s: kind %u",
                      side == QUOIT_LEFT ? "left" : "right", frame.kind);
            quoit_lane_fail(lane, status);
            break;
        }
        if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE) {
            hold(lane, &verdict);
            break;
        }
        if (verdict.kind == QUOIT_VERDICT_SEND)
            send(lane, &verdict, slot + QUOIT_FRAME_BYTES,
                 &(struct quoit_departure){.from_side = side, .from_class = class, .from_sequence = expected});
        else if (verdict.kind == QUOIT_VERDICT_CONSUMED)
            lane->has_news |= frame.kind == QUOIT_FRAME_TOPOLOGY;
        else if (verdict.kind == QUOIT_VERDICT_DELIVER)
            deliver(lane, &verdict, slot + QUOIT_FRAME_BYTES, side);
        done_count++;
    }
    return done_count;
}

/* Requests that may be lost go out again before new ones; their payload is held until they are complete. */
static uint32_t send_again(struct quoit_lane *lane, uint64_t now_ns)
{
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        struct quoit_verdict verdict;
        quoit_ring_next_resend(lane->ring, now_ns, &verdict);
        if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE) {
            hold(lane, &verdict);
            break;
        }
        send(lane, &verdict, lane->memory + lane->issued[verdict.cookie].data_offset, NULL);
        quoit_lane_count_up(&lane->shared->out[verdict.side].resend_count, 1);
        done_count++;
    }
    return done_count;
}

static uint32_t poll_pe(struct quoit_lane *lane, uint32_t local, uint64_t now_ns)
{
    struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
    uint32_t tail = atomic_load_explicit(&channel->submit_tail, memory_order_acquire);
    uint32_t done_count = 0;
    while (lane->submit_heads[local] != tail && done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        uint16_t index = channel->submit[lane->submit_heads[local] % QUOIT_REQUESTS_A_CHANNEL];
        struct quoit_frame frame;
        struct quoit_verdict verdict;
        uint32_t spread;
        enum quoit_status status = quoit_lane_take_request(lane, local, index, &frame, &spread);
        if (status != QUOIT_OK) {
            quoit_lane_fail(lane, status);
            break;
        }
        uint64_t cookie = quoit_lane_cookie(local, index);
        quoit_ring_submit(lane->ring, &frame, spread, cookie, now_ns, &verdict);
        if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE) {
            hold(lane, &verdict);
            break;
        }
        send(lane, &verdict, lane->memory + lane->issued[cookie].data_offset, NULL);
        lane->submit_heads[local]++;
        done_count++;
    }
    return done_count;
}

static uint32_t send_replies(struct quoit_lane *lane, uint64_t now_ns)
{
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        struct quoit_verdict verdict;
        quoit_ring_next_reply(lane->ring, now_ns, &verdict);
        if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE) {
            hold(lane, &verdict);
            break;
        }
        const char *payload =
            verdict.frame.kind == QUOIT_FRAME_DATA ? quoit_lane_reply_payload(lane, &verdict.frame) : no_payload;
        send(lane, &verdict, payload, NULL);
        done_count++;
    }
    return done_count;
}

/* Before anything else is looked at: what is held for want of a slot must not be held, and slept over, when the credit
 * came with the doorbell that was cleared just now. */
static void take_credits(struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT && is_up(lane, side); class ++) {
            uint64_t at = quoit_layout_credit(lane->layout, lane->index, class);
            uint64_t *inbound = (uint64_t *)(lane->memory + lane->layout->slots[side] + at);
            uint64_t total = __atomic_load_n(inbound, __ATOMIC_ACQUIRE);
            enum quoit_status status = quoit_ring_credit(lane->ring, side, class, total);
            quoit_lane_trace_credit(lane, side, class, total);
            if (status != QUOIT_OK)
                quoit_lane_fail(lane, status);
        }
    }
}

static uint32_t return_credits(struct quoit_lane *lane, bool is_idle)
{
    uint32_t done_count = 0;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++) {
            if (!quoit_ring_credit_due(lane->ring, side, class, is_idle))
                continue;
            uint64_t at = quoit_layout_credit(lane->layout, lane->index, class);
            enum quoit_status status = quoit_port_write64(lane->ports[side], QUOIT_WINDOW_SLOTS, at,
                                                          quoit_ring_consumed_total(lane->ring, side, class));
            quoit_ring_credit_told(lane->ring, side, class);
            lane->must_ring[side] = true;
            done_count++;
            note_write(lane, status);
        }
    }
    return done_count;
}

static void ring_doorbells(struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        if (!lane->must_ring[side])
            continue;
        quoit_port_ring(lane->ports[side], 1u << QUOIT_DOORBELL_LANE(lane->index));
        quoit_lane_count_up(&lane->shared->out[side].doorbell_count, 1);
        lane->must_ring[side] = false;
    }
}

/* Tells the manager what the ring has heard of the links. */
static void tell_news(struct quoit_lane *lane)
{
    struct quoit_ring_topology topology;
    lane->has_news = false;
    quoit_ring_topology(lane->ring, &topology);
    uint64_t dead =
        topology.dead_count < 2 ? 0 : ((uint64_t)topology.dead_links[0] + 1) << 32 | (topology.dead_links[1] + 1);
    atomic_store_explicit(&lane->dead_links, dead, memory_order_release);
    quoit_park_wake(&((struct quoit_host_header *)lane->memory)->manager_park);
}

/* Does what the manager wants of a side, and says so. */
static void follow_links(struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t wanted = atomic_load_explicit(&lane->wanted[side], memory_order_acquire);
        if (__builtin_expect(wanted == atomic_load_explicit(&lane->reached[side], memory_order_relaxed), 1))
            continue;
        if (!quoit_mover_rest(lane->mover))
            continue; /* nothing is written after it is said to have stopped */
        if (wanted & 1)
            quoit_ring_link_up(lane->ring, side, wanted >> 1);
        else if (is_up(lane, side)) /* else it was up for so short a time that this lane has not seen it */
            quoit_ring_link_down(lane->ring, side);
        lane->must_ring[side] = false;
        lane->has_news = true;
        quoit_observe(link_followed, lane, side);
        quoit_lane_trace_link(lane, side, wanted & 1);
        atomic_store_explicit(&lane->reached[side], wanted, memory_order_release);
    }
}

/* One look at everything; true when there was something to do or something rests for a short time, or when it is time
 * to end. */
static bool step(void *arg)
{
    struct quoit_lane *lane = arg;
    if (lane->status != QUOIT_OK || quoit_lane_is_stopping(lane))
        return true;
    uint64_t now_ns = quoit_clock_now_ns();
    uint64_t cookie;
    uint32_t done_count = 0;
    lane->hold_until_ns = 0;
    done_count += announce_departures(lane);
    follow_links(lane);
    take_credits(lane);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        done_count += poll_queue(lane, side, QUOIT_CLASS_REPLY, now_ns);
    done_count += send_replies(lane, now_ns);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        done_count += poll_queue(lane, side, QUOIT_CLASS_REQUEST, now_ns);
    done_count += send_again(lane, now_ns);
    uint32_t local_count = lane->layout->local_count;
    for (uint32_t i = 0; i < local_count; i++)
        done_count += poll_pe(lane, (lane->first_pe_turn + i) % local_count, now_ns);
    lane->first_pe_turn = (lane->first_pe_turn + 1) % local_count;
    while (quoit_ring_next_completion(lane->ring, &cookie))
        quoit_lane_complete(lane, cookie);
    done_count += quoit_lane_barrier(lane);
    keep_slots(lane);
    done_count += return_credits(lane, done_count == 0);
    if (lane->has_news)
        tell_news(lane);
    ring_doorbells(lane);
    return done_count > 0 || lane->hold_until_ns != 0;
}

void quoit_lane_run(struct quoit_lane *lane)
{
    while (lane->status == QUOIT_OK && !quoit_lane_is_stopping(lane)) {
        quoit_wait_until(&lane->waiter, lane->step, lane, 0);
        if (lane->hold_until_ns)
            quoit_wait_yield(); /* transit rests, or DMA runs: too short for a sleep */
    }
}

static void arm(void *arg)
{
    struct quoit_lane *lane = arg;
    atomic_store_explicit(&lane->shared->sleep_since_ns, quoit_clock_now_ns(), memory_order_relaxed);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_doorbell_clear(lane->ports[side], lane->hint_bits);
}

static void disarm(void *arg)
{
    struct quoit_lane *lane = arg;
    uint64_t since_ns = atomic_load_explicit(&lane->shared->sleep_since_ns, memory_order_relaxed);
    uint64_t now_ns = quoit_clock_now_ns();
    quoit_lane_count_up(&lane->shared->sleep_ns, now_ns - since_ns);
    quoit_lane_trace_sleep(lane, since_ns, now_ns);
    atomic_store_explicit(&lane->shared->sleep_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->shared->sleep_count, lane->waiter.sleep_count, memory_order_relaxed);
}

static void settle(void *arg)
{
    struct quoit_lane *lane = arg;
    quoit_settling_look(&lane->settling);
}

static enum quoit_status open_ring(struct quoit_lane *lane)
{
    const struct quoit_layout *layout = lane->layout;
    struct quoit_ring_config ring = {
        .host_self = layout->host,
        .slot_count = layout->job.slot_count,
        .outstanding_max = layout->local_count * QUOIT_REQUESTS_A_CHANNEL,
        .pending_reply_max = PENDING_REPLY_MAX,
        .fetch_max = QUOIT_REQUESTS_A_CHANNEL,
        .hold_after_ns = HOLD_AFTER_NS,
        .hold_for_ns = HOLD_FOR_NS,
        .limits = quoit_lane_limits(lane),
    };
    size_t ring_bytes = (quoit_ring_bytes(&ring) + 63) / 64 * 64;
    void *ring_memory = aligned_alloc(64, ring_bytes);
    if (!ring_memory)
        return QUOIT_NO_MEMORY;
    memset(ring_memory, 0, ring_bytes);
    lane->ring = quoit_ring_init(ring_memory, &ring);
    lane->step = step;
    lane->answer = answer;
    lane->hint_bits = 1u << QUOIT_DOORBELL_LANE(lane->index);
    return QUOIT_OK;
}

enum quoit_status quoit_lane_open(struct quoit_lane *lane, const struct quoit_proxy_config *config, uint32_t index,
                                  struct quoit_port *const ports[QUOIT_SIDE_COUNT], struct quoit_mover *mover,
                                  struct quoit_scratchpad_proxy *scratchpad_proxy)
{
    const struct quoit_layout *layout = config->layout;
    const struct quoit_job_config *job = &layout->job;
    memset(lane, 0, sizeof *lane);
    lane->layout = layout;
    lane->memory = config->memory;
    lane->index = index;
    lane->mover = mover;
    lane->barrier = (struct quoit_papers_barrier){.host = layout->host, .host_count = job->host_count};
    lane->shared = quoit_memory_lane(layout, config->memory, index);
    lane->trace = quoit_memory_trace(layout, config->memory, layout->local_count + index);
    lane->waiter = (struct quoit_waiter){.park = &lane->shared->park,
                                         .policy = config->policy,
                                         .arm = arm,
                                         .disarm = disarm,
                                         .settle = settle,
                                         .settle_yields = QUOIT_SETTLE_YIELDS,
                                         .arm_arg = lane};
    quoit_settling_start(&lane->settling, layout, index, config->policy);
    lane->pe_counts = calloc(job->host_count, sizeof *lane->pe_counts);
    lane->issued = calloc((size_t)layout->local_count * QUOIT_REQUESTS_A_CHANNEL, sizeof *lane->issued);
    lane->submit_heads = calloc(layout->local_count, sizeof *lane->submit_heads);
    lane->gather = malloc(job->chunk_bytes);
    if (!lane->pe_counts || !lane->issued || !lane->submit_heads || !lane->gather)
        return QUOIT_NO_MEMORY;
    for (uint32_t host = 0; host < job->host_count; host++)
        lane->pe_counts[host] = quoit_job_config_pes_of_host(job, host);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t neighbour = quoit_layout_neighbour(layout, side);
        struct quoit_port_limits limits;
        quoit_port_limits(ports[side], &limits);
        uint64_t segments_bytes = lane->pe_counts[neighbour] * layout->segment_stride;
        uint64_t window_bytes = limits.window_bytes[QUOIT_WINDOW_MEMORY];
        lane->landing_bytes[side] = segments_bytes < window_bytes ? segments_bytes : window_bytes;
        lane->ports[side] = ports[side];
        lane->wanted[side] = lane->reached[side] = QUOIT_LANE_UP(0);
    }
    return scratchpad_proxy ? quoit_scratchpad_lane_open(lane, scratchpad_proxy) : open_ring(lane);
}

void quoit_lane_close(struct quoit_lane *lane)
{
    quoit_scratchpad_lane_close(lane);
    free(lane->ring);
    free(lane->gather);
    free(lane->submit_heads);
    free(lane->issued);
    free(lane->pe_counts);
    memset(lane, 0, sizeof *lane);
}
