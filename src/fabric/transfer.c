/* SPDX-License-Identifier: BSD-3-Clause */
/* put, get and their strided forms. What goes through the proxy is cut into requests of at most one chunk. */
#include "base/assert.h"
#include "env/clock.h"
#include "fabric/channel.h"

/* Up to so many chunks a put is copied aside. That costs a copy more; to wait costs the round trip, in which twice as
 * much could have gone. */
#define ASIDE_CHUNKS 4

/* Copies and doorbells of this PE are counted without atomics: one writer, and a count is no promise under threads. */
static void count_direct(struct quoit_fabric *fabric, enum quoit_side side, size_t bytes)
{
    struct quoit_link_count *count = &fabric->shared_self->direct[side];
    atomic_store_explicit(&count->byte_count, atomic_load_explicit(&count->byte_count, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&count->message_count, atomic_load_explicit(&count->message_count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* Whether a put of so many bytes is faster through the proxy, which has DMA for it. */
static bool wants_dma(const struct quoit_fabric *fabric, const struct quoit_peer *peer, size_t bytes)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)fabric->memory;
    return bytes >= atomic_load_explicit(&header->direct_bytes[peer->side], memory_order_relaxed);
}

static bool reaches_directly(struct quoit_fabric *fabric, const struct quoit_peer *peer, uint64_t offset, size_t bytes)
{
    return peer->transport == QUOIT_TRANSPORT_DIRECT && offset <= peer->window_bytes &&
           bytes <= peer->window_bytes - offset && !wants_dma(fabric, peer, bytes) &&
           (__builtin_expect(atomic_load_explicit(&fabric->direct[peer->side].is_open, memory_order_relaxed), 1) ||
            quoit_channel_open_direct(fabric, peer->side));
}

/* The data has arrived, but the doorbell that wakes who waits for it was lost with the link: a request that changes
 * nothing, executed at the PE, wakes it. */
static void wake_by_request(struct quoit_fabric *fabric, struct quoit_context *context, uint32_t pe)
{
    struct quoit_slot slot;
    quoit_channel_take(fabric, context, pe, &slot);
    slot.request->frame.kind = QUOIT_FRAME_AMO;
    slot.request->frame.op = QUOIT_AMO_ADD;
    slot.request->frame.size = 8;
    slot.request->frame.offset = 0;
    slot.request->frame.operand = 0;
    quoit_channel_submit(fabric, &slot);
}

static void trace_direct(struct quoit_fabric *fabric, uint32_t pe, size_t bytes, uint64_t begin_ns)
{
    uint32_t number = atomic_fetch_add_explicit(&fabric->last_flow, 1, memory_order_relaxed) + 1;
    quoit_trace_write(fabric->trace, &(struct quoit_trace_event){.kind = QUOIT_TRACE_DIRECT,
                                                                 .begin_ns = begin_ns,
                                                                 .end_ns = quoit_clock_now_ns(),
                                                                 .flow = quoit_trace_flow(fabric->pe_self, number),
                                                                 .bytes = bytes,
                                                                 .pe = pe});
}

/* False: the link is down, and the put has to go through the proxy, whole. Up to a word nothing of it has arrived. */
static bool put_direct(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_peer *peer,
                       uint32_t pe, uint64_t offset, const void *source, size_t bytes)
{
    struct quoit_port *port = fabric->ports[peer->side];
    uint64_t begin_ns = __builtin_expect(fabric->trace != NULL, 0) ? quoit_clock_now_ns() : 0;
    enum quoit_status status = quoit_port_write(port, QUOIT_WINDOW_MEMORY, peer->window_offset + offset, source, bytes);
    if (__builtin_expect(status == QUOIT_LINK_DOWN, 0)) {
        atomic_store_explicit(&fabric->direct[peer->side].is_open, false, memory_order_relaxed);
        return false;
    }
    quoit_assert(status == QUOIT_OK);
    if (__builtin_expect(!quoit_port_ring(port, 1u << peer->doorbell), 0)) {
        atomic_store_explicit(&fabric->direct[peer->side].is_open, false, memory_order_relaxed);
        wake_by_request(fabric, context, pe);
    }
    if ((atomic_load_explicit(&context->dirty_sides, memory_order_relaxed) & (1u << peer->side)) == 0)
        atomic_fetch_or_explicit(&context->dirty_sides, 1u << peer->side, memory_order_relaxed);
    count_direct(fabric, peer->side, bytes);
    if (__builtin_expect(begin_ns != 0, 0))
        trace_direct(fabric, pe, bytes, begin_ns);
    return true;
}

/* The memory offset of a private buffer that lies in a symmetric region of this PE, so that the proxy can reach it. */
static bool find_in_own_segment(const struct quoit_fabric *fabric, const void *buffer, size_t bytes,
                                uint64_t *offset_out)
{
    for (int i = 0; i < QUOIT_REGION_COUNT; i++) {
        const struct quoit_region *region = fabric->regions[i];
        uint64_t at = region ? (uintptr_t)buffer - region->base : UINT64_MAX;
        if (region && at < region->bytes && bytes <= region->bytes - at) {
            *offset_out = quoit_layout_segment(&fabric->layout, fabric->local_self) + region->segment_offset + at;
            return true;
        }
    }
    return false;
}

/* What a put promises beyond its data. */
struct manner {
    bool is_nbi;     /* the source stays unchanged until quiet */
    bool keeps_lane; /* something follows that must not overtake it */
};

static void put_relayed(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                        size_t bytes, uint32_t pe, struct manner manner)
{
    uint32_t chunk_bytes = fabric->layout.job.chunk_bytes;
    uint64_t source_offset;
    /* A put that is not large is copied aside, so that it returns at once and the next one follows it on the way; a
     * large one from symmetric memory is read in place, and waits until it is executed. */
    bool is_in_place = (manner.is_nbi || bytes > (size_t)ASIDE_CHUNKS * chunk_bytes) &&
                       find_in_own_segment(fabric, source, bytes, &source_offset);
    bool is_split = !manner.keeps_lane && quoit_channel_splits(fabric, context, bytes);
    _Atomic uint32_t left_count = 0;
    for (size_t at = 0; at < bytes;) {
        uint32_t part = bytes - at < chunk_bytes ? (uint32_t)(bytes - at) : chunk_bytes;
        struct quoit_slot slot;
        quoit_channel_take_part(fabric, context, pe, is_split ? (uint32_t)(at / chunk_bytes) : 0, &slot);
        slot.request->frame.kind = QUOIT_FRAME_PUT;
        slot.request->frame.bytes = part;
        slot.request->frame.offset = offset + at;
        if (is_in_place)
            slot.request->data_offset = source_offset + at;
        else
            memcpy(slot.staging, (const char *)source + at, part);
        if (is_in_place && !manner.is_nbi) {
            atomic_fetch_add_explicit(&left_count, 1, memory_order_relaxed);
            slot.pending->left_count = &left_count;
        }
        quoit_channel_submit(fabric, &slot);
        at += part;
    }
    if (atomic_load_explicit(&left_count, memory_order_acquire) != 0)
        quoit_channel_wait32(fabric, &left_count);
}

static enum quoit_buffer_kind kind_of(const struct quoit_fabric *fabric, uint64_t offset)
{
    return offset >= fabric->layout.segment_heap ? QUOIT_BUFFER_HEAP : QUOIT_BUFFER_GLOBALS;
}

static struct quoit_copy_place place_of(const struct quoit_peer *peer, uint64_t offset)
{
    return (struct quoit_copy_place){
        .here = peer->segment + offset, .there = peer->segment_there + offset, .pid = peer->process};
}

static void put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                size_t bytes, uint32_t pe, struct manner manner)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (bytes == 0)
        return;
    if (peer->segment) {
        struct quoit_copy_place to = place_of(peer, offset);
        quoit_copy_put(quoit_paths_choose(&fabric->paths, kind_of(fabric, offset), bytes), &to, source, bytes);
        atomic_thread_fence(memory_order_release);
        quoit_park_wake_at(peer->park, offset, bytes);
    } else if (!reaches_directly(fabric, peer, offset, bytes) ||
               !put_direct(fabric, context, peer, pe, offset, source, bytes)) {
        put_relayed(fabric, context, offset, source, bytes, pe, manner);
    }
}

void quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset, const void *source,
                      size_t bytes, uint32_t pe)
{
    put(fabric, context, offset, source, bytes, pe, (struct manner){0});
}

void quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                          const void *source, size_t bytes, uint32_t pe)
{
    put(fabric, context, offset, source, bytes, pe, (struct manner){.is_nbi = true});
}

/* left_count NULL: finished at quiet. */
static void get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination, uint64_t offset,
                size_t bytes, uint32_t pe, _Atomic uint32_t *left_count)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (peer->segment) {
        atomic_thread_fence(memory_order_acquire);
        struct quoit_copy_place from = place_of(peer, offset);
        quoit_copy_get(quoit_paths_choose(&fabric->paths, kind_of(fabric, offset), bytes), destination, &from, bytes);
        return;
    }
    uint32_t chunk_bytes = fabric->layout.job.chunk_bytes;
    uint64_t destination_offset;
    bool is_in_place = find_in_own_segment(fabric, destination, bytes, &destination_offset);
    bool is_split = quoit_channel_splits(fabric, context, bytes);
    for (size_t at = 0; at < bytes;) {
        uint32_t part = bytes - at < chunk_bytes ? (uint32_t)(bytes - at) : chunk_bytes;
        struct quoit_slot slot;
        quoit_channel_take_part(fabric, context, pe, is_split ? (uint32_t)(at / chunk_bytes) : 0, &slot);
        slot.request->frame.kind = QUOIT_FRAME_GET;
        slot.request->frame.bytes = part;
        slot.request->frame.offset = offset + at;
        if (is_in_place) {
            slot.request->data_offset = destination_offset + at;
        } else {
            slot.pending->destination = (char *)destination + at;
            slot.pending->bytes = part;
        }
        slot.pending->left_count = left_count;
        if (left_count)
            atomic_fetch_add_explicit(left_count, 1, memory_order_relaxed);
        quoit_channel_submit(fabric, &slot);
        at += part;
    }
}

void quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination, uint64_t offset,
                      size_t bytes, uint32_t pe)
{
    _Atomic uint32_t left_count = 0;
    get(fabric, context, destination, offset, bytes, pe, &left_count);
    if (atomic_load_explicit(&left_count, memory_order_acquire) != 0)
        quoit_channel_wait32(fabric, &left_count);
}

void quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                          uint64_t offset, size_t bytes, uint32_t pe)
{
    get(fabric, context, destination, offset, bytes, pe, NULL);
}

static void copy_strided(char *to, ptrdiff_t to_stride, const char *from, ptrdiff_t from_stride, size_t count,
                         uint32_t element_bytes)
{
    for (size_t i = 0; i < count; i++, to += to_stride, from += from_stride)
        memcpy(to, from, element_bytes);
}

/* Offset of element i; strides may be negative. */
static uint64_t element_offset(const struct quoit_strided *strided, size_t i)
{
    return strided->offset + (uint64_t)((int64_t)i * strided->remote_stride);
}

/* True when all remote elements lie in what the window covers. */
static bool all_reach_directly(struct quoit_fabric *fabric, const struct quoit_peer *peer,
                               const struct quoit_strided *strided)
{
    return reaches_directly(fabric, peer, element_offset(strided, 0), strided->element_bytes) &&
           reaches_directly(fabric, peer, element_offset(strided, strided->count - 1), strided->element_bytes);
}

/* Elements from `first` on. */
static void iput_relayed(struct quoit_fabric *fabric, struct quoit_context *context,
                         const struct quoit_strided *strided, size_t first, const char *source, uint32_t pe)
{
    size_t most = fabric->layout.job.chunk_bytes / strided->element_bytes;
    for (size_t i = first; i < strided->count;) {
        size_t count = strided->count - i < most ? strided->count - i : most;
        struct quoit_slot slot;
        quoit_channel_take(fabric, context, pe, &slot);
        slot.request->frame.kind = QUOIT_FRAME_PUT_STRIDED;
        slot.request->frame.size = (uint8_t)strided->element_bytes;
        slot.request->frame.bytes = (uint32_t)(count * strided->element_bytes);
        slot.request->frame.offset = element_offset(strided, i);
        slot.request->frame.operand = (uint64_t)strided->remote_stride;
        copy_strided(slot.staging, (ptrdiff_t)strided->element_bytes, source + (ptrdiff_t)i * strided->private_stride,
                     strided->private_stride, count, strided->element_bytes);
        quoit_channel_submit(fabric, &slot);
        i += count;
    }
}

void quoit_fabric_iput(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       const void *source, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    const char *from = source;
    if (strided->count == 0)
        return;
    if (peer->segment) {
        copy_strided(peer->segment + strided->offset, strided->remote_stride, from, strided->private_stride,
                     strided->count, strided->element_bytes);
        atomic_thread_fence(memory_order_release);
        quoit_park_wake(peer->park);
    } else {
        size_t done = 0;
        bool is_direct = all_reach_directly(fabric, peer, strided);
        while (is_direct && done < strided->count) {
            is_direct = put_direct(fabric, context, peer, pe, element_offset(strided, done),
                                   from + (ptrdiff_t)done * strided->private_stride, strided->element_bytes);
            done += is_direct;
        }
        iput_relayed(fabric, context, strided, done, source, pe);
    }
}

void quoit_fabric_iget(struct quoit_fabric *fabric, struct quoit_context *context, const struct quoit_strided *strided,
                       void *destination, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (peer->segment) {
        atomic_thread_fence(memory_order_acquire);
        copy_strided(destination, strided->private_stride, peer->segment + strided->offset, strided->remote_stride,
                     strided->count, strided->element_bytes);
        return;
    }
    size_t most = fabric->layout.job.chunk_bytes / strided->element_bytes;
    _Atomic uint32_t left_count = 0;
    for (size_t i = 0; i < strided->count;) {
        size_t count = strided->count - i < most ? strided->count - i : most;
        struct quoit_slot slot;
        quoit_channel_take(fabric, context, pe, &slot);
        slot.request->frame.kind = QUOIT_FRAME_GET_STRIDED;
        slot.request->frame.size = (uint8_t)strided->element_bytes;
        slot.request->frame.bytes = (uint32_t)(count * strided->element_bytes);
        slot.request->frame.offset = element_offset(strided, i);
        slot.request->frame.operand = (uint64_t)strided->remote_stride;
        slot.pending->destination = (char *)destination + (ptrdiff_t)i * strided->private_stride;
        slot.pending->bytes = slot.request->frame.bytes;
        slot.pending->element_bytes = strided->element_bytes;
        slot.pending->stride_bytes = strided->private_stride;
        slot.pending->left_count = &left_count;
        atomic_fetch_add_explicit(&left_count, 1, memory_order_relaxed);
        quoit_channel_submit(fabric, &slot);
        i += count;
    }
    if (atomic_load_explicit(&left_count, memory_order_acquire) != 0)
        quoit_channel_wait32(fabric, &left_count);
}

void quoit_fabric_put_signal(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, const struct quoit_signal *signal, uint32_t pe,
                             bool is_nbi)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    const struct manner manner = {.is_nbi = is_nbi, .keeps_lane = true};
    uint32_t chunk_bytes = fabric->layout.job.chunk_bytes;
    if (peer->segment || reaches_directly(fabric, peer, offset, bytes) || bytes == 0) {
        put(fabric, context, offset, source, bytes, pe, manner);
        quoit_fabric_amo(fabric, context, signal->op, 8, signal->offset, signal->value, pe);
        return;
    }
    /* The signal rides with the last chunk, on the lane that keeps the chunks in order. */
    size_t before = (bytes - 1) / chunk_bytes * chunk_bytes;
    put_relayed(fabric, context, offset, source, before, pe, manner);
    struct quoit_slot slot;
    quoit_channel_take(fabric, context, pe, &slot);
    slot.request->frame.kind = QUOIT_FRAME_PUT_SIGNAL;
    slot.request->frame.op = (uint8_t)signal->op;
    slot.request->frame.size = 8;
    slot.request->frame.bytes = (uint32_t)(bytes - before);
    slot.request->frame.offset = offset + before;
    slot.request->frame.operand = signal->value;
    slot.request->frame.operand2 = signal->offset;
    memcpy(slot.staging, (const char *)source + before, bytes - before);
    quoit_channel_submit(fabric, &slot);
}
