/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/canary.h"
#include "base/assert.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES (QUOIT_FRAME_BYTES - sizeof(uint64_t))
/* Longer than any fault keeps the receiver from looking. */
#define LATE_NS       2000000
#define OCCASIONS_MAX 20

struct state {
    struct sim_event event; /* reorder: the header arrives at last */
    struct sim_packet *late;
    uint64_t occasions_left; /* before it sings */
    bool has_sung;
    struct sim_way *way; /* of the mistake; credit: whose word is wrong from then on */
    uint64_t offset;
};

/* Where a write to the slots of a host goes. */
enum target { TARGET_OTHER, TARGET_CREDIT, TARGET_SEQUENCE, TARGET_HEADER };

static enum target target_of(const struct sim_way *way, const struct sim_packet *packet)
{
    const struct quoit_layout *layout = &way->end->peer->host->layout;
    if (packet->kind != SIM_PACKET_WRITE || packet->window != QUOIT_WINDOW_SLOTS)
        return TARGET_OTHER;
    uint64_t first_slot = quoit_layout_slot(layout, 0, 0, 0);
    if (packet->offset < first_slot)
        return TARGET_CREDIT;
    uint64_t in_slot = (packet->offset - first_slot) % quoit_slot_bytes(layout->shape.chunk_bytes);
    if (in_slot == 0 && packet->bytes == sizeof(uint64_t))
        return TARGET_SEQUENCE;
    return in_slot == sizeof(uint64_t) && packet->bytes >= HEADER_BYTES ? TARGET_HEADER : TARGET_OTHER;
}

static bool is_time(struct sim_world *world)
{
    struct state *state = world->canary_state;
    if (state->has_sung || state->occasions_left-- > 0)
        return false;
    state->has_sung = true;
    sim_trace(world, "canary", 0, 0, 0);
    return true;
}

/* A total of credits is one too small, for ever. */
static void lose_credit(struct sim_world *world, struct sim_way *way)
{
    struct state *state = world->canary_state;
    struct sim_packet *packet = way->first;
    if (target_of(way, packet) != TARGET_CREDIT)
        return;
    if (!state->has_sung && is_time(world)) {
        state->way = way;
        state->offset = packet->offset;
    }
    if (state->way != way || state->offset != packet->offset)
        return;
    uint64_t total;
    memcpy(&total, packet->data, sizeof total);
    total--;
    memcpy(packet->data, &total, sizeof total);
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

/* The header of a slot is not written, or of a transfer in the scratchpads the number. */
static void lose_write(struct sim_world *world, struct sim_way *way)
{
    struct sim_packet *packet = way->first;
    bool is_number = packet->kind == SIM_PACKET_SCRATCHPAD && packet->offset == QUOIT_SCRATCHPAD_COUNT - 1;
    if ((is_number || target_of(way, packet) == TARGET_HEADER) && is_time(world))
        packet->bytes = 0;
}

static uint32_t deliver_twice(struct sim_world *world, const struct quoit_frame *frame)
{
    bool is_occasion = quoit_frame_class(frame->kind) == QUOIT_CLASS_REQUEST && !quoit_frame_asks(frame->kind);
    return is_occasion && is_time(world) ? 2 : 1;
}

const struct sim_canary sim_canaries[] = {
    {"credit", "one credit of one queue is lost", lose_credit, NULL},
    {"duplicate", "one request is executed twice", NULL, deliver_twice},
    {"reorder", "one slot becomes valid before its content arrives", reorder, NULL},
    {"loss", "one write to a slot or scratchpad vanishes", lose_write, NULL},
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

bool sim_canary_has_sung(const struct sim_world *world)
{
    const struct state *state = world->canary_state;
    return state && state->has_sung;
}

void sim_canary_look(struct sim_way *way)
{
    struct sim_world *world = way->end->world;
    if (world->canary_state && world->config.canary->arrive)
        world->config.canary->arrive(world, way);
}

uint32_t sim_canary_deliver(struct sim_world *world, const struct quoit_frame *frame)
{
    if (world->canary_state && world->config.canary->deliver)
        return world->config.canary->deliver(world, frame);
    return 1;
}
