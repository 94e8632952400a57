/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - the complete state of a ring, for the files of this folder and their tests. */
#ifndef QUOIT_RING_STATE_H
#define QUOIT_RING_STATE_H

#include "ring/credit.h"
#include "ring/flow.h"
#include "ring/outstanding.h"
#include "ring/reply.h"
#include "ring/ring.h"
#include "ring/route.h"
#include "ring/topology.h"

struct quoit_ring {
    struct quoit_ring_config config;
    struct quoit_ring_outbound outbound[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT];
    struct quoit_ring_inbound inbound[QUOIT_SIDE_COUNT][QUOIT_CLASS_COUNT];
    struct quoit_ring_pool pool;
    struct quoit_ring_replies replies;
    struct quoit_ring_links links;
    /* [flow side * host_count + the other host] */
    struct quoit_ring_flow_out *flows_out;
    struct quoit_ring_flow_in *flows_in;
    struct quoit_ring_ack_queue acks[QUOIT_SIDE_COUNT]; /* by the side that the acknowledgement leaves by */
    /* flows with requests to retransmit, by the side that they leave by; QUOIT_RING_NONE: no more */
    uint32_t resending[QUOIT_SIDE_COUNT];
    enum quoit_side reply_side;                /* the side that may send the next reply first; alternates */
    uint32_t response_count[QUOIT_SIDE_COUNT]; /* responses that left this side while an acknowledgement was pending */
    struct quoit_frame request_due;            /* is_response_due: the request just delivered */
    bool is_response_due;
};

#endif
