/* SPDX-License-Identifier: BSD-3-Clause */
/* protocol.h - what the layers around a lane must know of its protocol: one row per protocol.
 *
 * The protocol itself is a lane engine (lane/engine.h).
 */
#ifndef QUOIT_HOST_PROTOCOL_H
#define QUOIT_HOST_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "host/job_config.h"

#define QUOIT_SCRATCHPAD_SLOTS 12 /* per lane, in the protocol SCRATCHPAD: papers/scratchpad.h says what they hold */

struct quoit_protocol_traits {
    const char *name;           /* for the option --protocol */
    bool has_links;             /* hosts are joined by links; else there are no ports, slots and doorbells */
    bool has_failover;          /* survives the loss of a link without losing requests */
    bool has_messages;          /* hosts can send MESSAGE frames to each other */
    bool shares_lane_doorbells; /* a ring is only a hint, so lanes may share a bit */
    bool has_direct_puts;       /* PEs write into a neighbour's window themselves, and its doorbells wake PEs */
    bool spreads_pes;           /* a PE's requests rotate over the lanes even if threads share processors */
    bool numbers_flows;         /* frames of a flow are numbered, by a ring (ring/ring.h) */
    bool orders_requests; /* of one PE, to another, by one lane; else they wait for each other where a fence says */
    bool calls_driver;    /* reaches scratchpads and doorbells through calls of a kernel driver */
    bool has_contacts;    /* PEs know how to reach the memory of other hosts (host/contact.h) */
    bool has_put_steps;   /* a put is a row of steps at its source, whose times a lane records (put_times.h) */
    uint32_t line_count;  /* words per lane in the window SLOTS, one cache line each */
    uint32_t slot_count;  /* slots per lane there; 0: the job's slot_count for each class */
};

const struct quoit_protocol_traits *quoit_protocol_traits(enum quoit_protocol protocol);
static inline const struct quoit_protocol_traits *quoit_job_config_traits(const struct quoit_job_config *job)
{
    return quoit_protocol_traits((enum quoit_protocol)job->protocol);
}
/* QUOIT_PROTOCOL_COUNT if there is no protocol of that name. */
enum quoit_protocol quoit_protocol_named(const char *name);

/* Not between rings: nothing that has several sends any. */
static inline bool quoit_job_config_has_messages(const struct quoit_job_config *job)
{
    return quoit_job_config_traits(job)->has_messages && job->ring_starts == 0;
}

/* Whether the job survives the loss of a link. The papers' barrier cannot repeat a doorbell. */
static inline bool quoit_job_config_has_failover(const struct quoit_job_config *job)
{
    return quoit_job_config_traits(job)->has_failover && job->barrier != QUOIT_BARRIER_PAPERS;
}

#endif
