/* SPDX-License-Identifier: BSD-3-Clause */
/* An outgoing transfer: bit, payload, scratchpads, doorbell, responses. */
#include "base/assert.h"
#include "env/clock.h"
#include "papers/lane.h"

#define DMA_POLL_COUNT QUOIT_LANES_MAX
#define DMA_BYTES_MIN  1024 /* the papers' smallest; below it a descriptor costs more than the copy */
#define DMA_LOOKS_MAX                                                                                                  \
    256                   /* unsuccessful polls before the lane yields the processor for longer than sched_yield does  \
                           */
#define DMA_REST_NS 20000 /* on shared processors a yield may cost a whole time slice; a short sleep does not */

uint64_t quoit_scratchpad_response(const struct quoit_lane *lane, enum quoit_side side, uint32_t word)
{
    const char *responses = lane->memory + lane->layout->slots[side];
    return __atomic_load_n((const uint64_t *)(responses + quoit_response_offset(lane->layout, lane->index, word)),
                           __ATOMIC_ACQUIRE); /* pairs with the neighbour's write64 */
}

void quoit_scratchpad_respond(struct quoit_lane *lane, enum quoit_side side, uint32_t word, uint64_t count)
{
    struct quoit_papers_lane *papers = lane->state;
    enum quoit_status status = quoit_port_write64(lane->ports[side], QUOIT_WINDOW_SLOTS,
                                                  quoit_response_offset(lane->layout, lane->index, word), count);
    if (status != QUOIT_OK)
        quoit_lane_fail(lane, status);
    papers->arrivals[side].is_ring_pending = true;
}

void quoit_scratchpad_ring_responses(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    if (!papers->arrivals[side].is_ring_pending)
        return;
    papers->arrivals[side].is_ring_pending = false;
    quoit_port_ring(lane->ports[side], quoit_doorbell_of_responses(&lane->peer_doorbells[side]));
    quoit_lane_count_up(&lane->shared->out[side].doorbell_count, 1);
}

void quoit_scratchpad_empty(struct quoit_lane *lane, enum quoit_side side, uint32_t buffer)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_arrivals *arrivals = &papers->arrivals[side];
    quoit_assert(buffer < QUOIT_BYPASS_COUNT);
    quoit_assert(arrivals->filled_count[buffer] != arrivals->emptied_count[buffer]);
    quoit_scratchpad_respond(lane, side, QUOIT_RESPONSE_BYPASS + buffer, ++arrivals->emptied_count[buffer]);
}

/* Adds the time of a step of a put. */
static void end_step(struct quoit_lane *lane, struct quoit_transfer *transfer, enum quoit_put_step step)
{
    if (!transfer->out.is_put)
        return;
    uint64_t now_ns = quoit_clock_now_ns();
    quoit_lane_count_up(&lane->shared->put_ns[step], now_ns - transfer->since_ns);
    transfer->since_ns = now_ns;
}

static void move_payload(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_transfer *transfer = &papers->transfers[side];
    struct quoit_port *port = lane->ports[side];
    const struct quoit_outgoing *out = &transfer->out;
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    bool is_dma = lane->layout->job.payload == QUOIT_PAYLOAD_DMA && !out->must_copy &&
                  out->frame.bytes >= DMA_BYTES_MIN && limits.dma_channel_count > 0;
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    if (is_dma &&
        quoit_port_dma_submit(port, lane->index % limits.dma_channel_count, QUOIT_WINDOW_SLOTS, transfer->payload_at,
                              out->payload, out->frame.bytes, lane->index) == QUOIT_OK) {
        transfer->dma_begin_ns = begin_ns;
        return;
    }
    enum quoit_status status =
        quoit_port_write(port, QUOIT_WINDOW_SLOTS, transfer->payload_at, out->payload, out->frame.bytes);
    if (status != QUOIT_OK)
        quoit_lane_fail(lane, status);
    atomic_store_explicit(&papers->shared->dma_done[side][lane->index], 1, memory_order_relaxed);
}

bool quoit_scratchpad_may_begin(const struct quoit_lane *lane, enum quoit_side side, const struct quoit_frame *frame)
{
    const struct quoit_papers_lane *papers = lane->state;
    const struct quoit_transfer *transfer = &papers->transfers[side];
    uint32_t buffer = quoit_bypass_of(frame, quoit_layout_neighbour(lane->layout, side));
    return transfer->state == QUOIT_TRANSFER_FREE &&
           transfer->placed_count[buffer] - quoit_scratchpad_response(lane, side, QUOIT_RESPONSE_BYPASS + buffer) <
               QUOIT_BYPASS_DEPTH;
}

bool quoit_scratchpad_begin(struct quoit_lane *lane, enum quoit_side side, const struct quoit_outgoing *out)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_transfer *transfer = &papers->transfers[side];
    uint32_t buffer = quoit_bypass_of(&out->frame, quoit_layout_neighbour(lane->layout, side));
    uint64_t place = transfer->placed_count[buffer] % QUOIT_BYPASS_DEPTH;
    if (!quoit_scratchpad_may_begin(lane, side, &out->frame))
        return false;
    atomic_fetch_and(&papers->shared->pool.idle_lanes, ~(1u << lane->index));
    transfer->out = *out;
    transfer->since_ns = out->wanted_ns;
    end_step(lane, transfer, QUOIT_PUT_BIT);
    quoit_transfer_move(&transfer->state, QUOIT_TRANSFER_COPYING);
    transfer->count++;
    transfer->placed_count[buffer]++;

    struct quoit_frame *frame = &transfer->out.frame;
    uint32_t bytes = quoit_frame_payload_bytes(frame);
    uint64_t at = quoit_bypass_offset(lane->layout, lane->index, buffer * QUOIT_BYPASS_DEPTH + (uint32_t)place);
    if (quoit_scratchpad_has_head(frame)) {
        frame->topology_version = frame->op | (uint32_t)frame->size << 8;
        enum quoit_status status =
            quoit_port_write(lane->ports[side], QUOIT_WINDOW_SLOTS, at, &frame->operand, QUOIT_SCRATCHPAD_HEAD_BYTES);
        if (status != QUOIT_OK)
            quoit_lane_fail(lane, status);
    }
    transfer->payload_at = at + QUOIT_FRAME_BYTES;
    struct quoit_link_count *count = &lane->shared->out[side];
    quoit_lane_count_up(&count->byte_count, bytes);
    quoit_lane_count_up(&count->message_count, 1);
    quoit_lane_count_up(&count->relay_count, out->is_relay);
    end_step(lane, transfer, QUOIT_PUT_SETUP);
    transfer->dma_begin_ns = 0;
    if (bytes > 0)
        move_payload(lane, side);
    else
        atomic_store_explicit(&papers->shared->dma_done[side][lane->index], 1, memory_order_relaxed);
    return true;
}

/* A descriptor that failed while the link is up is repaired by a copy, which writes the same bytes again. */
static enum quoit_status make_good(struct quoit_lane *lane, enum quoit_side side, enum quoit_status status)
{
    struct quoit_papers_lane *papers = lane->state;
    const struct quoit_transfer *transfer = &papers->transfers[side];
    if (status == QUOIT_OK || status == QUOIT_LINK_DOWN)
        return status;
    return quoit_port_write(lane->ports[side], QUOIT_WINDOW_SLOTS, transfer->payload_at, transfer->out.payload,
                            transfer->out.frame.bytes);
}

/* Whether the payload has arrived. Lanes share a channel, so a polled completion may be another lane's. */
static bool has_arrived(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    _Atomic uint32_t *dma_done = papers->shared->dma_done[side];
    uint32_t own = atomic_load_explicit(&dma_done[lane->index], memory_order_acquire);
    if (own == 0) {
        struct quoit_dma_done done[DMA_POLL_COUNT];
        struct quoit_port_limits limits;
        quoit_port_limits(lane->ports[side], &limits);
        uint32_t count =
            quoit_port_dma_poll(lane->ports[side], lane->index % limits.dma_channel_count, done, DMA_POLL_COUNT);
        for (uint32_t i = 0; i < count; i++)
            atomic_store_explicit(&dma_done[done[i].cookie], 1 + (uint32_t)done[i].status, memory_order_release);
        own = atomic_load_explicit(&dma_done[lane->index], memory_order_acquire);
    }
    if (own == 0)
        return false;
    atomic_store_explicit(&dma_done[lane->index], 0, memory_order_relaxed);
    enum quoit_status status = make_good(lane, side, (enum quoit_status)(own - 1));
    if (status != QUOIT_OK)
        quoit_lane_fail(lane, status);
    return true;
}

/* As in the papers, the thread does nothing else while its DMA runs. The completion of a DMA wakes no thread. */
static bool await_payload(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    for (uint32_t i = 0; !has_arrived(lane, side); i++) {
        if (lane->status != QUOIT_OK || quoit_lane_is_stopping(lane))
            return false;
        if (quoit_papers_pool_look(&papers->shared->pool) > 0 || i == 0)
            quoit_papers_call(lane);
        if (i < DMA_LOOKS_MAX)
            quoit_wait_yield();
        else
            quoit_clock_sleep_ns(DMA_REST_NS);
    }
    return true;
}

static void offer(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_transfer *transfer = &papers->transfers[side];
    struct quoit_port *port = lane->ports[side];
    uint32_t words[QUOIT_METADATA_WORDS], set = quoit_metadata_set(lane, side);
    uint64_t begin_ns = quoit_lane_trace_now(lane);
    quoit_scratchpad_pack(&transfer->out.frame, transfer->count * QUOIT_LANES_MAX + lane->index, words);
    for (uint32_t i = 0; i < QUOIT_METADATA_WORDS; i++)
        quoit_port_scratchpad_peer_write(port, set * QUOIT_METADATA_WORDS + i, words[i]);
    end_step(lane, transfer, QUOIT_PUT_SCRATCHPADS);
    quoit_port_ring(port, lane->peer_lane_doorbell[side]);
    quoit_lane_count_up(&lane->shared->out[side].doorbell_count, 1);
    end_step(lane, transfer, QUOIT_PUT_DOORBELL);
    quoit_lane_trace_frame(lane, transfer->out.is_relay ? QUOIT_TRACE_RELAY : QUOIT_TRACE_SEND, &transfer->out.frame,
                           side, begin_ns);
}

/* The host's other lanes may be asleep, waiting for the scratchpads. */
static void release_scratchpads(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    uint32_t set = quoit_metadata_set(lane, side);
    quoit_scratchpads_release(&papers->shared->scratchpads[side][set], lane->index);
    for (uint32_t i = 0; i < lane->layout->job.lane_count; i++)
        if (i != lane->index)
            quoit_park_wake(&quoit_memory_lane(lane->layout, lane->memory, i)->park);
}

uint32_t quoit_scratchpad_advance(struct quoit_lane *lane, enum quoit_side side)
{
    struct quoit_papers_lane *papers = lane->state;
    struct quoit_transfer *transfer = &papers->transfers[side];
    uint32_t move_count = 0;
    if (transfer->state == QUOIT_TRANSFER_COPYING) {
        if (!await_payload(lane, side))
            return 0;
        end_step(lane, transfer, QUOIT_PUT_PAYLOAD);
        if (transfer->dma_begin_ns != 0)
            quoit_lane_trace_dma(lane, &transfer->out.frame, side, side, transfer->dma_begin_ns);
        if (transfer->out.is_relay)
            quoit_scratchpad_empty(lane, transfer->out.relay_side, transfer->out.relay_buffer);
        quoit_transfer_move(&transfer->state, QUOIT_TRANSFER_READY);
        move_count++;
    }
    struct quoit_scratchpads *set = &papers->shared->scratchpads[side][quoit_metadata_set(lane, side)];
    if (transfer->state == QUOIT_TRANSFER_READY && quoit_scratchpads_take(set, lane->index)) {
        offer(lane, side);
        quoit_transfer_move(&transfer->state, QUOIT_TRANSFER_OFFERED);
        move_count++;
    }
    if (transfer->state == QUOIT_TRANSFER_OFFERED &&
        quoit_scratchpad_response(lane, side, QUOIT_RESPONSE_READ) == transfer->count) {
        quoit_transfer_move(&transfer->state, QUOIT_TRANSFER_FREE);
        release_scratchpads(lane, side);
        move_count++;
    }
    return move_count;
}
