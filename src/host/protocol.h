/* SPDX-License-Identifier: BSD-3-Clause */
/* protocol.h - what the layers around a lane must know of the protocol that it runs: a row each.
 *
 * The protocol itself is a lane engine (lane/engine.h).
 */
#ifndef QUOIT_HOST_PROTOCOL_H
#define QUOIT_HOST_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "host/job_config.h"

#define QUOIT_SCRATCHPAD_SLOTS 12 /* of a lane, in the protocol SCRATCHPAD: papers/scratchpad.h says what they hold */

struct quoit_protocol_traits {
    const char *name;     /* of the option --protocol */
    bool has_failover;    /* nothing is lost when a link goes down */
    bool has_messages;    /* hosts can send MESSAGE frames to each other */
    bool has_direct_puts; /* PEs write into a neighbour's window themselves, and its doorbells wake PEs */
    bool spreads_pes;     /* a PE's requests go round the lanes also where threads share processors */
    uint32_t line_count;  /* words of a lane in the window SLOTS: cache lines */
    uint32_t slot_count;  /* slots of a lane in it; 0: the job's slot_count for each class */
};

const struct quoit_protocol_traits *quoit_protocol_traits(enum quoit_protocol protocol);
static inline const struct quoit_protocol_traits *quoit_job_config_traits(const struct quoit_job_config *job)
{
    return quoit_protocol_traits((enum quoit_protocol)job->protocol);
}
/* QUOIT_PROTOCOL_COUNT: there is none of that name. */
enum quoit_protocol quoit_protocol_named(const char *name);

/* Whether the job goes on when a link goes down. The papers' barrier cannot repeat a doorbell. */
static inline bool quoit_job_config_has_failover(const struct quoit_job_config *job)
{
    return quoit_job_config_traits(job)->has_failover && job->barrier != QUOIT_BARRIER_PAPERS;
}

#endif
