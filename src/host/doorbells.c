/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/doorbells.h"
#include "base/assert.h"

static uint32_t barrier_count(const struct quoit_job_config *job)
{
    return job->barrier == QUOIT_BARRIER_PAPERS ? QUOIT_DOORBELLS_OF_BARRIER : 0;
}

static uint32_t lanes_least(const struct quoit_job_config *job)
{
    return quoit_job_config_traits(job)->shares_lane_doorbells ? 1 : job->lane_count;
}

uint32_t quoit_doorbells_least(const struct quoit_job_config *job)
{
    return lanes_least(job) + barrier_count(job) + 1;
}

uint32_t quoit_doorbells_most(const struct quoit_job_config *job, uint32_t local_count)
{
    uint32_t pe_count = local_count < QUOIT_DOORBELLS_OF_PES ? local_count : QUOIT_DOORBELLS_OF_PES;
    return job->lane_count + barrier_count(job) + (quoit_job_config_traits(job)->has_direct_puts ? pe_count : 1);
}

struct quoit_doorbells quoit_doorbells_of(const struct quoit_job_config *job, uint64_t bits)
{
    uint32_t count = (uint32_t)__builtin_popcountll(bits);
    quoit_assert(count >= quoit_doorbells_least(job));
    struct quoit_doorbells doorbells = {.bits = bits, .lane_count = count - barrier_count(job) - 1};
    if (doorbells.lane_count > job->lane_count)
        doorbells.lane_count = job->lane_count;
    doorbells.rest = doorbells.lane_count + barrier_count(job);
    doorbells.rest_count = count - doorbells.rest;
    return doorbells;
}

uint64_t quoit_doorbell_at(uint64_t bits, uint32_t index)
{
    for (; index > 0; index--)
        bits &= bits - 1;
    quoit_assert(bits != 0);
    return bits & -bits;
}
