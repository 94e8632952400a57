/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.h - two processes, so that a kill -9 of either leaves nothing behind.
 *
 * The guard is the process that the user started; it forwards signals, waits, and exits with the status of its child,
 * which runs the job ("quoit-job"). Every process of the job descends from both, and both are subreapers. When the
 * job's process is killed, its orphans, in any group or session, become the guard's children and are killed. When
 * the guard is killed, the job's process gets GUARD_GONE_SIGNAL and ends the job. If both are killed at once, PEs and
 * proxies still die with their parent; only what a PE itself has moved to another session would survive.
 */
#ifndef OSHRUN_GUARD_H
#define OSHRUN_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define GUARD_GONE_SIGNAL (SIGRTMIN + 3)

/* Blocks the signals that oshrun handles as events, and returns them in set_out. Signals ignored at start (nohup) stay
 * ignored. */
void guard_block_signals(sigset_t *set_out);
/* Forks. Returns in the child, which runs the job in a process group of its own; the parent never returns. -1 with
 * errno if fork fails; else the guard's process group, which the user's shell knows. */
pid_t guard_start(void);

#endif
