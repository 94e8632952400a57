/* SPDX-License-Identifier: BSD-3-Clause */
/* children.h - ends every process that descends from this one, whatever process group or session it is in.
 *
 * This process is the subreaper of its descendants (children_adopt), so a process whose parent died becomes its child.
 * Only direct children are signalled by pid: a pid cannot be reused before its parent has reaped it. The children of a
 * dead process are found in the next round.
 */
#ifndef OSHRUN_CHILDREN_H
#define OSHRUN_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes orphans among the descendants children of this process. */
void children_adopt(void);
/* Sends SIGKILL to every child. */
void children_kill(void);
/* Kills and reaps until no child is left, up to a time limit. */
void children_sweep(void);
/* Of a process that watches over a child, which has ended with this wait status: kills what descended from it, and
 * exits with the same status. */
void __attribute__((noreturn)) children_end_as(int wait_status);
/* Whether `pid` descends from this process, or did when its chain of parents was read. */
bool children_include(pid_t pid);

#endif
