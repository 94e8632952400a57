/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/scratchpad.h"
#include "base/assert.h"
#include "ring/route.h"

#include <string.h>

/* The scratchpads, in the order in which they are written. */
enum pad { PAD_WHAT, PAD_HOSTS, PAD_PES, PAD_BYTES, PAD_OFFSET_LOW, PAD_OFFSET_HIGH, PAD_TOKEN, PAD_TRANSFER };

enum transit { TRANSIT_NONE, TRANSIT_BEFORE, TRANSIT_BEYOND, TRANSIT_COUNT };
_Static_assert(TRANSIT_COUNT *QUOIT_CLASS_COUNT == QUOIT_BYPASS_COUNT, "a buffer for each");

static const struct {
    const char *name;
    enum quoit_transfer_state next; /* each state has one successor */
} states[QUOIT_TRANSFER_STATE_COUNT] = {
    [QUOIT_TRANSFER_FREE] = {"free", QUOIT_TRANSFER_COPYING},
    [QUOIT_TRANSFER_COPYING] = {"copying", QUOIT_TRANSFER_READY},
    [QUOIT_TRANSFER_READY] = {"ready", QUOIT_TRANSFER_OFFERED},
    [QUOIT_TRANSFER_OFFERED] = {"offered", QUOIT_TRANSFER_READ},
    [QUOIT_TRANSFER_READ] = {"read", QUOIT_TRANSFER_FREE},
};

const char *quoit_transfer_state_name(enum quoit_transfer_state state)
{
    quoit_assert(state < QUOIT_TRANSFER_STATE_COUNT);
    return states[state].name;
}

bool quoit_transfer_may_move(enum quoit_transfer_state from, enum quoit_transfer_state to)
{
    quoit_assert(from < QUOIT_TRANSFER_STATE_COUNT);
    return states[from].next == to;
}

void quoit_transfer_move(enum quoit_transfer_state *state, enum quoit_transfer_state to)
{
    quoit_assert(quoit_transfer_may_move(*state, to));
    *state = to;
}

bool quoit_scratchpads_take(struct quoit_scratchpads *scratchpads, uint32_t lane)
{
    uint32_t nobody = 0; /* acquire pairs with release below: the next owner writes after the last was read */
    return atomic_compare_exchange_strong_explicit(&scratchpads->owner, &nobody, lane + 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void quoit_scratchpads_release(struct quoit_scratchpads *scratchpads, uint32_t lane)
{
    uint32_t owner = atomic_exchange_explicit(&scratchpads->owner, 0, memory_order_release);
    quoit_assert(owner == lane + 1);
}

enum quoit_side quoit_transfer_heading(const struct quoit_frame *frame)
{
    enum quoit_side side = quoit_ring_flow_side(frame);
    return quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST ? side : quoit_ring_opposite(side);
}

uint32_t quoit_bypass_of(const struct quoit_frame *frame, uint32_t host)
{
    bool is_beyond =
        quoit_transfer_heading(frame) == QUOIT_RIGHT ? host < frame->source_host : host > frame->source_host;
    enum transit transit = is_beyond ? TRANSIT_BEYOND : TRANSIT_BEFORE;
    if (frame->dest_host == host)
        transit = TRANSIT_NONE;
    return quoit_frame_class(frame->kind) * TRANSIT_COUNT + transit;
}

bool quoit_scratchpad_has_head(const struct quoit_frame *frame)
{
    return frame->kind != QUOIT_FRAME_PUT && frame->kind != QUOIT_FRAME_GET && frame->kind != QUOIT_FRAME_ACK &&
           !(frame->kind == QUOIT_FRAME_DATA && frame->size == 0);
}

void quoit_scratchpad_pack(const struct quoit_frame *frame, uint32_t lane, uint64_t count,
                           uint32_t words_out[QUOIT_SCRATCHPAD_COUNT])
{
    words_out[PAD_WHAT] =
        frame->kind | (uint32_t)frame->op << 8 | (uint32_t)frame->size << 16 | (uint32_t)frame->flags << 24;
    words_out[PAD_HOSTS] = frame->source_host | (uint32_t)frame->dest_host << 16;
    words_out[PAD_PES] = frame->source_pe | (uint32_t)frame->dest_pe << 16;
    words_out[PAD_BYTES] = frame->bytes;
    words_out[PAD_OFFSET_LOW] = (uint32_t)frame->offset;
    words_out[PAD_OFFSET_HIGH] = (uint32_t)(frame->offset >> 32);
    words_out[PAD_TOKEN] = frame->token;
    words_out[PAD_TRANSFER] = lane | (uint32_t)count << 8;
}

enum quoit_status quoit_scratchpad_unpack(const uint32_t words[QUOIT_SCRATCHPAD_COUNT], uint32_t lane, uint64_t count,
                                          struct quoit_frame *frame_out)
{
    if (words[PAD_TRANSFER] != (lane | (uint32_t)count << 8))
        return QUOIT_INVALID;
    *frame_out = (struct quoit_frame){
        .kind = (uint8_t)words[PAD_WHAT],
        .op = (uint8_t)(words[PAD_WHAT] >> 8),
        .size = (uint8_t)(words[PAD_WHAT] >> 16),
        .flags = (uint8_t)(words[PAD_WHAT] >> 24),
        .source_host = (uint16_t)words[PAD_HOSTS],
        .dest_host = (uint16_t)(words[PAD_HOSTS] >> 16),
        .source_pe = (uint16_t)words[PAD_PES],
        .dest_pe = (uint16_t)(words[PAD_PES] >> 16),
        .bytes = words[PAD_BYTES],
        .offset = words[PAD_OFFSET_LOW] | (uint64_t)words[PAD_OFFSET_HIGH] << 32,
        .token = words[PAD_TOKEN],
    };
    return QUOIT_OK;
}

struct quoit_frame quoit_scratchpad_reply(const struct quoit_frame *request, uint64_t value)
{
    struct quoit_frame reply = {
        .kind = QUOIT_FRAME_ACK,
        .flags = request->flags & QUOIT_FRAME_RIGHT,
        .source_host = request->dest_host,
        .dest_host = request->source_host,
        .source_pe = request->dest_pe,
        .dest_pe = request->source_pe,
        .token = request->token,
    };
    if (request->kind == QUOIT_FRAME_AMO_FETCH) {
        reply.kind = QUOIT_FRAME_VALUE;
        reply.operand = value;
    } else if (quoit_frame_asks(request->kind)) {
        reply.kind = QUOIT_FRAME_DATA;
        reply.bytes = request->bytes;
        reply.offset = request->offset;
        if (request->kind == QUOIT_FRAME_GET_STRIDED) {
            reply.size = request->size;
            reply.operand = request->operand;
        }
    }
    return reply;
}
