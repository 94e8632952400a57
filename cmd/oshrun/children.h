/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - ends every process that descends from this one, whatever group or session it has moved to.
 *
 * This process is the subreaper of what it starts (children_adopt), so a process whose parent has died becomes its
 * child. Only direct children are signalled by number: a number cannot pass to a stranger before its parent has reaped
 * it. What a dead process leaves behind is found in the next round.
 */
#ifndef OSHRUN_CHILDREN_H
#define OSHRUN_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Orphans among the descendants become children of this process. */
void children_adopt(void);
/* Sends SIGKILL to every child. */
void children_kill(void);
/* Kills and reaps until no child is left, for a bounded time. */
void children_sweep(void);
/* Whether `pid` descends from this process, or did when its line of parents was read. */
bool children_include(pid_t pid);

#endif
