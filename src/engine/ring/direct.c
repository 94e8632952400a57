/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts to a neighbour: one copy through the window, then the doorbell of the PE; docs/design/direct-puts.md. */
#include "base/assert.h"
#include "engine/ring/channel.h"
#include "env/clock.h"

/* Counts this PE's copies and doorbells without atomics: one writer, and under threads the counts are approximate. */
static void count(const struct quoit_self *self, enum quoit_side side, size_t bytes)
{
    struct quoit_link_count *direct = &self->shared->direct[side];
    atomic_store_explicit(&direct->byte_count, atomic_load_explicit(&direct->byte_count, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&direct->message_count,
                          atomic_load_explicit(&direct->message_count, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* Whether a put of this size is faster through the proxy, which uses DMA for it. */
static bool wants_dma(const struct quoit_self *self, enum quoit_side side, size_t bytes)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)self->memory;
    return bytes >= atomic_load_explicit(&header->direct_bytes[side], memory_order_relaxed);
}

bool quoit_direct_is_open(const struct quoit_peer *peer)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    return __builtin_expect(atomic_load_explicit(&ring->direct[own->side].is_open, memory_order_relaxed), 1) ||
           quoit_channel_open_direct(ring, own->side);
}

bool quoit_direct_reaches(const struct quoit_peer *peer, uint64_t offset, size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    return offset <= own->window_bytes && bytes <= own->window_bytes - offset && own->window_bytes != 0 &&
           !wants_dma(peer->engine->self, own->side, bytes) && quoit_direct_is_open(peer);
}

bool quoit_direct_reaches_strided(const struct quoit_peer *peer, const struct quoit_strided *strided)
{
    return quoit_direct_reaches(peer, quoit_strided_offset(strided, 0), strided->element_bytes) &&
           quoit_direct_reaches(peer, quoit_strided_offset(strided, strided->count - 1), strided->element_bytes);
}

/* The data has arrived, but the doorbell that wakes its waiter was lost with the link: a request that changes nothing,
 * executed at the PE, wakes it. It adds 0 to the first word; quoit_channel_take() has cleared the rest. */
static void wake_by_request(struct quoit_context *context, const struct quoit_peer *peer)
{
    struct quoit_slot slot;
    quoit_channel_take(context, peer, &slot);
    slot.request->frame.kind = QUOIT_FRAME_AMO;
    slot.request->frame.op = QUOIT_AMO_ADD;
    slot.request->frame.size = 8;
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

/* The doorbell, or the link before it, was lost. */
static void lose(struct quoit_context *context, const struct quoit_peer *peer)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    quoit_posted_recover(quoit_ring_engine_of(peer), own->side);
    wake_by_request(context, peer);
}

/* A put without a journal entry: it has arrived when this returns true. */
static bool put_whole(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                      size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_port *port = ring->ports[own->side];
    enum quoit_status status = quoit_port_write(port, QUOIT_WINDOW_MEMORY, own->window_offset + offset, source, bytes);
    quoit_assert(status == QUOIT_OK || status == QUOIT_LINK_DOWN);
    bool is_rung = status == QUOIT_OK && quoit_port_ring(port, own->doorbell);
    if (status == QUOIT_OK && ring->direct[own->side].journal != NULL && !quoit_posted_confirm(ring, own->side))
        status = QUOIT_LINK_DOWN;
    if (__builtin_expect(status == QUOIT_OK && is_rung, 1))
        return true;
    if (status == QUOIT_OK)
        lose(context, peer);
    else
        quoit_posted_recover(ring, own->side);
    return status == QUOIT_OK;
}

bool quoit_direct_put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                      size_t bytes)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    struct quoit_ring_engine *ring = quoit_ring_engine_of(peer);
    struct quoit_self *self = ring->engine.self;
    uint64_t begin_ns = __builtin_expect(self->trace != NULL, 0) ? quoit_clock_now_ns() : 0;
    enum quoit_posted_status status = QUOIT_POSTED_NOT;
    if (ring->direct[own->side].journal != NULL)
        status = quoit_posted_put(context, peer, offset, source, bytes);
    if (status == QUOIT_POSTED_NOT) {
        if (!put_whole(context, peer, offset, source, bytes))
            return false;
    } else if (__builtin_expect(status != QUOIT_POSTED || !quoit_port_ring(ring->ports[own->side], own->doorbell), 0)) {
        lose(context, peer);
    }
    count(self, own->side, bytes);
    if (__builtin_expect(begin_ns != 0, 0))
        trace(self, peer->pe, bytes, begin_ns);
    return true;
}
