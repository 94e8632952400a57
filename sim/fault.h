/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.h - what can go wrong with hosts and links, at any time of any workload. Faults compose.
 *
 * A fault is something that happens every now and then while the PEs are at work, `every_ns` on average; after they
 * have ended it rests, so that the world comes to an end. To add one: a row in the table of fault.c.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdint.h>

struct sim_world;

struct sim_fault {
    const char *name;
    const char *sentence;
    uint64_t every_ns; /* 0: only at the start */
    void (*strike)(struct sim_world *world);
};

extern const struct sim_fault sim_faults[];
extern const uint32_t sim_fault_count;

const struct sim_fault *sim_fault_find(const char *name);
void sim_faults_start(struct sim_world *world);
void sim_faults_end(struct sim_world *world);

#endif
