/* SPDX-License-Identifier: BSD-3-Clause */
#include "veth/veth.h"
#include "base/log.h"
#include "env/clock.h"
#include "veth/queue.h"
#include "veth/tap.h"
#include "veth/topology.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BATCH          16u         /* frames of one side before the other has its turn */
#define ROUTE_LIMIT_NS 1000000000u /* a frame without a way, or without room, is dropped after so long */
#define ROUTE_NAP_NS   1000000u
#define DIGEST         0x76657468u /* of what both ends must agree on: this layout */

struct stats {
#define X(name, sentence) _Atomic uint64_t name;
    QUOIT_VETH_STATS_TABLE(X)
#undef X
};

/* In the host's memory. */
struct shared {
    struct stats stats; /* writers: both threads */
    struct quoit_park receiver;
    struct quoit_park transmitter;
    _Alignas(4096) struct quoit_veth_range ranges[QUOIT_SIDE_COUNT];
};

struct frame {
    struct quoit_veth_header header;
    uint8_t payload[QUOIT_VETH_SLOT_BYTES - sizeof(struct quoit_veth_header)];
};

struct side {
    struct quoit_veth_queue queue;
    uint64_t doorbells;               /* of this port */
    _Atomic bool is_topology_pending; /* the neighbour has not the latest table */
};

struct quoit_veth {
    struct quoit_veth_config config;
    struct shared *shared;
    struct side sides[QUOIT_SIDE_COUNT];
    struct quoit_veth_macs macs;
    struct quoit_veth_topology topology;
    pthread_mutex_t topology_lock;
    int stop_fd;
    _Atomic bool is_stopping;
    struct frame outgoing;       /* the transmitter's */
    struct frame topology_frame; /* the receiver's */
};

#define COUNT(veth, name, number)                                                                                      \
    atomic_fetch_add_explicit(&(veth)->shared->stats.name, (uint64_t)(number), memory_order_relaxed)

uint64_t quoit_veth_bytes(void)
{
    return sizeof(struct shared);
}

/* Sends, and wakes the neighbour's receiver. */
static enum quoit_status send(struct quoit_veth *veth, enum quoit_side side, const struct quoit_veth_header *header,
                              enum quoit_veth_reserve reserve)
{
    struct quoit_veth_queue *queue = &veth->sides[side].queue;
    enum quoit_status status = quoit_veth_queue_send(queue, header, reserve);
    if (status == QUOIT_OK)
        quoit_port_ring(queue->port, atomic_load(&veth->config.records[side].peer_doorbells));
    return status;
}

/* Topology */

static void mark_topology_pending(struct quoit_veth *veth)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        atomic_store(&veth->sides[side].is_topology_pending, true);
}

/* What this host sees of a link of its own counts more than what others say. */
static bool see_own_links(struct quoit_veth *veth)
{
    bool has_changed = false;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        has_changed |= quoit_veth_see(&veth->topology, quoit_veth_link(&veth->topology, side),
                                      atomic_load(&veth->sides[side].queue.is_up));
    return has_changed;
}

static void update_topology(struct quoit_veth *veth, const uint32_t *words, uint32_t count)
{
    bool has_changed = false;
    pthread_mutex_lock(&veth->topology_lock);
    for (uint32_t link = 0; link < count; link++)
        has_changed |= quoit_veth_merge(&veth->topology, link, words[link]);
    has_changed |= see_own_links(veth);
    pthread_mutex_unlock(&veth->topology_lock);
    if (has_changed)
        mark_topology_pending(veth);
}

/* The table as it is now; the neighbour merges it. True: there is nothing to send any more. */
static bool send_topology(struct quoit_veth *veth, enum quoit_side side)
{
    struct frame *frame = &veth->topology_frame;
    uint32_t count = veth->config.host_count, words[QUOIT_VETH_HOSTS_MAX];
    atomic_store(&veth->sides[side].is_topology_pending, false);
    for (uint32_t link = 0; link < count; link++)
        words[link] = atomic_load_explicit(&veth->topology.links[link], memory_order_relaxed);
    frame->header = (struct quoit_veth_header){.kind = QUOIT_VETH_TOPOLOGY,
                                               .hops = 1,
                                               .source = (uint16_t)veth->config.host,
                                               .dest = QUOIT_VETH_ALL,
                                               .bytes = count * (uint32_t)sizeof words[0]};
    memcpy(frame->payload, words, frame->header.bytes);
    enum quoit_status status = send(veth, side, &frame->header, QUOIT_VETH_INJECT);
    if (status == QUOIT_FULL)
        atomic_store(&veth->sides[side].is_topology_pending, true);
    return status == QUOIT_OK;
}

/* The receiver */

struct arrival {
    struct quoit_veth *veth;
    enum quoit_side side; /* at which frames arrive */
};

static void deliver(struct quoit_veth *veth, const struct quoit_veth_header *header)
{
    const uint8_t *payload = (const uint8_t *)(header + 1);
    quoit_veth_learn(&veth->macs, payload + QUOIT_VNET_BYTES + QUOIT_MAC_BYTES, header->source);
    if (write(veth->config.device_fd, payload, header->bytes) == (ssize_t)header->bytes) {
        COUNT(veth, received_frames, 1);
        COUNT(veth, received_bytes, header->bytes - QUOIT_VNET_BYTES);
    } else {
        COUNT(veth, refused_frames, 1);
    }
}

/* Back to where it came from, if there is room: it must not wait in front of what goes on. */
static void turn(struct arrival *arrival, struct quoit_veth_header *header)
{
    struct quoit_veth *veth = arrival->veth;
    bool may_turn = header->dest != QUOIT_VETH_ALL && !header->is_turned;
    header->is_turned = 1;
    header->hops = (uint16_t)quoit_ring_hops(veth->config.host_count, arrival->side, veth->config.host, header->dest);
    if (may_turn && send(veth, arrival->side, header, QUOIT_VETH_INJECT) == QUOIT_OK)
        COUNT(veth, turned_frames, 1);
    else
        COUNT(veth, lost_frames, 1);
}

/* False: no room. */
static bool forward(struct arrival *arrival, struct quoit_veth_header *header)
{
    struct quoit_veth *veth = arrival->veth;
    header->hops--;
    enum quoit_status status = send(veth, quoit_ring_opposite(arrival->side), header, QUOIT_VETH_TRANSIT);
    if (status == QUOIT_FULL) {
        header->hops++;
        return false;
    }
    if (status == QUOIT_OK)
        COUNT(veth, forwarded_frames, 1);
    else
        turn(arrival, header);
    return true;
}

static void take_topology(struct quoit_veth *veth, const struct quoit_veth_header *header)
{
    uint32_t words[QUOIT_VETH_HOSTS_MAX], count = veth->config.host_count;
    if (header->bytes != count * sizeof words[0]) {
        COUNT(veth, malformed_frames, 1);
        return;
    }
    memcpy(words, header + 1, header->bytes);
    update_topology(veth, words, count);
}

static bool take(void *arg, struct quoit_veth_header *header)
{
    struct arrival *arrival = arg;
    struct quoit_veth *veth = arrival->veth;
    if (!quoit_veth_header_is_valid(header, veth->config.host_count)) {
        COUNT(veth, malformed_frames, 1);
        return true;
    }
    if (header->kind == QUOIT_VETH_TOPOLOGY) {
        take_topology(veth, header);
        return true;
    }
    bool is_for_us = header->dest == veth->config.host || header->dest == QUOIT_VETH_ALL;
    if (header->dest != veth->config.host && header->hops > 1 && !forward(arrival, header))
        return false;
    if (is_for_us)
        deliver(veth, header);
    return true;
}

/* One look at everything; true: something moved. */
static bool receive(void *arg)
{
    struct quoit_veth *veth = arg;
    bool has_moved = atomic_load_explicit(&veth->is_stopping, memory_order_relaxed);
    for (enum quoit_side index = 0; index < QUOIT_SIDE_COUNT; index++) {
        struct side *side = &veth->sides[index];
        struct arrival arrival = {.veth = veth, .side = index};
        bool has_credited = false;
        if (atomic_load_explicit(&side->is_topology_pending, memory_order_relaxed))
            has_moved |= send_topology(veth, index);
        if (quoit_veth_queue_has_credits(&side->queue)) {
            quoit_park_wake(&veth->shared->transmitter);
            has_moved = true;
        }
        has_moved |= quoit_veth_queue_receive(&side->queue, take, &arrival, BATCH, &has_credited) != 0;
        if (has_credited)
            quoit_port_ring(side->queue.port, atomic_load(&veth->config.records[index].peer_doorbells));
    }
    return has_moved;
}

static void arm(void *arg)
{
    struct quoit_veth *veth = arg;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        quoit_port_doorbell_clear(veth->sides[side].queue.port, veth->sides[side].doorbells);
        quoit_port_doorbell_unmask(veth->sides[side].queue.port, veth->sides[side].doorbells);
    }
}

static void disarm(void *arg)
{
    struct quoit_veth *veth = arg;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_doorbell_mask(veth->sides[side].queue.port, veth->sides[side].doorbells);
}

static void *run_receiver(void *arg)
{
    struct quoit_veth *veth = arg;
    struct quoit_waiter waiter = {
        .park = &veth->shared->receiver, .policy = veth->config.policy, .arm = arm, .disarm = disarm, .arm_arg = veth};
    while (!atomic_load_explicit(&veth->is_stopping, memory_order_relaxed))
        quoit_wait_until(&waiter, receive, veth, 0);
    return NULL;
}

/* The transmitter */

struct room {
    struct quoit_veth *veth;
    enum quoit_side side;
};

static bool has_room(void *arg)
{
    struct room *room = arg;
    return atomic_load_explicit(&room->veth->is_stopping, memory_order_relaxed) ||
           quoit_veth_queue_has_room(&room->veth->sides[room->side].queue, QUOIT_VETH_INJECT);
}

/* Sends by that side, waiting for room; LINK_DOWN: the caller finds another way. */
static enum quoit_status send_waiting(struct quoit_veth *veth, enum quoit_side side)
{
    struct room room = {.veth = veth, .side = side};
    enum quoit_status status;
    while ((status = send(veth, side, &veth->outgoing.header, QUOIT_VETH_INJECT)) == QUOIT_FULL) {
        struct quoit_waiter waiter = {.park = &veth->shared->transmitter, .policy = veth->config.policy};
        COUNT(veth, full_waits, 1);
        if (!quoit_wait_until(&waiter, has_room, &room, ROUTE_LIMIT_NS) || atomic_load(&veth->is_stopping))
            return QUOIT_TIMEOUT;
    }
    return status;
}

static bool send_to_host(struct quoit_veth *veth, uint32_t dest)
{
    struct quoit_veth_header *header = &veth->outgoing.header;
    for (uint64_t waited_ns = 0; waited_ns < ROUTE_LIMIT_NS; waited_ns += ROUTE_NAP_NS) {
        struct quoit_veth_route route = quoit_veth_route_to(&veth->topology, dest);
        header->dest = (uint16_t)dest;
        header->hops = (uint16_t)route.hops;
        enum quoit_status status = route.hops == 0 ? QUOIT_LINK_DOWN : send_waiting(veth, route.side);
        if (status == QUOIT_OK)
            return true;
        if (status != QUOIT_LINK_DOWN || atomic_load(&veth->is_stopping))
            return false;
        quoit_clock_sleep_ns(ROUTE_NAP_NS); /* the manager is about to see the dead link, or there is no way */
    }
    return false;
}

/* Once around; with a dead link, both ways up to it. */
static bool send_to_all(struct quoit_veth *veth)
{
    struct quoit_veth_header *header = &veth->outgoing.header;
    bool is_sent = false;
    header->dest = QUOIT_VETH_ALL;
    for (uint32_t i = 0, left = veth->config.host_count - 1; i < QUOIT_SIDE_COUNT && left > 0; i++) {
        enum quoit_side side = i == 0 ? QUOIT_RIGHT : QUOIT_LEFT;
        uint32_t reach = quoit_veth_reach(&veth->topology, side);
        header->hops = (uint16_t)(reach < left ? reach : left);
        left -= header->hops;
        if (header->hops != 0)
            is_sent |= send_waiting(veth, side) == QUOIT_OK;
    }
    return is_sent;
}

static void transmit(struct quoit_veth *veth, uint32_t bytes)
{
    const uint8_t *address = veth->outgoing.payload + QUOIT_VNET_BYTES;
    if (bytes < QUOIT_VNET_BYTES + QUOIT_ETHERNET_BYTES)
        return;
    veth->outgoing.header =
        (struct quoit_veth_header){.kind = QUOIT_VETH_ETHERNET, .source = (uint16_t)veth->config.host, .bytes = bytes};
    uint32_t dest = quoit_veth_host_of(&veth->macs, address);
    bool is_sent = dest == QUOIT_VETH_ALL
                       ? send_to_all(veth)
                       : dest < veth->config.host_count && dest != veth->config.host && send_to_host(veth, dest);
    if (is_sent) {
        COUNT(veth, sent_frames, 1);
        COUNT(veth, sent_bytes, bytes - QUOIT_VNET_BYTES);
    } else {
        COUNT(veth, lost_frames, 1);
    }
}

static enum quoit_status run_transmitter(struct quoit_veth *veth)
{
    struct pollfd polled[] = {{.fd = veth->config.device_fd, .events = POLLIN},
                              {.fd = veth->stop_fd, .events = POLLIN}};
    while (!atomic_load_explicit(&veth->is_stopping, memory_order_relaxed)) {
        ssize_t bytes = read(veth->config.device_fd, veth->outgoing.payload, sizeof veth->outgoing.payload);
        if (bytes > 0) {
            transmit(veth, (uint32_t)bytes);
        } else if (bytes < 0 && errno == EAGAIN) {
            poll(polled, 2, -1);
        } else if (bytes == 0 || errno != EINTR) {
            quoit_log(QUOIT_LOG_ERROR, "the Ethernet device of host %u cannot be read: %s", veth->config.host,
                      bytes == 0 ? "end of file" : strerror(errno));
            return QUOIT_SYSTEM;
        }
    }
    return QUOIT_OK;
}

/* The client of the ring service */

static void changed(void *arg, enum quoit_side index)
{
    struct quoit_veth *veth = arg;
    struct side *side = &veth->sides[index];
    uint32_t target = atomic_load_explicit(&veth->config.records[index].target, memory_order_acquire);
    if (QUOIT_LINK_TARGET_IS_UP(target)) {
        quoit_veth_queue_begin(&side->queue);
        atomic_store(&side->is_topology_pending, true);
    } else {
        quoit_veth_queue_end(&side->queue);
    }
    update_topology(veth, NULL, 0);
    quoit_tap_set_carrier(veth->config.device_fd, atomic_load(&veth->sides[QUOIT_LEFT].queue.is_up) ||
                                                      atomic_load(&veth->sides[QUOIT_RIGHT].queue.is_up));
    quoit_park_wake(&veth->shared->receiver);
    quoit_park_wake(&veth->shared->transmitter);
}

/* changed() returns when nobody sends or receives any more. */
static bool has_followed(void *arg, enum quoit_side side)
{
    (void)arg, (void)side;
    return true;
}

static void clean(void *arg, enum quoit_side side)
{
    struct quoit_veth *veth = arg;
    struct quoit_veth_range *range = &veth->shared->ranges[side];
    atomic_store(&range->sent, 0);
    atomic_store(&range->consumed, 0);
}

static void vectors_of(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT])
{
    struct quoit_veth *veth = arg;
    for (; bits != 0; bits &= bits - 1)
        vectors_out[__builtin_ctzll(bits)] =
            (struct quoit_port_vector){.park_offset = veth->config.offset + offsetof(struct shared, receiver),
                                       .park_stride = sizeof(struct quoit_park),
                                       .park_count = 1};
}

/* A host that two dead links cut off keeps its device, without carrier: no dead_links, no cut_off. */
static enum quoit_status attach(struct quoit_veth *veth)
{
    struct quoit_client client = {
        .name = "Ethernet",
        .digest = DIGEST + (veth->config.host_count << 24) + veth->config.ring,
        .doorbell_least = 1,
        .doorbell_most = 1,
        .vectors = vectors_of,
        .has_failover = true,
        .changed = changed,
        .has_followed = has_followed,
        .clean = clean,
        .arg = veth,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        client.windows[side][QUOIT_WINDOW_SLOTS] = (struct quoit_window_range){
            .offset = veth->config.offset + offsetof(struct shared, ranges) + side * sizeof(struct quoit_veth_range),
            .bytes = sizeof(struct quoit_veth_range)};
    enum quoit_status status = quoit_service_attach(veth->config.service, &client);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        veth->sides[side].doorbells = quoit_service_doorbells(veth->config.service, side);
    return status;
}

enum quoit_status quoit_veth_open(const struct quoit_veth_config *config, struct quoit_veth **veth_out)
{
    if (config->host_count < 2 || config->host_count > QUOIT_VETH_HOSTS_MAX)
        return QUOIT_OUT_OF_RANGE;
    struct quoit_veth *veth = calloc(1, sizeof *veth);
    if (!veth)
        return QUOIT_NO_MEMORY;
    veth->config = *config;
    veth->shared = (struct shared *)(void *)((char *)config->memory + config->offset);
    veth->macs.ring = config->ring;
    veth->macs.host_count = config->host_count;
    veth->topology.host = config->host;
    veth->topology.host_count = config->host_count;
    pthread_mutex_init(&veth->topology_lock, NULL);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_veth_queue_open(&veth->sides[side].queue, quoit_service_port(config->service, side), 0,
                              &veth->shared->ranges[side]);
    quoit_park_setup();
    veth->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum quoit_status status = veth->stop_fd < 0 ? QUOIT_SYSTEM : attach(veth);
    if (status != QUOIT_OK) {
        quoit_veth_close(veth);
        return status;
    }
    *veth_out = veth;
    return QUOIT_OK;
}

enum quoit_status quoit_veth_run(struct quoit_veth *veth)
{
    pthread_t receiver;
    int error = pthread_create(&receiver, NULL, run_receiver, veth);
    if (error != 0) {
        quoit_log(QUOIT_LOG_ERROR, "cannot start the receiver of the Ethernet device: %s", strerror(error));
        return QUOIT_SYSTEM;
    }
    enum quoit_status status = run_transmitter(veth);
    quoit_veth_stop(veth);
    pthread_join(receiver, NULL);
    return status;
}

void quoit_veth_stop(struct quoit_veth *veth)
{
    const uint64_t one = 1;
    atomic_store(&veth->is_stopping, true);
    ssize_t written = write(veth->stop_fd, &one, sizeof one);
    (void)written; /* it is full already, so it is readable */
    quoit_park_wake(&veth->shared->receiver);
    quoit_park_wake(&veth->shared->transmitter);
}

void quoit_veth_stats(const void *memory, uint64_t offset, struct quoit_veth_stats *stats_out)
{
    const struct shared *shared = (const void *)((const char *)memory + offset);
#define X(name, sentence) stats_out->name = atomic_load_explicit(&shared->stats.name, memory_order_relaxed);
    QUOIT_VETH_STATS_TABLE(X)
#undef X
}

void quoit_veth_close(struct quoit_veth *veth)
{
    if (!veth)
        return;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_veth_queue_close(&veth->sides[side].queue);
    pthread_mutex_destroy(&veth->topology_lock);
    if (veth->stop_fd >= 0)
        close(veth->stop_fd);
    free(veth);
}
