/* SPDX-License-Identifier: BSD-3-Clause */
/* doorbells.h - the meaning of the doorbell bits that a job has of a port.
 *
 * Each end's ring service gives it bits of its own port and sends the neighbour their mask (link/service.h). The
 * meaning of a bit is a rule over that mask, known to both ends. From the lowest bit on: one bit per lane; start and
 * end of the papers' barrier, if the job uses it; the rest, at least one, belong to the protocol: QUEUE wakes PEs by
 * them after direct puts, SCRATCHPAD uses the first for responses to transfers.
 *
 * Scarce bits are shared. PEs always share the rest. Lanes of QUEUE share too, since there a ring is only a hint; in
 * SCRATCHPAD a lane's bit is the message, so each lane needs its own.
 */
#ifndef QUOIT_HOST_DOORBELLS_H
#define QUOIT_HOST_DOORBELLS_H

#include <stdint.h>

#include "host/protocol.h"

#define QUOIT_DOORBELLS_OF_BARRIER 2
#define QUOIT_DOORBELLS_OF_PES     6 /* at most: other users of the port find bits too */

struct quoit_doorbells {
    uint64_t bits;
    uint32_t lane_count; /* bits of lanes, the lowest ones */
    uint32_t rest;       /* index of the protocol's first bit */
    uint32_t rest_count;
};

/* The doorbell bits of a port that the job needs, and the most that it can use on a host with local_count PEs. */
uint32_t quoit_doorbells_least(const struct quoit_job_config *job);
uint32_t quoit_doorbells_most(const struct quoit_job_config *job, uint32_t local_count);
/* `bits` has at least quoit_doorbells_least(). */
struct quoit_doorbells quoit_doorbells_of(const struct quoit_job_config *job, uint64_t bits);

/* The index-th bit of a mask, as a mask, from the lowest on. */
uint64_t quoit_doorbell_at(uint64_t bits, uint32_t index);

static inline uint64_t quoit_doorbell_of_lane(const struct quoit_doorbells *doorbells, uint32_t lane)
{
    return quoit_doorbell_at(doorbells->bits, lane % doorbells->lane_count);
}
static inline uint64_t quoit_doorbell_of_barrier(const struct quoit_doorbells *doorbells, uint32_t signal)
{
    return quoit_doorbell_at(doorbells->bits, doorbells->lane_count + signal);
}
static inline uint64_t quoit_doorbell_of_pe(const struct quoit_doorbells *doorbells, uint32_t local)
{
    return quoit_doorbell_at(doorbells->bits, doorbells->rest + local % doorbells->rest_count);
}
static inline uint64_t quoit_doorbell_of_responses(const struct quoit_doorbells *doorbells)
{
    return quoit_doorbell_at(doorbells->bits, doorbells->rest);
}

#endif
