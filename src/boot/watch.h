/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - a thread in each PE, connected to the agent (agent.h). The agent sees the connection close when this
 * process ends; this process gets END over it when the job ends, or sees it close when the agent does. In the lowest PE
 * of a host it also asks the agent now and then whether it is there: one that is stopped is reported, one that hangs
 * ends the job.
 */
#ifndef QUOIT_BOOT_WATCH_H
#define QUOIT_BOOT_WATCH_H

#include "boot/boot.h"

/* Connects to the agent called `name` and starts the thread. boot must stay valid until the process ends. Errors
 * have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_watch_connect(struct quoit_boot *boot, const char *name);
/* In the lowest PE: with the connection of quoit_agent_start, which it takes over, and the agent's first process. */
QUOIT_MUST_USE enum quoit_status quoit_watch_start(struct quoit_boot *boot, int fd, pid_t agent);

#endif
