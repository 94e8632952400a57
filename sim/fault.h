/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.h - faults of hosts and links, at any time of any workload. Faults compose.
 *
 * A fault occurs at random while the PEs are at work, every `every_ns` on average and at most strike_max times; after
 * that every task must finish. With two clients each has faults of its own, but only one of them has faults of links,
 * which are for both. To add one: a row in the table of fault.c.
 */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include <stdbool.h>
#include <stdint.h>

struct sim_end;
struct sim_world;

enum sim_fault_kind {
    SIM_FAULT_DELAY,
    SIM_FAULT_OUTAGE, /* of links; the run must succeed all the same */
    SIM_FAULT_FINAL,  /* ends the run; the seed selects no other outage with it */
};

struct sim_fault {
    const char *name;
    const char *sentence;
    uint64_t every_ns;   /* 0: only at the start */
    uint32_t strike_max; /* 0: unlimited while PEs are at work */
    uint32_t one_in;     /* the seed selects it for one of this many runs */
    enum sim_fault_kind kind;
    void (*strike)(struct sim_world *world);
};

extern const struct sim_fault sim_faults[];
extern const uint32_t sim_fault_count;

const struct sim_fault *sim_fault_find(const char *name);
/* Whether links stay dead after it. */
bool sim_fault_leaves_dead(const struct sim_fault *fault);
/* Called before the proxies start: schedules faults during start-up. */
void sim_faults_prepare(struct sim_world *world);
/* When the PEs start. */
void sim_faults_start(struct sim_world *world);
void sim_faults_end(struct sim_world *world);
/* A task is about to call the port of this end, and world->blinks_left is not 0: the link may change before the call.
 */
void sim_fault_blink(struct sim_end *end);
/* Cuts the link between that host and the next for good. */
void sim_link_kill(struct sim_world *world, uint32_t link);

#endif
