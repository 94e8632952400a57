/* SPDX-License-Identifier: BSD-3-Clause */
/* canary.h - one deliberate mistake per run, which the checks must report: proof that they can fail.
 *
 * To add one: a row in the table of canary.c, and its effect where packets arrive, frames are received or requests are
 * executed.
 */
#ifndef SIM_CANARY_H
#define SIM_CANARY_H

#include "host/layout.h"
#include "sim/port.h"

struct quoit_lane;

struct sim_canary {
    const char *name;
    const char *sentence;
    bool needs_outage;   /* has no opportunity while all links are up */
    bool may_do_no_harm; /* what is not retransmitted may have arrived */
    /* The first packet of `way` is about to arrive. NULL: no effect there. */
    void (*arrive)(struct sim_world *world, struct sim_way *way);
    /* Whether an executed request is executed a second time. NULL: no. */
    bool (*repeat)(struct sim_world *world, const struct quoit_frame *frame);
    /* A frame is about to be passed to its ring, whose topology version this is. It counts if the ring accepts it.
     * NULL: passed unchanged. */
    void (*receive)(struct sim_world *world, struct quoit_frame *frame, uint32_t version);
    /* Whether a flow that begins to retransmit forgets its requests. NULL: no. */
    bool (*forget)(struct sim_world *world, const void *flow);
    /* Whether a lane that has unmasked its doorbells shall sleep at once. NULL: no. */
    bool (*sleep)(struct sim_world *world);
    uint64_t register_write_ns; /* only in such a world, in which it has time to do harm; 0: in any */
};

extern const struct sim_canary sim_canaries[];
extern const uint32_t sim_canary_count;

const struct sim_canary *sim_canary_find(const char *name);
void sim_canary_start(struct sim_world *world);
void sim_canary_end(struct sim_world *world);
/* Whether the mistake was made: a run without an opportunity proves nothing. */
bool sim_canary_was_made(const struct sim_world *world);

void sim_canary_look(struct sim_way *way);
/* A lane has announced that it will sleep, and has unmasked its doorbells of this end. */
void sim_canary_announced(struct sim_world *world);
void sim_canary_unmasked(struct sim_end *end);
/* The number up to which this ring has executed the requests from that host of the flow of a frame (watch.c); */
uint32_t sim_executed_from(const struct quoit_ring *ring, const struct quoit_frame *frame, uint32_t source_host);
/* that up to which the replying host has. */
uint32_t sim_executed_number(struct sim_world *world, const struct quoit_frame *reply);

bool sim_canary_repeats(struct sim_world *world, const struct quoit_frame *frame);
void sim_canary_receive(struct sim_world *world, struct quoit_frame *frame, uint32_t version);
/* The ring returned this verdict on `shown`, the output of sim_canary_receive(); NULL: it refused the frame. Returns
 * the frame as it was before that. */
const struct quoit_frame *sim_canary_received(struct sim_world *world, const struct quoit_verdict *verdict,
                                              const struct quoit_frame *shown);
/* The ring of a lane may have begun to retransmit: some of its flows may forget their requests. */
void sim_canary_forget(struct sim_world *world, struct quoit_lane *lane);

#endif
