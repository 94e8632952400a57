/* SPDX-License-Identifier: BSD-3-Clause */
/* canary.h - mistakes made on purpose, once a run, that the checks must report: they prove that the alarm rings.
 *
 * To add one: a row in the table of canary.c, and what it does where packets arrive, frames are received or requests
 * are executed.
 */
#ifndef SIM_CANARY_H
#define SIM_CANARY_H

#include "host/layout.h"
#include "sim/port.h"

struct quoit_lane;

struct sim_canary {
    const char *name;
    const char *sentence;
    bool needs_outage;   /* no occasion while all links are up */
    bool may_do_no_harm; /* what is not sent again may have arrived */
    /* The first packet of `way` is about to arrive. NULL: does nothing there. */
    void (*arrive)(struct sim_world *world, struct sim_way *way);
    /* Whether a request that was executed shall be executed again. NULL: no. */
    bool (*repeat)(struct sim_world *world, const struct quoit_frame *frame);
    /* A frame is about to be shown to its ring, whose generation this is. It counts when the ring takes it. NULL: as it
     * came. */
    void (*receive)(struct sim_world *world, struct quoit_frame *frame, uint32_t generation);
    /* Whether a flow that begins to send again shall forget what. NULL: no. */
    bool (*forget)(struct sim_world *world, const void *flow);
    /* Whether a lane that has unmasked its doorbells shall sleep at once. NULL: no. */
    bool (*sleep)(struct sim_world *world);
    uint64_t register_write_ns; /* in such a world, where there is time for it to do harm; 0: in any */
};

extern const struct sim_canary sim_canaries[];
extern const uint32_t sim_canary_count;

const struct sim_canary *sim_canary_find(const char *name);
void sim_canary_start(struct sim_world *world);
void sim_canary_end(struct sim_world *world);
/* Whether the mistake has been made: a run that had no occasion proves nothing. */
bool sim_canary_has_sung(const struct sim_world *world);

void sim_canary_look(struct sim_way *way);
/* A lane has announced that it will sleep; it has unmasked its doorbells of this end. */
void sim_canary_announced(struct sim_world *world);
void sim_canary_unmasked(struct sim_end *end);
/* Up to which number the host that replies has executed the requests of that flow (watch.c). */
uint32_t sim_executed_number(struct sim_world *world, const struct quoit_frame *reply);

bool sim_canary_repeats(struct sim_world *world, const struct quoit_frame *frame);
void sim_canary_receive(struct sim_world *world, struct quoit_frame *frame, uint32_t generation);
/* The ring has answered to what sim_canary_receive() gave out, `shown`; NULL: it refused it. Returns the frame as it
 * was before that. */
const struct quoit_frame *sim_canary_received(struct sim_world *world, const struct quoit_verdict *verdict,
                                              const struct quoit_frame *shown);
/* The ring of a lane has begun to send again, or has not: some of its flows may forget what. */
void sim_canary_forget(struct sim_world *world, struct quoit_lane *lane);

#endif
