/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/layout.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/map.h"

#include <string.h>

#define PAGE_BYTES     4096u
#define SEGMENT_ALIGN  QUOIT_HUGE_PAGE_BYTES
#define PART_BYTES_MAX (1ull << 46) /* per part of a segment: sums over the PEs of a host do not wrap */

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
    return job->host_count >= 1 && job->host_count <= QUOIT_RING_HOSTS_MAX && quoit_job_config_has_sound_places(job) &&
           quoit_job_config_has_sound_rings(job) && quoit_job_config_has_sound_loopback(job) && lanes >= 1 &&
           lanes <= QUOIT_LANES_MAX && (lanes & (lanes - 1)) == 0 && job->slot_count >= QUOIT_RING_SLOTS_MIN &&
           job->chunk_bytes >= 64 && job->chunk_bytes % 64 == 0 && job->chunk_bytes <= QUOIT_CHUNK_BYTES_MAX &&
           trace_is_sound(job->trace_count) && job->data_bytes % PAGE_BYTES == 0 && job->heap_bytes % PAGE_BYTES == 0 &&
           job->data_bytes <= PART_BYTES_MAX && job->heap_bytes <= PART_BYTES_MAX &&
           job->protocol < QUOIT_PROTOCOL_COUNT && job->barrier < QUOIT_BARRIER_KIND_COUNT &&
           job->payload < QUOIT_PAYLOAD_KIND_COUNT && job->has_profile <= 1;
}

uint64_t quoit_layout_lane_line(const struct quoit_layout *layout, uint32_t lane, uint32_t line)
{
    quoit_assert(lane < layout->job.lane_count);
    quoit_assert(line < layout->lane_line_count);
    return ((uint64_t)lane * layout->lane_line_count + line) * QUOIT_LINE_BYTES;
}

uint64_t quoit_layout_lane_slot(const struct quoit_layout *layout, uint32_t lane, uint32_t slot)
{
    const struct quoit_job_config *job = &layout->job;
    quoit_assert(lane < job->lane_count);
    quoit_assert(slot < layout->lane_slot_count);
    uint64_t lines_bytes = (uint64_t)job->lane_count * layout->lane_line_count * QUOIT_LINE_BYTES;
    return round_up(lines_bytes, PAGE_BYTES) +
           ((uint64_t)lane * layout->lane_slot_count + slot) * quoit_slot_bytes(job->chunk_bytes);
}

static uint64_t slots_bytes(const struct quoit_layout *layout)
{
    const struct quoit_job_config *job = &layout->job;
    uint64_t last = quoit_layout_lane_slot(layout, job->lane_count - 1, layout->lane_slot_count - 1);
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
    const struct quoit_protocol_traits *traits = quoit_job_config_traits(job);
    bool has_network = quoit_job_config_has_network(job);
    layout->ring = quoit_job_config_ring_of(job, host);
    layout->link_lane_count = has_network && !quoit_layout_has_links(layout) ? 0 : job->lane_count;
    layout->lane_count = layout->link_lane_count + has_network;
    layout->lane_line_count = traits->line_count;
    layout->lane_slot_count = traits->slot_count ? traits->slot_count : QUOIT_CLASS_COUNT * job->slot_count;
    layout->local_count = quoit_job_config_pes_of_host(job, host);
    layout->first_pe = quoit_job_config_first_pe(job, host);
    layout->pes = round_up(sizeof(struct quoit_host_header), PAGE_BYTES);
    layout->lanes = round_up(layout->pes + layout->local_count * sizeof(struct quoit_pe_shared), PAGE_BYTES);
    uint64_t at = round_up(layout->lanes + layout->lane_count * sizeof(struct quoit_lane_shared), PAGE_BYTES);
    layout->traces = at;
    if (job->trace_count)
        at = round_up(at + (layout->local_count + layout->lane_count) * quoit_trace_ring_bytes(job->trace_count),
                      PAGE_BYTES);
    layout->profiles = at;
    if (job->has_profile) {
        layout->profile_bytes = round_up(quoit_profile_bytes(job->pe_count), PAGE_BYTES);
        at += layout->local_count * layout->profile_bytes;
    }
    layout->channels = layout->staging = at;
    if (quoit_job_config_has_proxies(job)) {
        uint64_t channel_count = (uint64_t)layout->local_count * layout->lane_count;
        layout->staging = round_up(at + channel_count * sizeof(struct quoit_channel), PAGE_BYTES);
        layout->messages = layout->staging + channel_count * QUOIT_REQUESTS_A_CHANNEL * job->chunk_bytes;
        at = layout->messages + (uint64_t)QUOIT_MESSAGES_MAX * job->chunk_bytes;
        if (traits->has_contacts) {
            layout->contacts = round_up(at, PAGE_BYTES);
            at = layout->contacts + sizeof(struct quoit_contacts) + job->host_count * sizeof(struct quoit_contact);
        }
        layout->slots_bytes = quoit_layout_has_links(layout) ? slots_bytes(layout) : 0;
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
