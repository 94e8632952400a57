/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks what rings accept, with knowledge of all hosts: the rules of docs/design/failover.md whose violation affects
 * the result only rarely. Canaries modify here what a ring receives. */
#include "base/log.h"
#include "engine/ring/ring_engine.h"
#include "ring/state.h"
#include "sim/canary.h"
#include "sim/observe.h"
#include "sim/world.h"

/* An error logged by a proxy is a failure: its memory is never corrupted here, and links that go down are no error. */
void sim_log_line(int level, const char *text)
{
    if (level == QUOIT_LOG_ERROR)
        sim_fail(sim_world_current(), "a proxy says: %s", text);
}

void sim_assertion(const char *condition, const char *file, int line)
{
    sim_fail(sim_world_current(), "assertion failed: %s (%s:%d)", condition, file, line);
}

/* Nothing that the lane landed through `side` under an older topology is still in flight by DMA. */
static void check_is_landed(struct sim_world *world, const struct quoit_lane *lane, enum quoit_side side,
                            uint32_t version)
{
    for (uint64_t left = quoit_queue_of(lane)->mover->busy; left; left &= left - 1) {
        const struct quoit_departure *departure = &quoit_queue_of(lane)->departures[__builtin_ctzll(left)];
        if (departure->side == side && (departure->frame.flags & QUOIT_FRAME_LANDED) &&
            departure->frame.topology_version < version)
            sim_fail(world, "a request is executed while DMA of lane %u of host %u may still land an outdated one",
                     lane->index, lane->layout->host);
    }
}

/* When a request is executed, no neighbour that may land payload here has an older topology: its payload would be
 * outdated. */
static void check_is_quiesced(struct sim_world *world, const struct quoit_lane *lane)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        uint32_t neighbour = quoit_layout_neighbour(lane->layout, side);
        const struct quoit_lane *there = quoit_proxy_lane(world->hosts[neighbour].proxy, lane->index);
        enum quoit_side facing = side == QUOIT_LEFT ? QUOIT_RIGHT : QUOIT_LEFT;
        if (world->hosts[neighbour].is_dead || !quoit_ring_links_may_land(&quoit_queue_of(there)->ring->links, facing))
            continue;
        check_is_landed(world, there, facing, quoit_queue_of(lane)->ring->links.topology_version);
        if (quoit_queue_of(there)->ring->links.topology_version < quoit_queue_of(lane)->ring->links.topology_version)
            sim_fail(world, "lane %u of host %u executes a request while host %u may still land outdated ones",
                     lane->index, lane->layout->host, neighbour);
    }
}

uint32_t sim_executed_from(const struct quoit_ring *ring, const struct quoit_frame *frame, uint32_t source_host)
{
    return ring->flows_in[quoit_ring_flow_side(frame) * ring->config.limits.host_count + source_host].executed;
}

uint32_t sim_executed_number(struct sim_world *world, const struct quoit_frame *reply)
{
    const struct quoit_lane *lane = world->current->lane;
    const struct quoit_ring *there =
        quoit_queue_of(quoit_proxy_lane(world->hosts[reply->source_host].proxy, lane->index))->ring;
    return sim_executed_from(there, reply, reply->dest_host);
}

/* Nothing is acknowledged at the source before it is executed at the destination. */
static void check_is_executed(struct sim_world *world, const struct quoit_frame *frame)
{
    uint32_t executed = sim_executed_number(world, frame);
    if (quoit_ring_is_before(executed, frame->flow_sequence))
        sim_fail(world, "host %u acknowledges number %u to host %u, but has executed only up to %u", frame->source_host,
                 frame->flow_sequence, frame->dest_host, executed);
}

void sim_frame_received(struct quoit_lane *lane, struct quoit_frame *frame)
{
    struct sim_world *world = sim_world_current();
    world->current->version_before = quoit_queue_of(lane)->ring->links.topology_version;
    sim_canary_receive(world, frame, quoit_queue_of(lane)->ring->links.topology_version);
}

/* Checks what a ring accepted. */
static void check_taken(struct sim_world *world, const struct quoit_lane *lane, const struct quoit_frame *frame,
                        const struct quoit_verdict *verdict)
{
    uint32_t version = world->current->version_before;
    bool is_consumed = verdict->kind == QUOIT_VERDICT_CONSUMED;
    if (frame->topology_version != version && !is_consumed)
        sim_fail(world, "host %u takes a frame of topology version %u in version %u", lane->layout->host,
                 frame->topology_version, version);
    if (is_consumed && frame->topology_version == version && (frame->flags & QUOIT_FRAME_LANDED))
        sim_fail(world, "the payload of request %u of host %u lands again at host %u", frame->flow_sequence,
                 frame->source_host, lane->layout->host);
}

/* A move of the ring, for tests/model/moves.py: the side and class of the queue, what stands there, its flags and
 * topology version, and `value`. */
static void trace_move(struct sim_world *world, const char *what, const struct quoit_lane *lane, uint32_t side,
                       uint32_t class, const struct quoit_frame *frame, uint32_t value)
{
    sim_trace_text(world, what, lane->layout->host,
                   (uint64_t)frame->topology_version << 32 | (uint64_t)(frame->flags & 7u) << 29 |
                       (uint64_t)value << 16 | (uint64_t)lane->index << 10 | (uint64_t)frame->kind << 2 | side << 1 |
                       class,
                   (uint64_t)frame->source_host << 48 | (uint64_t)frame->dest_host << 32 | frame->flow_sequence);
}

/* `value`: slots that the writer counts as used, this one included. */
void sim_frame_sending(struct quoit_lane *lane, const struct quoit_verdict *verdict)
{
    struct sim_world *world = sim_world_current();
    const struct quoit_ring_outbound *out = &quoit_queue_of(lane)->ring->outbound[verdict->side][verdict->class];
    trace_move(world, "send", lane, verdict->side, verdict->class, &verdict->frame,
               (uint32_t)(out->sent_total - out->credited_total));
}

static void trace_departure(const char *what, const struct quoit_lane *lane, const struct quoit_departure *departure,
                            uint32_t value)
{
    trace_move(sim_world_current(), what, lane, departure->side, quoit_frame_class(departure->frame.kind),
               &departure->frame, value);
}

void sim_payload_leaving(struct quoit_lane *lane, const struct quoit_departure *departure)
{
    trace_departure("leaving", lane, departure, 0);
}

void sim_payload_left(struct quoit_lane *lane, const struct quoit_departure *departure, int status)
{
    trace_departure("left", lane, departure, (uint32_t)status);
}

/* What lane 0 knows of its host's ends and of those at the other end of the same links: number 2 h + side. */
static void trace_known(struct sim_world *world, const struct quoit_lane *lane)
{
    const struct quoit_ring_links *links = &quoit_queue_of(lane)->ring->links;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && lane->index == 0; side++) {
        uint32_t own = 2 * links->host_self + side;
        uint32_t far = 2 * quoit_layout_neighbour(lane->layout, side) + (side == QUOIT_LEFT);
        sim_trace_text(world, "knows", links->host_self, own, links->ends[own].state);
        sim_trace_text(world, "knows", links->host_self, far, links->ends[far].state);
    }
}

static void look_at_taken(struct sim_world *world, struct quoit_lane *lane, int side, int class,
                          const struct quoit_frame *frame, int status, const struct quoit_verdict *verdict)
{
    if (world->config.trace && status == QUOIT_OK && verdict->kind != QUOIT_VERDICT_NO_RESOURCE)
        trace_move(world, "take", lane, (uint32_t)side, (uint32_t) class, frame, verdict->kind);
    if (world->config.trace && status == QUOIT_OK && frame->kind == QUOIT_FRAME_TOPOLOGY)
        trace_known(world, lane);
    if (!world->config.checks_each_step)
        return;
    const struct quoit_frame *sent = sim_canary_received(world, status == QUOIT_OK ? verdict : NULL, frame);
    if (frame->kind == QUOIT_FRAME_TOPOLOGY)
        sim_canary_forget(world, lane);
    if (status != QUOIT_OK || frame->kind == QUOIT_FRAME_TOPOLOGY || verdict->kind == QUOIT_VERDICT_NO_RESOURCE)
        return;
    check_taken(world, lane, sent, verdict);
    if (class == QUOIT_CLASS_REPLY && sent->topology_version == world->current->version_before &&
        sent->dest_host == lane->layout->host)
        check_is_executed(world, frame);
    if (class == QUOIT_CLASS_REQUEST && verdict->kind == QUOIT_VERDICT_DELIVER)
        check_is_quiesced(world, lane);
}

/* The lines of a frame that was sent from another of the processors that hosts share. */
static uint64_t crossing_ns(const struct sim_world *world, const struct quoit_lane *lane, int side)
{
    const struct sim_end *from = world->hosts[lane->layout->host].ends[side]->peer;
    return world->shared_cores && from->sent_from[lane->index] != world->current->cores ? world->model.crossing_ns : 0;
}

/* What the lane executes itself is charged then. */
void sim_frame_taken(struct quoit_lane *lane, int side, int class, const struct quoit_frame *frame, int status,
                     const struct quoit_verdict *verdict)
{
    struct sim_world *world = sim_world_current();
    look_at_taken(world, lane, side, class, frame, status, verdict);
    if (status != QUOIT_OK || verdict->kind == QUOIT_VERDICT_NO_RESOURCE)
        return;
    uint64_t ns = crossing_ns(world, lane, side) + (verdict->kind == QUOIT_VERDICT_SEND ? world->model.frame_ns : 0);
    if (ns)
        sim_spend(world, ns);
}

void sim_put_remade(struct quoit_ring_engine *ring, int side, uint64_t sequence)
{
    sim_port_remake(ring->ports[side], ring->direct[side].mark_offset, sequence);
}

void sim_link_followed(struct quoit_lane *lane, int side)
{
    struct sim_world *world = sim_world_current();
    const struct quoit_ring *ring = quoit_queue_of(lane)->ring;
    sim_canary_forget(world, lane);
    sim_trace_text(world, "follow", lane->layout->host,
                   lane->index << 2 | (uint32_t)side << 1 | quoit_ring_link_is_up(ring, (enum quoit_side)side),
                   ring->links.topology_version);
    trace_known(world, lane);
}

void sim_link_moved(const struct quoit_link_record *record, int state)
{
    struct sim_world *world = sim_world_current();
    for (uint32_t host = 0; host < world->config.job.host_count; host++) {
        const struct quoit_host_header *header = (const struct quoit_host_header *)world->hosts[host].memory;
        if (record == &header->links[QUOIT_LEFT] || record == &header->links[QUOIT_RIGHT])
            sim_trace_text(world, "moved", host, (uint64_t)(record - header->links), (uint64_t)state);
    }
}
