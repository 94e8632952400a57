/* SPDX-License-Identifier: BSD-3-Clause */
/* The papers' barrier at the doorbells: START and END come in at the left port and go out at the right one. */
#include "proxy/lane.h"

uint32_t quoit_lane_barrier(struct quoit_lane *lane)
{
    if (lane->index != 0 || lane->layout->job.barrier != QUOIT_BARRIER_PAPERS)
        return 0;
    struct quoit_host_header *header = (struct quoit_host_header *)lane->memory;
    uint32_t move_count = 0;
    for (;;) {
        uint64_t released_count = atomic_load_explicit(&header->barrier_released_count, memory_order_relaxed);
        uint64_t arrived_count = /* pairs with release in quoit_fabric_host_barrier() */
            atomic_load_explicit(&header->barrier_arrived_count, memory_order_acquire);
        uint32_t signals = quoit_port_doorbell_read(lane->ports[QUOIT_LEFT]) >> QUOIT_DOORBELL_BARRIER;
        struct quoit_papers_barrier_move move =
            quoit_papers_barrier_step(&lane->barrier, arrived_count > released_count, signals);
        if (!move.is_move)
            return move_count;
        move_count++;
        if (move.taken)
            quoit_port_doorbell_clear(lane->ports[QUOIT_LEFT], move.taken << QUOIT_DOORBELL_BARRIER);
        if (move.sent) {
            quoit_port_ring(lane->ports[QUOIT_RIGHT], move.sent << QUOIT_DOORBELL_BARRIER);
            quoit_lane_count_up(&lane->shared->out[QUOIT_RIGHT].doorbell_count, 1);
        }
        if (move.is_released) {
            atomic_store_explicit(&header->barrier_released_count, released_count + 1, memory_order_release);
            quoit_park_wake(&quoit_memory_pe(lane->layout, lane->memory, 0)->park);
        }
    }
}
