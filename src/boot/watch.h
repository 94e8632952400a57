/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - a thread of each PE but the lowest of a host: its connection tells the agent (agent.h) when the process
 * ends, and tells this process when the agent or another PE does.
 */
#ifndef QUOIT_BOOT_WATCH_H
#define QUOIT_BOOT_WATCH_H

#include "boot/boot.h"

/* Starts the thread, which connects to the agent called `name`. boot must outlive the process. Errors have been
 * reported. */
QUOIT_MUST_USE enum quoit_status quoit_watch_start(struct quoit_boot *boot, const char *name);

#endif
