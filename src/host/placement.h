/* SPDX-License-Identifier: BSD-3-Clause */
/* placement.h - which processors the threads of a job run on while they share processors.
 *
 * PEs spread evenly. The kernel leaves threads that yield to each other together on one processor for seconds while
 * another is idle, because each of them ran too recently to be migrated. A PE therefore publishes where it yields,
 * counts from time to time how many PEs of its host yield there, and moves to the allowed processor with the fewest if
 * that one has at least two fewer.
 *
 * Lanes move according to their traffic. A small message is relayed soonest if the lane of the next host polls on
 * another processor; on the same one it waits for the previous hop to yield. A large transfer is relayed fastest if all
 * its hops run on one processor, whose cache then holds the payload, while lanes of other indices use the other
 * processors. So a lane counts the payload that it moves, and runs apart from the lanes of its neighbours while that is
 * small, else together with those of its own index.
 *
 * No thread is bound: after a move it may run on every processor again. No thread is moved whose affinity mask is not
 * all processors that are online (taskset, cpusets, oshrun --bind-to, the program), whether that was set before the
 * job or during it. The kernel alone decides there, and where each thread has a processor of its own.
 *
 * Threads: each moves itself; those of one PE share one struct quoit_placement. Errors: none; a move that the kernel
 * refuses does not happen.
 */
#ifndef QUOIT_HOST_PLACEMENT_H
#define QUOIT_HOST_PLACEMENT_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "env/wait.h"
#include "host/layout.h"

/* Yields between two checks. */
#define QUOIT_PLACEMENT_PE_YIELDS   256
#define QUOIT_PLACEMENT_LANE_YIELDS 32

/* When the thread, or the PE, last moved, and for how long it stays. All zero at first. */
struct quoit_placement {
    _Atomic uint64_t moved_ns;
    _Atomic uint64_t pause_ns;
};

/* At the start of a PE: moves it to the processor of its index. All PEs were started by one process and may still be on
 * its processor, where those that compute and never wait would stay for tens of milliseconds. */
void quoit_placement_start_pe(const struct quoit_layout *layout, void *memory, uint32_t local);
/* Called by a waiting thread of the PE after QUOIT_PLACEMENT_PE_YIELDS yields. A move may take tens of microseconds. */
void quoit_placement_balance_pe(struct quoit_placement *placement, const struct quoit_layout *layout, void *memory,
                                uint32_t local);

/* Of one lane. */
struct quoit_lane_placement {
    struct quoit_placement placement;
    cpu_set_t allowed;
    int apart;                  /* the processor for small messages; -1: the kernel decides */
    int together;               /* the processor for large transfers */
    uint64_t together_until_ns; /* until then the lane stays on the latter */
    uint64_t moved_bytes;       /* payload that the lane has sent or executed. Writer: the lane */
    uint64_t seen_bytes;        /* of these, at the last check */
};

void quoit_placement_start_lane(struct quoit_lane_placement *lane, const struct quoit_layout *layout,
                                uint32_t lane_index, struct quoit_wait_policy policy);
/* Called by the lane after QUOIT_PLACEMENT_LANE_YIELDS yields. A move may take tens of microseconds. */
void quoit_placement_look_lane(struct quoit_lane_placement *lane);

#endif
