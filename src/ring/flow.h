/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.h - numbered requests of one (source host, destination host, preferred side), and their acknowledgement.
 *
 * The source's half counts what it sent and what is acknowledged, and keeps the requests in order in two lists: those
 * that only need acknowledgement and those that ask. An answer comes in the order of asking, since the requests are
 * executed in order and the answers leave in order on one way.
 * The destination's half counts what it executed and what it told. A half that owes is in the list of the side that the
 * acknowledgement leaves by, so that finding the next one looks at no other flow.
 * After a change of the topology the source sends again what is in both lists, merged by number: a cursor in each list
 * says from where on. What is completed meanwhile drops out.
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
    struct quoit_ring_list asking;
    uint32_t fetch_count;  /* AMO_FETCH among the asking */
    uint32_t resend_plain; /* the first entry of each list that is still to be sent again; QUOIT_RING_NONE */
    uint32_t resend_fetching;
    uint32_t next_resending; /* in the list of flows that have such entries */
};

struct quoit_ring_flow_in {
    uint32_t executed;
    uint32_t told;
    uint32_t next_ack; /* indices of flows; QUOIT_RING_NONE at the ends */
    uint32_t previous_ack;
    bool is_ack_pending; /* in the list */
    struct quoit_ring_response_cache cache;
};

/* Flows whose acknowledgements are owed and leave by one side; the one that owes longest first. */
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
/* Numbers a request that quoit_ring_pool_take() gave and puts it in its list. */
void quoit_ring_flow_send(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow, uint32_t entry_index);
/* Everything up to `number` is executed: completes the plain requests among it. INVALID if it goes back, or is beyond
 * what was sent. */
QUOIT_MUST_USE enum quoit_status quoit_ring_flow_acknowledge(struct quoit_ring_pool *pool,
                                                             struct quoit_ring_flow_out *flow, uint32_t number);
/* Completes the request that `answer` (DATA, VALUE) is for, after the plain ones it acknowledges. INVALID if nobody
 * asked this of that PE, an older question is open, or this one is still to be sent again. */
QUOIT_MUST_USE enum quoit_status quoit_ring_flow_answer(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow,
                                                        const struct quoit_frame *answer, uint64_t *cookie_out);

/* Everything in the lists is to be sent again. */
void quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow);
/* The entry to be sent again next, or QUOIT_RING_NONE; and that it was sent. */
uint32_t quoit_ring_flow_peek_resend(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow);
void quoit_ring_flow_pass_resend(const struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow);

void quoit_ring_ack_queue_init(struct quoit_ring_ack_queue *acks);
/* Puts a flow that owes and is in no list at the end of this one. */
void quoit_ring_flow_queue_ack(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows,
                               uint32_t flow_index);
/* Request number executed + 1 is being executed: the flow owes. `flows` are all halves of this destination. */
void quoit_ring_flow_execute(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index);
/* Request `number`, executed before, came again: the source does not know of it, so the flow owes. */
void quoit_ring_flow_repeat(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index,
                            uint32_t number);
/* The number to tell the source now; the flow owes no more. */
uint32_t quoit_ring_flow_tell(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index);

/* Asserts one flow, named by `side`, to `dest_host`; returns how many entries its lists hold. */
uint32_t quoit_ring_check_flow_out(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow,
                                   uint32_t dest_host, enum quoit_side side);
/* Asserts the list of one side; returns how many flows it holds. */
uint32_t quoit_ring_check_ack_queue(const struct quoit_ring_ack_queue *acks, const struct quoit_ring_flow_in *flows,
                                    uint32_t flow_count);
/* Asserts that of all flows those that owe are in lists, which hold `ack_count`. */
void quoit_ring_check_flows_in(const struct quoit_ring_flow_in *flows, uint32_t flow_count, uint32_t ack_count);

#endif
