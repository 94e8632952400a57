/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h - the state of one host's Ethernet device. Private to this folder.
 *
 * The device has one channel per queue of the TAP device. A channel is a transmitter, a receiver and a queue to each
 * neighbour. Frames stay on their channel from host to host, so for order and deadlock each channel is a ring of its
 * own (queue.h). The kernel keeps a flow on one queue of the TAP device, so TCP sees no reordering.
 */
#ifndef QUOIT_VETH_DEVICE_H
#define QUOIT_VETH_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "veth/queue.h"
#include "veth/topology.h"
#include "veth/veth.h"

struct quoit_veth_counts {
#define X(name, sentence) _Atomic uint64_t name;
    QUOIT_VETH_STATS_TABLE(X)
#undef X
};

/* In the host's memory, followed by the ranges of the channels: all of the left side, then all of the right. */
struct quoit_veth_shared {
    struct quoit_veth_counts counts; /* writers: all threads */
    struct quoit_park receivers[QUOIT_VETH_CHANNELS_MAX];
    struct quoit_park transmitters[QUOIT_VETH_CHANNELS_MAX];
    _Alignas(4096) struct quoit_veth_range ranges[];
};

/* A frame of the device. */
struct quoit_veth_outgoing {
    _Atomic bool is_kept; /* being sent by DMA, and must not change */
    struct quoit_veth_frame frame;
};

struct quoit_veth_channel {
    struct quoit_veth *veth;
    uint32_t index;
    int device_fd;
    struct quoit_park *receiver_park;
    struct quoit_park *transmitter_park;
    struct quoit_veth_queue queues[QUOIT_SIDE_COUNT];
    uint64_t doorbells[QUOIT_SIDE_COUNT]; /* of this host's ports */
    pthread_t receiver, transmitter;
    enum quoit_status status; /* of the transmitter at its end */
    /* The transmitter's. */
    struct quoit_veth_outgoing *buffers;
    uint32_t buffer_count;                /* 1 without DMA */
    struct quoit_veth_outgoing *outgoing; /* the one in use */
    enum quoit_side straight_side;        /* that the latest large frame went to */
    uint32_t straight_run;                /* frames that go through a buffer after a wrong guess */
    uint32_t straight_wait;               /* how many of them are left */
};

struct quoit_veth {
    struct quoit_veth_config config;
    struct quoit_veth_shared *shared;
    struct quoit_veth_macs macs;
    struct quoit_veth_topology topology;
    pthread_mutex_t topology_lock;
    _Atomic uint64_t topology_ns;                       /* when it changed last */
    _Atomic bool is_topology_pending[QUOIT_SIDE_COUNT]; /* the neighbour lacks the latest table */
    struct quoit_veth_frame topology_frame;             /* the receiver's of channel 0 */
    int stop_fd;
    _Atomic bool is_stopping;
    struct quoit_veth_channel channels[]; /* config.channel_count */
};

#define QUOIT_VETH_COUNT(veth, name, number)                                                                           \
    atomic_fetch_add_explicit(&(veth)->shared->counts.name, (uint64_t)(number), memory_order_relaxed)

/* Wakes the neighbour's receiver of this channel. */
void quoit_veth_ring(struct quoit_veth_channel *channel, enum quoit_side side);
/* As quoit_veth_queue_send(), and wakes the neighbour's receiver. */
enum quoit_status quoit_veth_send(struct quoit_veth_channel *channel, enum quoit_side side,
                                  const struct quoit_veth_header *header, uint32_t bytes,
                                  enum quoit_veth_reserve reserve, _Atomic bool *is_kept);
/* Merges a table of `count` links, and this host's view of its own links. */
void quoit_veth_update_topology(struct quoit_veth *veth, const uint32_t *words, uint32_t count);

/* receive.c, transmit.c: return when the device is stopped. */
void quoit_veth_receive(struct quoit_veth_channel *channel);
enum quoit_status quoit_veth_transmit(struct quoit_veth_channel *channel);

#endif
