/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/device.h"

#include <string.h>
#include <unistd.h>

#define BATCH 16u /* frames from one side before the other side is polled */

/* A frame in its slot, which the neighbour can still write: what is checked and used is a copy of the header. */
struct arrival {
    struct quoit_veth_channel *channel;
    enum quoit_side side; /* at which frames arrive */
    struct quoit_veth_header *slot;
    struct quoit_veth_header header;
};

static void deliver(const struct arrival *arrival)
{
    struct quoit_veth *veth = arrival->channel->veth;
    const uint8_t *payload = (const uint8_t *)(arrival->slot + 1);
    const uint32_t bytes = arrival->header.bytes;
    quoit_veth_learn(&veth->macs, payload + QUOIT_VNET_BYTES + QUOIT_MAC_BYTES, arrival->header.source);
    if (write(arrival->channel->device_fd, payload, bytes) == (ssize_t)bytes) {
        QUOIT_VETH_COUNT(veth, received_frames, 1);
        QUOIT_VETH_COUNT(veth, received_bytes, bytes - QUOIT_VNET_BYTES);
    } else {
        QUOIT_VETH_COUNT(veth, refused_frames, 1);
    }
}

/* From the slot, with the header as it now is. */
static enum quoit_status send_on(struct arrival *arrival, enum quoit_side side, enum quoit_veth_reserve reserve)
{
    *arrival->slot = arrival->header;
    return quoit_veth_send(arrival->channel, side, arrival->slot, arrival->header.bytes, reserve, NULL);
}

/* Sends a frame back in the direction it came from, if there is room. It must not block the frames behind it. */
static void turn(struct arrival *arrival)
{
    struct quoit_veth *veth = arrival->channel->veth;
    struct quoit_veth_header *header = &arrival->header;
    bool may_turn = header->dest != QUOIT_VETH_ALL && !header->is_turned;
    header->is_turned = 1;
    header->hops = (uint16_t)quoit_ring_hops(veth->config.host_count, arrival->side, veth->config.host, header->dest);
    if (may_turn && send_on(arrival, arrival->side, QUOIT_VETH_INJECT) == QUOIT_OK)
        QUOIT_VETH_COUNT(veth, turned_frames, 1);
    else
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
}

/* False: no room. */
static bool forward(struct arrival *arrival)
{
    arrival->header.hops--;
    enum quoit_status status = send_on(arrival, quoit_ring_opposite(arrival->side), QUOIT_VETH_TRANSIT);
    if (status == QUOIT_FULL) {
        arrival->header.hops++;
        *arrival->slot = arrival->header;
        return false;
    }
    if (status == QUOIT_OK)
        QUOIT_VETH_COUNT(arrival->channel->veth, forwarded_frames, 1);
    else
        turn(arrival);
    return true;
}

static void take_topology(struct quoit_veth *veth, const struct arrival *arrival)
{
    uint32_t words[QUOIT_VETH_HOSTS_MAX], count = veth->config.host_count;
    if (arrival->header.bytes != count * sizeof words[0]) {
        QUOIT_VETH_COUNT(veth, malformed_frames, 1);
        return;
    }
    memcpy(words, arrival->slot + 1, count * sizeof words[0]);
    quoit_veth_update_topology(veth, words, count);
}

static bool take(void *arg, struct quoit_veth_header *slot)
{
    struct arrival *arrival = arg;
    struct quoit_veth *veth = arrival->channel->veth;
    const struct quoit_veth_header *header = &arrival->header;
    arrival->slot = slot;
    arrival->header = *slot;
    if (!quoit_veth_header_is_valid(header, veth->config.host_count)) {
        QUOIT_VETH_COUNT(veth, malformed_frames, 1);
        return true;
    }
    if (header->kind == QUOIT_VETH_TOPOLOGY) {
        take_topology(veth, arrival);
        return true;
    }
    bool is_for_us = header->dest == veth->config.host || header->dest == QUOIT_VETH_ALL;
    if (!is_for_us && header->hops <= 1) { /* its host is not where its source took it to be */
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
        return true;
    }
    if (header->dest != veth->config.host && header->hops > 1 && !forward(arrival))
        return false;
    if (is_for_us)
        deliver(arrival);
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
    enum quoit_status status =
        quoit_veth_send(channel, side, &frame->header, frame->header.bytes, QUOIT_VETH_INJECT, NULL);
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
