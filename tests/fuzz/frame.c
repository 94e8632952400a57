/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a frame that passes quoit_frame_check() cannot make its receiver access memory outside the job's. Method: the
 * guarantees of the check are recomputed, with arithmetic that does not wrap. Input: the kind, then mutations. */
#include "wire/frame.h"
#include "fuzz.h"

static int is_amo(uint8_t kind)
{
    return kind == QUOIT_FRAME_AMO || kind == QUOIT_FRAME_AMO_FETCH;
}

static int names_memory(uint8_t kind)
{
    return kind == QUOIT_FRAME_PUT || kind == QUOIT_FRAME_PUT_SIGNAL || kind == QUOIT_FRAME_GET;
}

/* The puts of a PUT_MANY whose payload begins with this. */
static void look_at_many(const struct quoit_frame *frame, const struct quoit_frame_limits *limits, const uint8_t *data,
                         size_t bytes)
{
    char payload[QUOIT_MANY_BYTES_MAX] = {0};
    struct quoit_frame_put put;
    memcpy(payload, data, bytes < sizeof payload ? bytes : sizeof payload);
    if (quoit_frame_check_many(frame, payload, limits) != QUOIT_OK)
        return;
    uint32_t at = 0;
    for (; at < frame->bytes; at += quoit_frame_put_bytes(put.bytes)) {
        memcpy(&put, payload + at, sizeof put);
        must(put.bytes > 0 && put.bytes <= frame->bytes - at - sizeof put);
        must(put.dest_pe < limits->pe_counts[frame->dest_host]);
        must(put.offset <= limits->segment_bytes && put.bytes <= limits->segment_bytes - put.offset);
    }
    must(at == frame->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint32_t pe_counts[] = {2, 3, 1, 2};
    const struct quoit_frame_limits limits = {
        .host_count = 4, .chunk_bytes = 4096, .segment_bytes = 1u << 20, .pe_counts = pe_counts};
    struct quoit_frame frame = {.kind = QUOIT_FRAME_PUT,
                                .op = QUOIT_AMO_ADD,
                                .size = 8,
                                .source_host = 1,
                                .dest_host = 2,
                                .bytes = 64,
                                .offset = 4096};
    if (bytes == 0)
        return 0;
    frame.kind = data[0] % (QUOIT_FRAME_KIND_COUNT + 1);
    fuzz_change(&frame, sizeof frame, data + 1, bytes - 1);
    for (int class = 0; class < QUOIT_CLASS_COUNT; class ++) {
        if (quoit_frame_check(&frame, (enum quoit_class) class, &limits) != QUOIT_OK)
            continue;
        must(frame.kind < QUOIT_FRAME_KIND_COUNT);
        must(quoit_frame_class(frame.kind) == (enum quoit_class) class);
        must(frame.source_host < limits.host_count);
        must(frame.dest_host < limits.host_count);
        must(frame.source_host != frame.dest_host);
        must(quoit_frame_payload_bytes(&frame) <= limits.chunk_bytes);
        must(frame.kind != QUOIT_FRAME_MESSAGE || frame.op < QUOIT_MESSAGE_PORTS);
        if (!quoit_frame_is_of_pes(frame.kind))
            continue;
        must(frame.source_pe < pe_counts[frame.source_host]);
        must(frame.dest_pe < pe_counts[frame.dest_host]);
        if (names_memory(frame.kind))
            must(frame.offset <= limits.segment_bytes && frame.bytes <= limits.segment_bytes - frame.offset);
        must(frame.kind != QUOIT_FRAME_PUT_MANY || (frame.bytes % 8 == 0 && frame.bytes <= QUOIT_MANY_BYTES_MAX));
        if (frame.kind == QUOIT_FRAME_PUT_MANY)
            look_at_many(&frame, &limits, data, bytes);
        if (is_amo(frame.kind)) {
            must(frame.op < QUOIT_AMO_COUNT);
            must(frame.size == 4 || frame.size == 8);
            must(frame.offset % frame.size == 0 && frame.offset <= limits.segment_bytes - frame.size);
        }
    }
    return 0;
}
