/* SPDX-License-Identifier: BSD-3-Clause */
#include "papers/scratchpad.h"
#include "base/assert.h"

#include <string.h>

enum transit { TRANSIT_NONE, TRANSIT_BEFORE, TRANSIT_BEYOND, TRANSIT_COUNT };
_Static_assert(TRANSIT_COUNT *QUOIT_CLASS_COUNT == QUOIT_BYPASS_COUNT, "a buffer for each");

static const struct {
    const char *name;
    enum quoit_transfer_state next; /* each state has one successor */
} states[QUOIT_TRANSFER_STATE_COUNT] = {
    [QUOIT_TRANSFER_FREE] = {"free", QUOIT_TRANSFER_COPYING},
    [QUOIT_TRANSFER_COPYING] = {"copying", QUOIT_TRANSFER_READY},
    [QUOIT_TRANSFER_READY] = {"ready", QUOIT_TRANSFER_OFFERED},
    [QUOIT_TRANSFER_OFFERED] = {"offered", QUOIT_TRANSFER_FREE},
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
    uint32_t nobody = 0; /* acquire pairs with release below: the next owner writes after the previous contents were
                          * read */
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
    return frame->kind == QUOIT_FRAME_GET || frame->kind == QUOIT_FRAME_GET_STRIDED ? QUOIT_LEFT : QUOIT_RIGHT;
}

bool quoit_scratchpad_may_overtake(const struct quoit_frame *request)
{
    bool is_copy = request->kind == QUOIT_FRAME_PUT || request->kind == QUOIT_FRAME_PUT_STRIDED ||
                   request->kind == QUOIT_FRAME_GET || request->kind == QUOIT_FRAME_GET_STRIDED;
    return is_copy && (request->flags & QUOIT_FRAME_ORDERED) == 0;
}

uint32_t quoit_bypass_of(const struct quoit_frame *frame, uint32_t host)
{
    enum transit transit = host < frame->source_host ? TRANSIT_BEYOND : TRANSIT_BEFORE; /* travelling left: swapped */
    if (frame->dest_host == host)
        transit = TRANSIT_NONE;
    return quoit_frame_class(frame->kind) * TRANSIT_COUNT + transit;
}

bool quoit_scratchpad_has_head(const struct quoit_frame *frame)
{
    if (frame->trace != 0)
        return true;
    return frame->kind != QUOIT_FRAME_PUT && frame->kind != QUOIT_FRAME_GET && frame->kind != QUOIT_FRAME_ACK &&
           !(frame->kind == QUOIT_FRAME_DATA && frame->size == 0);
}

/* The fields, packed from the lowest bit of the first word upwards. */
enum field {
    FIELD_KIND,
    FIELD_FLAGS,
    FIELD_HAS_HEAD,
    FIELD_SOURCE_HOST,
    FIELD_DEST_HOST,
    FIELD_SOURCE_PE,
    FIELD_DEST_PE,
    FIELD_TOKEN,
    FIELD_BYTES,
    FIELD_OFFSET,
    FIELD_TRANSFER, /* the low bits of the bit's transfer count, from 1 */
    FIELD_COUNT
};
static const uint8_t field_bits[FIELD_COUNT] = {4, 3, 1, 10, 10, 10, 10, 16, 21, 37, 6};
#define TRANSFER_MASK 63u
#define WORD_BITS     32
_Static_assert(QUOIT_FRAME_KIND_COUNT <= 1 << 4, "a kind fits");
_Static_assert(QUOIT_FRAME_LANDED <= 7 && QUOIT_FRAME_RIGHT <= 7 && QUOIT_FRAME_ORDERED <= 7, "flags fit");
_Static_assert(QUOIT_RING_HOSTS_MAX <= 1 << 10 && QUOIT_LOCAL_PES_MAX <= 1 << 10, "hosts and PEs fit");
_Static_assert(QUOIT_LOCAL_PES_MAX *QUOIT_REQUESTS_A_CHANNEL <= 1 << 16, "a token fits");
_Static_assert(QUOIT_CHUNK_BYTES_MAX < 1 << 21, "bytes fit");

void quoit_scratchpad_pack(const struct quoit_frame *frame, uint64_t count, uint32_t words_out[QUOIT_METADATA_WORDS])
{
    const uint64_t values[FIELD_COUNT] = {
        [FIELD_KIND] = frame->kind,
        [FIELD_FLAGS] = frame->flags,
        [FIELD_HAS_HEAD] = quoit_scratchpad_has_head(frame),
        [FIELD_SOURCE_HOST] = frame->source_host,
        [FIELD_DEST_HOST] = frame->dest_host,
        [FIELD_SOURCE_PE] = frame->source_pe,
        [FIELD_DEST_PE] = frame->dest_pe,
        [FIELD_TOKEN] = frame->token,
        [FIELD_BYTES] = frame->bytes,
        [FIELD_OFFSET] = frame->offset,
        [FIELD_TRANSFER] = count & TRANSFER_MASK,
    };
    uint32_t at = 0;
    memset(words_out, 0, QUOIT_METADATA_WORDS * sizeof *words_out);
    for (uint32_t i = 0; i < FIELD_COUNT; i++) {
        quoit_assert(values[i] >> field_bits[i] == 0);
        for (uint32_t bit = 0; bit < field_bits[i]; bit++, at++)
            words_out[at / WORD_BITS] |= (uint32_t)(values[i] >> bit & 1) << at % WORD_BITS;
    }
    quoit_assert(at == QUOIT_METADATA_WORDS * WORD_BITS);
}

enum quoit_status quoit_scratchpad_unpack(const uint32_t words[QUOIT_METADATA_WORDS], uint64_t count,
                                          struct quoit_frame *frame_out, bool *has_head_out)
{
    uint64_t values[FIELD_COUNT] = {0};
    uint32_t at = 0;
    for (uint32_t i = 0; i < FIELD_COUNT; i++)
        for (uint32_t bit = 0; bit < field_bits[i]; bit++, at++)
            values[i] |= (uint64_t)(words[at / WORD_BITS] >> at % WORD_BITS & 1) << bit;
    if (values[FIELD_TRANSFER] != (count & TRANSFER_MASK))
        return QUOIT_INVALID;
    *has_head_out = values[FIELD_HAS_HEAD];
    *frame_out = (struct quoit_frame){
        .kind = (uint8_t)values[FIELD_KIND],
        .flags = (uint8_t)values[FIELD_FLAGS],
        .source_host = (uint16_t)values[FIELD_SOURCE_HOST],
        .dest_host = (uint16_t)values[FIELD_DEST_HOST],
        .source_pe = (uint16_t)values[FIELD_SOURCE_PE],
        .dest_pe = (uint16_t)values[FIELD_DEST_PE],
        .token = (uint32_t)values[FIELD_TOKEN],
        .bytes = (uint32_t)values[FIELD_BYTES],
        .offset = values[FIELD_OFFSET],
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
        .trace = request->trace,
    };
    if (request->kind == QUOIT_FRAME_AMO_FETCH) {
        reply.kind = QUOIT_FRAME_VALUE;
        reply.operand = value;
    } else if (quoit_frame_needs_response(request->kind)) {
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
