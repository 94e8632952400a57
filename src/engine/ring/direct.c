/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts to a neighbour: one copy through the window, then the doorbell of the PE; docs/design/direct-puts.md. */
#include "base/assert.h"
#include "engine/ring/channel.h"
#include "engine/ring/context.h"
#include "env/clock.h"

/* Copies and doorbells of this PE are counted without atomics: one writer, and a count is no promise under threads. */
static void count(const struct quoit_self *self, enum quoit_side side, size_t bytes)
{
    struct quoit_link_count *direct = &self->shared->direct[side];
    atomic_store_explicit(&direct->byte_count, atomic_load_explicit(&direct->byte_count, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&direct->message_count,
                          atomic_load_explicit(&direct->message_count, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Whether a put of so many bytes is faster through the proxy, which has DMA for it. */
static bool wants_dma(const struct quoit_self *self, enum quoit_side side, size_t bytes)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)self->memory;
    return bytes >= atomic_load_explicit(&header->direct_bytes[side], memory_order_relaxed);
}

bool quoit_direct_reaches(const struct quoit_peer *peer, uint64_t offset, size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    return offset <= own->window_bytes && bytes <= own->window_bytes - offset && own->window_bytes != 0 &&
           !wants_dma(peer->engine->self, own->side, bytes) &&
           (__builtin_expect(atomic_load_explicit(&ring->direct[own->side].is_open, memory_order_relaxed), 1) ||
            quoit_channel_open_direct(ring, own->side));
}

bool quoit_direct_reaches_strided(const struct quoit_peer *peer, const struct quoit_strided *strided)
{
    return quoit_direct_reaches(peer, quoit_strided_offset(strided, 0), strided->element_bytes) &&
           quoit_direct_reaches(peer, quoit_strided_offset(strided, strided->count - 1), strided->element_bytes);
}

/* The data has arrived, but the doorbell that wakes who waits for it was lost with the link: a request that changes
 * nothing, executed at the PE, wakes it. */
static void wake_by_request(struct quoit_context *context, const struct quoit_peer *peer)
{
    struct quoit_slot slot;
    quoit_channel_take(context, peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_AMO;
    slot.request->frame.op = QUOIT_AMO_ADD;
    slot.request->frame.size = 8;
    slot.request->frame.offset = 0;
    slot.request->frame.operand = 0;
    quoit_channel_submit(quoit_ring_engine_of(peer), &slot);
}

static void trace(struct quoit_self *self, uint32_t pe, size_t bytes, uint64_t begin_ns)
{
    uint32_t number = atomic_fetch_add_explicit(&self->last_flow, 1, memory_order_relaxed) + 1;
    quoit_trace_write(self->trace, &(struct quoit_trace_event){.kind = QUOIT_TRACE_DIRECT,
                                                               .begin_ns = begin_ns,
                                                               .end_ns = quoit_clock_now_ns(),
                                                               .flow = quoit_trace_flow(self->pe, number),
                                                               .bytes = bytes,
                                                               .pe = pe});
}

bool quoit_direct_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                      size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_self *self = ring->engine.self;
    struct quoit_port *port = ring->ports[own->side];
    uint64_t begin_ns = __builtin_expect(self->trace != NULL, 0) ? quoit_clock_now_ns() : 0;
    enum quoit_status status = quoit_port_write(port, QUOIT_WINDOW_MEMORY, own->window_offset + offset, source, bytes);
    if (__builtin_expect(status == QUOIT_LINK_DOWN, 0)) {
        atomic_store_explicit(&ring->direct[own->side].is_open, false, memory_order_relaxed);
        return false;
    }
    quoit_assert(status == QUOIT_OK);
    if (__builtin_expect(!quoit_port_ring(port, 1u << own->doorbell), 0)) {
        atomic_store_explicit(&ring->direct[own->side].is_open, false, memory_order_relaxed);
        wake_by_request(context, peer);
    }
    quoit_ring_context_soil(&context->ring, own->side);
    count(self, own->side, bytes);
    if (__builtin_expect(begin_ns != 0, 0))
        trace(self, peer->pe, bytes, begin_ns);
    return true;
}

/* A read through the window returns after all that this host wrote there before: it is how arrival is known. */
void quoit_direct_confirm(struct quoit_ring_engine *ring, struct quoit_context *context)
{
    uint32_t sides = quoit_ring_context_begin_read(&context->ring);
    for (uint32_t side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint64_t word;
        if ((sides & (1u << side)) == 0)
            continue;
        if (quoit_port_read(ring->ports[side], QUOIT_WINDOW_MEMORY, 0, &word, sizeof word) != QUOIT_OK)
            /* The puts have arrived: each returned OK before the link went down. */
            atomic_store_explicit(&ring->direct[side].is_open, false, memory_order_relaxed);
    }
    quoit_ring_context_end_read(&context->ring);
}
