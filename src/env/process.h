/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - what the kernel shows of another process of this machine. Any thread. */
#ifndef QUOIT_ENV_PROCESS_H
#define QUOIT_ENV_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct quoit_process {
    char state; /* of its first thread: R runs or is ready to, S sleeps, D waits for a device, T stopped, t traced, ...
                 */
    bool is_exiting; /* its descriptors are closed, or about to be; it can be waited for soon */
    pid_t parent;
    uint64_t busy_ns; /* processor time of all its threads; in steps of 10 ms */
};

/* False: there is no such process, or /proc does not show it; *process_out is all zero then. */
bool quoit_process_look(pid_t pid, struct quoit_process *process_out);
/* Also when its parent has not waited for it yet, unless the kernel or a container refuses pidfd_open. */
bool quoit_process_has_ended(pid_t pid);
/* A pidfd, readable once the process has ended. -1: it has, or the kernel or a container refuses it. */
int quoit_process_open(pid_t pid);
/* Whether all its threads sleep: none is ready to run, stopped, or waits for a device. */
bool quoit_process_sleeps(pid_t pid);
/* Whether a wait of the process may be ended by what it started for itself: a child, or a handler of a signal that
 * timers, devices, children and other programs send. What /proc does not show counts as such. */
bool quoit_process_may_be_woken(pid_t pid);
/* How many of its threads may go on without another one of them: all but those that wait, with no limit, for what only
 * the process itself can do, as the idle threads of a pool do. *switches_out changes if one of these has run since.
 * What /proc does not show counts as a thread that may. */
uint32_t quoit_process_independent_threads(pid_t pid, uint64_t *switches_out);
/* Whether it handles, blocks or ignores a signal. */
bool quoit_process_handles(pid_t pid, int signal_number);
/* As ps shows it. */
bool quoit_process_is_named(pid_t pid, const char *name);
/* Whether `pid` is `ancestor` or descends from it. */
bool quoit_process_descends(pid_t pid, pid_t ancestor);

#endif
