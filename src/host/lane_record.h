/* SPDX-License-Identifier: BSD-3-Clause */
/* lane_record.h - what a lane of the proxy shows of its work: its park, its counters, its sleep. */
#ifndef QUOIT_HOST_LANE_RECORD_H
#define QUOIT_HOST_LANE_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "env/park.h"
#include "host/put_times.h"
#include "ring/ring.h"

/* Bytes and messages that went out of one side of one host. */
struct quoit_link_count {
    _Atomic uint64_t byte_count;    /* payload that was written through the port */
    _Atomic uint64_t dma_count;     /* of it: bytes that went by DMA */
    _Atomic uint64_t message_count; /* frames and direct puts */
    _Atomic uint64_t relay_count;   /* of them: on their way from another host to another host */
    _Atomic uint64_t doorbell_count;
    _Atomic uint64_t resend_count; /* frames that were sent again, of the proxy's */
};

struct quoit_lane_shared {
    struct quoit_park park; /* the service thread of this lane sleeps here */
    struct quoit_link_count out[QUOIT_SIDE_COUNT];
    _Atomic uint64_t sleep_count;
    _Atomic uint64_t put_count;                    /* puts acknowledged, to which the times belong */
    _Atomic uint64_t put_ns[QUOIT_PUT_STEP_COUNT]; /* sums */
    _Atomic uint64_t sleep_ns;                     /* in all, without the sleep that lasts still */
    _Atomic uint64_t sleep_since_ns;               /* 0: awake */
};

#endif
