/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: by the processor on the own host, by the proxy of the PE's host elsewhere. A set is a store, so a
 * neighbour's is a direct put: aligned stores through the window are never torn. */
#include "fabric/channel.h"
#include "host/execute.h"

static void fill(struct quoit_slot *slot, enum quoit_frame_kind kind, enum quoit_amo op, uint32_t size, uint64_t offset,
                 uint64_t operand, uint64_t compare)
{
    struct quoit_frame *frame = &slot->request->frame;
    frame->kind = (uint8_t)kind;
    frame->op = (uint8_t)op;
    frame->size = (uint8_t)size;
    frame->offset = offset;
    frame->operand = operand;
    frame->operand2 = compare;
}

static uint64_t execute_here(const struct quoit_peer *peer, enum quoit_amo op, uint32_t size, uint64_t offset,
                             uint64_t operand, uint64_t compare)
{
    uint64_t old = quoit_execute_amo(peer->segment + offset, op, size, operand, compare);
    if (op != QUOIT_AMO_FETCH)
        quoit_park_wake_at(peer->park, offset, size);
    return old;
}

void quoit_fabric_amo(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op, uint32_t size,
                      uint64_t offset, uint64_t operand, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (peer->segment) {
        execute_here(peer, op, size, offset, operand, 0);
        return;
    }
    if (op == QUOIT_AMO_SET && peer->transport == QUOIT_TRANSPORT_DIRECT && offset + size <= peer->window_bytes) {
        quoit_fabric_put(fabric, context, offset, &operand, size, pe); /* little-endian: the low bytes come first */
        return;
    }
    struct quoit_slot slot;
    quoit_channel_take(fabric, context, pe, &slot);
    fill(&slot, QUOIT_FRAME_AMO, op, size, offset, operand, 0);
    quoit_channel_submit(fabric, &slot);
}

/* Asks for the old value; it is at result_out when left_count was counted down, or at quiet when that is NULL. */
static void ask(struct quoit_fabric *fabric, struct quoit_slot *slot, void *result_out, uint32_t size,
                _Atomic uint32_t *left_count)
{
    slot->pending->result = result_out;
    slot->pending->result_bytes = size;
    slot->pending->left_count = left_count;
    quoit_channel_submit(fabric, slot);
}

uint64_t quoit_fabric_amo_fetch(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (peer->segment)
        return execute_here(peer, op, size, offset, operand, compare);
    _Atomic uint32_t left_count = 1;
    uint64_t result = 0;
    struct quoit_slot slot;
    quoit_channel_take(fabric, context, pe, &slot);
    fill(&slot, QUOIT_FRAME_AMO_FETCH, op, size, offset, operand, compare);
    ask(fabric, &slot, &result, size, &left_count);
    quoit_channel_wait32(fabric, &left_count);
    return result;
}

void quoit_fabric_amo_fetch_nbi(struct quoit_fabric *fabric, struct quoit_context *context, enum quoit_amo op,
                                uint32_t size, uint64_t offset, uint64_t operand, uint64_t compare, void *result_out,
                                uint32_t pe)
{
    const struct quoit_peer *peer = &fabric->peers[pe];
    if (peer->segment) {
        uint64_t old = execute_here(peer, op, size, offset, operand, compare);
        memcpy(result_out, &old, size);
        return;
    }
    struct quoit_slot slot;
    quoit_channel_take(fabric, context, pe, &slot);
    fill(&slot, QUOIT_FRAME_AMO_FETCH, op, size, offset, operand, compare);
    ask(fabric, &slot, result_out, size, NULL);
}
