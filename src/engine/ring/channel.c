/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/channel.h"
#include "base/assert.h"
#include "base/observer.h"
#include "engine/ring/context.h"
#include "engine/ring/pe_endpoint.h"
#include "env/clock.h"

#include <stdlib.h>
#include <string.h>

#define PACKED_BYTES_MAX 256u /* of a put that shares a request: larger ones gain little by it */

static void scatter(const struct quoit_pending *pending, const char *staging)
{
    if (pending->element_bytes == 0) {
        memcpy(pending->destination, staging, pending->bytes);
        return;
    }
    char *to = pending->destination;
    for (uint32_t at = 0; at < pending->bytes; at += pending->element_bytes, to += pending->stride_bytes)
        memcpy(to, staging + at, pending->element_bytes);
}

/* The request is executed; that is enough for fence and order. */
static void count_executed(struct quoit_ring_engine *ring, const struct quoit_pending *pending)
{
    struct quoit_ring_context *context = &pending->context->ring;
    if (pending->is_relayed) {
        atomic_fetch_sub_explicit(&context->relayed_count, 1, memory_order_release);
        atomic_fetch_sub_explicit(&ring->direct[pending->side].relayed_count, 1, memory_order_release);
    }
    if (pending->is_off_lane)
        atomic_fetch_sub_explicit(&context->off_lane_count, 1, memory_order_release);
}

/* The copies may run a fault handler of the program, which may call fence or quiet. So a request that a thread waits
 * for is removed from quiet's count before the copy; others stay in it until they are copied. */
static void finish(struct quoit_ring_engine *ring, uint32_t lane, uint16_t index)
{
    const struct quoit_self *self = ring->engine.self;
    struct quoit_channel_end *end = &ring->channels[lane];
    const struct quoit_pending *pending = &end->pending[index];
    _Atomic uint64_t *outstanding_count = &pending->context->ring.outstanding_count;
    count_executed(ring, pending);
    if (pending->left_count)
        atomic_fetch_sub_explicit(outstanding_count, 1, memory_order_release);
    if (pending->destination)
        scatter(pending, self->memory + quoit_layout_staging(&self->layout, self->local, lane, index));
    if (pending->result)
        memcpy(pending->result, &end->shared->requests[index].result, pending->result_bytes);
    if (pending->left_count)
        atomic_fetch_sub_explicit(pending->left_count, 1, memory_order_release);
    else
        atomic_fetch_sub_explicit(outstanding_count, 1, memory_order_release);
}

static bool has_completions(struct quoit_channel_end *end)
{
    return atomic_load_explicit(&end->complete_head, memory_order_relaxed) !=
           atomic_load_explicit(&end->shared->complete_tail, memory_order_acquire);
}

#define NO_INDEX UINT16_MAX

static void forget_last(struct quoit_channel_end *end, uint32_t host)
{
    atomic_fetch_sub_explicit(&end->patient_count, end->last[host].is_patient, memory_order_relaxed);
    end->last[host].is_open = end->last[host].is_patient = false;
}

/* Frees a finished request (NO_INDEX: none) and takes the next completed one; NO_INDEX: none. */
static uint16_t next_complete(struct quoit_channel_end *end, uint16_t finished)
{
    uint16_t index = NO_INDEX;
    pthread_mutex_lock(&end->lock);
    if (finished != NO_INDEX) {
        const struct quoit_pending *pending = &end->pending[finished];
        if (end->last && end->last[pending->dest_host].index == finished)
            forget_last(end, pending->dest_host);
        quoit_assert(end->free_count < QUOIT_REQUESTS_A_CHANNEL);
        end->free[end->free_count++] = finished;
    }
    if (has_completions(end)) {
        uint32_t head = atomic_load_explicit(&end->complete_head, memory_order_relaxed);
        index = end->shared->complete[head % QUOIT_REQUESTS_A_CHANNEL];
        quoit_assert(index < QUOIT_REQUESTS_A_CHANNEL);
        atomic_store_explicit(&end->complete_head, head + 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&end->lock);
    return index;
}

/* One request at a time, so that a fault handler called by a copy can reap the others. */
static void reap_lane(struct quoit_ring_engine *ring, uint32_t lane)
{
    struct quoit_channel_end *end = &ring->channels[lane];
    if (!has_completions(end))
        return;
    for (uint16_t index = next_complete(end, NO_INDEX); index != NO_INDEX; index = next_complete(end, index))
        finish(ring, lane, index);
    if (ring->engine.self->has_threads) /* another thread may be asleep, waiting for what was reaped here */
        quoit_park_wake(&ring->engine.self->shared->park);
}

void quoit_channel_reap(struct quoit_ring_engine *ring)
{
    for (uint32_t lane = 0; lane < ring->engine.self->layout.lane_count; lane++)
        reap_lane(ring, lane);
}

enum quoit_status quoit_channel_open_all(struct quoit_ring_engine *ring)
{
    const struct quoit_self *self = ring->engine.self;
    uint32_t lane_count = self->layout.lane_count;
    ring->channels = calloc(lane_count, sizeof *ring->channels);
    if (!ring->channels)
        return QUOIT_NO_MEMORY;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        struct quoit_channel_end *end = &ring->channels[lane];
        pthread_mutex_init(&end->lock, NULL);
        if (lane >= self->layout.link_lane_count) {
            end->last = calloc(self->layout.job.host_count, sizeof *end->last);
            if (!end->last)
                return QUOIT_NO_MEMORY;
        }
        end->shared = quoit_memory_channel(&self->layout, self->memory, self->local, lane);
        end->complete_head =
            atomic_load(&end->shared->complete_tail); /* from before an earlier shmem_finalize of this process */
        for (uint16_t i = 0; i < QUOIT_REQUESTS_A_CHANNEL; i++)
            end->free[end->free_count++] = (uint16_t)(QUOIT_REQUESTS_A_CHANNEL - 1 - i);
    }
    return QUOIT_OK;
}

void quoit_channel_close_all(struct quoit_ring_engine *ring)
{
    for (uint32_t lane = 0; lane < ring->engine.self->layout.lane_count && ring->channels; lane++) {
        pthread_mutex_destroy(&ring->channels[lane].lock);
        free(ring->channels[lane].last);
    }
    free(ring->channels);
}

bool quoit_channel_open_direct(struct quoit_ring_engine *ring, enum quoit_side side)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)ring->engine.self->memory;
    struct quoit_direct *direct = &ring->direct[side];
    uint32_t epoch = quoit_link_port_epoch(&header->links[side]);
    if (epoch == 0)
        return false;
    if (atomic_load_explicit(&direct->relayed_count, memory_order_acquire) != 0) {
        quoit_channel_reap(ring);
        if (atomic_load_explicit(&direct->relayed_count, memory_order_acquire) != 0)
            return false;
    }
    return quoit_posted_bind(ring, side, epoch);
}

/* A request may take another route than direct puts before it, so it waits until those before a fence have arrived. */
static void keep_fence(struct quoit_ring_engine *ring, struct quoit_context *context, enum quoit_side side)
{
    uint64_t sequence = atomic_load_explicit(&context->ring.fenced[side], memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&ring->direct[side].known, memory_order_acquire) < sequence, 0))
        quoit_posted_complete(ring, side, sequence);
}

struct count_wait {
    struct quoit_ring_engine *ring;
    _Atomic uint32_t *count32;
    _Atomic uint64_t *count64;
};

static bool count_is_zero(void *arg)
{
    struct count_wait *wait = arg;
    quoit_channel_reap(wait->ring);
    if (wait->count32)
        return atomic_load_explicit(wait->count32, memory_order_acquire) == 0;
    return atomic_load_explicit(wait->count64, memory_order_acquire) == 0;
}

void quoit_channel_wait32(struct quoit_ring_engine *ring, _Atomic uint32_t *count)
{
    struct count_wait wait = {.ring = ring, .count32 = count};
    quoit_self_wait(ring->engine.self, count_is_zero, &wait, NULL);
}

void quoit_channel_wait64(struct quoit_ring_engine *ring, _Atomic uint64_t *count)
{
    struct count_wait wait = {.ring = ring, .count64 = count};
    quoit_self_wait(ring->engine.self, count_is_zero, &wait, NULL);
}

struct slot_wait {
    struct quoit_ring_engine *ring;
    uint32_t lane;
    uint16_t index; /* of the slot that was taken */
};

/* True, with a slot taken, when one was free. */
static bool slot_is_free(void *arg)
{
    struct slot_wait *wait = arg;
    struct quoit_channel_end *end = &wait->ring->channels[wait->lane];
    pthread_mutex_lock(&end->lock);
    bool is_free = end->free_count > 0;
    if (is_free)
        wait->index = end->free[--end->free_count];
    pthread_mutex_unlock(&end->lock);
    return is_free;
}

static bool slot_has_come_free(void *arg)
{
    struct slot_wait *wait = arg;
    reap_lane(wait->ring, wait->lane);
    return slot_is_free(wait);
}

/* Requests of one (PE, PE, context) use one lane, which preserves their order, except the parts of a split transfer.
 * Where threads share processors, each awake lane is one more thread to wait for, so a context uses one lane for all
 * PEs; but the papers' PEs always spread over their interrupt bits. */
static uint32_t lane_to(const struct quoit_context *context, const struct quoit_peer *peer, uint32_t part)
{
    const struct quoit_self *self = peer->engine->self;
    const struct quoit_ring_peer *own = peer->of_engine;
    bool is_spread = !quoit_wait_shares(self->waiter.policy) || quoit_job_config_traits(&self->layout.job)->spreads_pes;
    uint32_t turn = (is_spread ? peer->pe + self->pe * 7 : 0) + context->salt + part;
    return own->first_lane + (turn & (own->lane_count - 1u));
}

bool quoit_channel_splits(struct quoit_context *context, const struct quoit_peer *peer, size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    return own->lane_count > 1 && bytes >= (size_t)own->lane_count * peer->engine->self->layout.job.chunk_bytes &&
           !quoit_ring_context_is_fenced(&context->ring);
}

void quoit_channel_take(struct quoit_context *context, const struct quoit_peer *peer, struct quoit_slot *slot_out)
{
    quoit_channel_take_part(context, peer, 0, slot_out);
}

void quoit_channel_take_part(struct quoit_context *context, const struct quoit_peer *peer, uint32_t part,
                             struct quoit_slot *slot_out)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_self *self = ring->engine.self;
    const struct quoit_ring_peer *own = peer->of_engine;
    if (own->first_lane < self->layout.link_lane_count)
        keep_fence(ring, context, own->side);
    quoit_pe_endpoint_keep_fence(ring, context);
    struct slot_wait wait = {.ring = ring, .lane = lane_to(context, peer, part)};
    if (!slot_is_free(&wait))
        quoit_self_wait(self, slot_has_come_free, &wait, NULL);

    struct quoit_channel_end *end = &ring->channels[wait.lane];
    struct quoit_slot *slot = slot_out;
    slot->end = end;
    slot->peer = peer;
    slot->lane = wait.lane;
    slot->index = wait.index;
    slot->request = &end->shared->requests[slot->index];
    slot->pending = &end->pending[slot->index];
    slot->staging_offset = quoit_layout_staging(&self->layout, self->local, wait.lane, slot->index);
    slot->staging = self->memory + slot->staging_offset;
    memset(slot->request, 0, sizeof *slot->request);
    memset(slot->pending, 0, sizeof *slot->pending);
    slot->request->frame.dest_host = peer->host;
    slot->request->frame.dest_pe = peer->local;
    slot->request->frame.source_pe = (uint16_t)self->local;
    slot->request->data_offset = slot->staging_offset;
    slot->request->spread = own->spread;
    slot->pending->context = context;
    slot->pending->dest_host = peer->host;
    slot->pending->is_relayed = own->window_bytes != 0 || own->is_loopback;
    slot->pending->side = own->side;
    slot->pending->is_off_lane = (part & (own->lane_count - 1u)) != 0;
}

/* Numbers the request for the trace. */
static void begin_trace(struct quoit_ring_engine *ring, struct quoit_slot *slot, struct quoit_trace_event *event)
{
    struct quoit_frame *frame = &slot->request->frame;
    do /* 0 would mean no flow */
        frame->trace = atomic_fetch_add_explicit(&ring->engine.self->last_flow, 1, memory_order_relaxed) + 1;
    while (frame->trace == 0);
    *event = (struct quoit_trace_event){
        .kind = QUOIT_TRACE_REQUEST,
        .frame = frame->kind,
        .begin_ns = quoit_clock_now_ns(),
        .flow = quoit_trace_flow(ring->engine.self->pe, frame->trace),
        .bytes = frame->bytes,
        .pe = quoit_job_config_first_pe(&ring->engine.self->layout.job, frame->dest_host) + frame->dest_pe,
    };
}

static void remember_last(struct quoit_channel_end *end, const struct quoit_slot *slot, uint32_t mark)
{
    const struct quoit_frame *frame = &slot->request->frame;
    uint32_t host = slot->pending->dest_host;
    forget_last(end, host);
    end->last[host] = (struct quoit_last){.context = slot->pending->context,
                                          .peer = slot->peer,
                                          .mark = mark,
                                          .bytes = frame->bytes,
                                          .index = slot->index,
                                          .is_open = frame->kind == QUOIT_FRAME_PUT_MANY,
                                          .is_patient = frame->kind == QUOIT_FRAME_PUT_SIGNAL};
    atomic_fetch_add_explicit(&end->patient_count, end->last[host].is_patient, memory_order_relaxed);
}

void quoit_channel_submit(struct quoit_ring_engine *ring, struct quoit_slot *slot)
{
    struct quoit_channel_end *end = slot->end;
    struct quoit_trace_event event;
    struct quoit_pending *pending = slot->pending;
    struct quoit_ring_context *context = &pending->context->ring;
    quoit_observe(request_submitted, ring, slot);
    /* Before the look at the fence: a put after a newer one finds another mark. */
    uint32_t mark = atomic_load_explicit(&context->last_mark, memory_order_relaxed);
    /* After a fence, until everything before it is done, payload must not land before earlier requests are executed. */
    if (quoit_ring_context_is_fenced(context))
        slot->request->frame.flags |= QUOIT_FRAME_ORDERED;
    if (__builtin_expect(ring->engine.self->trace != NULL, 0))
        begin_trace(ring, slot, &event);
    atomic_fetch_add_explicit(&context->outstanding_count, 1, memory_order_relaxed);
    if (pending->is_off_lane)
        atomic_fetch_add_explicit(&context->off_lane_count, 1, memory_order_relaxed);
    if (pending->is_relayed) {
        atomic_fetch_add_explicit(&context->relayed_count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&ring->direct[pending->side].relayed_count, 1, memory_order_relaxed);
    }
    pthread_mutex_lock(&end->lock);
    if (end->last)
        remember_last(end, slot, mark);
    uint32_t tail = atomic_load_explicit(&end->shared->submit_tail, memory_order_relaxed);
    end->shared->submit[tail % QUOIT_REQUESTS_A_CHANNEL] = slot->index;
    atomic_store_explicit(&end->shared->submit_tail, tail + 1,
                          memory_order_release); /* pairs with acquire in the proxy */
    pthread_mutex_unlock(&end->lock);
    quoit_park_wake(&quoit_memory_lane(&ring->engine.self->layout, ring->engine.self->memory, slot->lane)->park);
    if (__builtin_expect(ring->engine.self->trace != NULL, 0)) {
        event.end_ns = quoit_clock_now_ns();
        quoit_trace_write(ring->engine.self->trace, &event);
    }
}

bool quoit_channel_packs(const struct quoit_peer *peer, size_t bytes)
{
    const struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    const struct quoit_ring_peer *own = peer->of_engine;
    return ring->channels[own->first_lane].last && bytes > 0 && bytes <= PACKED_BYTES_MAX &&
           quoit_frame_put_bytes((uint32_t)bytes) <= ring->engine.self->layout.job.chunk_bytes;
}

/* A put as it stands in the payload of a PUT_MANY. */
struct packed {
    struct quoit_frame_put put;
    char bytes[PACKED_BYTES_MAX];
};

/* Adds the put to the last request to its host. False: there is none to which it may be added. */
static bool append(struct quoit_ring_engine *ring, uint32_t lane, struct quoit_context *context,
                   const struct quoit_peer *peer, const struct packed *packed, uint32_t bytes)
{
    const struct quoit_self *self = ring->engine.self;
    const uint32_t chunk_bytes = self->layout.job.chunk_bytes;
    const uint32_t most = chunk_bytes < QUOIT_MANY_BYTES_MAX ? chunk_bytes : QUOIT_MANY_BYTES_MAX;
    struct quoit_channel_end *end = &ring->channels[lane];
    pthread_mutex_lock(&end->lock);
    struct quoit_last *last = &end->last[peer->host];
    uint32_t before = last->bytes;
    bool is_open = last->is_open && last->context == context && before + bytes <= most &&
                   last->mark == atomic_load_explicit(&context->ring.last_mark, memory_order_relaxed);
    if (is_open) {
        char *staging = self->memory + quoit_layout_staging(&self->layout, self->local, lane, last->index);
        memcpy(staging + before, packed, bytes);
        is_open = atomic_compare_exchange_strong_explicit(
            &end->shared->requests[last->index].many_bytes, &before, before + bytes,
            memory_order_release /* pairs with the proxy's taking */, memory_order_relaxed);
        last->bytes += bytes;
        last->is_open = is_open;
    }
    pthread_mutex_unlock(&end->lock);
    return is_open;
}

void quoit_channel_put_many(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                            const void *source, size_t bytes)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    uint32_t whole = quoit_frame_put_bytes((uint32_t)bytes);
    struct packed packed;
    struct quoit_slot slot;
    packed.put = (struct quoit_frame_put){.offset = offset, .bytes = (uint32_t)bytes, .dest_pe = peer->local};
    memset((char *)&packed + whole - 8, 0, 8);
    memcpy(packed.bytes, source, bytes);
    if (append(ring, lane_to(context, peer, 0), context, peer, &packed, whole))
        return;
    quoit_channel_take(context, peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_PUT_MANY;
    slot.request->frame.bytes = whole;
    slot.request->frame.offset = offset;
    atomic_store_explicit(&slot.request->many_bytes, whole, memory_order_relaxed);
    memcpy(slot.staging, &packed, whole);
    quoit_channel_submit(ring, &slot);
}

/* The last request to the host is one of the context whose acknowledgement may be waiting; NULL: it is not. */
static const struct quoit_peer *patient_peer(struct quoit_channel_end *end, const struct quoit_context *context,
                                             uint32_t host)
{
    pthread_mutex_lock(&end->lock);
    const struct quoit_last *last = &end->last[host];
    const struct quoit_peer *peer = last->is_patient && last->context == context ? last->peer : NULL;
    pthread_mutex_unlock(&end->lock);
    return peer;
}

void quoit_channel_hurry(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    const struct quoit_layout *layout = &ring->engine.self->layout;
    struct quoit_channel_end *end = &ring->channels[layout->lane_count - 1]; /* that of a network is the last */
    if (!end->last || atomic_load_explicit(&end->patient_count, memory_order_relaxed) == 0)
        return;
    for (uint32_t host = 0; host < layout->job.host_count; host++) {
        const struct quoit_peer *peer = patient_peer(end, context, host);
        if (!peer)
            continue;
        struct quoit_slot slot;
        quoit_channel_take(context, peer, &slot);
        slot.request->frame.kind = QUOIT_FRAME_PUT;
        quoit_channel_submit(ring, &slot);
    }
}
