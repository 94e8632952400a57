/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/fabric.h"
#include "base/assert.h"
#include "env/clock.h"
#include "fabric/channel.h"
#include "fabric/settle.h"

#include <stdlib.h>
#include <unistd.h>

void quoit_context_init(struct quoit_context *context, uint32_t lane_salt)
{
    memset(context, 0, sizeof *context);
    context->lane_salt = lane_salt;
}

/* A neighbour can be reached by both sides when there are two hosts; requests and direct puts take the same. */
static void choose_way(struct quoit_fabric *fabric, uint32_t pe, struct quoit_peer *peer)
{
    const struct quoit_layout *layout = &fabric->layout;
    const struct quoit_job_config *job = &layout->job;
    peer->host = (uint16_t)quoit_job_config_host_of_pe(job, pe);
    peer->local = (uint16_t)(pe - quoit_job_config_first_pe(job, peer->host));
    if (peer->host == fabric->host_self) {
        peer->transport = QUOIT_TRANSPORT_LOCAL;
        peer->segment = fabric->memory + quoit_layout_segment(layout, peer->local);
        struct quoit_pe_shared *shared = quoit_memory_pe(layout, fabric->memory, peer->local);
        peer->park = &shared->park;
        peer->process = atomic_load_explicit(&shared->process, memory_order_relaxed);
        peer->segment_there = atomic_load_explicit(&shared->memory_base, memory_order_relaxed) +
                              quoit_layout_segment(layout, peer->local);
        return;
    }
    peer->transport = QUOIT_TRANSPORT_RELAYED;
    /* By hosts, not by PEs: the numbers of two PEs half a ring apart add up to the same parity all the way round. */
    peer->spread = (fabric->host_self + fabric->local_self + peer->local) % 2;
    enum quoit_side side = quoit_ring_route(fabric->host_self, job->host_count, peer->host, peer->spread);
    peer->side = (uint8_t)side;
    peer->doorbell = (uint8_t)quoit_doorbell_of_pe(peer->local);
    if (quoit_layout_neighbour(layout, side) != peer->host || job->protocol == QUOIT_PROTOCOL_SCRATCHPAD)
        return;
    struct quoit_port_limits limits;
    quoit_port_limits(fabric->ports[side], &limits);
    if (!limits.arrives_on_return)
        return; /* what is lost with the link could not be told from what has arrived */
    uint64_t window = limits.window_bytes[QUOIT_WINDOW_MEMORY];
    uint64_t start = peer->local * layout->segment_stride;
    if (start >= window)
        return;
    peer->transport = QUOIT_TRANSPORT_DIRECT;
    peer->window_offset = start;
    peer->window_bytes = window - start < layout->segment_stride ? window - start : layout->segment_stride;
}

static enum quoit_status open_ring(struct quoit_fabric *fabric, const struct quoit_fabric_config *config)
{
    uint32_t lane_count = fabric->layout.job.lane_count;
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        enum quoit_status status = quoit_port_open(&config->ports[side], &fabric->ports[side]);
        if (status != QUOIT_OK)
            return status;
    }
    fabric->channels = calloc(lane_count, sizeof *fabric->channels);
    if (!fabric->channels)
        return QUOIT_NO_MEMORY;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        struct quoit_channel_end *end = &fabric->channels[lane];
        pthread_mutex_init(&end->lock, NULL);
        end->shared = quoit_memory_channel(&fabric->layout, fabric->memory, fabric->local_self, lane);
        end->complete_head = atomic_load(&end->shared->complete_tail); /* of an earlier life of this PE */
        for (uint16_t i = 0; i < QUOIT_REQUESTS_A_CHANNEL; i++)
            end->free[end->free_count++] = (uint16_t)(QUOIT_REQUESTS_A_CHANNEL - 1 - i);
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_channel_open_direct(fabric, side);
    return QUOIT_OK;
}

/* Several threads of the PE may sleep: the last says where, and a torn name does no harm. */
static void describe(char waiting_in[QUOIT_CALL_NAME_BYTES], const char *call)
{
    uint64_t words[QUOIT_CALL_NAME_BYTES / sizeof(uint64_t)] = {0};
    strncpy((char *)words, call, sizeof words - 1);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        __atomic_store_n((uint64_t *)(void *)waiting_in + i, words[i], __ATOMIC_RELAXED);
}

/* Before the PE sleeps: says where, and clears its doorbell bits so that the next direct put interrupts. */
static void arm(void *arg)
{
    struct quoit_fabric *fabric = arg;
    struct quoit_pe_shared *shared = fabric->shared_self;
    const char *call = __atomic_load_n(&fabric->call, __ATOMIC_RELAXED);
    void *call_from = __atomic_load_n(&fabric->call_from, __ATOMIC_RELAXED);
    if (call) {
        if (__atomic_load_n(&shared->waiting_in[0], __ATOMIC_RELAXED) == '\0')
            atomic_store_explicit(&shared->waiting_since_ns, quoit_clock_now_ns(), memory_order_relaxed);
        describe(shared->waiting_in, call);
        atomic_store_explicit(&shared->waiting_from, (uintptr_t)call_from, memory_order_relaxed);
    }
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        if (fabric->ports[side] && fabric->layout.job.protocol == QUOIT_PROTOCOL_QUEUE)
            quoit_port_doorbell_clear(fabric->ports[side], 1u << quoit_doorbell_of_pe(fabric->local_self));
}

static void settle(void *arg)
{
    quoit_fabric_settle(arg);
}

enum quoit_status quoit_fabric_open(const struct quoit_fabric_config *config, struct quoit_fabric **fabric_out)
{
    struct quoit_fabric *fabric = calloc(1, sizeof *fabric);
    if (!fabric)
        return QUOIT_NO_MEMORY;
    fabric->layout = *config->layout;
    fabric->paths = config->paths;
    fabric->memory = config->memory;
    fabric->pe_self = config->pe_self;
    fabric->pe_count = fabric->layout.job.pe_count;
    fabric->host_self = fabric->layout.host;
    fabric->local_self = config->pe_self - fabric->layout.first_pe;
    quoit_assert(fabric->local_self < fabric->layout.local_count);
    fabric->segment_self = fabric->memory + quoit_layout_segment(&fabric->layout, fabric->local_self);
    fabric->shared_self = quoit_memory_pe(&fabric->layout, fabric->memory, fabric->local_self);
    fabric->trace = quoit_memory_trace(&fabric->layout, fabric->memory, fabric->local_self);
    fabric->waiter =
        (struct quoit_waiter){.park = &fabric->shared_self->park,
                              .policy = config->policy,
                              .arm = arm,
                              .settle = settle,
                              .settle_yields = QUOIT_FABRIC_SETTLE_YIELDS,
                              .arm_arg = fabric,
                              .is_hurried = &((const struct quoit_host_header *)fabric->memory)->has_plain_stores};
    quoit_context_init(&fabric->default_context, 0);

    enum quoit_status status = QUOIT_NO_MEMORY;
    fabric->peers = calloc(fabric->pe_count, sizeof *fabric->peers);
    if (!fabric->peers)
        goto close_fabric;
    if (fabric->layout.job.host_count > 1) {
        status = open_ring(fabric, config);
        if (status != QUOIT_OK)
            goto close_fabric;
    }
    for (uint32_t pe = 0; pe < fabric->pe_count; pe++)
        choose_way(fabric, pe, &fabric->peers[pe]);
    atomic_store_explicit(&fabric->shared_self->pid, (uint32_t)getpid(), memory_order_relaxed);
    *fabric_out = fabric;
    return QUOIT_OK;

close_fabric:
    quoit_fabric_close(fabric);
    return status;
}

void quoit_fabric_close(struct quoit_fabric *fabric)
{
    if (!fabric)
        return;
    atomic_store_explicit(&fabric->shared_self->pid, 0, memory_order_relaxed);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(fabric->ports[side]);
    if (fabric->channels)
        for (uint32_t lane = 0; lane < fabric->layout.job.lane_count; lane++)
            pthread_mutex_destroy(&fabric->channels[lane].lock);
    free(fabric->channels);
    free(fabric->peers);
    free(fabric);
}

void quoit_fabric_expect_plain_stores(struct quoit_fabric *fabric)
{
    struct quoit_host_header *header = (struct quoit_host_header *)fabric->memory;
    if (atomic_load_explicit(&header->has_plain_stores, memory_order_relaxed))
        return;
    if (atomic_exchange(&header->has_plain_stores, 1) == 0)
        for (uint32_t i = 0; i < fabric->layout.local_count; i++)
            quoit_park_wake(&quoit_memory_pe(&fabric->layout, fabric->memory, i)->park); /* they sleep without limit */
}

void quoit_fabric_expect_threads(struct quoit_fabric *fabric)
{
    fabric->has_threads = true;
    quoit_fabric_expect_plain_stores(fabric);
}

struct watched {
    uint64_t offset;
    uint64_t bytes;
};

static void wait_for(struct quoit_fabric *fabric, struct watched watched, bool (*is_done)(void *arg), void *arg,
                     const char *call, uint64_t busy_ns)
{
    struct quoit_waiter waiter = fabric->waiter;
    waiter.busy_ns = busy_ns;
    waiter.watch_from = fabric->has_threads ? 0 : watched.offset;
    waiter.watch_to = fabric->has_threads ? INT64_MAX : watched.offset + watched.bytes;
    if (call)
        __atomic_store_n(&fabric->call, call, __ATOMIC_RELAXED);
    uint64_t begin_ns = 0;
    if (__builtin_expect(fabric->trace != NULL, 0))
        begin_ns = quoit_trace_enter(fabric->trace, "wait", 0, QUOIT_TRACE_NO_PE);
    quoit_wait_until(&waiter, is_done, arg, 0);
    if (__builtin_expect(fabric->trace != NULL, 0))
        quoit_trace_leave(fabric->trace, begin_ns, waiter.sleep_count);
    if (__atomic_load_n(&fabric->shared_self->waiting_in[0], __ATOMIC_RELAXED))
        __atomic_store_n(&fabric->shared_self->waiting_in[0], '\0', __ATOMIC_RELAXED);
}

void quoit_fabric_wait(struct quoit_fabric *fabric, bool (*is_done)(void *arg), void *arg, const char *call)
{
    quoit_fabric_wait_busy(fabric, is_done, arg, call, 0);
}

void quoit_fabric_wait_busy(struct quoit_fabric *fabric, bool (*is_done)(void *arg), void *arg, const char *call,
                            uint64_t busy_ns)
{
    const struct watched workspace = {.offset = 0, .bytes = fabric->layout.segment_data};
    wait_for(fabric, workspace, is_done, arg, call, busy_ns);
}

void quoit_fabric_wait_at(struct quoit_fabric *fabric, uint64_t offset, uint64_t bytes, bool (*is_done)(void *arg),
                          void *arg, const char *call)
{
    wait_for(fabric, (struct watched){offset, bytes}, is_done, arg, call, 0);
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

void quoit_fabric_host_barrier(struct quoit_fabric *fabric, const char *call)
{
    struct quoit_host_header *header = (struct quoit_host_header *)fabric->memory;
    quoit_assert(fabric->local_self == 0);
    uint64_t count = atomic_load_explicit(&header->barrier_arrived_count, memory_order_relaxed) + 1;
    struct barrier_wait wait = {.header = header, .count = count};
    atomic_store_explicit(&header->barrier_arrived_count, count,
                          memory_order_release); /* pairs with lane 0's acquire */
    quoit_park_wake(&quoit_memory_lane(&fabric->layout, fabric->memory, 0)->park);
    quoit_fabric_wait(fabric, is_released, &wait, call);
}

void quoit_fabric_fence(struct quoit_fabric *fabric, struct quoit_context *context)
{
    atomic_thread_fence(memory_order_release);
    /* What was split over the lanes could be overtaken on each. */
    if (atomic_load_explicit(&context->off_lane_count, memory_order_relaxed) != 0)
        quoit_channel_wait64(fabric, &context->off_lane_count);
    /* What goes to one PE through the proxy keeps its order, if payload does not land early; see channel.c. */
    if (atomic_load_explicit(&context->outstanding_count, memory_order_relaxed) != 0)
        atomic_store_explicit(&context->has_fenced, true, memory_order_relaxed);
    /* A direct put could overtake a request on its way to the same PE. */
    if (atomic_load_explicit(&context->relayed_count, memory_order_relaxed) != 0)
        quoit_channel_wait64(fabric, &context->relayed_count);
}

/* A read through the window returns after all that this host wrote there before: it is how arrival is known. */
static void confirm_direct_puts(struct quoit_fabric *fabric, struct quoit_context *context)
{
    uint32_t sides = atomic_exchange_explicit(&context->dirty_sides, 0, memory_order_relaxed);
    for (uint32_t side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint64_t word;
        if ((sides & (1u << side)) == 0)
            continue;
        if (quoit_port_read(fabric->ports[side], QUOIT_WINDOW_MEMORY, 0, &word, sizeof word) != QUOIT_OK)
            /* The puts have arrived: each returned OK before the link went down. */
            atomic_store_explicit(&fabric->direct[side].is_open, false, memory_order_relaxed);
    }
}

void quoit_fabric_quiet(struct quoit_fabric *fabric, struct quoit_context *context)
{
    if (atomic_load_explicit(&context->outstanding_count, memory_order_acquire) != 0)
        quoit_channel_wait64(fabric, &context->outstanding_count);
    if (atomic_load_explicit(&context->dirty_sides, memory_order_relaxed) != 0)
        confirm_direct_puts(fabric, context);
    atomic_thread_fence(memory_order_seq_cst); /* a PE that looks after quiet must not have looked before */
}
