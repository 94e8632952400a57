/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/canary.h"
#include "base/assert.h"
#include "papers/scratchpad.h"
#include "proxy/queue.h"
#include "ring/state.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES (QUOIT_FRAME_BYTES - sizeof(uint64_t))
/* Longer than any fault delays the receiver. */
#define LATE_NS          20000000
#define OCCASIONS_MAX    20
#define SLOW_REGISTER_NS 20000 /* so that doorbells ring between the last check of a lane and its sleep */

struct state {
    struct sim_event event; /* reorder: the header arrives late */
    struct sim_packet *late;
    uint64_t occasions_left; /* opportunities before the mistake is made */
    bool is_made;
    bool is_offered;
    struct sim_way *way; /* of the mistake; credit: the direction whose word is wrong from then on */
    uint64_t offset;
    const void *flow;        /* resend: the flow whose requests are forgotten */
    struct quoit_frame sent; /* before a mistake was made in it */
};

/* The offset of a write in the slots of a host. */
enum target { TARGET_OTHER, TARGET_CREDIT, TARGET_SEQUENCE, TARGET_HEADER };

static enum target target_of(const struct sim_way *way, const struct sim_packet *packet)
{
    const struct quoit_layout *layout = &way->end->peer->host->layout;
    if (packet->kind != SIM_PACKET_WRITE || packet->window != QUOIT_WINDOW_SLOTS)
        return TARGET_OTHER;
    uint64_t first_slot = quoit_layout_slot(layout, 0, 0, 0);
    if (packet->offset < first_slot)
        return TARGET_CREDIT;
    uint64_t in_slot = (packet->offset - first_slot) % quoit_slot_bytes(layout->job.chunk_bytes);
    if (in_slot == 0 && packet->bytes == sizeof(uint64_t))
        return TARGET_SEQUENCE;
    return in_slot == sizeof(uint64_t) && packet->bytes >= HEADER_BYTES ? TARGET_HEADER : TARGET_OTHER;
}

static bool is_time(struct sim_world *world)
{
    struct state *state = world->canary_state;
    if (state->is_made || state->occasions_left-- > 0)
        return false;
    state->is_made = true;
    sim_trace(world, "canary", 0, 0, 0);
    return true;
}

/* As is_time(), for a mistake that the ring may ignore: it is offered until it is accepted. */
static bool is_near(struct sim_world *world)
{
    struct state *state = world->canary_state;
    state->is_offered = !state->is_made && state->occasions_left == 0;
    state->occasions_left -= state->occasions_left > 0;
    return state->is_offered;
}

static void change_credit(struct sim_world *world, struct sim_way *way, uint64_t more)
{
    struct state *state = world->canary_state;
    struct sim_packet *packet = way->first;
    if (target_of(way, packet) != TARGET_CREDIT)
        return;
    if (!state->is_made && is_time(world)) {
        state->way = way;
        state->offset = packet->offset;
    }
    if (state->way != way || state->offset != packet->offset)
        return;
    uint64_t total;
    memcpy(&total, packet->data, sizeof total);
    total += more;
    memcpy(packet->data, &total, sizeof total);
}

/* A total of credits is one too small from then on. */
static void lose_credit(struct sim_world *world, struct sim_way *way)
{
    change_credit(world, way, (uint64_t)-1);
}

static void arrive_late(struct sim_event *event)
{
    struct state *state = (struct state *)event;
    sim_way_deliver(state->way, state->late);
    free(state->late);
    state->late = NULL;
}

/* The sequence of a slot, and what follows, arrives before its header, which a link never does. */
static void reorder(struct sim_world *world, struct sim_way *way)
{
    struct state *state = world->canary_state;
    struct sim_packet *header = way->first;
    struct sim_packet *sequence = header->next;
    if (!sequence || target_of(way, header) != TARGET_HEADER || target_of(way, sequence) != TARGET_SEQUENCE)
        return;
    if (!is_time(world))
        return;
    state->way = way;
    state->late = header;
    way->first = sequence;
    sim_schedule(world, &state->event, world->now_ns + LATE_NS);
}

/* The header of a slot, or the number of a transfer in the scratchpads, is not written. */
static void lose_write(struct sim_world *world, struct sim_way *way)
{
    struct sim_packet *packet = way->first;
    bool is_number =
        packet->kind == SIM_PACKET_SCRATCHPAD && packet->offset % QUOIT_METADATA_WORDS == QUOIT_METADATA_WORDS - 1;
    if ((is_number || target_of(way, packet) == TARGET_HEADER) && is_time(world))
        packet->bytes = 0;
}

static bool deliver_twice(struct sim_world *world, const struct quoit_frame *frame)
{
    bool is_occasion =
        quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST && !quoit_frame_needs_response(frame->kind);
    return is_occasion && is_time(world);
}

/* A total of credits is one too large from then on: a slot counts as free before its frame was consumed. */
static void credit_early(struct sim_world *world, struct sim_way *way)
{
    change_credit(world, way, 1);
}

static void acknowledge_early(struct sim_world *world, struct quoit_frame *frame, uint32_t version)
{
    bool is_here = frame->dest_host == world->current->host->index;
    if (frame->kind == QUOIT_FRAME_ACK && is_here && frame->topology_version == version && is_near(world))
        frame->flow_sequence = sim_executed_number(world, frame) + 1;
}

/* One flow, each time that it should retransmit. */
static bool forget_resend(struct sim_world *world, const void *flow)
{
    struct state *state = world->canary_state;
    if (!state->is_made && is_time(world))
        state->flow = flow;
    return state->flow == flow;
}

/* A fetching request that was executed here: taken again it is answered again, which the ring of its source refuses
 * later, or not at all. */
static bool is_answered(const struct sim_world *world, const struct quoit_frame *frame)
{
    const struct quoit_ring *ring = quoit_queue_of(world->current->lane)->ring;
    if (frame->dest_host != world->current->host->index || !quoit_frame_needs_response(frame->kind))
        return false;
    return !quoit_ring_is_before(sim_executed_from(ring, frame, frame->source_host), frame->flow_sequence);
}

static void take_outdated(struct sim_world *world, struct quoit_frame *frame, uint32_t version)
{
    bool is_answer = frame->kind == QUOIT_FRAME_DATA || frame->kind == QUOIT_FRAME_VALUE;
    bool is_occasion = is_answer || quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST;
    if (is_occasion && frame->topology_version < version && !is_answered(world, frame) && is_near(world))
        frame->topology_version = version;
}

/* From one sleep on, each time. */
static bool sleep_blindly(struct sim_world *world)
{
    const struct state *state = world->canary_state;
    return state->is_made || is_time(world);
}

const struct sim_canary sim_canaries[] = {
    {.name = "credit", .sentence = "one credit of one queue is lost", .arrive = lose_credit},
    {.name = "early-credit", .sentence = "one slot is free before it was read", .arrive = credit_early},
    {.name = "duplicate", .sentence = "one request is executed twice", .repeat = deliver_twice},
    {.name = "reorder", .sentence = "one slot becomes valid before its content arrives", .arrive = reorder},
    {.name = "loss", .sentence = "one write to a slot or scratchpad vanishes", .arrive = lose_write},
    {.name = "early-ack", .sentence = "one acknowledgement covers one request too many", .receive = acknowledge_early},
    {.name = "resend",
     .sentence = "one flow sends nothing again",
     .needs_outage = true,
     .may_do_no_harm = true,
     .forget = forget_resend},
    {.name = "version",
     .sentence = "one frame of an older topology version is taken",
     .needs_outage = true,
     .receive = take_outdated},
    {.name = "blind-sleep",
     .sentence = "lanes that unmask their doorbells sleep without a second look",
     .may_do_no_harm = true,
     .sleep = sleep_blindly,
     .register_write_ns = SLOW_REGISTER_NS},
};
const uint32_t sim_canary_count = sizeof sim_canaries / sizeof sim_canaries[0];

const struct sim_canary *sim_canary_find(const char *name)
{
    for (uint32_t i = 0; i < sim_canary_count; i++)
        if (strcmp(sim_canaries[i].name, name) == 0)
            return &sim_canaries[i];
    return NULL;
}

void sim_canary_start(struct sim_world *world)
{
    if (!world->config.canary)
        return;
    struct state *state = calloc(1, sizeof *state);
    quoit_assert(state != NULL);
    state->event = (struct sim_event){.fire = arrive_late, .kind = "late header"};
    state->occasions_left = sim_choose(world, OCCASIONS_MAX);
    world->canary_state = state;
}

void sim_canary_end(struct sim_world *world)
{
    struct state *state = world->canary_state;
    if (state)
        free(state->late);
    free(state);
    world->canary_state = NULL;
}

bool sim_canary_was_made(const struct sim_world *world)
{
    const struct state *state = world->canary_state;
    return state && state->is_made;
}

void sim_canary_look(struct sim_way *way)
{
    struct sim_world *world = way->end->world;
    if (world->canary_state && world->config.canary->arrive)
        world->config.canary->arrive(world, way);
}

void sim_canary_announced(struct sim_world *world)
{
    struct sim_task *task = world->current;
    if (task->lane)
        task->announced_epoch = atomic_load(&task->lane->shared->park.epoch);
}

void sim_canary_unmasked(struct sim_end *end)
{
    struct sim_world *world = end->world;
    const struct sim_task *task = world->current;
    bool is_armed = task && task->lane && end == task->host->ends[QUOIT_RIGHT]; /* the last that it unmasks */
    if (is_armed && world->canary_state && world->config.canary->sleep && world->config.canary->sleep(world))
        sim_primitives.sleep_on(&task->lane->shared->park.epoch, task->announced_epoch, 0);
}

bool sim_canary_repeats(struct sim_world *world, const struct quoit_frame *frame)
{
    return world->canary_state && world->config.canary->repeat && world->config.canary->repeat(world, frame);
}

void sim_canary_receive(struct sim_world *world, struct quoit_frame *frame, uint32_t version)
{
    struct state *state = world->canary_state;
    if (!state || !world->config.canary->receive)
        return;
    state->sent = *frame;
    world->config.canary->receive(world, frame, version);
}

const struct quoit_frame *sim_canary_received(struct sim_world *world, const struct quoit_verdict *verdict,
                                              const struct quoit_frame *shown)
{
    struct state *state = world->canary_state;
    if (!state || !state->is_offered)
        return shown;
    state->is_offered = false;
    state->is_made = !verdict || verdict->kind == QUOIT_VERDICT_DELIVER || verdict->kind == QUOIT_VERDICT_SEND ||
                     (verdict->kind == QUOIT_VERDICT_CONSUMED && verdict->frame.kind == QUOIT_FRAME_ACK);
    return &state->sent;
}

void sim_canary_forget(struct sim_world *world, struct quoit_lane *lane)
{
    if (!world->canary_state || !world->config.canary->forget || !quoit_queue_of(lane))
        return;
    for (uint32_t i = 0; i < QUOIT_SIDE_COUNT * lane->layout->job.host_count; i++) {
        struct quoit_ring_flow_out *flow = &quoit_queue_of(lane)->ring->flows_out[i];
        bool has_any = flow->resend_plain != QUOIT_RING_NONE || flow->resend_fetching != QUOIT_RING_NONE;
        if (has_any && world->config.canary->forget(world, flow))
            flow->resend_plain = flow->resend_fetching = QUOIT_RING_NONE;
    }
}
