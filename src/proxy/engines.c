/* SPDX-License-Identifier: BSD-3-Clause */
#include "proxy/engines.h"
#include "papers/lane.h"
#include "proxy/network.h"
#include "proxy/queue.h"

const struct quoit_lane_engine *quoit_engine_of(enum quoit_protocol protocol)
{
    static const struct quoit_lane_engine *const engines[QUOIT_PROTOCOL_COUNT] = {
        [QUOIT_PROTOCOL_QUEUE] = &quoit_queue_engine,
        [QUOIT_PROTOCOL_SCRATCHPAD] = &quoit_papers_engine,
        [QUOIT_PROTOCOL_NETWORK] = &quoit_network_engine,
    };
    return engines[protocol];
}

const struct quoit_lane_barrier *quoit_barrier_of(const struct quoit_job_config *job)
{
    static const struct quoit_lane_barrier *const barriers[QUOIT_BARRIER_KIND_COUNT] = {
        [QUOIT_BARRIER_PAPERS] = &quoit_papers_barrier_engine,
    };
    return barriers[job->barrier];
}
