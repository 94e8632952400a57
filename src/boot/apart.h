/* SPDX-License-Identifier: BSD-3-Clause */
/* apart.h - a thread isolated from the program: it blocks all signals and has its own descriptor table.
 *
 * Descriptors that the program opens, closes or passes to children do not affect the thread, and vice versa. So a
 * connection of the thread's closes exactly when the process exits or executes another program.
 *
 * Tools that follow descriptors by their numbers, as ThreadSanitizer does, know nothing of a second table. So the
 * thread uses its own by the calls below, which no tool intercepts.
 *
 * The thread shall not allocate or free: a malloc in place of libc's, or a tool that follows it, may use descriptors
 * that the process had before, such as a pipe by which libunwind checks addresses, and here the numbers are closed or
 * other files.
 */
#ifndef QUOIT_BOOT_APART_H
#define QUOIT_BOOT_APART_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

#define QUOIT_APART_FDS_MAX 4

/* Starts run(arg) in a detached thread, which keeps standard error and those of fds[0..count-1] that are not negative,
 * under the same numbers. is_shared_out: the kernel refused a table of its own (a filter of system calls), so the
 * caller must leave fds[] open. SYSTEM: errno is set, nothing was reported. */
QUOIT_MUST_USE enum quoit_status quoit_apart_start(void (*run)(void *arg), void *arg, const int *fds, size_t count,
                                                   int *is_shared_out);

/* Of the thread: */

/* Whether the descriptor becomes readable, or its other end is closed, within timeout_ms; -1: without a limit. False
 * too after a signal. */
bool quoit_apart_wait(int fd, int timeout_ms);
/* One message of a SOCK_SEQPACKET socket, as recv() and send(). The latter does not wait. A descriptor that comes with
 * a message stays open in the thread's table, under a number that nobody learns. */
ssize_t quoit_apart_receive(int fd, void *bytes_out, size_t byte_count);
ssize_t quoit_apart_send(int fd, const void *bytes, size_t byte_count);
void quoit_apart_close(int fd);

#endif
