/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/device.h"

#include <string.h>
#include <unistd.h>

#define BATCH 16u /* frames from one side before the other side is polled */

struct arrival {
    struct quoit_veth_channel *channel;
    enum quoit_side side; /* at which frames arrive */
};

static void deliver(struct quoit_veth_channel *channel, const struct quoit_veth_header *header)
{
    struct quoit_veth *veth = channel->veth;
    const uint8_t *payload = (const uint8_t *)(header + 1);
    quoit_veth_learn(&veth->macs, payload + QUOIT_VNET_BYTES + QUOIT_MAC_BYTES, header->source);
    if (write(channel->device_fd, payload, header->bytes) == (ssize_t)header->bytes) {
        QUOIT_VETH_COUNT(veth, received_frames, 1);
        QUOIT_VETH_COUNT(veth, received_bytes, header->bytes - QUOIT_VNET_BYTES);
    } else {
        QUOIT_VETH_COUNT(veth, refused_frames, 1);
    }
}

/* Sends a frame back in the direction it came from, if there is room. It must not block the frames behind it. */
static void turn(struct arrival *arrival, struct quoit_veth_header *header)
{
    struct quoit_veth *veth = arrival->channel->veth;
    bool may_turn = header->dest != QUOIT_VETH_ALL && !header->is_turned;
    header->is_turned = 1;
    header->hops = (uint16_t)quoit_ring_hops(veth->config.host_count, arrival->side, veth->config.host, header->dest);
    if (may_turn && quoit_veth_send(arrival->channel, arrival->side, header, QUOIT_VETH_INJECT, NULL) == QUOIT_OK)
        QUOIT_VETH_COUNT(veth, turned_frames, 1);
    else
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
}

/* False: no room. */
static bool forward(struct arrival *arrival, struct quoit_veth_header *header)
{
    struct quoit_veth *veth = arrival->channel->veth;
    header->hops--;
    enum quoit_status status =
        quoit_veth_send(arrival->channel, quoit_ring_opposite(arrival->side), header, QUOIT_VETH_TRANSIT, NULL);
    if (status == QUOIT_FULL) {
        header->hops++;
        return false;
    }
    if (status == QUOIT_OK)
        QUOIT_VETH_COUNT(veth, forwarded_frames, 1);
    else
        turn(arrival, header);
    return true;
}

static void take_topology(struct quoit_veth *veth, const struct quoit_veth_header *header)
{
    uint32_t words[QUOIT_VETH_HOSTS_MAX], count = veth->config.host_count;
    if (header->bytes != count * sizeof words[0]) {
        QUOIT_VETH_COUNT(veth, malformed_frames, 1);
        return;
    }
    memcpy(words, header + 1, header->bytes);
    quoit_veth_update_topology(veth, words, count);
}

static bool take(void *arg, struct quoit_veth_header *header)
{
    struct arrival *arrival = arg;
    struct quoit_veth *veth = arrival->channel->veth;
    if (!quoit_veth_header_is_valid(header, veth->config.host_count)) {
        QUOIT_VETH_COUNT(veth, malformed_frames, 1);
        return true;
    }
    if (header->kind == QUOIT_VETH_TOPOLOGY) {
        take_topology(veth, header);
        return true;
    }
    bool is_for_us = header->dest == veth->config.host || header->dest == QUOIT_VETH_ALL;
    if (!is_for_us && header->hops <= 1) { /* its host is not where its source took it to be */
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
        return true;
    }
    if (header->dest != veth->config.host && header->hops > 1 && !forward(arrival, header))
        return false;
    if (is_for_us)
        deliver(arrival->channel, header);
    return true;
}

/* Sends the current table, which the neighbour merges. True: nothing is left to send. */
static bool send_topology(struct quoit_veth_channel *channel, enum quoit_side side)
{
    struct quoit_veth *veth = channel->veth;
    struct quoit_veth_frame *frame = &veth->topology_frame;
    uint32_t count = veth->config.host_count, words[QUOIT_VETH_HOSTS_MAX];
    atomic_store(&veth->is_topology_pending[side], false);
    for (uint32_t link = 0; link < count; link++)
        words[link] = atomic_load_explicit(&veth->topology.links[link], memory_order_relaxed);
    frame->header = (struct quoit_veth_header){.kind = QUOIT_VETH_TOPOLOGY,
                                               .hops = 1,
                                               .source = (uint16_t)veth->config.host,
                                               .dest = QUOIT_VETH_ALL,
                                               .bytes = count * (uint32_t)sizeof words[0]};
    memcpy(frame->payload, words, frame->header.bytes);
    enum quoit_status status = quoit_veth_send(channel, side, &frame->header, QUOIT_VETH_INJECT, NULL);
    if (status == QUOIT_FULL)
        atomic_store(&veth->is_topology_pending[side], true);
    return status == QUOIT_OK;
}

/* Polls everything once; true: something moved. */
static bool receive(void *arg)
{
    struct quoit_veth_channel *channel = arg;
    struct quoit_veth *veth = channel->veth;
    bool has_moved = atomic_load_explicit(&veth->is_stopping, memory_order_relaxed);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct arrival arrival = {.channel = channel, .side = side};
        bool has_credited = false;
        if (channel->index == 0 && atomic_load_explicit(&veth->is_topology_pending[side], memory_order_relaxed))
            has_moved |= send_topology(channel, side);
        if (quoit_veth_queue_complete(&channel->queues[side])) {
            quoit_veth_ring(channel, side);
            quoit_park_wake(channel->transmitter_park); /* it may wait for a buffer */
            has_moved = true;
        }
        if (quoit_veth_queue_has_credits(&channel->queues[side])) {
            quoit_park_wake(channel->transmitter_park);
            has_moved = true;
        }
        has_moved |= quoit_veth_queue_receive(&channel->queues[side], take, &arrival, BATCH, &has_credited) != 0;
        if (has_credited)
            quoit_veth_ring(channel, side);
    }
    return has_moved;
}

static void arm(void *arg)
{
    struct quoit_veth_channel *channel = arg;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        quoit_port_doorbell_clear(channel->queues[side].port, channel->doorbells[side]);
        quoit_port_doorbell_unmask(channel->queues[side].port, channel->doorbells[side]);
    }
}

static void disarm(void *arg)
{
    struct quoit_veth_channel *channel = arg;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_doorbell_mask(channel->queues[side].port, channel->doorbells[side]);
}

void quoit_veth_receive(struct quoit_veth_channel *channel)
{
    struct quoit_waiter waiter = {.park = channel->receiver_park,
                                  .policy = channel->veth->config.policy,
                                  .arm = arm,
                                  .disarm = disarm,
                                  .arm_arg = channel};
    while (!atomic_load_explicit(&channel->veth->is_stopping, memory_order_relaxed))
        quoit_wait_until(&waiter, receive, channel, 0);
}
