/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.c - the check of a frame that a peer wrote, before any of it reaches this host's memory. */
#include "wire/frame.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are little-endian and used in place");

#define KNOWN_FLAGS  (QUOIT_FRAME_LANDED | QUOIT_FRAME_RIGHT | QUOIT_FRAME_ORDERED | QUOIT_FRAME_PATIENT)
#define SIGNAL_BYTES 8u

static bool is_range_inside(uint64_t offset, uint64_t bytes, uint64_t segment_bytes)
{
    return bytes <= segment_bytes && offset <= segment_bytes - bytes;
}

/* Elements are evenly spaced, so all are inside if the first and the last are. */
static bool is_stride_inside(const struct quoit_frame *frame, uint64_t segment_bytes)
{
    if (frame->size < 1 || frame->size > QUOIT_STRIDE_SIZE_MAX || frame->bytes % frame->size != 0)
        return false;
    if (frame->bytes == 0)
        return frame->offset <= segment_bytes;
    if (!is_range_inside(frame->offset, frame->size, segment_bytes))
        return false;
    uint32_t steps = frame->bytes / frame->size - 1;
    __int128 last = (__int128)frame->offset + (__int128)(int64_t)frame->operand * steps;
    return last >= 0 && last + frame->size <= (__int128)segment_bytes;
}

static bool is_block_inside(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    return frame->bytes <= limits->chunk_bytes && is_range_inside(frame->offset, frame->bytes, limits->segment_bytes);
}

static bool is_strided_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    return frame->bytes <= limits->chunk_bytes && is_stride_inside(frame, limits->segment_bytes);
}

static bool is_word_inside(uint64_t offset, uint32_t bytes, uint64_t segment_bytes)
{
    return offset % bytes == 0 && is_range_inside(offset, bytes, segment_bytes);
}

static bool is_signal_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    return (frame->op == QUOIT_AMO_SET || frame->op == QUOIT_AMO_ADD) &&
           is_word_inside(frame->operand2, SIGNAL_BYTES, limits->segment_bytes);
}

static bool is_amo_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    if (frame->op >= QUOIT_AMO_COUNT || (frame->op >= QUOIT_AMO_FETCH && frame->kind != QUOIT_FRAME_AMO_FETCH))
        return false;
    if (frame->op == QUOIT_AMO_TAKE && (frame->operand > QUOIT_TAKE_BYTES_MAX ||
                                        !is_range_inside(frame->offset, frame->operand, limits->segment_bytes)))
        return false;
    return (frame->size == 4 || frame->size == 8) && is_word_inside(frame->offset, frame->size, limits->segment_bytes);
}

static bool are_updates_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    if (frame->size < 1 || frame->size > QUOIT_LINK_UPDATES_MAX)
        return false;
    for (uint32_t i = 0; i < frame->size; i++)
        if (quoit_frame_update(frame, i).end >= 2 * limits->host_count)
            return false;
    return true;
}

static bool is_many_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    return frame->bytes > sizeof(struct quoit_frame_put) && frame->bytes % 8 == 0 &&
           frame->bytes <= QUOIT_MANY_BYTES_MAX && frame->bytes <= limits->chunk_bytes;
}

/* What the kind requires of op, size, bytes, offset and operands. */
static bool is_body_sound(const struct quoit_frame *frame, const struct quoit_frame_limits *limits)
{
    switch (frame->kind) {
    case QUOIT_FRAME_PUT:
    case QUOIT_FRAME_GET:
        return is_block_inside(frame, limits);
    case QUOIT_FRAME_PUT_STRIDED:
    case QUOIT_FRAME_GET_STRIDED:
        return is_strided_sound(frame, limits);
    case QUOIT_FRAME_PUT_SIGNAL:
        return is_block_inside(frame, limits) && is_signal_sound(frame, limits);
    case QUOIT_FRAME_AMO:
    case QUOIT_FRAME_AMO_FETCH:
        return is_amo_sound(frame, limits);
    case QUOIT_FRAME_PUT_MANY:
        return is_many_sound(frame, limits);
    case QUOIT_FRAME_MESSAGE:
        return frame->op < QUOIT_MESSAGE_PORTS && frame->bytes <= limits->chunk_bytes;
    case QUOIT_FRAME_DATA:
        return frame->size == 0 ? is_block_inside(frame, limits) : is_strided_sound(frame, limits);
    case QUOIT_FRAME_VALUE:
    case QUOIT_FRAME_ACK:
        return true;
    case QUOIT_FRAME_TOPOLOGY:
        return are_updates_sound(frame, limits);
    default:
        return false;
    }
}

static bool are_flags_sound(const struct quoit_frame *frame)
{
    bool is_put = frame->kind == QUOIT_FRAME_PUT || frame->kind == QUOIT_FRAME_PUT_STRIDED ||
                  frame->kind == QUOIT_FRAME_PUT_SIGNAL;
    return (frame->flags & ~KNOWN_FLAGS) == 0 && (is_put || !(frame->flags & QUOIT_FRAME_LANDED));
}

enum quoit_status quoit_frame_check(const struct quoit_frame *frame, enum quoit_class class,
                                    const struct quoit_frame_limits *limits)
{
    bool is_known = frame->kind != QUOIT_FRAME_NONE && frame->kind < QUOIT_FRAME_KIND_COUNT;
    if (!is_known || quoit_frame_class(frame->kind) != class)
        return QUOIT_INVALID;
    if (frame->source_host >= limits->host_count || frame->dest_host >= limits->host_count)
        return QUOIT_INVALID;
    if (frame->source_host == frame->dest_host && !limits->has_loopback)
        return QUOIT_INVALID;
    if (quoit_frame_is_of_pes(frame->kind) && (frame->source_pe >= limits->pe_counts[frame->source_host] ||
                                               frame->dest_pe >= limits->pe_counts[frame->dest_host]))
        return QUOIT_INVALID;
    if (!are_flags_sound(frame) || !is_body_sound(frame, limits))
        return QUOIT_INVALID;
    return QUOIT_OK;
}

enum quoit_status quoit_frame_check_many(const struct quoit_frame *frame, const char *payload,
                                         const struct quoit_frame_limits *limits)
{
    struct quoit_frame_put put;
    for (uint32_t at = 0; at < frame->bytes; at += quoit_frame_put_bytes(put.bytes)) {
        uint32_t rest = frame->bytes - at;
        if (rest <= sizeof put)
            return QUOIT_INVALID;
        memcpy(&put, payload + at, sizeof put);
        if (put.bytes == 0 || put.bytes > rest - sizeof put || put.dest_pe >= limits->pe_counts[frame->dest_host] ||
            put.unused != 0 || !is_range_inside(put.offset, put.bytes, limits->segment_bytes))
            return QUOIT_INVALID;
    }
    return QUOIT_OK;
}
