/* SPDX-License-Identifier: BSD-3-Clause */
/* life.h - the agent of a host (agent.h) ends with the last of its PEs once these have finalized, whatever it does
 * then: no PE is left to report that it is stopped or hangs, and it would hold the launcher's standard error open.
 *
 * Each PE holds one end of a pipe until its process ends. Where its other end is bound, the kernel itself kills the
 * agent when the last PE has gone. Until then, and again during another shmem_init, the agent is needed to report an
 * end. Threads: the agent's only one.
 */
#ifndef QUOIT_BOOT_LIFE_H
#define QUOIT_BOOT_LIFE_H

#include <stdbool.h>

struct quoit_life {
    int agent_fd; /* -1: there are no descriptors, and the agent ends by itself alone */
    int pe_fd;    /* for the PEs; -1: all have theirs */
};

void quoit_life_open(struct quoit_life *life);
/* When all PEs have their end. */
void quoit_life_share_no_more(struct quoit_life *life);
void quoit_life_bind(const struct quoit_life *life, bool is_bound);

#endif
