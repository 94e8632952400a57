/* SPDX-License-Identifier: BSD-3-Clause */
/* The papers' barrier at the doorbells: START and END arrive at the left port and leave by the right one. */
#include "papers/barrier.h"
#include "papers/lane.h"

#include <stdlib.h>

static enum quoit_status open(struct quoit_lane *lane)
{
    struct quoit_papers_barrier *barrier = calloc(1, sizeof *barrier);
    lane->barrier_state = barrier;
    if (!barrier)
        return QUOIT_NO_MEMORY;
    *barrier = (struct quoit_papers_barrier){.host = lane->layout->host, .host_count = lane->layout->job.host_count};
    return QUOIT_OK;
}

/* The bits of some signals, and back. */
static uint64_t bits_of(const struct quoit_doorbells *doorbells, uint32_t signals)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < QUOIT_DOORBELLS_OF_BARRIER; i++)
        bits |= signals >> i & 1 ? quoit_doorbell_of_barrier(doorbells, i) : 0;
    return bits;
}

static uint32_t signals_of(const struct quoit_doorbells *doorbells, uint64_t bits)
{
    uint32_t signals = 0;
    for (uint32_t i = 0; i < QUOIT_DOORBELLS_OF_BARRIER; i++)
        signals |= bits & quoit_doorbell_of_barrier(doorbells, i) ? 1u << i : 0;
    return signals;
}

static uint32_t step(struct quoit_lane *lane)
{
    const struct quoit_doorbells *in = &lane->own_doorbells[QUOIT_LEFT], *out = &lane->peer_doorbells[QUOIT_RIGHT];
    struct quoit_host_header *header = (struct quoit_host_header *)lane->memory;
    uint32_t move_count = 0;
    for (;;) {
        uint64_t released_count = atomic_load_explicit(&header->barrier_released_count, memory_order_relaxed);
        uint64_t arrived_count = /* pairs with release in quoit_fabric_host_barrier() */
            atomic_load_explicit(&header->barrier_arrived_count, memory_order_acquire);
        uint32_t signals = signals_of(in, quoit_port_doorbell_read(lane->ports[QUOIT_LEFT]));
        struct quoit_papers_barrier_move move =
            quoit_papers_barrier_step(lane->barrier_state, arrived_count > released_count, signals);
        if (!move.is_move)
            return move_count;
        move_count++;
        if (move.taken)
            quoit_port_doorbell_clear(lane->ports[QUOIT_LEFT], bits_of(in, move.taken));
        if (move.sent) {
            quoit_port_ring(lane->ports[QUOIT_RIGHT], bits_of(out, move.sent));
            quoit_lane_count_up(&lane->shared->out[QUOIT_RIGHT].doorbell_count, 1);
        }
        if (move.is_released) {
            atomic_store_explicit(&header->barrier_released_count, released_count + 1, memory_order_release);
            quoit_park_wake(&quoit_memory_pe(lane->layout, lane->memory, 0)->park);
        }
    }
}

static bool is_quiescent(const struct quoit_lane *lane)
{
    const struct quoit_host_header *header = (const struct quoit_host_header *)lane->memory;
    const struct quoit_papers_barrier *barrier = lane->barrier_state;
    return barrier->state == QUOIT_BARRIER_IDLE &&
           atomic_load(&header->barrier_arrived_count) == atomic_load(&header->barrier_released_count);
}

const struct quoit_lane_barrier quoit_papers_barrier_engine = {
    .open = open, .step = step, .is_quiescent = is_quiescent};
