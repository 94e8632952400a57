/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/queue.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/observer.h"
#include "env/clock.h"
#include "lane/outbox.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_COUNT            16  /* frames of one queue, requests of one PE, before the others get a turn */
#define INLINE_BYTES           512 /* up to this size payload and header are one write */
#define LAND_BYTES             512 /* beyond it the last hop writes directly into the segment: one copy less */
#define PENDING_REPLY_MAX      64
#define TRANSIT_PAUSE_AFTER_NS 50000
#define TRANSIT_PAUSE_NS       20000

/* Records the status of a write through a port. A frame lost with its link is retransmitted by the ring. */
static void note_write(struct quoit_lane *lane, enum quoit_status status)
{
    if (status != QUOIT_OK && status != QUOIT_LINK_DOWN)
        quoit_lane_fail(lane, status);
}

/* False: the ring cannot send this now; the lane retries at the time that the verdict gives. */
static bool has_resource(struct quoit_lane *lane, const struct quoit_verdict *verdict)
{
    if (verdict->kind != QUOIT_VERDICT_NO_RESOURCE)
        return true;
    if (verdict->retry_at_ns && (!lane->retry_at_ns || verdict->retry_at_ns < lane->retry_at_ns))
        lane->retry_at_ns = verdict->retry_at_ns;
    return false;
}

/* Payload of a put to the neighbour is written directly to its destination, if the window covers it. */
static bool lands(const struct quoit_lane *lane, const struct quoit_verdict *verdict, uint64_t *at_out)
{
    struct quoit_queue_lane *queue = lane->state;
    const struct quoit_frame *frame = &verdict->frame;
    if (!verdict->may_land || frame->bytes <= LAND_BYTES ||
        (frame->kind != QUOIT_FRAME_PUT && frame->kind != QUOIT_FRAME_PUT_SIGNAL))
        return false;
    uint64_t at = frame->dest_pe * lane->layout->segment_stride + frame->offset;
    uint64_t covered = queue->landing_bytes[verdict->side];
    if (at > covered || frame->bytes > covered - at)
        return false;
    *at_out = at;
    return true;
}

/* A payload pointer that is also valid for a memcpy of zero bytes. */
static const char no_payload[1];

/* Writes the header, with the payload behind it if that is small, then, alone and last, the sequence that makes the
 * slot valid. */
static void publish(struct quoit_lane *lane, enum quoit_side side, uint64_t slot_at, const struct quoit_frame *frame,
                    const char *payload, uint32_t inline_bytes)
{
    struct quoit_queue_lane *queue = lane->state;
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
    queue->must_ring[side] = true;
}

/* A payload that travels separately from its header. True: it has arrived. False: its DMA is outstanding, and the
 * header follows when it has arrived; or it is lost with its link. */
static bool place(struct quoit_lane *lane, const struct quoit_move *move, const struct quoit_departure *departure)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t index;
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    if (move->source != lane->gather && quoit_mover_start(queue->mover, move, &index)) {
        queue->departures[index] = *departure;
        queue->departures[index].begin_ns = begin_ns;
        quoit_observe(payload_leaving, lane, departure);
        quoit_lane_count_up(&lane->shared->out[move->side].dma_count, move->bytes);
        return false;
    }
    enum quoit_status status =
        quoit_port_write(lane->ports[move->side], move->window, move->offset, move->source, move->bytes);
    note_write(lane, status);
    return status == QUOIT_OK;
}

/* `from` is the inbound slot of a relayed frame; NULL: a frame of this host. */
static void depart(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload,
                   const struct quoit_departure *from)
{
    uint32_t bytes = quoit_frame_payload_bytes(&verdict->frame);
    struct quoit_link_count *count = &lane->shared->out[verdict->side];
    quoit_lane_count_up(&count->byte_count, bytes);
    quoit_lane_count_up(&count->message_count, 1);
    quoit_lane_count_up(&count->relay_count, from != NULL);
    lane->placement.moved_bytes += bytes;

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
    quoit_observe(frame_sending, lane, verdict);
    depart(lane, verdict, payload, from);
    quoit_lane_trace_frame(lane, from ? QUOIT_TRACE_RELAY : QUOIT_TRACE_SEND, &verdict->frame, verdict->side, begin_ns);
}

static void deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload,
                    enum quoit_side side)
{
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    quoit_lane_deliver(lane, verdict, payload);
    lane->placement.moved_bytes += verdict->frame.bytes;
    quoit_lane_trace_frame(lane, QUOIT_TRACE_DELIVER, &verdict->frame, side, begin_ns);
}

/* Slots that departures still read are not returned. */
static void keep_slots(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t counts[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT] = {{0}};
    if (!queue->keeps_slots && queue->mover->busy == 0)
        return;
    queue->keeps_slots = queue->mover->busy != 0;
    for (uint64_t left = queue->mover->busy; left; left &= left - 1) {
        const struct quoit_departure *departure = &queue->departures[__builtin_ctzll(left)];
        if (departure->from_sequence == 0)
            continue;
        uint32_t *count = &counts[departure->from_side][departure->from_class];
        uint64_t back =
            quoit_ring_expected(queue->ring, departure->from_side, departure->from_class) - departure->from_sequence;
        *count = back > *count ? (uint32_t)back : *count;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++)
            quoit_ring_keep_slots(queue->ring, side, class, counts[side][class]);
}

/* Payload that has arrived by DMA is announced; payload lost with its link is retransmitted by the ring. */
static uint32_t announce_departures(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t index, done_count = 0;
    enum quoit_status status;
    while (lane->status == QUOIT_OK && quoit_mover_next(queue->mover, &index, &status)) {
        const struct quoit_departure *departure = &queue->departures[index];
        quoit_observe(payload_left, lane, departure, status);
        quoit_lane_trace_dma(lane, &departure->frame, departure->side, index, departure->begin_ns);
        if (status == QUOIT_OK)
            publish(lane, departure->side, departure->slot_at, &departure->frame, no_payload, 0);
        note_write(lane, status);
        done_count++;
    }
    keep_slots(lane);
    return done_count;
}

static void respond(struct quoit_lane *lane, const struct quoit_frame *request, uint64_t value)
{
    struct quoit_queue_lane *queue = lane->state;
    if (quoit_frame_needs_response(request->kind)) /* the ring acknowledges the others */
        quoit_ring_reply(queue->ring, request, value);
}

static uint32_t poll_queue(struct quoit_lane *lane, enum quoit_side side, enum quoit_class class, uint64_t now_ns)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK && quoit_lane_is_up(lane, side)) {
        uint64_t expected = quoit_ring_expected(queue->ring, side, class);
        uint32_t slot_index = (uint32_t)((expected - 1) % lane->layout->job.slot_count);
        char *slot =
            lane->memory + lane->layout->slots[side] + quoit_layout_slot(lane->layout, lane->index, class, slot_index);
        if (__atomic_load_n((uint64_t *)slot, __ATOMIC_ACQUIRE) != expected) /* pairs with the neighbour's write64 */
            break;
        struct quoit_frame frame;
        struct quoit_verdict verdict;
        memcpy(&frame, slot, sizeof frame);
        if (frame.kind == QUOIT_FRAME_TOPOLOGY && !quoit_mover_rest(queue->mover))
            break; /* frames of the old topology arrive before any host learns of the new one */
        quoit_observe(frame_received, lane, &frame);
        enum quoit_status status = quoit_ring_receive(queue->ring, side, class, &frame, now_ns, &verdict);
        quoit_observe(frame_taken, lane, side, class, &frame, status, &verdict);
        if (status != QUOIT_OK) {
            quoit_log(QUOIT_LOG_ERROR, "a malformed frame came from the %s: kind %u",
                      side == QUOIT_LEFT ? "left" : "right", frame.kind);
            quoit_lane_fail(lane, status);
            break;
        }
        if (!has_resource(lane, &verdict))
            break;
        if (verdict.kind == QUOIT_VERDICT_SEND)
            send(lane, &verdict, slot + QUOIT_FRAME_BYTES,
                 &(struct quoit_departure){.from_side = side, .from_class = class, .from_sequence = expected});
        else if (verdict.kind == QUOIT_VERDICT_CONSUMED)
            queue->has_link_update |= frame.kind == QUOIT_FRAME_TOPOLOGY;
        else if (verdict.kind == QUOIT_VERDICT_DELIVER)
            deliver(lane, &verdict, slot + QUOIT_FRAME_BYTES, side);
        done_count++;
    }
    return done_count;
}

/* Requests that may be lost are retransmitted before new ones; their payload is preserved until they complete. */
static uint32_t resend(struct quoit_lane *lane, uint64_t now_ns)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        struct quoit_verdict verdict;
        quoit_ring_next_resend(queue->ring, now_ns, &verdict);
        if (!has_resource(lane, &verdict))
            break;
        send(lane, &verdict, lane->memory + lane->issued[verdict.cookie].data_offset, NULL);
        quoit_lane_count_up(&lane->shared->out[verdict.side].resend_count, 1);
        done_count++;
    }
    return done_count;
}

/* Whether the lane has adopted the target that the manager published. */
static bool follows_links(const struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (atomic_load_explicit(&lane->group->links[side].target, memory_order_acquire) !=
            atomic_load_explicit(&lane->followed[side], memory_order_relaxed))
            return false;
    return true;
}

static uint32_t poll_pe(struct quoit_lane *lane, uint32_t local, uint64_t now_ns)
{
    struct quoit_queue_lane *queue = lane->state;
    struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
    uint32_t tail = atomic_load_explicit(&channel->submit_tail, memory_order_acquire);
    uint32_t done_count = 0;
    /* A request that a PE submits after it has read in the header that a link is lost is sent with a topology version
     * that includes the loss. */
    if (lane->submit_heads[local] != tail && !follows_links(lane))
        return 0; /* the writer of the target wakes the lane */
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
        quoit_ring_submit(queue->ring, &frame, spread, cookie, now_ns, &verdict);
        if (!has_resource(lane, &verdict))
            break;
        send(lane, &verdict, lane->memory + lane->issued[cookie].data_offset, NULL);
        lane->submit_heads[local]++;
        done_count++;
    }
    return done_count;
}

/* Messages of this host use lane 0; their cookies follow those of the PEs. */
static uint32_t poll_outbox(struct quoit_lane *lane, uint64_t now_ns)
{
    struct quoit_queue_lane *queue = lane->state;
    struct quoit_outbox *outbox = lane->index == 0 ? lane->group->outbox : NULL;
    uint32_t done_count = 0, entry;
    const struct quoit_frame *frame;
    while (outbox && lane->status == QUOIT_OK && (frame = quoit_outbox_next(outbox, &entry)) != NULL) {
        struct quoit_verdict verdict;
        uint64_t cookie = quoit_lane_cookie(lane->layout->local_count, entry);
        quoit_ring_submit(queue->ring, frame, lane->host % 2, cookie, now_ns, &verdict);
        if (!has_resource(lane, &verdict))
            break;
        lane->issued[cookie] =
            (struct quoit_issued){.data_offset = quoit_layout_message(lane->layout, entry), .bytes = frame->bytes};
        send(lane, &verdict, lane->memory + lane->issued[cookie].data_offset, NULL);
        quoit_outbox_taken(outbox);
        done_count++;
    }
    return done_count;
}

static uint32_t send_replies(struct quoit_lane *lane, uint64_t now_ns)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t done_count = 0;
    while (done_count < BATCH_COUNT && lane->status == QUOIT_OK) {
        struct quoit_verdict verdict;
        quoit_ring_next_reply(queue->ring, now_ns, &verdict);
        if (!has_resource(lane, &verdict))
            break;
        const char *payload =
            verdict.frame.kind == QUOIT_FRAME_DATA ? quoit_lane_reply_payload(lane, &verdict.frame) : no_payload;
        send(lane, &verdict, payload, NULL);
        done_count++;
    }
    return done_count;
}

/* Before anything else: a frame that had no slot must find the credit that came with the doorbell just cleared, or the
 * lane would sleep through it. */
static void take_credits(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT && quoit_lane_is_up(lane, side); class ++) {
            uint64_t at = quoit_layout_credit(lane->layout, lane->index, class);
            uint64_t *inbound = (uint64_t *)(lane->memory + lane->layout->slots[side] + at);
            uint64_t total = __atomic_load_n(inbound, __ATOMIC_ACQUIRE);
            enum quoit_status status = quoit_ring_credit(queue->ring, side, class, total);
            quoit_lane_trace_credit(lane, side, class, total);
            if (status != QUOIT_OK)
                quoit_lane_fail(lane, status);
        }
    }
}

static uint32_t return_credits(struct quoit_lane *lane, bool is_idle)
{
    struct quoit_queue_lane *queue = lane->state;
    uint32_t done_count = 0;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++) {
            if (!quoit_ring_credit_due(queue->ring, side, class, is_idle))
                continue;
            uint64_t at = quoit_layout_credit(lane->layout, lane->index, class);
            enum quoit_status status = quoit_port_write64(lane->ports[side], QUOIT_WINDOW_SLOTS, at,
                                                          quoit_ring_consumed_total(queue->ring, side, class));
            quoit_ring_credit_advertised(queue->ring, side, class);
            queue->must_ring[side] = true;
            done_count++;
            note_write(lane, status);
        }
    }
    return done_count;
}

static void ring_doorbells(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        if (!queue->must_ring[side])
            continue;
        quoit_port_ring(lane->ports[side], lane->peer_lane_doorbell[side]);
        quoit_lane_count_up(&lane->shared->out[side].doorbell_count, 1);
        queue->must_ring[side] = false;
    }
}

static void wake_manager(const struct quoit_lane *lane)
{
    quoit_park_wake(&((struct quoit_host_header *)lane->memory)->manager_park);
}

_Static_assert(QUOIT_RING_HOSTS_MAX < 0xffff, "the number of a link, plus 1, is 16 bits of the word");

/* Lane 0 reports to the manager which two links its ring knows to be dead. All lanes learn the same, so one reports,
 * and only changes: each outage changes four states, and the manager is another thread to switch to. */
static void report_topology(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    struct quoit_ring_topology topology;
    queue->has_link_update = false;
    if (lane->index != 0)
        return;
    quoit_ring_topology(queue->ring, &topology);
    uint64_t dead = topology.dead_count < 2
                        ? 0
                        : QUOIT_DEAD_LINKS(topology.cut_count, topology.dead_links[0], topology.dead_links[1]);
    if (dead == atomic_load_explicit(&lane->dead_links, memory_order_relaxed))
        return;
    atomic_store_explicit(&lane->dead_links, dead, memory_order_release);
    wake_manager(lane);
}

/* Follows the target of each link, and publishes that it has. */
static void follow_links(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t target = atomic_load_explicit(&lane->group->links[side].target, memory_order_acquire);
        bool is_up = QUOIT_LINK_TARGET_IS_UP(target);
        if (__builtin_expect(target == atomic_load_explicit(&lane->followed[side], memory_order_relaxed), 1))
            continue;
        if (!quoit_mover_rest(queue->mover))
            continue; /* nothing is written after the lane has published that it stopped */
        if (is_up)
            quoit_ring_link_up(queue->ring, side, QUOIT_LINK_TARGET_EPOCH(target));
        else if (quoit_lane_is_up(lane, side)) /* else it was up too briefly for this lane to see it */
            quoit_ring_link_down(queue->ring, side);
        queue->must_ring[side] = false;
        queue->has_link_update = true;
        quoit_observe(link_followed, lane, side);
        quoit_lane_trace_link(lane, side, is_up);
        atomic_store_explicit(&lane->followed[side], target, memory_order_release);
        wake_manager(lane);
    }
}

/* All PEs. After a look that found no request the first PE is the first again: what follows does not depend on how
 * often the lane has looked before, and virtual time repeats. */
static uint32_t poll_pes(struct quoit_lane *lane, uint64_t now_ns)
{
    uint32_t local_count = lane->layout->local_count, done_count = 0;
    bool has_requests = false;
    for (uint32_t i = 0; i < local_count; i++) {
        uint32_t local = (lane->first_pe_turn + i) % local_count;
        const struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
        if (atomic_load_explicit(&channel->submit_tail, memory_order_relaxed) == lane->submit_heads[local])
            continue;
        has_requests = true;
        done_count += poll_pe(lane, local, now_ns);
    }
    lane->first_pe_turn = has_requests && lane->first_pe_turn + 1 < local_count ? lane->first_pe_turn + 1 : 0;
    return done_count;
}

static uint32_t step(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    uint64_t now_ns = quoit_clock_now_ns();
    uint64_t cookie;
    quoit_mover_begin_step(queue->mover);
    uint32_t done_count = announce_departures(lane);
    follow_links(lane);
    take_credits(lane);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        done_count += poll_queue(lane, side, QUOIT_CLASS_REPLY, now_ns);
    done_count += send_replies(lane, now_ns);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        done_count += poll_queue(lane, side, QUOIT_CLASS_REQUEST, now_ns);
    done_count += resend(lane, now_ns);
    done_count += poll_pes(lane, now_ns);
    done_count += poll_outbox(lane, now_ns);
    while (quoit_ring_next_completion(queue->ring, &cookie))
        quoit_lane_complete(lane, cookie);
    keep_slots(lane);
    done_count += return_credits(lane, done_count == 0);
    if (queue->has_link_update)
        report_topology(lane);
    ring_doorbells(lane);
    return done_count;
}

static enum quoit_status group_open(struct quoit_lane_group *group)
{
    struct quoit_mover *movers = calloc(group->layout->job.lane_count, sizeof *movers);
    group->shared = movers;
    return movers ? quoit_movers_open(movers, group) : QUOIT_NO_MEMORY;
}

static void group_close(struct quoit_lane_group *group)
{
    free(group->shared);
}

_Static_assert(QUOIT_LOCAL_PES_MAX *QUOIT_REQUESTS_A_CHANNEL + QUOIT_MESSAGES_MAX <= QUOIT_RING_OUTSTANDING_MAX,
               "each outstanding request of a host has a token");

static enum quoit_status open_ring(struct quoit_lane *lane, struct quoit_queue_lane *queue)
{
    const struct quoit_layout *layout = lane->layout;
    const struct quoit_ring_config config = {
        .host_self = lane->host,
        .slot_count = layout->job.slot_count,
        .outstanding_max = layout->local_count * QUOIT_REQUESTS_A_CHANNEL + QUOIT_MESSAGES_MAX,
        .pending_reply_max = PENDING_REPLY_MAX,
        .fetch_max = QUOIT_REQUESTS_A_CHANNEL,
        .transit_pause_after_ns = TRANSIT_PAUSE_AFTER_NS,
        .transit_pause_ns = TRANSIT_PAUSE_NS,
        .limits = quoit_lane_limits(lane),
    };
    size_t ring_bytes = (quoit_ring_bytes(&config) + 63) / 64 * 64;
    void *ring_memory = aligned_alloc(64, ring_bytes);
    if (!ring_memory)
        return QUOIT_NO_MEMORY;
    memset(ring_memory, 0, ring_bytes);
    queue->ring = quoit_ring_init(ring_memory, &config);
    return QUOIT_OK;
}

static enum quoit_status open(struct quoit_lane *lane)
{
    const struct quoit_layout *layout = lane->layout;
    struct quoit_queue_lane *queue = calloc(1, sizeof *queue);
    lane->state = queue;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        const struct quoit_doorbells *own = &lane->own_doorbells[side];
        lane->hint_bits[side] = quoit_doorbell_of_lane(own, lane->index);
        lane->polled_bits[side] = own->lane_count == layout->job.lane_count ? lane->hint_bits[side] : 0;
    }
    if (!queue)
        return QUOIT_NO_MEMORY;
    queue->mover = (struct quoit_mover *)lane->group->shared + lane->index;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_limits limits;
        quoit_port_limits(lane->ports[side], &limits);
        uint32_t neighbour = quoit_ring_neighbour(lane->hosts.count, side, lane->host);
        uint64_t segments_bytes = lane->pe_counts[neighbour] * layout->segment_stride;
        uint64_t window_bytes = limits.window_bytes[QUOIT_WINDOW_MEMORY];
        queue->landing_bytes[side] = segments_bytes < window_bytes ? segments_bytes : window_bytes;
    }
    return open_ring(lane, queue);
}

static void close(struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    if (queue)
        free(queue->ring);
    free(queue);
}

static void begin_down(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_queue_lane *queue = lane->state;
    quoit_ring_link_down(queue->ring, side);
}

/* A slot is empty when its sequence is zero; its payload is never read then. */
static void clean(const struct quoit_layout *layout, void *memory, enum quoit_side side)
{
    char *slots = (char *)memory + layout->slots[side];
    for (uint32_t lane = 0; lane < layout->job.lane_count; lane++) {
        for (enum quoit_class class = 0; class < QUOIT_CLASS_COUNT; class ++) {
            memset(slots + quoit_layout_credit(layout, lane, class), 0, sizeof(uint64_t));
            for (uint32_t i = 0; i < layout->job.slot_count; i++)
                memset(slots + quoit_layout_slot(layout, lane, class, i), 0, QUOIT_FRAME_BYTES);
        }
    }
}

/* A direct put wakes all PEs that share the bit. */
static struct quoit_port_vector vector(const struct quoit_layout *layout, uint32_t index, uint32_t count)
{
    if (index >= layout->local_count)
        return (struct quoit_port_vector){0};
    return (struct quoit_port_vector){
        .park_offset = layout->pes + index * sizeof(struct quoit_pe_shared) + offsetof(struct quoit_pe_shared, park),
        .park_stride = count * (uint32_t)sizeof(struct quoit_pe_shared),
        .park_count = (layout->local_count - index + count - 1) / count,
    };
}

static bool is_quiescent(const struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    return quoit_ring_is_quiescent(queue->ring);
}

static void check(const struct quoit_lane *lane)
{
    struct quoit_queue_lane *queue = lane->state;
    quoit_ring_check_invariants(queue->ring);
}

const struct quoit_lane_engine quoit_queue_engine = {
    .group_open = group_open,
    .group_close = group_close,
    .open = open,
    .close = close,
    .step = step,
    .respond = respond,
    .begin_down = begin_down,
    .clean = clean,
    .vector = vector,
    .is_quiescent = is_quiescent,
    .check = check,
};
