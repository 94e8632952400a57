/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/device.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"

#define ROUTE_LIMIT_NS   1000000000u /* after which a frame without room is dropped, and those for a host cut off */
#define ROUTE_NAP_NS     1000000u
#define STRAIGHT_RUN_MAX 64u

struct room {
    struct quoit_veth_channel *channel;
    enum quoit_side side;
};

static bool has_room(void *arg)
{
    struct room *room = arg;
    return atomic_load_explicit(&room->channel->veth->is_stopping, memory_order_relaxed) ||
           quoit_veth_queue_has_room(&room->channel->queues[room->side], QUOIT_VETH_INJECT);
}

/* False: timeout, or the device is stopped. */
static bool wait_for_room(struct quoit_veth_channel *channel, enum quoit_side side)
{
    struct quoit_veth *veth = channel->veth;
    struct room room = {.channel = channel, .side = side};
    struct quoit_waiter waiter = {.park = channel->transmitter_park, .policy = veth->config.policy};
    QUOIT_VETH_COUNT(veth, full_waits, 1);
    return quoit_wait_until(&waiter, has_room, &room, ROUTE_LIMIT_NS) && !atomic_load(&veth->is_stopping);
}

/* Sends by that side, waiting for room; LINK_DOWN: the caller selects another route. */
static enum quoit_status send_waiting(struct quoit_veth_channel *channel, enum quoit_side side, _Atomic bool *is_kept)
{
    const struct quoit_veth_header *header = &channel->outgoing->frame.header;
    enum quoit_status status;
    while ((status = quoit_veth_send(channel, side, header, header->bytes, QUOIT_VETH_INJECT, is_kept)) == QUOIT_FULL)
        if (!wait_for_room(channel, side))
            return QUOIT_TIMEOUT;
    return status;
}

/* A host that is cut off may be back in a moment. For longer than the limit no frame waits for it, since those behind,
 * to other hosts, wait too. */
static bool is_cut_off_for_long(const struct quoit_veth *veth)
{
    uint64_t changed_ns = atomic_load_explicit(&veth->topology_ns, memory_order_relaxed), now_ns = quoit_clock_now_ns();
    return now_ns > changed_ns && now_ns - changed_ns > ROUTE_LIMIT_NS;
}

static bool send_to_host(struct quoit_veth_channel *channel, uint32_t dest)
{
    struct quoit_veth *veth = channel->veth;
    struct quoit_veth_header *header = &channel->outgoing->frame.header;
    for (uint64_t waited_ns = 0; waited_ns < ROUTE_LIMIT_NS; waited_ns += ROUTE_NAP_NS) {
        struct quoit_veth_route route = quoit_veth_route_to(&veth->topology, dest);
        header->dest = (uint16_t)dest;
        header->hops = (uint16_t)route.hops;
        if (route.hops == 0 && is_cut_off_for_long(veth))
            return false;
        enum quoit_status status =
            route.hops == 0 ? QUOIT_LINK_DOWN : send_waiting(channel, route.side, &channel->outgoing->is_kept);
        if (status == QUOIT_OK)
            return true;
        if (status != QUOIT_LINK_DOWN || atomic_load(&veth->is_stopping))
            return false;
        quoit_clock_sleep_ns(ROUTE_NAP_NS); /* until the manager has seen the dead link, or a route exists */
    }
    return false;
}

/* Once around the ring; with a dead link, in both directions up to it. Not by DMA: the header differs per direction. */
static bool send_to_all(struct quoit_veth_channel *channel)
{
    struct quoit_veth *veth = channel->veth;
    struct quoit_veth_header *header = &channel->outgoing->frame.header;
    bool is_sent = false;
    header->dest = QUOIT_VETH_ALL;
    for (uint32_t i = 0, left = veth->config.host_count - 1; i < QUOIT_SIDE_COUNT && left > 0; i++) {
        enum quoit_side side = i == 0 ? QUOIT_RIGHT : QUOIT_LEFT;
        uint32_t reach = quoit_veth_reach(&veth->topology, side);
        header->hops = (uint16_t)(reach < left ? reach : left);
        left -= header->hops;
        if (header->hops != 0)
            is_sent |= send_waiting(channel, side, NULL) == QUOIT_OK;
    }
    return is_sent;
}

static void count_sent(struct quoit_veth *veth, size_t bytes)
{
    QUOIT_VETH_COUNT(veth, sent_frames, 1);
    QUOIT_VETH_COUNT(veth, sent_bytes, bytes - QUOIT_VNET_BYTES);
}

/* Makes the header except for the route; returns the host, or QUOIT_VETH_ALL. */
static uint32_t make_header(struct quoit_veth_channel *channel, uint32_t bytes)
{
    struct quoit_veth *veth = channel->veth;
    channel->outgoing->frame.header =
        (struct quoit_veth_header){.kind = QUOIT_VETH_ETHERNET, .source = (uint16_t)veth->config.host, .bytes = bytes};
    return quoit_veth_host_of(&veth->macs, channel->outgoing->frame.payload + QUOIT_VNET_BYTES);
}

static bool is_other_host(const struct quoit_veth *veth, uint32_t dest)
{
    return dest < veth->config.host_count && dest != veth->config.host;
}

/* Sends a frame of the device from `outgoing`. */
static void send_frame(struct quoit_veth_channel *channel, uint32_t bytes)
{
    struct quoit_veth *veth = channel->veth;
    if (bytes < QUOIT_VNET_BYTES + QUOIT_ETHERNET_BYTES)
        return;
    uint32_t dest = make_header(channel, bytes);
    bool is_sent =
        dest == QUOIT_VETH_ALL ? send_to_all(channel) : is_other_host(veth, dest) && send_to_host(channel, dest);
    if (is_sent)
        count_sent(veth, bytes);
    else
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
}

/* After a wrong guess the next one waits twice as long. */
static void learn_side(struct quoit_veth_channel *channel, enum quoit_side side)
{
    uint32_t run = channel->straight_run;
    if (channel->straight_side == side) {
        channel->straight_run = run / 2;
        return;
    }
    channel->straight_side = side;
    channel->straight_run = run == 0 ? 1 : run < STRAIGHT_RUN_MAX ? 2 * run : STRAIGHT_RUN_MAX;
    channel->straight_wait = channel->straight_run;
}

/* Whether a frame that was read directly into a slot of straight_side takes that route. */
static bool address(void *arg, struct quoit_veth_frame *frame, uint32_t bytes)
{
    struct quoit_veth_channel *channel = arg;
    enum quoit_side side = channel->straight_side;
    if (bytes < QUOIT_VNET_BYTES + QUOIT_ETHERNET_BYTES)
        return false;
    uint32_t dest = make_header(channel, bytes);
    if (!is_other_host(channel->veth, dest))
        return false;
    struct quoit_veth_route route = quoit_veth_route_to(&channel->veth->topology, dest);
    frame->header.dest = (uint16_t)dest;
    frame->header.hops = (uint16_t)route.hops;
    if (route.hops != 0 && bytes > QUOIT_VETH_HEAD_BYTES)
        learn_side(channel, route.side);
    return route.hops != 0 && route.side == side;
}

/* Reads a frame into `outgoing` and sends it; returns as read(2). */
static ssize_t carry_by_copy(struct quoit_veth_channel *channel)
{
    ssize_t bytes = read(channel->device_fd, channel->outgoing->frame.payload, sizeof channel->outgoing->frame.payload);
    if (bytes > 0)
        send_frame(channel, (uint32_t)bytes);
    return bytes;
}

static struct quoit_veth_outgoing *free_buffer(struct quoit_veth_channel *channel)
{
    for (uint32_t i = 0; i < channel->buffer_count; i++)
        if (!atomic_load_explicit(&channel->buffers[i].is_kept, memory_order_acquire))
            return &channel->buffers[i];
    return NULL;
}

static bool has_buffer(void *arg)
{
    struct quoit_veth_channel *channel = arg;
    return atomic_load_explicit(&channel->veth->is_stopping, memory_order_relaxed) || free_buffer(channel) != NULL;
}

/* From a buffer that stays unchanged until the frame has left. */
static ssize_t carry_by_dma(struct quoit_veth_channel *channel)
{
    struct quoit_veth_outgoing *buffer;
    while ((buffer = free_buffer(channel)) == NULL) {
        struct quoit_waiter waiter = {.park = channel->transmitter_park, .policy = channel->veth->config.policy};
        quoit_wait_until(&waiter, has_buffer, channel, 0);
        if (atomic_load(&channel->veth->is_stopping)) {
            errno = EINTR;
            return -1;
        }
    }
    channel->outgoing = buffer;
    return carry_by_copy(channel);
}

/* Reads a frame of the device and sends it; returns as read(2). Reads directly into a slot of the side to which the
 * latest large frame went, which saves a copy if the guess is right. */
static ssize_t carry(struct quoit_veth_channel *channel)
{
    struct quoit_veth *veth = channel->veth;
    enum quoit_side side = channel->straight_side;
    ssize_t bytes = 0;
    if (channel->buffer_count > 1)
        return carry_by_dma(channel);
    if (channel->straight_wait > 0) {
        channel->straight_wait--;
        return carry_by_copy(channel);
    }
    enum quoit_status status = quoit_veth_queue_send_from(&channel->queues[side], channel->device_fd,
                                                          &channel->outgoing->frame, address, channel, &bytes);
    if (status == QUOIT_OK && bytes > 0) {
        quoit_veth_ring(channel, side);
        count_sent(veth, (size_t)bytes);
    } else if (status == QUOIT_AGAIN) {
        send_frame(channel, (uint32_t)bytes);
    } else if (status != QUOIT_OK && bytes > 0) {
        QUOIT_VETH_COUNT(veth, lost_frames, 1);
    } else if (status == QUOIT_FULL && wait_for_room(channel, side)) {
        errno = EINTR;
        return -1;
    } else if (status != QUOIT_OK) {
        return carry_by_copy(channel);
    }
    return bytes;
}

static enum quoit_status carry_all(struct quoit_veth_channel *channel)
{
    struct quoit_veth *veth = channel->veth;
    struct pollfd polled[] = {{.fd = channel->device_fd, .events = POLLIN}, {.fd = veth->stop_fd, .events = POLLIN}};
    while (!atomic_load_explicit(&veth->is_stopping, memory_order_relaxed)) {
        ssize_t bytes = carry(channel);
        if (bytes < 0 && errno == EAGAIN) {
            poll(polled, 2, -1);
        } else if (bytes == 0 || (bytes < 0 && errno != EINTR)) {
            quoit_log(QUOIT_LOG_ERROR, "the Ethernet device of host %u cannot be read: %s", veth->config.host,
                      bytes == 0 ? "end of file" : strerror(errno));
            return QUOIT_SYSTEM;
        }
    }
    return QUOIT_OK;
}

/* A wire with a rate is waited for about once a frame, which a timer's usual slack would double. The thread may be the
 * caller's, which gets its own slack back. */
enum quoit_status quoit_veth_transmit(struct quoit_veth_channel *channel)
{
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    enum quoit_status status = carry_all(channel);
    prctl(PR_SET_TIMERSLACK, slack_ns);
    return status;
}
