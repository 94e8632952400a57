/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - a thread in each PE but the lowest of a host, connected to the agent (agent.h). The agent sees the
 * connection close when this process ends; this process gets END over it, or sees it close, when the job ends.
 */
#ifndef QUOIT_BOOT_WATCH_H
#define QUOIT_BOOT_WATCH_H

#include "boot/boot.h"

/* Connects to the agent called `name` and starts the thread. boot must stay valid until the process ends. Errors
 * have been reported. */
QUOIT_MUST_USE enum quoit_status quoit_watch_start(struct quoit_boot *boot, const char *name);

#endif
