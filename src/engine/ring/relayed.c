/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations through the proxy, cut into requests of at most one chunk. */
#include "engine/ring/channel.h"
#include "base/observer.h"

#include <string.h>

/* A put of up to this many chunks is staged. Staging costs one more copy; waiting would cost the round trip, in which
 * twice as much could have been sent. */
#define ASIDE_CHUNKS 4

/* A contiguous transfer on its way into requests. */
struct transfer {
    struct quoit_context *context;
    const struct quoit_peer *peer;
    uint64_t offset;
    size_t bytes;
    size_t at;           /* of the current chunk */
    uint32_t part_bytes; /* of it */
    bool is_split;       /* over the lanes */
    struct quoit_slot slot;
    _Atomic uint32_t left_count; /* requests that the call waits for */
};

/* Takes a slot for the next chunk; false: there is none left. */
static bool take_chunk(struct transfer *transfer, enum quoit_frame_kind kind)
{
    const uint32_t chunk_bytes = transfer->peer->engine->self->layout.job.chunk_bytes;
    const size_t rest = transfer->bytes - transfer->at;
    if (rest == 0)
        return false;
    transfer->part_bytes = rest < chunk_bytes ? (uint32_t)rest : chunk_bytes;
    quoit_channel_take_part(transfer->context, transfer->peer,
                            transfer->is_split ? (uint32_t)(transfer->at / chunk_bytes) : 0, &transfer->slot);
    struct quoit_frame *frame = &transfer->slot.request->frame;
    frame->kind = kind;
    frame->bytes = transfer->part_bytes;
    frame->offset = transfer->offset + transfer->at;
    return true;
}

static void submit_chunk(struct transfer *transfer, bool is_awaited)
{
    if (is_awaited) {
        atomic_fetch_add_explicit(&transfer->left_count, 1, memory_order_relaxed);
        transfer->slot.pending->left_count = &transfer->left_count;
    }
    quoit_channel_submit(quoit_ring_engine_of(transfer->peer), &transfer->slot);
    transfer->at += transfer->part_bytes;
}

static void await(struct quoit_ring_engine *ring, _Atomic uint32_t *left_count)
{
    if (atomic_load_explicit(left_count, memory_order_acquire) != 0)
        quoit_channel_wait32(ring, left_count);
}

void quoit_relayed_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, struct quoit_put_manner manner)
{
    const struct quoit_self *self = peer->engine->self;
    uint64_t source_offset;
    if (!manner.is_ordered && quoit_channel_packs(peer, bytes)) {
        quoit_channel_put_many(context, peer, offset, source, bytes);
        return;
    }
    /* A put that is not large is staged, so that it returns at once and the next one follows it; a large one from
     * symmetric memory is read in place and waits until it is executed. */
    bool is_in_place = (manner.is_nbi || bytes > (size_t)ASIDE_CHUNKS * self->layout.job.chunk_bytes) &&
                       quoit_self_find(self, source, bytes, &source_offset);
    struct transfer transfer = {.context = context,
                                .peer = peer,
                                .offset = offset,
                                .bytes = bytes,
                                .is_split = !manner.keeps_lane && quoit_channel_splits(context, peer, bytes)};
    while (take_chunk(&transfer, QUOIT_FRAME_PUT)) {
        if (manner.is_ordered)
            transfer.slot.request->frame.flags |= QUOIT_FRAME_ORDERED;
        if (is_in_place)
            transfer.slot.request->data_offset = source_offset + transfer.at;
        else
            memcpy(transfer.slot.staging, (const char *)source + transfer.at, transfer.part_bytes);
        submit_chunk(&transfer, is_in_place && !manner.is_nbi);
    }
    await(quoit_ring_engine_of(peer), &transfer.left_count);
}

void quoit_relayed_get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                       size_t bytes, bool is_nbi)
{
    uint64_t destination_offset;
    bool is_in_place = quoit_self_find(peer->engine->self, destination, bytes, &destination_offset);
    struct transfer transfer = {.context = context,
                                .peer = peer,
                                .offset = offset,
                                .bytes = bytes,
                                .is_split = quoit_channel_splits(context, peer, bytes)};
    while (take_chunk(&transfer, QUOIT_FRAME_GET)) {
        if (is_in_place) {
            transfer.slot.request->data_offset = destination_offset + transfer.at;
        } else {
            transfer.slot.pending->destination = (char *)destination + transfer.at;
            transfer.slot.pending->bytes = transfer.part_bytes;
        }
        submit_chunk(&transfer, !is_nbi);
    }
    await(quoit_ring_engine_of(peer), &transfer.left_count);
    if (!is_in_place)
        quoit_observe(copied, bytes);
}

static void gather(char *to, const struct quoit_strided *strided, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++, to += strided->element_bytes, from += strided->private_stride)
        memcpy(to, from, strided->element_bytes);
}

/* Takes a slot for elements from `first` on; returns how many its request is for. */
static size_t take_strided(struct quoit_context *context, const struct quoit_peer *peer,
                           const struct quoit_strided *strided, uint8_t kind, size_t first, struct quoit_slot *slot_out)
{
    size_t most = peer->engine->self->layout.job.chunk_bytes / strided->element_bytes;
    size_t count = strided->count - first < most ? strided->count - first : most;
    quoit_channel_take(context, peer, slot_out);
    struct quoit_frame *frame = &slot_out->request->frame;
    frame->kind = kind;
    frame->size = (uint8_t)strided->element_bytes;
    frame->bytes = (uint32_t)(count * strided->element_bytes);
    frame->offset = quoit_strided_offset(strided, first);
    frame->operand = (uint64_t)strided->remote_stride;
    return count;
}

void quoit_relayed_put_strided(struct quoit_context *context, const struct quoit_peer *peer,
                               const struct quoit_strided *strided, size_t first, const void *source)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    for (size_t i = first; i < strided->count;) {
        struct quoit_slot slot;
        size_t count = take_strided(context, peer, strided, QUOIT_FRAME_PUT_STRIDED, i, &slot);
        gather(slot.staging, strided, (const char *)source + (ptrdiff_t)i * strided->private_stride, count);
        quoit_channel_submit(ring, &slot);
        i += count;
    }
}

void quoit_relayed_get_strided(struct quoit_context *context, const struct quoit_peer *peer,
                               const struct quoit_strided *strided, void *destination)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    _Atomic uint32_t left_count = 0;
    for (size_t i = 0; i < strided->count;) {
        struct quoit_slot slot;
        size_t count = take_strided(context, peer, strided, QUOIT_FRAME_GET_STRIDED, i, &slot);
        slot.pending->destination = (char *)destination + (ptrdiff_t)i * strided->private_stride;
        slot.pending->bytes = slot.request->frame.bytes;
        slot.pending->element_bytes = strided->element_bytes;
        slot.pending->stride_bytes = strided->private_stride;
        slot.pending->left_count = &left_count;
        atomic_fetch_add_explicit(&left_count, 1, memory_order_relaxed);
        quoit_channel_submit(ring, &slot);
        i += count;
    }
    await(ring, &left_count);
}

void quoit_relayed_put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                              const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi)
{
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    const struct quoit_self *self = peer->engine->self;
    uint32_t chunk_bytes = self->layout.job.chunk_bytes;
    /* The signal travels with the last chunk, on the lane that keeps the chunks in order. */
    size_t before = bytes == 0 ? 0 : (bytes - 1) / chunk_bytes * chunk_bytes;
    quoit_relayed_put(context, peer, offset, source, before,
                      (struct quoit_put_manner){.is_nbi = is_nbi, .keeps_lane = true});
    struct quoit_slot slot;
    quoit_channel_take(context, peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_PUT_SIGNAL;
    slot.request->frame.op = (uint8_t)signal->op;
    slot.request->frame.size = 8;
    slot.request->frame.bytes = (uint32_t)(bytes - before);
    slot.request->frame.offset = offset + before;
    slot.request->frame.operand = signal->value;
    slot.request->frame.operand2 = signal->offset;
    if (bytes != 0)
        memcpy(slot.staging, (const char *)source + before, bytes - before);
    quoit_channel_submit(ring, &slot);
}

/* The old value is at result_out when left_count was counted down, or at quiet when that is NULL. */
static void ask(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                void *result_out, _Atomic uint32_t *left_count)
{
    struct quoit_slot slot;
    quoit_channel_take(context, peer, &slot);
    struct quoit_frame *frame = &slot.request->frame;
    frame->kind = result_out ? QUOIT_FRAME_AMO_FETCH : QUOIT_FRAME_AMO;
    frame->op = (uint8_t)atomic->op;
    frame->size = (uint8_t)atomic->size;
    frame->offset = atomic->offset;
    frame->operand = atomic->operand;
    frame->operand2 = atomic->compare;
    slot.pending->result = result_out;
    slot.pending->result_bytes = atomic->size;
    slot.pending->left_count = left_count;
    quoit_channel_submit(quoit_ring_engine_of(peer), &slot);
}

void quoit_relayed_amo(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                       void *result_out, bool is_nbi)
{
    _Atomic uint32_t left_count = 1;
    bool waits = result_out && !is_nbi;
    ask(context, peer, atomic, result_out, waits ? &left_count : NULL);
    if (waits)
        quoit_channel_wait32(quoit_ring_engine_of(peer), &left_count);
}
