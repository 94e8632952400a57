/* SPDX-License-Identifier: BSD-3-Clause */
/* What rings take in, watched by one who knows all hosts: the rules of docs/design/failover.md that show in the result
 * only by bad luck. Linked with --wrap, like env.c; canaries change here what a ring is shown. */
#include "base/log.h"
#include "ring/state.h"
#include "sim/canary.h"
#include "sim/world.h"

enum quoit_status __real_quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                            const struct quoit_frame *frame, uint64_t now_ns,
                                            struct quoit_verdict *verdict_out);
void __real_quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow);
void __real_quoit_log_line(enum quoit_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum quoit_status __wrap_quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                            const struct quoit_frame *frame, uint64_t now_ns,
                                            struct quoit_verdict *verdict_out);
void __wrap_quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow);
void __wrap_quoit_log_line(enum quoit_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a proxy complains of is wrong: nobody damages its memory here, and links that go down are no reason. */
void __wrap_quoit_log_line(enum quoit_log_level level, const char *format, ...)
{
    struct sim_world *world = sim_world_current();
    char text[SIM_FAILURE_BYTES / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (world && level == QUOIT_LOG_ERROR)
        sim_fail(world, "a proxy says: %s", text);
    __real_quoit_log_line(level, "%s", text);
}

/* Nothing that the lane landed through `side` under an older topology is still under way by DMA. */
static void check_is_landed(struct sim_world *world, const struct quoit_lane *lane, enum quoit_side side,
                            uint32_t generation)
{
    for (uint64_t left = lane->mover->busy; left; left &= left - 1) {
        const struct quoit_departure *departure = &lane->departures[__builtin_ctzll(left)];
        if (departure->side == side && (departure->frame.flags & QUOIT_FRAME_LANDED) &&
            departure->frame.generation < generation)
            sim_fail(world, "a request is executed while DMA of lane %u of host %u may still land an outdated one",
                     lane->index, lane->layout->host);
    }
}

/* When a request is executed, no neighbour that may land payload here knows less than we do: what it lands then is
 * outdated. */
static void check_is_settled(struct sim_world *world, const struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t neighbour = quoit_layout_neighbour(lane->layout, side);
        const struct quoit_lane *there = quoit_proxy_lane(world->hosts[neighbour].proxy, lane->index);
        enum quoit_side facing = side == QUOIT_LEFT ? QUOIT_RIGHT : QUOIT_LEFT;
        if (world->hosts[neighbour].is_dead || !quoit_ring_links_may_land(&there->ring->links, facing))
            continue;
        check_is_landed(world, there, facing, lane->ring->links.generation);
        if (there->ring->links.generation < lane->ring->links.generation)
            sim_fail(world, "lane %u of host %u executes a request while host %u may still land outdated ones",
                     lane->index, lane->layout->host, neighbour);
    }
}

uint32_t sim_executed_number(struct sim_world *world, const struct quoit_frame *reply)
{
    const struct quoit_lane *lane = world->current->lane;
    const struct quoit_ring *there = quoit_proxy_lane(world->hosts[reply->source_host].proxy, lane->index)->ring;
    uint32_t index = quoit_ring_flow_side(reply) * lane->layout->job.host_count + reply->dest_host;
    return there->flows_in[index].executed;
}

/* Nothing is acknowledged here before it is executed there. */
static void check_is_executed(struct sim_world *world, const struct quoit_frame *frame)
{
    uint32_t executed = sim_executed_number(world, frame);
    if (quoit_ring_is_before(executed, frame->flow_sequence))
        sim_fail(world, "host %u acknowledges number %u to host %u, but has executed only up to %u", frame->source_host,
                 frame->flow_sequence, frame->dest_host, executed);
}

enum quoit_status __wrap_quoit_ring_receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                            const struct quoit_frame *frame, uint64_t now_ns,
                                            struct quoit_verdict *verdict_out)
{
    struct sim_world *world = sim_world_current();
    if (!world || !world->config.checks_each_step)
        return __real_quoit_ring_receive(ring, side, class, frame, now_ns, verdict_out);
    const struct quoit_lane *lane = world->current->lane;
    uint32_t generation = ring->links.generation;
    struct quoit_frame shown = *frame;
    sim_canary_receive(world, &shown, generation);
    enum quoit_status status = __real_quoit_ring_receive(ring, side, class, &shown, now_ns, verdict_out);
    sim_canary_received(world, status == QUOIT_OK ? verdict_out : NULL);
    if (status != QUOIT_OK || frame->kind == QUOIT_FRAME_TOPOLOGY || verdict_out->kind == QUOIT_VERDICT_NO_RESOURCE)
        return status;
    if (frame->generation != generation && verdict_out->kind != QUOIT_VERDICT_CONSUMED)
        sim_fail(world, "host %u takes a frame of generation %u in generation %u", lane->layout->host,
                 frame->generation, generation);
    if (verdict_out->kind == QUOIT_VERDICT_CONSUMED && frame->generation == generation &&
        (frame->flags & QUOIT_FRAME_LANDED))
        sim_fail(world, "the payload of request %u of host %u lands again at host %u", frame->flow_sequence,
                 frame->source_host, lane->layout->host);
    if (class == QUOIT_CLASS_REPLY && frame->generation == generation && frame->dest_host == lane->layout->host)
        check_is_executed(world, &shown);
    if (class == QUOIT_CLASS_REQUEST && verdict_out->kind == QUOIT_VERDICT_DELIVER)
        check_is_settled(world, lane);
    return status;
}

void __wrap_quoit_ring_flow_start_resend(struct quoit_ring_flow_out *flow)
{
    struct sim_world *world = sim_world_current();
    __real_quoit_ring_flow_start_resend(flow);
    bool has_any = flow->resend_plain != QUOIT_RING_NONE || flow->resend_asking != QUOIT_RING_NONE;
    if (world && has_any && sim_canary_forget(world, flow))
        flow->resend_plain = flow->resend_asking = QUOIT_RING_NONE;
}
