/* SPDX-License-Identifier: BSD-3-Clause */
/* Charges time for production code that passes neither env nor port, and calls the ledger at its observation points. */
#include "engine/ring/channel.h"
#include "lane/lane.h"
#include "sim/cache.h"
#include "sim/canary.h"
#include "sim/ledger.h"
#include "sim/observe.h"
#include "sim/world.h"

void sim_copied(size_t bytes)
{
    struct sim_world *world = sim_world_current();
    sim_spend(world, sim_model_time(world->model.journal_ps_per_byte, bytes));
}

void sim_flag_seen(const void *flag)
{
    struct sim_world *world = sim_world_current();
    uint64_t ns = world->model.flag_ns + sim_cache_read_line_ns(world, flag);
    if (ns)
        sim_spend(world, ns);
}

void sim_request_submitted(struct quoit_ring_engine *ring, struct quoit_slot *slot)
{
    struct sim_world *world = sim_world_current();
    const struct quoit_request *request = slot->request;
    uint64_t staged = request->data_offset == slot->staging_offset && request->frame.kind != QUOIT_FRAME_GET &&
                              request->frame.kind != QUOIT_FRAME_GET_STRIDED
                          ? request->frame.bytes
                          : 0;
    const char *staging = ring->engine.self->memory + slot->staging_offset;
    sim_spend(world, world->model.request_ns +
                         sim_cache_copy_ns(world, staging, NULL, staged, world->model.memory_ps_per_byte));
    sim_ledger_submit(world->ledger, ring->engine.self->pe, slot);
    sim_trace_text(world, "submit", ring->engine.self->pe,
                   (uint64_t)request->frame.kind << 32 | (uint64_t)slot->pending->is_off_lane << 24 |
                       (uint64_t)slot->lane << 16 | request->frame.dest_host,
                   request->frame.trace);
}

void sim_request_taken(struct quoit_lane *lane)
{
    (void)lane;
    struct sim_world *world = sim_world_current();
    sim_spend(world, world->model.frame_ns);
}

void sim_frame_executing(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    (void)payload;
    sim_ledger_deliver(sim_world_current()->ledger, lane->layout->host, &verdict->frame);
}

/* Where the payload of an executed frame went; NULL: nowhere. */
static const char *destination(const struct quoit_lane *lane, const struct quoit_verdict *verdict)
{
    const struct quoit_frame *frame = &verdict->frame;
    if (frame->kind == QUOIT_FRAME_DATA)
        return lane->memory + lane->issued[verdict->cookie].data_offset;
    if (frame->kind == QUOIT_FRAME_PUT || frame->kind == QUOIT_FRAME_PUT_SIGNAL)
        return lane->memory + quoit_layout_segment(lane->layout, frame->dest_pe) + frame->offset;
    return NULL;
}

void sim_frame_executed(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    struct sim_world *world = sim_world_current();
    const struct quoit_frame *frame = &verdict->frame;
    if (sim_canary_repeats(world, frame))
        quoit_lane_deliver(lane, verdict, payload); /* resumes here */
    sim_trace(world, "execute", lane->layout->host, frame->trace, frame->kind);
    sim_spend(world, world->model.frame_ns + sim_cache_copy_ns(world, destination(lane, verdict), payload,
                                                               quoit_frame_payload_bytes(frame),
                                                               world->model.memory_ps_per_byte));
}

void sim_request_completing(struct quoit_lane *lane, uint64_t cookie)
{
    uint32_t local = (uint32_t)(cookie / QUOIT_REQUESTS_A_CHANNEL);
    const struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
    const struct quoit_frame *frame = &channel->requests[cookie % QUOIT_REQUESTS_A_CHANNEL].frame;
    struct sim_world *world = sim_world_current();
    sim_ledger_complete(world->ledger, frame);
    sim_trace_text(world, "complete", lane->layout->host, lane->index << 16 | frame->dest_host, frame->trace);
}
