/* SPDX-License-Identifier: BSD-3-Clause */
/* calls.h - system calls without which a process of a job cannot work, and a policy (seccomp) that refuses one of them.
 *
 * A call that is refused in the middle of a job shows as a wait without end, a child that is never reaped, or an error
 * that names something else. So each is tried once at the start, with arguments that the kernel rejects.
 */
#ifndef QUOIT_ENV_CALLS_H
#define QUOIT_ENV_CALLS_H

#include <stdbool.h>

/* Who needs a call; a set. */
enum quoit_calls_user { QUOIT_CALLS_PE = 1, QUOIT_CALLS_LAUNCHER = 2, QUOIT_CALLS_NETWORK = 4 };

/* The name of a call that is refused to this thread and that one of `users` needs, with its errno in *error_out. NULL:
 * there is none, or the process is under no filter. Any thread. */
const char *quoit_calls_refused(unsigned users, int *error_out);

/* As quoit_calls_refused; reports a call that is refused by one line [Q0233]. Returns whether there is none. */
bool quoit_calls_check(unsigned users);

#endif
