/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.h - where the service threads of a ring run while threads of the job share processors.
 *
 * The hosts of an emulated ring share one machine, and where their lanes run decides what a hop costs. A small message
 * is passed on soonest if the next host's lane runs on another processor: it is looking already, while on the same one
 * it must wait for its turn. A large transfer is relayed fastest if all its hops run on the same processor: each then
 * finds the payload in that processor's cache, and the lanes beside each other keep all processors busy. So each lane
 * counts what it moves, and moves itself: apart from its neighbours' lanes, or together with those of its own number.
 *
 * Nothing is bound: the thread may run everywhere again as soon as it has moved. Where every thread has a processor of
 * its own, or somebody has chosen the processors (env/processor.h), the kernel alone decides.
 *
 * Threads: the lane's. Errors: none; what the kernel refuses is left as it is.
 */
#ifndef QUOIT_LANE_SETTLE_H
#define QUOIT_LANE_SETTLE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "env/wait.h"
#include "host/layout.h"

#define QUOIT_SETTLE_YIELDS 32 /* between two looks */

struct quoit_settling {
    cpu_set_t allowed;
    int apart;                  /* the processor for small messages; -1: the kernel decides */
    int together;               /* the processor for large transfers */
    uint64_t together_until_ns; /* until then it is for large transfers */
    uint64_t moved_bytes;       /* payload that the lane has sent or executed */
    uint64_t seen_bytes;        /* of it, at the last look */
    uint64_t settled_ns;        /* when it last moved */
    uint64_t pause_ns;          /* and how long it then stays */
};

void quoit_settling_start(struct quoit_settling *settling, const struct quoit_layout *layout, uint32_t lane_index,
                          struct quoit_wait_policy policy);
/* Called every QUOIT_SETTLE_YIELDS yields. May take tens of microseconds if it moves. */
void quoit_settling_look(struct quoit_settling *settling);

#endif
