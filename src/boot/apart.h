/* SPDX-License-Identifier: BSD-3-Clause */
/* apart.h - a thread beside the program's: no signal reaches it, and its table of descriptors is its own.
 *
 * What the program closes, opens or hands to its children is not the thread's, and the reverse: a connection that the
 * thread makes ends exactly when the process does, or becomes another program.
 */
#ifndef QUOIT_BOOT_APART_H
#define QUOIT_BOOT_APART_H

#include <stddef.h>

#include "base/status.h"

#define QUOIT_APART_FDS_MAX 4

/* Starts run(arg). Of the descriptors the thread has those of fds[0..count-1] that are not negative, and standard
 * error; their numbers stay. is_shared_out: the kernel refuses a table of its own (a filter of system calls), so that
 * the caller must leave fds[] open. SYSTEM: errno says why, nothing was reported. */
QUOIT_MUST_USE enum quoit_status quoit_apart_start(void (*run)(void *arg), void *arg, const int *fds, size_t count,
                                                   int *is_shared_out);

#endif
