/* SPDX-License-Identifier: BSD-3-Clause */
/* libc.h - what the C library has in its newer versions alone: Quoit needs glibc 2.28, of 2018, as clusters have it.
 *
 * Threads: any. quoit_close_from makes system calls alone, so that a thread may call it that has no descriptors in
 * common with the others, and a child between vfork() and exec().
 */
#ifndef QUOIT_ENV_LIBC_H
#define QUOIT_ENV_LIBC_H

#include <spawn.h>
#include <sys/types.h>

/* Of the calling thread, as gettid() of 2.30. */
pid_t quoit_thread_id(void);
/* Such as "KILL" of SIGKILL, as sigabbrev_np() of 2.32; "?": there is no such signal, or it has no name. */
const char *quoit_signal_name(int signal_number);
/* Closes all descriptors from `first` on, as closefrom() of 2.34. */
void quoit_close_from(int first);
/* The child closes them, as posix_spawn_file_actions_addclosefrom_np() of 2.34 has it. Before 2.34: those that are open
 * now. Returns 0 or an error number. */
int quoit_spawn_close_from(posix_spawn_file_actions_t *files, int first);

#endif
