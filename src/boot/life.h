/* SPDX-License-Identifier: BSD-3-Clause */
/* life.h - the agent of a host (agent.h) does not outlive its PEs, also where it is stopped: no PE is left to report
 * that, and it would hold the launcher's standard error open.
 *
 * PEs hold the ends of two pipes until their processes end. Where the other end is bound, the kernel itself sends the
 * agent a signal when the last of an end's holders has gone:
 *
 *   lowest   held by the lowest PE; SIGCONT, until the PEs have finalized: the agent is to report the end, and to end
 *            the others
 *   all      held by all PEs; SIGKILL, once the PEs of all hosts have finalized: the agent is not needed any more,
 *            whatever it does
 *
 * Threads: the agent's only one.
 */
#ifndef QUOIT_BOOT_LIFE_H
#define QUOIT_BOOT_LIFE_H

#include <stdbool.h>

struct quoit_life_pipe {
    int agent_fd; /* -1: there are no descriptors, and the agent ends by itself alone */
    int pe_fd;    /* for the PEs; -1: all have theirs */
};

struct quoit_life {
    struct quoit_life_pipe lowest, all;
};

/* Both pipes; the PEs have not finalized. */
void quoit_life_open(struct quoit_life *life);
/* When those for whom a pipe is have their end. */
void quoit_life_share_no_more(struct quoit_life_pipe *pipe);
/* The PEs of all hosts have finalized; or those of this one are in another shmem_init. */
void quoit_life_bind(const struct quoit_life *life, bool has_finalized);

#endif
