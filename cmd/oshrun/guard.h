/* SPDX-License-Identifier: BSD-3-Clause */
/* guard.h - three processes, so that a kill -9 of any two of them leaves nothing behind.
 *
 * The process that the user started, the front (front.h), watches over "quoit-guard", and that over "quoit-job", which
 * runs the job. Each of the two waits for its child, and exits with its status. Every process of the job descends from
 * all three, and all are subreapers. When the child of one is killed, the orphans below it, in any group or session,
 * become children of that one and are killed. When the parent of one is killed, it gets GUARD_GONE_SIGNAL, passes it
 * on, and quoit-job ends the job; so it does when the socket to the front closes, as quoit-guard may be stopped. If all
 * three are killed at once, PEs and proxies still die with their parent, but processes that PEs have started survive.
 *
 * quoit-guard has a command line of its own, so that pkill -9 -f oshrun does not kill all three.
 */
#ifndef OSHRUN_GUARD_H
#define OSHRUN_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define GUARD_GONE_SIGNAL (SIGRTMIN + 3)

/* What quoit-job knows of the other two. */
struct guard {
    pid_t group;  /* process group of the front, which the user's shell knows */
    int front_fd; /* of struct front_word */
    pid_t front_pid;
    int front_pidfd; /* -1: the kernel or a container refuses */
};

/* Blocks the signals that oshrun handles as events, and returns them in set_out. Signals ignored at start (nohup) stay
 * ignored. */
void guard_block_signals(sigset_t *set_out);
/* Forks twice. Returns in the last child, which runs the job in a process group of its own; the others never return.
 * argc and argv are those of main(). in_fd, out_fd: of an agent's conversation, which is the job's; -1: none. False,
 * with errno: nothing was forked, or the last child was not. */
bool guard_start(int argc, char **argv, int in_fd, int out_fd, struct guard *guard_out);
/* Continues the front. */
void guard_continue_front(const struct guard *guard);

#endif
