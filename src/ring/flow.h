/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - the numbered requests of one (source host, destination host, preferred side), and their acknowledgement.
 *
 * The source's half counts what was sent and what is acknowledged, and holds the requests in order in two lists: those
 * that only need an acknowledgement, and those that need a response. Responses arrive in the order of the requests,
 * because requests are executed in order and their responses leave in order in one direction. The destination's half
 * counts what was executed and what was acknowledged. A flow with a pending ACK is queued on the side by which the ACK
 * leaves, so finding the next one inspects no other flow. After a change of the topology the source retransmits both
 * lists, merged by number: a cursor in each list marks the next entry. What completes meanwhile is skipped.
 *
 * Numbers are 32 bits and wrap: a is before b when (int32_t)(a - b) < 0. At most QUOIT_RING_OUTSTANDING_MAX lie between
 * the oldest and the newest that matter.
 */
#ifndef QUOIT_RING_FLOW_H
#define QUOIT_RING_FLOW_H

#include "ring/response_cache.h"
#include "ring/outstanding.h"

struct quoit_ring_flow_out {
    uint32_t sent;         /* the number of the last request */
    uint32_t acknowledged; /* all up to here are executed at the destination */
    struct quoit_ring_list plain;
    struct quoit_ring_list fetching;
    uint32_t fetch_count;  /* AMO_FETCH among those that need a response */
    uint32_t resend_plain; /* in each list the first entry still to be retransmitted; QUOIT_RING_NONE */
    uint32_t resend_fetching;
    uint32_t next_resending; /* in the list of flows with such entries */
};

struct quoit_ring_flow_in {
    uint32_t executed;
    uint32_t acknowledged;
    uint32_t next_ack; /* indices of flows; QUOIT_RING_NONE at the ends */
    uint32_t previous_ack;
    bool is_ack_pending; /* in the list */
    struct quoit_ring_response_cache cache;
};

/* Flows whose pending ACKs leave by one side, oldest first. */
struct quoit_ring_ack_queue {
    uint32_t head;
    uint32_t tail;
    uint32_t count;
};

static inline bool quoit_ring_is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

void quoit_ring_flow_out_init(struct quoit_ring_flow_out *flow);
/* Numbers a request returned by quoit_ring_pool_take() and appends it to its list. */
void quoit_ring_flow_send(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow, uint32_t entry_index);
/* Everything up to `number` is executed: completes the requests up to it that need no response. INVALID if the number
 * goes back, or is beyond what was sent. */
QUOIT_MUST_USE enum quoit_status quoit_ring_flow_acknowledge(struct quoit_ring_pool *pool,
                                                             struct quoit_ring_flow_out *flow, uint32_t number);
/* Completes the request that `response` (DATA, VALUE) responds to, after those that it acknowledges. INVALID if there
 * is no such request to that PE, an older one is still open, or this one is still to be retransmitted. */
QUOIT_MUST_USE enum quoit_status quoit_ring_flow_complete(struct quoit_ring_pool *pool,
                                                          struct quoit_ring_flow_out *flow,
                                                          const struct quoit_frame *response, uint64_t *cookie_out);

/* Marks everything in the lists for retransmission. */
void quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow);
/* The next entry to be retransmitted, or QUOIT_RING_NONE; and the call that records that it was sent. */
uint32_t quoit_ring_flow_peek_resend(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow);
void quoit_ring_flow_pass_resend(const struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow);

void quoit_ring_ack_queue_init(struct quoit_ring_ack_queue *acks);
/* Queues a flow with a pending ACK that is in no list. */
void quoit_ring_flow_queue_ack(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows,
                               uint32_t flow_index);
/* Request number executed + 1 is being executed: an ACK is pending. `flows` are all halves of this destination. */
void quoit_ring_flow_execute(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index);
/* Request `number` was executed before and has arrived again: the source has no acknowledgement, so one is pending. */
void quoit_ring_flow_repeat(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index,
                            uint32_t number);
/* The number to acknowledge now; the flow's ACK is no longer pending. */
uint32_t quoit_ring_flow_take_ack(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows,
                                  uint32_t flow_index);

/* Asserts the invariants of one flow, named by `side`, to `dest_host`; returns the number of entries in its lists. */
uint32_t quoit_ring_check_flow_out(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow,
                                   uint32_t dest_host, enum quoit_side side);
/* Asserts the list of one side; returns the number of flows in it. */
uint32_t quoit_ring_check_ack_queue(const struct quoit_ring_ack_queue *acks, const struct quoit_ring_flow_in *flows,
                                    uint32_t flow_count);
/* Asserts that exactly the flows with pending ACKs are in lists, which hold `ack_count`. */
void quoit_ring_check_flows_in(const struct quoit_ring_flow_in *flows, uint32_t flow_count, uint32_t ack_count);

#endif
