/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_record.h - what a lane publishes: its park, its counters, its sleep time. */
#ifndef QUOIT_HOST_LANE_RECORD_H
#define QUOIT_HOST_LANE_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "env/park.h"
#include "host/put_times.h"
#include "ring/ring.h"

/* Traffic that left one host on one side. */
struct quoit_link_count {
    _Atomic uint64_t byte_count;    /* payload written through the port */
    _Atomic uint64_t dma_count;     /* of these: bytes that went by DMA */
    _Atomic uint64_t message_count; /* frames and direct puts */
    _Atomic uint64_t relay_count;   /* of these: relayed between two other hosts */
    _Atomic uint64_t doorbell_count;
    _Atomic uint64_t resend_count; /* frames that the proxy retransmitted */
};

/* Traffic of a host that a network joins to the others. */
struct quoit_network_count {
    _Atomic uint64_t put_count; /* from memory to memory; small ones travel in messages */
    _Atomic uint64_t put_bytes;
    _Atomic uint64_t get_count;
    _Atomic uint64_t get_bytes;
    _Atomic uint64_t message_count; /* that it sent, each with many frames */
    _Atomic uint64_t message_bytes;
    _Atomic uint64_t lost_count; /* hosts */
};

struct quoit_lane_shared {
    struct quoit_park park; /* the service thread of this lane sleeps here */
    struct quoit_link_count out[QUOIT_SIDE_COUNT];
    struct quoit_network_count network;
    _Atomic uint64_t sleep_count;
    _Atomic uint64_t put_count;                    /* acknowledged puts, over which put_ns is summed */
    _Atomic uint64_t put_ns[QUOIT_PUT_STEP_COUNT]; /* sums */
    _Atomic uint64_t sleep_ns;                     /* total, without the current sleep */
    _Atomic uint64_t sleep_since_ns;               /* 0: awake */
};

#endif
