/* SPDX-License-Identifier: BSD-3-Clause */
/* Work of the production code that passes neither env nor port, given its time here; and the places at which the ledger
 * sees each request. Linked with --wrap, like env.c. */
#include "base/assert.h"
#include "engine/ring/channel.h"
#include "fabric/fabric.h"
#include "proxy/lane.h"
#include "sim/canary.h"
#include "sim/ledger.h"
#include "sim/world.h"

void __real_quoit_assert_failed(const char *condition, const char *file, int line) __attribute__((noreturn));
void __real_quoit_channel_submit(struct quoit_ring_engine *ring, struct quoit_slot *slot);
enum quoit_status __real_quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                                 struct quoit_frame *frame_out, uint32_t *spread_out);
void __real_quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
void __real_quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie);
void __real_quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, uint32_t pe);
void __real_quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                             uint64_t offset, size_t bytes, uint32_t pe);

void __real_quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                                 const void *source, size_t bytes, uint32_t pe);
void __wrap_quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                                 const void *source, size_t bytes, uint32_t pe);

void __real_quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                                 uint64_t offset, size_t bytes, uint32_t pe);
void __wrap_quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                                 uint64_t offset, size_t bytes, uint32_t pe);

void __wrap_quoit_assert_failed(const char *condition, const char *file, int line) __attribute__((noreturn));
void __wrap_quoit_channel_submit(struct quoit_ring_engine *ring, struct quoit_slot *slot);
enum quoit_status __wrap_quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                                 struct quoit_frame *frame_out, uint32_t *spread_out);
void __wrap_quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload);
void __wrap_quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie);
void __wrap_quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, uint32_t pe);
void __wrap_quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                             uint64_t offset, size_t bytes, uint32_t pe);

void __wrap_quoit_assert_failed(const char *condition, const char *file, int line)
{
    struct sim_world *world = sim_world_current();
    if (world)
        sim_fail(world, "assertion failed: %s (%s:%d)", condition, file, line);
    __real_quoit_assert_failed(condition, file, line);
}

static void copy_in_memory(struct sim_world *world, uint64_t bytes)
{
    sim_spend(world, sim_model_time(world->model.memory_ps_per_byte, bytes));
}

void __wrap_quoit_channel_submit(struct quoit_ring_engine *ring, struct quoit_slot *slot)
{
    struct sim_world *world = sim_world_current();
    if (world) {
        const struct quoit_request *request = slot->request;
        uint64_t staged = request->data_offset == slot->staging_offset && request->frame.kind != QUOIT_FRAME_GET &&
                                  request->frame.kind != QUOIT_FRAME_GET_STRIDED
                              ? request->frame.bytes
                              : 0;
        sim_spend(world, world->model.request_ns + sim_model_time(world->model.memory_ps_per_byte, staged));
        sim_ledger_submit(world->ledger, ring->engine.self->pe, slot);
    }
    __real_quoit_channel_submit(ring, slot);
}

enum quoit_status __wrap_quoit_lane_take_request(struct quoit_lane *lane, uint32_t local, uint32_t index,
                                                 struct quoit_frame *frame_out, uint32_t *spread_out)
{
    struct sim_world *world = sim_world_current();
    enum quoit_status status = __real_quoit_lane_take_request(lane, local, index, frame_out, spread_out);
    if (world)
        sim_spend(world, world->model.frame_ns);
    return status;
}

void __wrap_quoit_lane_deliver(struct quoit_lane *lane, const struct quoit_verdict *verdict, const char *payload)
{
    struct sim_world *world = sim_world_current();
    if (!world) {
        __real_quoit_lane_deliver(lane, verdict, payload);
        return;
    }
    const struct quoit_frame *frame = &verdict->frame;
    uint32_t times = sim_canary_deliver(world, frame);
    for (uint32_t i = 0; i < times; i++) {
        sim_ledger_deliver(world->ledger, lane->layout->host, lane->index, frame);
        __real_quoit_lane_deliver(lane, verdict, payload);
    }
    sim_trace(world, "execute", lane->layout->host, frame->trace, frame->kind);
    sim_spend(world, world->model.frame_ns +
                         sim_model_time(world->model.memory_ps_per_byte, quoit_frame_payload_bytes(frame)));
}

void __wrap_quoit_lane_complete(struct quoit_lane *lane, uint64_t cookie)
{
    struct sim_world *world = sim_world_current();
    if (world) {
        uint32_t local = (uint32_t)(cookie / QUOIT_REQUESTS_A_CHANNEL);
        const struct quoit_channel *channel = quoit_memory_channel(lane->layout, lane->memory, local, lane->index);
        sim_ledger_complete(world->ledger, &channel->requests[cookie % QUOIT_REQUESTS_A_CHANNEL].frame);
    }
    __real_quoit_lane_complete(lane, cookie);
}

void __wrap_quoit_fabric_put(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                             const void *source, size_t bytes, uint32_t pe)
{
    struct sim_world *world = sim_world_current();
    if (world && fabric->peers[pe].segment)
        copy_in_memory(world, bytes);
    __real_quoit_fabric_put(fabric, context, offset, source, bytes, pe);
}

/* Data of another host was copied to its staging chunk by the lane; here it goes where the PE wants it. */
void __wrap_quoit_fabric_get(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                             uint64_t offset, size_t bytes, uint32_t pe)
{
    struct sim_world *world = sim_world_current();
    __real_quoit_fabric_get(fabric, context, destination, offset, bytes, pe);
    if (world)
        copy_in_memory(world, bytes);
}

void __wrap_quoit_fabric_put_nbi(struct quoit_fabric *fabric, struct quoit_context *context, uint64_t offset,
                                 const void *source, size_t bytes, uint32_t pe)
{
    struct sim_world *world = sim_world_current();
    if (world && fabric->peers[pe].segment)
        copy_in_memory(world, bytes);
    __real_quoit_fabric_put_nbi(fabric, context, offset, source, bytes, pe);
}

void __wrap_quoit_fabric_get_nbi(struct quoit_fabric *fabric, struct quoit_context *context, void *destination,
                                 uint64_t offset, size_t bytes, uint32_t pe)
{
    struct sim_world *world = sim_world_current();
    __real_quoit_fabric_get_nbi(fabric, context, destination, offset, bytes, pe);
    if (world)
        copy_in_memory(world, bytes);
}
