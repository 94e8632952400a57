/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/age.h"
#include "ring/state.h"
#include "sim/world.h"

#define LEFT_MOST 64 /* requests of a flow, or of a channel, before its number wraps */

/* Sets the numbers of flows, equal at both ends, which are on two hosts. */
static void age_ring(struct quoit_ring *ring, uint32_t host_count, uint32_t number)
{
    for (uint32_t i = 0; i < QUOIT_SIDE_COUNT * host_count; i++) {
        ring->flows_out[i].sent = ring->flows_out[i].acknowledged = number;
        ring->flows_in[i].executed = ring->flows_in[i].acknowledged = number;
    }
}

void sim_host_age(struct sim_host *host)
{
    const struct quoit_layout *layout = &host->layout;
    uint32_t number = UINT32_MAX - (uint32_t)(host->world->config.seed / 2 % LEFT_MOST);
    for (uint32_t index = 0; index < layout->job.lane_count; index++) {
        /* Only the simulator can age a lane; production code cannot. */
        struct quoit_lane *lane = (struct quoit_lane *)quoit_proxy_lane(host->proxy, index);
        if (quoit_job_config_traits(&layout->job)->numbers_flows)
            age_ring(quoit_queue_of(lane)->ring, layout->job.host_count, number);
        for (uint32_t local = 0; local < layout->local_count; local++) {
            struct quoit_channel *channel = quoit_memory_channel(layout, host->memory, local, index);
            atomic_store(&channel->submit_tail, number);
            atomic_store(&channel->complete_tail, number);
            lane->submit_heads[local] = number;
        }
        atomic_store(&lane->shared->park.epoch, number);
    }
    for (uint32_t local = 0; local < layout->local_count; local++)
        atomic_store(&quoit_memory_pe(layout, host->memory, local)->park.epoch, number);
}
