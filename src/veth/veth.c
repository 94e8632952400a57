/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"
#include "host/doorbells.h"
#include "veth/tap.h"

#define DIGEST            0x76657468u /* of this layout, on which both ends must agree */
#define DIGEST_OF_CHANNEL 0x01000193u
#define DMA_BUFFERS       8u /* frames of a channel that may be in flight by DMA */

uint64_t quoit_veth_bytes(uint32_t channel_count)
{
    return sizeof(struct quoit_veth_shared) +
           (uint64_t)QUOIT_SIDE_COUNT * channel_count * sizeof(struct quoit_veth_range);
}

/* If a port has fewer bits than the device has channels, channels share them. */
static uint64_t bit_of(uint64_t bits, uint32_t channel)
{
    uint32_t count = (uint32_t)__builtin_popcountll(bits);
    return count == 0 ? 0 : quoit_doorbell_at(bits, channel % count);
}

void quoit_veth_ring(struct quoit_veth_channel *channel, enum quoit_side side)
{
    uint64_t bits = atomic_load(&channel->veth->config.records[side].peer_doorbells);
    quoit_port_ring(channel->queues[side].port, bit_of(bits, channel->index));
}

enum quoit_status quoit_veth_send(struct quoit_veth_channel *channel, enum quoit_side side,
                                  const struct quoit_veth_header *header, uint32_t bytes,
                                  enum quoit_veth_reserve reserve, _Atomic bool *is_kept)
{
    enum quoit_status status = quoit_veth_queue_send(&channel->queues[side], header, bytes, reserve, is_kept);
    if (status == QUOIT_OK)
        quoit_veth_ring(channel, side);
    return status;
}

/* Topology */

static bool is_up(const struct quoit_veth *veth, enum quoit_side side)
{
    return atomic_load(&veth->channels[0].queues[side].is_up);
}

/* For its own links this host's view overrides what others report. */
static bool see_own_links(struct quoit_veth *veth)
{
    bool has_changed = false;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        has_changed |= quoit_veth_see(&veth->topology, quoit_veth_link(&veth->topology, side), is_up(veth, side));
    return has_changed;
}

void quoit_veth_update_topology(struct quoit_veth *veth, const uint32_t *words, uint32_t count)
{
    bool has_changed = false;
    pthread_mutex_lock(&veth->topology_lock);
    for (uint32_t link = 0; link < count; link++)
        has_changed |= quoit_veth_merge(&veth->topology, link, words[link]);
    has_changed |= see_own_links(veth);
    if (has_changed)
        atomic_store_explicit(&veth->topology_ns, quoit_clock_now_ns(), memory_order_relaxed);
    pthread_mutex_unlock(&veth->topology_lock);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && has_changed; side++)
        atomic_store(&veth->is_topology_pending[side], true);
}

/* The client of the ring service */

static void wake_all(struct quoit_veth *veth)
{
    for (uint32_t i = 0; i < veth->config.channel_count; i++) {
        quoit_park_wake(veth->channels[i].receiver_park);
        quoit_park_wake(veth->channels[i].transmitter_park);
    }
}

static void changed(void *arg, enum quoit_side side)
{
    struct quoit_veth *veth = arg;
    uint32_t target = atomic_load_explicit(&veth->config.records[side].target, memory_order_acquire);
    for (uint32_t i = 0; i < veth->config.channel_count; i++)
        if (QUOIT_LINK_TARGET_IS_UP(target))
            quoit_veth_queue_begin(&veth->channels[i].queues[side]);
        else
            quoit_veth_queue_end(&veth->channels[i].queues[side]);
    if (QUOIT_LINK_TARGET_IS_UP(target))
        atomic_store(&veth->is_topology_pending[side], true);
    quoit_veth_update_topology(veth, NULL, 0);
    quoit_tap_set_carrier(veth->config.device_fds[0], is_up(veth, QUOIT_LEFT) || is_up(veth, QUOIT_RIGHT));
    wake_all(veth);
}

/* When changed() has returned, no thread sends or receives. */
static bool has_followed(void *arg, enum quoit_side side)
{
    (void)arg, (void)side;
    return true;
}

static struct quoit_veth_range *range_of(struct quoit_veth *veth, enum quoit_side side, uint32_t channel)
{
    return &veth->shared->ranges[side * veth->config.channel_count + channel];
}

static void clean(void *arg, enum quoit_side side)
{
    struct quoit_veth *veth = arg;
    for (uint32_t i = 0; i < veth->config.channel_count; i++) {
        atomic_store(&range_of(veth, side, i)->sent, 0);
        atomic_store(&range_of(veth, side, i)->consumed, 0);
    }
}

/* With n bits, bit i wakes the channels i, i + n, i + 2 n and so on. */
static void vectors_of(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT])
{
    struct quoit_veth *veth = arg;
    uint32_t count = (uint32_t)__builtin_popcountll(bits), channels = veth->config.channel_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bit = (uint32_t)__builtin_ctzll(quoit_doorbell_at(bits, i));
        vectors_out[bit] = (struct quoit_port_vector){
            .park_offset =
                veth->config.offset + offsetof(struct quoit_veth_shared, receivers) + i * sizeof(struct quoit_park),
            .park_stride = count * (uint32_t)sizeof(struct quoit_park),
            .park_count = i < channels ? (channels - i + count - 1) / count : 0};
    }
}

/* A host that two dead links cut off keeps its device, without carrier: no dead_links, no cut_off. */
static enum quoit_status attach(struct quoit_veth *veth)
{
    const uint32_t count = veth->config.channel_count;
    struct quoit_client client = {
        .name = "Ethernet",
        .digest = DIGEST + (veth->config.host_count << 24) + veth->config.ring + count * DIGEST_OF_CHANNEL,
        .doorbell_least = 1,
        .doorbell_most = count,
        .vectors = vectors_of,
        .has_failover = true,
        .changed = changed,
        .has_followed = has_followed,
        .clean = clean,
        .arg = veth,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        client.windows[side][QUOIT_WINDOW_SLOTS] =
            (struct quoit_window_range){.offset = veth->config.offset + sizeof(struct quoit_veth_shared) +
                                                  side * count * sizeof(struct quoit_veth_range),
                                        .bytes = count * sizeof(struct quoit_veth_range)};
    enum quoit_status status = quoit_service_attach(veth->config.service, &client);
    for (uint32_t i = 0; i < count && status == QUOIT_OK; i++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
            veth->channels[i].doorbells[side] = bit_of(quoit_service_doorbells(veth->config.service, side), i);
    return status;
}

static enum quoit_status open_channel(struct quoit_veth *veth, uint32_t index)
{
    struct quoit_veth_channel *channel = &veth->channels[index];
    channel->veth = veth;
    channel->index = index;
    channel->device_fd = veth->config.device_fds[index];
    channel->receiver_park = &veth->shared->receivers[index];
    channel->transmitter_park = &veth->shared->transmitters[index];
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_veth_queue *queue = &channel->queues[side];
        quoit_veth_queue_open(queue, quoit_service_port(veth->config.service, side),
                              index * sizeof(struct quoit_veth_range), range_of(veth, side, index));
        queue->dma_bytes = veth->config.dma_bytes;
        queue->dma_channel = index;
        queue->dma_frames = &veth->shared->counts.dma_frames;
        queue->out_frames = &veth->shared->counts.link_out_frames;
        queue->in_frames = &veth->shared->counts.link_in_frames;
    }
    channel->buffer_count = veth->config.dma_bytes == QUOIT_VETH_DMA_NEVER ? 1 : DMA_BUFFERS;
    channel->buffers = calloc(channel->buffer_count, sizeof *channel->buffers);
    channel->outgoing = channel->buffers;
    return channel->buffers ? QUOIT_OK : QUOIT_NO_MEMORY;
}

/* Completions wake the receivers. OUT_OF_RANGE: fewer DMA channels than channels. */
static enum quoit_status prepare_dma(struct quoit_veth *veth)
{
    enum quoit_status status = QUOIT_OK;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && veth->config.dma_bytes != QUOIT_VETH_DMA_NEVER; side++) {
        struct quoit_port *port = quoit_service_port(veth->config.service, side);
        struct quoit_port_limits limits;
        quoit_port_limits(port, &limits);
        if (veth->config.channel_count > limits.dma_channel_count) {
            quoit_log(QUOIT_LOG_ERROR, "a port has %u DMA channels, and the Ethernet device %u queues",
                      limits.dma_channel_count, veth->config.channel_count);
            return QUOIT_OUT_OF_RANGE;
        }
        for (uint32_t i = 0; i < veth->config.channel_count && status == QUOIT_OK; i++) {
            const struct quoit_port_vector vector = {.park_offset = veth->config.offset +
                                                                    offsetof(struct quoit_veth_shared, receivers) +
                                                                    i * sizeof(struct quoit_park),
                                                     .park_stride = sizeof(struct quoit_park),
                                                     .park_count = 1};
            status = quoit_port_set_vector(port, QUOIT_VECTOR_DMA(i), &vector);
        }
    }
    return status;
}

enum quoit_status quoit_veth_open(const struct quoit_veth_config *config, struct quoit_veth **veth_out)
{
    if (config->host_count < 2 || config->host_count > QUOIT_VETH_HOSTS_MAX || config->channel_count < 1 ||
        config->channel_count > QUOIT_VETH_CHANNELS_MAX)
        return QUOIT_OUT_OF_RANGE;
    struct quoit_veth *veth = calloc(1, sizeof *veth + config->channel_count * sizeof veth->channels[0]);
    if (!veth)
        return QUOIT_NO_MEMORY;
    veth->config = *config;
    /* On shared processors a thread that yields takes turns from the programs whose frames it waits for: 22 switches
     * for each 64 KiB of a stream instead of 1.3, and half as much processor time again. */
    if (quoit_wait_shares(config->policy))
        veth->config.policy.awake_ns = 0;
    veth->shared = (struct quoit_veth_shared *)(void *)((char *)config->memory + config->offset);
    veth->macs.ring = config->ring;
    veth->macs.host_count = config->host_count;
    veth->topology_ns = quoit_clock_now_ns();
    veth->topology.host = config->host;
    veth->topology.host_count = config->host_count;
    pthread_mutex_init(&veth->topology_lock, NULL);
    quoit_park_setup();
    veth->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum quoit_status status = veth->stop_fd < 0 ? QUOIT_SYSTEM : QUOIT_OK;
    for (uint32_t i = 0; i < config->channel_count; i++) {
        enum quoit_status opened = open_channel(veth, i); /* all of them: close() closes all */
        status = status == QUOIT_OK ? opened : status;
    }
    if (status == QUOIT_OK)
        status = prepare_dma(veth);
    if (status == QUOIT_OK)
        status = attach(veth);
    if (status != QUOIT_OK) {
        quoit_veth_close(veth);
        return status;
    }
    *veth_out = veth;
    return QUOIT_OK;
}

static void *run_receiver(void *arg)
{
    quoit_veth_receive(arg);
    return NULL;
}

/* A thread that ends by itself stops the others. */
static void *run_transmitter(void *arg)
{
    struct quoit_veth_channel *channel = arg;
    channel->status = quoit_veth_transmit(channel);
    quoit_veth_stop(channel->veth);
    return NULL;
}

static bool start_thread(pthread_t *thread, void *(*run)(void *arg), struct quoit_veth_channel *channel)
{
    int error = pthread_create(thread, NULL, run, channel);
    if (error != 0)
        quoit_log(QUOIT_LOG_ERROR, "cannot start a thread of the Ethernet device: %s", strerror(error));
    return error == 0;
}

enum quoit_status quoit_veth_run(struct quoit_veth *veth)
{
    const uint32_t count = veth->config.channel_count;
    struct quoit_veth_channel *first = &veth->channels[0];
    uint32_t receiver_count = 0, transmitter_count = 1; /* the caller is the first one */
    while (receiver_count < count &&
           start_thread(&veth->channels[receiver_count].receiver, run_receiver, &veth->channels[receiver_count]))
        receiver_count++;
    while (receiver_count == count && transmitter_count < count &&
           start_thread(&veth->channels[transmitter_count].transmitter, run_transmitter,
                        &veth->channels[transmitter_count]))
        transmitter_count++;
    bool is_whole = receiver_count == count && transmitter_count == count;
    first->status = is_whole ? quoit_veth_transmit(first) : QUOIT_SYSTEM;
    quoit_veth_stop(veth);
    enum quoit_status status = first->status;
    for (uint32_t i = 0; i < receiver_count; i++)
        pthread_join(veth->channels[i].receiver, NULL);
    for (uint32_t i = 1; i < transmitter_count; i++) {
        pthread_join(veth->channels[i].transmitter, NULL);
        status = status == QUOIT_OK ? veth->channels[i].status : status;
    }
    return status;
}

void quoit_veth_stop(struct quoit_veth *veth)
{
    const uint64_t one = 1;
    atomic_store(&veth->is_stopping, true);
    ssize_t written = write(veth->stop_fd, &one, sizeof one);
    (void)written; /* a full counter is readable too */
    wake_all(veth);
}

void quoit_veth_stats(const void *memory, uint64_t offset, struct quoit_veth_stats *stats_out)
{
    const struct quoit_veth_shared *shared = (const void *)((const char *)memory + offset);
#define X(name, sentence) stats_out->name = atomic_load_explicit(&shared->counts.name, memory_order_relaxed);
    QUOIT_VETH_STATS_TABLE(X)
#undef X
}

void quoit_veth_close(struct quoit_veth *veth)
{
    if (!veth)
        return;
    for (uint32_t i = 0; i < veth->config.channel_count; i++) {
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
            quoit_veth_queue_close(&veth->channels[i].queues[side]);
        free(veth->channels[i].buffers);
    }
    pthread_mutex_destroy(&veth->topology_lock);
    if (veth->stop_fd >= 0)
        close(veth->stop_fd);
    free(veth);
}
