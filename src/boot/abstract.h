/* SPDX-License-Identifier: BSD-3-Clause */
/* abstract.h - sockets by which processes of one user on one machine meet, and those of root: SOCK_SEQPACKET, with a
 * name in the abstract namespace, so that there is no file. A name exists as long as its socket is open.
 *
 * Threads: any. Nothing is reported to the user; errno is that of the call that failed.
 */
#ifndef QUOIT_BOOT_ABSTRACT_H
#define QUOIT_BOOT_ABSTRACT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

#define QUOIT_ABSTRACT_NAME_BYTES 64

/* Makes the name and listens on it, close-on-exec and non-blocking. FULL: the name exists. SYSTEM. */
QUOIT_MUST_USE enum quoit_status quoit_abstract_listen(const char *name, int *fd_out);
/* Connects to a socket of `owner`, waiting if many do. GONE: nobody listens. INVALID: it is another user's. SYSTEM. */
QUOIT_MUST_USE enum quoit_status quoit_abstract_connect(const char *name, uid_t owner, int *fd_out);
/* Whether the process at the other end is of this user. */
bool quoit_abstract_is_own(int fd);
/* Whether it is of this user, or root's. */
bool quoit_abstract_is_admitted(int fd);

#endif
