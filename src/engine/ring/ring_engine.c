/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/ring/ring_engine.h"
#include "base/assert.h"
#include "base/log.h"
#include "engine/ring/channel.h"
#include "engine/ring/context.h"
#include "engine/ring/pe_endpoint.h"
#include "engine/ring/messages.h"
#include "env/clock.h"

#include <stdlib.h>
#include <unistd.h>

#define NOTICES                                                                                                        \
    3u /* times that after which a host is silent: if the host had died, its proxy's connections had broken, too */

static const struct quoit_link_record *link_of(const struct quoit_self *self, enum quoit_side side)
{
    return &((const struct quoit_host_header *)self->memory)->links[side];
}

/* Where a put and its mark can be lost apart, nothing tells afterwards whether the put arrived: it would be repeated.
 */
static bool allows_direct_puts(const struct quoit_job_config *job, const struct quoit_port_limits *limits)
{
    const uint32_t exact = QUOIT_PORT_ARRIVES_ON_RETURN | QUOIT_PORT_WHOLE_MARKS;
    if (!quoit_job_config_traits(job)->has_direct_puts || (limits->capabilities & QUOIT_PORT_DIRECT) == 0)
        return false;
    return (limits->capabilities & exact) != 0 || job->direct_puts == QUOIT_DIRECT_PUTS_ALWAYS;
}

/* With two hosts both sides reach the neighbour; requests and direct puts use the same one. */
static bool connect(struct quoit_engine *engine, struct quoit_peer *peer)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    const struct quoit_self *self = engine->self;
    const struct quoit_layout *layout = &self->layout;
    const struct quoit_job_config *job = &layout->job;
    struct quoit_ring_peer *own = &ring->peers[peer->pe];
    own->is_loopback = peer->host == self->host;
    if (own->is_loopback && !job->has_loopback)
        return false;
    peer->of_engine = own;
    /* By hosts, not by PEs: the numbers of two PEs half a ring apart have sums of the same parity all around the ring.
     */
    own->spread = (self->host + self->local + peer->local) % 2;
    if (own->is_loopback || !quoit_layout_is_on_ring(layout, peer->host)) {
        own->first_lane = (uint8_t)layout->link_lane_count;
        own->lane_count = 1;
        return true;
    }
    own->lane_count = (uint8_t)layout->link_lane_count;
    enum quoit_side side = quoit_ring_route(self->host - layout->ring.first, layout->ring.count,
                                            peer->host - layout->ring.first, own->spread);
    own->side = (uint8_t)side;
    if (quoit_layout_neighbour(layout, side) != peer->host)
        return true;
    struct quoit_port_limits limits;
    quoit_port_limits(ring->ports[side], &limits);
    uint64_t window = limits.window_bytes[QUOIT_WINDOW_MEMORY];
    uint64_t start = peer->local * layout->segment_stride;
    if (!allows_direct_puts(job, &limits) || start >= window)
        return true;
    if (ring->direct[side].journal != NULL && ring->direct[side].mark_offset + sizeof(uint64_t) > window)
        return true; /* the papers' protocol cannot tell what was lost with the link from what arrived */
    const struct quoit_doorbells doorbells = quoit_doorbells_of(job, atomic_load(&link_of(self, side)->peer_doorbells));
    own->doorbell = quoit_doorbell_of_pe(&doorbells, peer->local);
    own->window_offset = start;
    own->window_bytes = window - start < layout->segment_stride ? window - start : layout->segment_stride;
    peer->is_direct = true;
    return true;
}

static void put(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset, const void *source,
                size_t bytes, bool is_nbi)
{
    if (bytes == 0 || quoit_pe_endpoint_put(context, peer, offset, source, bytes))
        return;
    if (!quoit_direct_reaches(peer, offset, bytes) || !quoit_direct_put(context, peer, offset, source, bytes))
        quoit_relayed_put(context, peer, offset, source, bytes, (struct quoit_put_manner){.is_nbi = is_nbi});
}

static void get(struct quoit_context *context, const struct quoit_peer *peer, void *destination, uint64_t offset,
                size_t bytes, bool is_nbi)
{
    if (is_nbi || !quoit_pe_endpoint_get(context, peer, destination, offset, bytes))
        quoit_relayed_get(context, peer, destination, offset, bytes, is_nbi);
}

static void put_strided(struct quoit_context *context, const struct quoit_peer *peer,
                        const struct quoit_strided *strided, const void *source)
{
    size_t done = 0;
    if (strided->count == 0)
        return;
    bool is_direct = quoit_direct_reaches_strided(peer, strided);
    /* After a loss each further element would be lost too, and be made good alone, until the side is open again. */
    while (is_direct && done < strided->count && quoit_direct_is_open(peer)) {
        is_direct =
            quoit_direct_put(context, peer, quoit_strided_offset(strided, done),
                             (const char *)source + (ptrdiff_t)done * strided->private_stride, strided->element_bytes);
        done += is_direct;
    }
    quoit_relayed_put_strided(context, peer, strided, done, source);
}

/* A set is a store, so for a neighbour it is a direct put: aligned stores through the window are never torn. */
static void amo(struct quoit_context *context, const struct quoit_peer *peer, const struct quoit_atomic *atomic,
                void *result_out, bool is_nbi)
{
    const struct quoit_ring_peer *own = peer->of_engine;
    if (!(result_out && is_nbi) && quoit_pe_endpoint_amo(context, peer, atomic, result_out))
        return;
    if (!result_out && atomic->op == QUOIT_AMO_SET && atomic->offset + atomic->size <= own->window_bytes) {
        put(context, peer, atomic->offset, &atomic->operand, atomic->size, false); /* little-endian */
        return;
    }
    quoit_pe_endpoint_keep_order(quoit_ring_engine_of(peer), context);
    quoit_relayed_amo(context, peer, atomic, result_out, is_nbi);
}

static void fence_direct(struct quoit_context *context)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint64_t posted = atomic_load_explicit(&context->ring.posted[side], memory_order_relaxed);
        uint64_t fenced = atomic_load_explicit(&context->ring.fenced[side], memory_order_relaxed);
        while (fenced < posted && /* another thread may have fenced more */
               !atomic_compare_exchange_weak_explicit(&context->ring.fenced[side], &fenced, posted,
                                                      memory_order_relaxed, memory_order_relaxed))
            ;
    }
}

/* Both directly, or else the signal by a request that does not overtake the data: another thread may be making good for
 * a loss, and have opened or closed the side since. Over a network the signal follows all puts of the context. */
static void put_signal(struct quoit_context *context, const struct quoit_peer *peer, uint64_t offset,
                       const void *source, size_t bytes, const struct quoit_signal *signal, bool is_nbi)
{
    const struct quoit_atomic update = {
        .op = signal->op, .size = 8, .offset = signal->offset, .operand = signal->value};
    if (quoit_ring_has_network_to(peer)) {
        if (quoit_pe_endpoint_put_signal(context, peer, offset, source, bytes, signal))
            return;
        quoit_pe_endpoint_complete(quoit_ring_engine_of(peer), context);
        quoit_relayed_put_signal(context, peer, offset, source, bytes, signal, is_nbi);
        return;
    }
    if (bytes != 0 &&
        (!quoit_direct_reaches(peer, offset, bytes) || !quoit_direct_put(context, peer, offset, source, bytes))) {
        quoit_relayed_put_signal(context, peer, offset, source, bytes, signal, is_nbi);
        return;
    }
    if (signal->op == QUOIT_AMO_SET && quoit_direct_reaches(peer, signal->offset, sizeof signal->value) &&
        quoit_direct_put(context, peer, signal->offset, &signal->value, sizeof signal->value))
        return;
    fence_direct(context);
    quoit_relayed_amo(context, peer, &update, NULL, false);
}

static void receive(struct quoit_engine *engine)
{
    quoit_messages_receive((struct quoit_ring_engine *)engine);
}

static void fence(struct quoit_engine *engine, struct quoit_context *context)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    struct quoit_ring_context *own = &context->ring;
    /* What was split over the lanes could be overtaken on each of them. */
    if (atomic_load_explicit(&own->off_lane_count, memory_order_relaxed) != 0)
        quoit_channel_wait64(ring, &own->off_lane_count);
    /* Requests to one PE keep their order, if payload does not land early; see channel.c. */
    quoit_ring_context_fence(own);
    quoit_pe_endpoint_fence(ring, context);
    fence_direct(context);
    /* A direct put, or what goes by the mapping, could overtake a request on its way to the same PE. */
    if (atomic_load_explicit(&own->relayed_count, memory_order_relaxed) != 0) {
        quoit_channel_hurry(ring, context);
        quoit_channel_wait64(ring, &own->relayed_count);
    }
}

static void quiet(struct quoit_engine *engine, struct quoit_context *context)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    if (context == NULL) {
        quoit_pe_endpoint_finish(ring);
        quoit_messages_finish(ring);
        quoit_posted_complete_all(ring);
        return;
    }
    quoit_pe_endpoint_complete(ring, context);
    if (atomic_load_explicit(&context->ring.outstanding_count, memory_order_acquire) != 0) {
        quoit_channel_hurry(ring, context);
        quoit_channel_wait64(ring, &context->ring.outstanding_count);
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint64_t sequence = atomic_load_explicit(&context->ring.posted[side], memory_order_relaxed);
        if (atomic_load_explicit(&ring->direct[side].known, memory_order_acquire) < sequence)
            quoit_posted_complete(ring, side, sequence);
    }
}

static void progress(struct quoit_engine *engine)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    quoit_posted_attend(ring);
    quoit_pe_endpoint_progress(ring);
}

/* Clears the PE's doorbell bits so that the next direct put interrupts. */
static void arm(struct quoit_engine *engine)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (ring->doorbells[side])
            quoit_port_doorbell_clear(ring->ports[side], ring->doorbells[side]);
}

struct barrier_wait {
    const struct quoit_host_header *header;
    uint64_t count;
};

static bool is_released(void *arg)
{
    const struct barrier_wait *wait = arg;
    return atomic_load_explicit(&wait->header->barrier_released_count, memory_order_acquire) >= wait->count;
}

/* That of the papers, by doorbells through the proxies. */
static void host_barrier(struct quoit_engine *engine, const char *call)
{
    struct quoit_self *self = engine->self;
    struct quoit_host_header *header = (struct quoit_host_header *)self->memory;
    quoit_assert(self->local == 0);
    uint64_t count = atomic_load_explicit(&header->barrier_arrived_count, memory_order_relaxed) + 1;
    struct barrier_wait wait = {.header = header, .count = count};
    atomic_store_explicit(&header->barrier_arrived_count, count,
                          memory_order_release); /* pairs with lane 0's acquire */
    quoit_park_wake(&quoit_memory_lane(&self->layout, self->memory, 0)->park);
    quoit_self_wait(self, is_released, &wait, call);
}

static void close_ring(struct quoit_engine *engine)
{
    struct quoit_ring_engine *ring = (struct quoit_ring_engine *)engine;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        quoit_posted_close(ring, side);
        quoit_port_close(ring->ports[side]);
    }
    quoit_messages_close(ring);
    quoit_pe_endpoint_close(ring);
    quoit_channel_close_all(ring);
    free(ring->peers);
    free(ring);
}

static const struct quoit_engine_ops ring_ops = {
    .name = "ring",
    .close = close_ring,
    .connect = connect,
    .put = put,
    .get = get,
    .put_strided = put_strided,
    .get_strided = quoit_relayed_get_strided,
    .amo = amo,
    .put_signal = put_signal,
    .message = quoit_messages_send,
    .receive = receive,
    .await = quoit_messages_await,
    .fence = fence,
    .quiet = quiet,
    .progress = progress,
    .arm = arm,
    .host_barrier = host_barrier,
};

enum quoit_status quoit_engine_ring_open(struct quoit_self *self,
                                         const struct quoit_port_config ports[QUOIT_SIDE_COUNT],
                                         enum quoit_pe_endpoint_use pe_endpoint_use, struct quoit_engine **engine_out)
{
    struct quoit_ring_engine *ring = calloc(1, sizeof *ring);
    if (!ring)
        return QUOIT_NO_MEMORY;
    ring->engine = (struct quoit_engine){
        .ops = &ring_ops, .self = self, .has_host_barrier = self->layout.job.barrier == QUOIT_BARRIER_PAPERS};
    enum quoit_status status = QUOIT_NO_MEMORY;
    ring->peers = calloc(self->pe_count, sizeof *ring->peers);
    if (!ring->peers)
        goto close_engine;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_limits limits;
        quoit_biased_init(&ring->direct[side].lock);
        if (!quoit_layout_has_links(&self->layout))
            continue; /* every request goes through the proxy */
        status = quoit_port_open(&ports[side], &ring->ports[side]);
        if (status != QUOIT_OK)
            goto close_engine;
        if (quoit_job_config_traits(&self->layout.job)->has_direct_puts) {
            const struct quoit_doorbells doorbells = quoit_doorbells_of(
                &self->layout.job, atomic_load(&link_of(self, (enum quoit_side)side)->own_doorbells));
            ring->doorbells[side] = quoit_doorbell_of_pe(&doorbells, self->local);
        }
        quoit_port_limits(ring->ports[side], &limits);
        if ((limits.capabilities & QUOIT_PORT_ARRIVES_ON_RETURN) == 0)
            status = quoit_posted_open(ring, (enum quoit_side)side);
        if (status != QUOIT_OK)
            goto close_engine;
    }
    status = quoit_channel_open_all(ring);
    if (status != QUOIT_OK)
        goto close_engine;
    status = quoit_pe_endpoint_open(ring, pe_endpoint_use);
    if (status == QUOIT_OK)
        status = quoit_messages_open(ring, pe_endpoint_use);
    if (status != QUOIT_OK)
        goto close_engine;
    ring->engine.has_messages = ring->messages != NULL;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_channel_open_direct(ring, side);
    *engine_out = &ring->engine;
    return QUOIT_OK;

close_engine:
    close_ring(&ring->engine);
    return status;
}

struct quoit_port *quoit_engine_ring_port(struct quoit_engine *engine, enum quoit_side side)
{
    return ((struct quoit_ring_engine *)engine)->ports[side];
}

void quoit_ring_end_if_lost(const struct quoit_ring_engine *ring, uint64_t lost_ns, uint64_t notice_ns,
                            const char *whom, uint32_t pe)
{
    if (quoit_clock_now_ns() - lost_ns < NOTICES * notice_ns)
        return;
    quoit_say("PE %u: its connection to %s %u broke with something under way; --network-direct no has none [Q0223]",
              ring->engine.self->pe, whom, pe);
    _exit(1);
}
