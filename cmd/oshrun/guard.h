/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.h - a process that outlives oshrun by an instant, to leave nothing behind even after kill -9 of oshrun.
 *
 * Children of oshrun are killed by the kernel when it dies. What they started is not: a program under a shell, or in a
 * session of its own. The guard kills that: the process groups of the PEs, and who said HELLO, from a table that oshrun
 * keeps in memory shared with it. (Not by a signal at the end of the boot socket: the kernel may send it for the
 * launcher's last message, after the PE has read that.)
 */
#ifndef OSHRUN_GUARD_H
#define OSHRUN_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct guard_entry {
    _Atomic int group;      /* process group of the PE; 0: none is left. Writers: the child, then oshrun */
    _Atomic int program;    /* pid of who said HELLO; 0: nobody, or ended. Writer: oshrun */
    _Atomic int exec_error; /* errno of the step that failed between fork and exec. Writer: the child */
};

struct guard {
    struct guard_entry *entries; /* shared memory, [count] */
    uint32_t count;
    pid_t pid;
};

/* Makes the table. False with errno. */
bool guard_open(struct guard *guard, uint32_t count);
/* Starts the process. */
void guard_start(struct guard *guard);
/* Ends the process and waits for its end. */
void guard_stop(struct guard *guard);

#endif
