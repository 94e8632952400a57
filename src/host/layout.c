/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/layout.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/map.h"

#include <string.h>

#define PAGE_BYTES    4096u
#define SEGMENT_ALIGN QUOIT_HUGE_PAGE_BYTES
#define CREDIT_LINE   64u /* each credit word has a cache line of its own */

_Static_assert(QUOIT_ANSWER_WORDS * sizeof(uint64_t) <= CREDIT_LINE, "the answers of a lane share a cache line");

static uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) / align * align;
}

static bool trace_is_sound(uint32_t event_count)
{
    return event_count == 0 || (event_count >= QUOIT_TRACE_EVENTS_MIN && event_count <= QUOIT_TRACE_EVENTS_MAX &&
                                (event_count & (event_count - 1)) == 0);
}

static bool config_is_sound(const struct quoit_job_config *job)
{
    uint32_t lanes = job->lane_count;
    return job->host_count >= 1 && job->host_count <= QUOIT_RING_HOSTS_MAX && job->pe_count >= job->host_count &&
           quoit_job_config_pes_of_host(job, 0) <= QUOIT_LOCAL_PES_MAX && lanes >= 1 && lanes <= QUOIT_LANES_MAX &&
           (lanes & (lanes - 1)) == 0 && job->slot_count >= QUOIT_RING_SLOTS_MIN && job->chunk_bytes >= 64 &&
           job->chunk_bytes % 64 == 0 && job->chunk_bytes <= QUOIT_CHUNK_BYTES_MAX &&
           trace_is_sound(job->trace_count) && job->data_bytes % PAGE_BYTES == 0 && job->heap_bytes % PAGE_BYTES == 0 &&
           job->protocol < QUOIT_PROTOCOL_COUNT && job->barrier < QUOIT_BARRIER_KIND_COUNT &&
           job->payload < QUOIT_PAYLOAD_KIND_COUNT;
}

uint64_t quoit_layout_credit(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class)
{
    quoit_assert(lane < layout->job.lane_count);
    return ((uint64_t)lane * QUOIT_CLASS_COUNT + class) * CREDIT_LINE;
}

uint64_t quoit_layout_slot(const struct quoit_layout *layout, uint32_t lane, enum quoit_class class,
                           uint32_t slot_index)
{
    quoit_assert(lane < layout->job.lane_count);
    quoit_assert(slot_index < layout->job.slot_count);
    uint64_t credits = round_up((uint64_t)layout->job.lane_count * QUOIT_CLASS_COUNT * CREDIT_LINE, PAGE_BYTES);
    uint64_t queue = (uint64_t)lane * QUOIT_CLASS_COUNT + class;
    return credits + (queue * layout->job.slot_count + slot_index) * quoit_slot_bytes(layout->job.chunk_bytes);
}

uint64_t quoit_layout_answer(const struct quoit_layout *layout, uint32_t lane, uint32_t word)
{
    quoit_assert(lane < layout->job.lane_count);
    quoit_assert(word < QUOIT_ANSWER_WORDS);
    return (uint64_t)lane * CREDIT_LINE + word * sizeof(uint64_t);
}

uint64_t quoit_layout_bypass(const struct quoit_layout *layout, uint32_t lane, uint32_t place)
{
    quoit_assert(lane < layout->job.lane_count);
    quoit_assert(place < QUOIT_BYPASS_COUNT * QUOIT_BYPASS_DEPTH);
    uint64_t answers = round_up((uint64_t)layout->job.lane_count * CREDIT_LINE, PAGE_BYTES);
    return answers + ((uint64_t)lane * QUOIT_BYPASS_COUNT * QUOIT_BYPASS_DEPTH + place) *
                         quoit_slot_bytes(layout->job.chunk_bytes);
}

static uint64_t slots_bytes(const struct quoit_layout *layout)
{
    const struct quoit_job_config *job = &layout->job;
    if (job->protocol == QUOIT_PROTOCOL_SCRATCHPAD)
        return round_up(quoit_layout_bypass(layout, job->lane_count - 1, QUOIT_BYPASS_COUNT * QUOIT_BYPASS_DEPTH - 1) +
                            quoit_slot_bytes(job->chunk_bytes),
                        PAGE_BYTES);
    uint64_t last = quoit_layout_slot(layout, job->lane_count - 1, QUOIT_CLASS_COUNT - 1, job->slot_count - 1);
    return round_up(last + quoit_slot_bytes(job->chunk_bytes), PAGE_BYTES);
}

enum quoit_status quoit_layout_make(const struct quoit_job_config *job, uint32_t host, struct quoit_layout *layout_out)
{
    if (!config_is_sound(job) || host >= job->host_count) {
        quoit_log(QUOIT_LOG_ERROR, "job config is out of range: hosts %u pes %u lanes %u slots %u chunk %u",
                  job->host_count, job->pe_count, job->lane_count, job->slot_count, job->chunk_bytes);
        return QUOIT_INVALID;
    }
    struct quoit_layout *layout = layout_out;
    memset(layout, 0, sizeof *layout);
    layout->job = *job;
    layout->host = host;
    layout->local_count = quoit_job_config_pes_of_host(job, host);
    layout->first_pe = quoit_job_config_first_pe(job, host);
    layout->pes = round_up(sizeof(struct quoit_host_header), PAGE_BYTES);
    layout->lanes = round_up(layout->pes + layout->local_count * sizeof(struct quoit_pe_shared), PAGE_BYTES);
    uint64_t at = round_up(layout->lanes + job->lane_count * sizeof(struct quoit_lane_shared), PAGE_BYTES);
    layout->traces = at;
    if (job->trace_count)
        at = round_up(at + (layout->local_count + job->lane_count) * quoit_trace_ring_bytes(job->trace_count),
                      PAGE_BYTES);
    layout->channels = layout->staging = at;
    if (job->host_count > 1) {
        uint64_t channel_count = (uint64_t)layout->local_count * job->lane_count;
        layout->staging = round_up(at + channel_count * sizeof(struct quoit_channel), PAGE_BYTES);
        at = layout->staging + channel_count * QUOIT_REQUESTS_A_CHANNEL * job->chunk_bytes;
        layout->slots_bytes = slots_bytes(layout);
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
            layout->slots[side] = round_up(at, PAGE_BYTES);
            at = layout->slots[side] + layout->slots_bytes;
        }
    }
    layout->segments = round_up(at, SEGMENT_ALIGN);
    layout->segment_data = QUOIT_RUNTIME_BYTES;
    layout->segment_heap = round_up(layout->segment_data + job->data_bytes, SEGMENT_ALIGN);
    layout->segment_stride = round_up(layout->segment_heap + job->heap_bytes, SEGMENT_ALIGN);
    layout->total_bytes = layout->segments + layout->local_count * layout->segment_stride;
    return QUOIT_OK;
}
