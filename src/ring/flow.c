/* SPDX-License-Identifier: BSD-3-Clause */
/* flow.c - sequence numbers, acknowledgements and responses. */
#include "ring/flow.h"

#include "base/assert.h"
#include "ring/route.h"

void quoit_ring_flow_out_init(struct quoit_ring_flow_out *flow)
{
    *flow = (struct quoit_ring_flow_out){0};
    quoit_ring_list_init(&flow->plain);
    quoit_ring_list_init(&flow->fetching);
    flow->resend_plain = QUOIT_RING_NONE;
    flow->resend_fetching = QUOIT_RING_NONE;
}

/* Completes the first entry of a list of the flow, which may still be waiting for its retransmission. */
static void complete_first(struct quoit_ring_pool *pool, struct quoit_ring_list *list, uint32_t *resend)
{
    uint32_t index = quoit_ring_list_pop(pool, list);
    if (*resend == index)
        *resend = list->head;
    quoit_ring_list_append(pool, &pool->completed, index);
}

void quoit_ring_flow_send(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow, uint32_t entry_index)
{
    struct quoit_frame *frame = &pool->entries[entry_index].frame;
    frame->flow_sequence = ++flow->sent;
    flow->fetch_count += frame->kind == QUOIT_FRAME_AMO_FETCH;
    quoit_ring_list_append(pool, quoit_frame_needs_response(frame->kind) ? &flow->fetching : &flow->plain, entry_index);
}

enum quoit_status quoit_ring_flow_acknowledge(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow,
                                              uint32_t number)
{
    if (quoit_ring_is_before(number, flow->acknowledged) || quoit_ring_is_before(flow->sent, number))
        return QUOIT_INVALID;
    flow->acknowledged = number;
    while (flow->plain.count > 0 && !quoit_ring_is_before(number, pool->entries[flow->plain.head].frame.flow_sequence))
        complete_first(pool, &flow->plain, &flow->resend_plain);
    return QUOIT_OK;
}

static bool is_response_to(const struct quoit_frame *response, const struct quoit_frame *request)
{
    if (response->dest_pe != request->source_pe || response->source_pe != request->dest_pe)
        return false;
    if (response->kind == QUOIT_FRAME_VALUE)
        return request->kind == QUOIT_FRAME_AMO_FETCH;
    return request->kind != QUOIT_FRAME_AMO_FETCH && response->bytes == request->bytes &&
           response->offset == request->offset;
}

enum quoit_status quoit_ring_flow_complete(struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow,
                                           const struct quoit_frame *response, uint64_t *cookie_out)
{
    uint32_t index = quoit_ring_pool_find(pool, response->token);
    if (index == QUOIT_RING_NONE || flow->fetching.count == 0 || index != flow->fetching.head ||
        index == flow->resend_fetching)
        return QUOIT_INVALID;
    const struct quoit_ring_entry *entry = &pool->entries[index];
    if (!is_response_to(response, &entry->frame) ||
        quoit_ring_is_before(response->flow_sequence, entry->frame.flow_sequence))
        return QUOIT_INVALID;
    if (quoit_ring_flow_acknowledge(pool, flow, response->flow_sequence) != QUOIT_OK)
        return QUOIT_INVALID;
    *cookie_out = entry->cookie;
    flow->fetch_count -= entry->frame.kind == QUOIT_FRAME_AMO_FETCH;
    complete_first(pool, &flow->fetching, &flow->resend_fetching);
    return QUOIT_OK;
}

void quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow)
{
    flow->resend_plain = flow->plain.head;
    flow->resend_fetching = flow->fetching.head;
}

uint32_t quoit_ring_flow_peek_resend(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow)
{
    uint32_t plain = flow->resend_plain;
    uint32_t fetching = flow->resend_fetching;
    if (plain == QUOIT_RING_NONE || fetching == QUOIT_RING_NONE)
        return plain == QUOIT_RING_NONE ? fetching : plain;
    bool is_plain_first =
        quoit_ring_is_before(pool->entries[plain].frame.flow_sequence, pool->entries[fetching].frame.flow_sequence);
    return is_plain_first ? plain : fetching;
}

void quoit_ring_flow_pass_resend(const struct quoit_ring_pool *pool, struct quoit_ring_flow_out *flow)
{
    uint32_t index = quoit_ring_flow_peek_resend(pool, flow);
    quoit_assert(index != QUOIT_RING_NONE);
    uint32_t *cursor = index == flow->resend_plain ? &flow->resend_plain : &flow->resend_fetching;
    *cursor = pool->entries[index].next;
}

void quoit_ring_ack_queue_init(struct quoit_ring_ack_queue *acks)
{
    *acks = (struct quoit_ring_ack_queue){.head = QUOIT_RING_NONE, .tail = QUOIT_RING_NONE};
}

void quoit_ring_flow_queue_ack(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index)
{
    struct quoit_ring_flow_in *flow = &flows[flow_index];
    quoit_assert(flow->executed != flow->acknowledged);
    flow->is_ack_pending = true;
    flow->next_ack = QUOIT_RING_NONE;
    flow->previous_ack = acks->tail;
    if (acks->count == 0)
        acks->head = flow_index;
    else
        flows[acks->tail].next_ack = flow_index;
    acks->tail = flow_index;
    acks->count++;
}

void quoit_ring_flow_execute(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index)
{
    flows[flow_index].executed++;
    if (!flows[flow_index].is_ack_pending)
        quoit_ring_flow_queue_ack(acks, flows, flow_index);
}

void quoit_ring_flow_repeat(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows, uint32_t flow_index,
                            uint32_t number)
{
    struct quoit_ring_flow_in *flow = &flows[flow_index];
    quoit_assert(!quoit_ring_is_before(flow->executed, number));
    if (quoit_ring_is_before(number - 1, flow->acknowledged))
        flow->acknowledged = number - 1;
    if (!flow->is_ack_pending)
        quoit_ring_flow_queue_ack(acks, flows, flow_index);
}

uint32_t quoit_ring_flow_take_ack(struct quoit_ring_ack_queue *acks, struct quoit_ring_flow_in *flows,
                                  uint32_t flow_index)
{
    struct quoit_ring_flow_in *flow = &flows[flow_index];
    flow->acknowledged = flow->executed;
    if (!flow->is_ack_pending)
        return flow->acknowledged;
    flow->is_ack_pending = false;
    if (flow->previous_ack == QUOIT_RING_NONE)
        acks->head = flow->next_ack;
    else
        flows[flow->previous_ack].next_ack = flow->next_ack;
    if (flow->next_ack == QUOIT_RING_NONE)
        acks->tail = flow->previous_ack;
    else
        flows[flow->next_ack].previous_ack = flow->previous_ack;
    acks->count--;
    return flow->acknowledged;
}

/* The entries of one list of a flow: all belong to the flow, are numbered in ascending order, none is completed, and
 * `resend` is one of them. */
static uint32_t check_flow_list(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow,
                                const struct quoit_ring_list *list, uint32_t dest_host, enum quoit_side side)
{
    bool needs_response = list == &flow->fetching;
    uint32_t resend = needs_response ? flow->resend_fetching : flow->resend_plain;
    bool has_resend = resend == QUOIT_RING_NONE;
    uint32_t count = quoit_ring_check_list(pool, list);
    uint32_t before = needs_response ? 0 : flow->acknowledged;
    uint32_t at = list->head;
    for (uint32_t i = 0; i < count; i++, at = pool->entries[at].next) {
        const struct quoit_frame *frame = &pool->entries[at].frame;
        quoit_assert(!pool->entries[at].is_free);
        quoit_assert(quoit_ring_pool_find(pool, frame->token) == at);
        quoit_assert(frame->dest_host == dest_host);
        quoit_assert(quoit_ring_flow_side(frame) == side);
        quoit_assert(!!quoit_frame_needs_response(frame->kind) == needs_response);
        quoit_assert(!quoit_ring_is_before(flow->sent, frame->flow_sequence));
        if (i > 0 || !needs_response)
            quoit_assert(quoit_ring_is_before(before, frame->flow_sequence));
        before = frame->flow_sequence;
        has_resend |= at == resend;
    }
    quoit_assert(has_resend);
    return count;
}

uint32_t quoit_ring_check_flow_out(const struct quoit_ring_pool *pool, const struct quoit_ring_flow_out *flow,
                                   uint32_t dest_host, enum quoit_side side)
{
    uint32_t fetch_count = 0;
    quoit_assert(!quoit_ring_is_before(flow->sent, flow->acknowledged));
    uint32_t entry_count = check_flow_list(pool, flow, &flow->plain, dest_host, side) +
                           check_flow_list(pool, flow, &flow->fetching, dest_host, side);
    for (uint32_t at = flow->fetching.head; at != QUOIT_RING_NONE; at = pool->entries[at].next)
        fetch_count += pool->entries[at].frame.kind == QUOIT_FRAME_AMO_FETCH;
    quoit_assert(flow->fetch_count == fetch_count);
    return entry_count;
}

uint32_t quoit_ring_check_ack_queue(const struct quoit_ring_ack_queue *acks, const struct quoit_ring_flow_in *flows,
                                    uint32_t flow_count)
{
    uint32_t before = QUOIT_RING_NONE;
    uint32_t at = acks->head;
    for (uint32_t i = 0; i < acks->count; i++) {
        quoit_assert(at < flow_count);
        quoit_assert(flows[at].is_ack_pending);
        quoit_assert(flows[at].previous_ack == before);
        before = at;
        at = flows[at].next_ack;
    }
    quoit_assert(at == QUOIT_RING_NONE);
    quoit_assert(before == acks->tail);
    return acks->count;
}

void quoit_ring_check_flows_in(const struct quoit_ring_flow_in *flows, uint32_t flow_count, uint32_t ack_count)
{
    for (uint32_t i = 0; i < flow_count; i++) {
        quoit_assert(!quoit_ring_is_before(flows[i].executed, flows[i].acknowledged));
        quoit_assert(flows[i].is_ack_pending == (flows[i].executed != flows[i].acknowledged));
        ack_count -= flows[i].is_ack_pending;
    }
    quoit_assert(ack_count == 0);
}
