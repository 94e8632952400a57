/* SPDX-License-Identifier: BSD-3-Clause */
/* How a lane executes frames on the memory of its PEs. */
#include "base/assert.h"
#include "base/log.h"
#include "base/observer.h"
#include "host/execute.h"
#include "lane/lane.h"
#include "lane/outbox.h"

#include <string.h>

static char *segment_of(const struct quoit_lane *lane, uint32_t local)
{
    quoit_assert(local < lane->layout->local_count);
    return lane->memory + quoit_layout_segment(lane->layout, local);
}

/* Words that a PE may wait for are stored whole. */
static void store(char *to, const char *from, uint32_t bytes)
{
    uint64_t word64;
    uint32_t word32;
    if (bytes == 8 && (uintptr_t)to % 8 == 0) {
        memcpy(&word64, from, 8);
        __atomic_store_n((uint64_t *)to, word64, __ATOMIC_RELEASE);
    } else if (bytes == 4 && (uintptr_t)to % 4 == 0) {
        memcpy(&word32, from, 4);
        __atomic_store_n((uint32_t *)to, word32, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, bytes);
    }
}

static void store_strided(char *to, const struct quoit_frame *frame, const char *from)
{
    int64_t stride = (int64_t)frame->operand;
    for (uint32_t at = 0; at < frame->bytes; at += frame->size, to += stride)
        store(to, from + at, frame->size);
}

/* Data of a get, or an old value, for a request of a local PE. */
static void deliver_response(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    const struct quoit_frame *frame = &verdict->frame;
    uint32_t local = (uint32_t)(verdict->cookie / QUOIT_REQUESTS_A_CHANNEL);
    uint32_t index = (uint32_t)(verdict->cookie % QUOIT_REQUESTS_A_CHANNEL);
    const struct quoit_issued *issued = &lane->issued[verdict->cookie];
    if (frame->kind == QUOIT_FRAME_DATA) {
        quoit_assert(frame->bytes == issued->bytes);
        memcpy(lane->memory + issued->data_offset, payload, frame->bytes);
    } else {
        quoit_memory_channel(lane->layout, lane->memory, local, lane->index)->requests[index].result = frame->operand;
    }
}

/* A message to the host; it is acknowledged whether a listener exists or not. */
static void deliver_message(struct quoit_lane *lane, const struct quoit_frame *frame, const char *payload)
{
    const struct quoit_lane_group *group = lane->group;
    if (group->on_message)
        group->on_message(group->on_message_arg, lane->hosts.first + frame->source_host, frame->op, payload,
                          frame->bytes);
    lane->engine->respond(lane, frame, 0);
}

/* Puts that were checked. Each wakes its PE by itself. */
static void store_many(struct quoit_lane *lane, const struct quoit_frame *frame, const char *payload)
{
    struct quoit_frame_put put;
    for (uint32_t at = 0; at < frame->bytes; at += quoit_frame_put_bytes(put.bytes)) {
        memcpy(&put, payload + at, sizeof put);
        store(segment_of(lane, put.dest_pe) + put.offset, payload + at + sizeof put, put.bytes);
        atomic_thread_fence(memory_order_release);
        quoit_park_wake_at(&quoit_memory_pe(lane->layout, lane->memory, put.dest_pe)->park, put.offset, put.bytes);
    }
}

static void execute_many(struct quoit_lane *lane, const struct quoit_frame *frame, const char *payload)
{
    const struct quoit_frame_limits limits = quoit_lane_limits(lane);
    if (quoit_frame_check_many(frame, payload, &limits) != QUOIT_OK) {
        quoit_log(QUOIT_LOG_ERROR, "a malformed PUT_MANY came from host %u", lane->hosts.first + frame->source_host);
        quoit_lane_fail(lane, QUOIT_INVALID);
        return;
    }
    store_many(lane, frame, payload);
    lane->engine->respond(lane, frame, 0);
}

static uint64_t execute_fetch(struct quoit_lane *lane, const struct quoit_frame *frame, char *segment)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    char *at = segment + frame->offset;
    if (frame->op == QUOIT_AMO_TAKE)
        return (uint64_t)quoit_room_take(&lane->room, at, frame->operand, header->machine.pe_count);
    return quoit_execute_amo(at, frame->op, frame->size, frame->operand, frame->operand2);
}

static void execute(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    const struct quoit_frame *frame = &verdict->frame;
    if (quoit_frame_class(frame->kind) == QUOIT_CLASS_REPLY) {
        deliver_response(lane, verdict, payload);
        return;
    }
    if (frame->kind == QUOIT_FRAME_MESSAGE) {
        deliver_message(lane, frame, payload);
        return;
    }
    if (frame->kind == QUOIT_FRAME_PUT_MANY) {
        execute_many(lane, frame, payload);
        return;
    }
    uint64_t value = 0;
    char *segment = segment_of(lane, frame->dest_pe);
    bool has_landed = (frame->flags & QUOIT_FRAME_LANDED) != 0;
    switch (frame->kind) {
    case QUOIT_FRAME_PUT_SIGNAL:
        if (!has_landed)
            memcpy(segment + frame->offset, payload, frame->bytes);
        quoit_execute_amo(segment + frame->operand2, frame->op, 8, frame->operand, 0);
        break;
    case QUOIT_FRAME_PUT:
        if (!has_landed)
            store(segment + frame->offset, payload, frame->bytes);
        break;
    case QUOIT_FRAME_PUT_STRIDED:
        if (!has_landed)
            store_strided(segment + frame->offset, frame, payload);
        break;
    case QUOIT_FRAME_AMO:
        quoit_execute_amo(segment + frame->offset, frame->op, frame->size, frame->operand, frame->operand2);
        break;
    case QUOIT_FRAME_AMO_FETCH:
        value = execute_fetch(lane, frame, segment);
        break;
    default: /* gets: the frame's check let nothing else through */
        quoit_assert(frame->kind == QUOIT_FRAME_GET || frame->kind == QUOIT_FRAME_GET_STRIDED);
        lane->engine->respond(lane, frame, 0);
        return;
    }
    lane->engine->respond(lane, frame, value);
    atomic_thread_fence(memory_order_release);
    struct quoit_park *park = &quoit_memory_pe(lane->layout, lane->memory, frame->dest_pe)->park;
    if (frame->kind == QUOIT_FRAME_PUT)
        quoit_park_wake_at(park, frame->offset, frame->bytes);
    else if (frame->kind == QUOIT_FRAME_AMO || frame->kind == QUOIT_FRAME_AMO_FETCH)
        quoit_park_wake_at(park, frame->offset, frame->size);
    else
        quoit_park_wake(park);
}

void quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    quoit_observe(frame_executing, lane, verdict, payload);
    execute(lane, verdict, payload);
    quoit_observe(frame_executed, lane, verdict, payload);
}

const char *quoit_lane_reply_payload(struct quoit_lane *lane, const struct quoit_frame *frame)
{
    const char *from = segment_of(lane, frame->source_pe) + frame->offset;
    if (frame->size == 0)
        return from;
    int64_t stride = (int64_t)frame->operand;
    for (uint32_t at = 0; at < frame->bytes; at += frame->size, from += stride)
        memcpy(lane->gather + at, from, frame->size);
    return lane->gather;
}

/* A payload is in the PE's own staging chunk of that request, or in its own segment. */
static bool data_is_in_bounds(const struct quoit_lane *lane, uint32_t local, uint32_t index, uint64_t offset,
                              uint64_t bytes)
{
    uint64_t staging = quoit_layout_staging(lane->layout, local, lane->index, index);
    uint64_t segment = quoit_layout_segment(lane->layout, local);
    uint64_t stride = lane->layout->segment_stride;
    return (offset == staging && bytes <= lane->layout->job.chunk_bytes) ||
           (offset >= segment && offset - segment <= stride && bytes <= stride - (offset - segment));
}

/* How many bytes the puts of a PUT_MANY have. From now on the PE adds no more. */
static uint32_t take_many(struct quoit_request *request)
{
    return atomic_fetch_or_explicit(&request->many_bytes, QUOIT_REQUEST_IS_TAKEN, memory_order_acquire) &
           ~QUOIT_REQUEST_IS_TAKEN;
}

enum quoit_status quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                          struct quoit_frame *frame_out, uint32_t *spread_out)
{
    if (index >= QUOIT_REQUESTS_A_CHANNEL)
        goto refuse;
    struct quoit_request *request =
        &quoit_memory_channel(lane->layout, lane->memory, local, lane->index)->requests[index];
    struct quoit_frame frame = request->frame;
    uint64_t data_offset = request->data_offset;
    uint32_t dest_host = frame.dest_host - lane->hosts.first;
    if (dest_host >= lane->hosts.count)
        goto refuse;
    frame.dest_host = (uint16_t)dest_host;
    frame.source_host = (uint16_t)lane->host;
    frame.source_pe = (uint16_t)local;
    frame.flags &= quoit_job_config_traits(&lane->layout->job)->has_contacts ? QUOIT_FRAME_ORDERED | QUOIT_FRAME_LANDED
                                                                             : QUOIT_FRAME_ORDERED;
    if (frame.kind == QUOIT_FRAME_PUT_MANY)
        frame.bytes = take_many(request);
    struct quoit_frame_limits limits = quoit_lane_limits(lane);
    if (!quoit_frame_is_of_pes(frame.kind) || /* messages are for hosts to send */
        quoit_frame_check(&frame, QUOIT_CLASS_REQUEST, &limits) != QUOIT_OK ||
        !data_is_in_bounds(lane, local, index, data_offset, frame.bytes))
        goto refuse;
    if (frame.kind == QUOIT_FRAME_PUT_MANY &&
        quoit_frame_check_many(&frame, lane->memory + data_offset, &limits) != QUOIT_OK)
        goto refuse;
    lane->issued[quoit_lane_cookie(local, index)] =
        (struct quoit_issued){.data_offset = data_offset, .bytes = frame.bytes};
    *frame_out = frame;
    *spread_out = request->spread;
    quoit_observe(request_taken, lane);
    return QUOIT_OK;

refuse:
    quoit_log(QUOIT_LOG_ERROR, "PE %u handed over a request that is not valid: its memory is damaged",
              lane->layout->first_pe + local);
    return QUOIT_INVALID;
}

void quoit_lane_post(struct quoit_lane *lane, uint64_t cookie)
{
    struct quoit_channel *channel =
        quoit_memory_channel(lane->layout, lane->memory, (uint32_t)(cookie / QUOIT_REQUESTS_A_CHANNEL), lane->index);
    quoit_observe(request_completing, lane, cookie);
    uint32_t tail = atomic_load_explicit(&channel->complete_tail, memory_order_relaxed);
    channel->complete[tail % QUOIT_REQUESTS_A_CHANNEL] = (uint16_t)(cookie % QUOIT_REQUESTS_A_CHANNEL);
    atomic_store_explicit(&channel->complete_tail, tail + 1, memory_order_release); /* pairs with the PE's reaping */
}

void quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie)
{
    if (cookie >= quoit_lane_cookie(lane->layout->local_count, 0)) {
        quoit_outbox_complete(lane->group->outbox,
                              (uint32_t)(cookie - quoit_lane_cookie(lane->layout->local_count, 0)));
        return;
    }
    quoit_lane_post(lane, cookie);
    uint32_t local = (uint32_t)(cookie / QUOIT_REQUESTS_A_CHANNEL);
    quoit_park_wake(&quoit_memory_pe(lane->layout, lane->memory, local)->park);
}
