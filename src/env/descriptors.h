/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptors.h - messages on AF_UNIX sockets with what only the kernel can pass: descriptors, and who the sender is;
 * and the descriptors that a program begins with.
 *
 * Threads: any. The two for messages repeat a call that a signal interrupted, return what the kernel did (bytes, or -1
 * with errno), and wait unless `flags` says MSG_DONTWAIT. No SIGPIPE comes of either.
 */
#ifndef QUOIT_ENV_DESCRIPTORS_H
#define QUOIT_ENV_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define QUOIT_DESCRIPTORS_MAX 253 /* in one message; a limit of the kernel */

/* What came beside the bytes. */
struct quoit_ancillary {
    int *fds;          /* set by the caller: room for fd_max; those that come are close-on-exec, and the caller's */
    uint32_t fd_max;   /* set by the caller; 0: none are wanted, and fds may be NULL */
    uint32_t fd_count; /* what is more than fd_max is closed */
    bool is_truncated; /* the bytes or the descriptors did not fit, or this process may not open so many */
    pid_t sender;      /* by SO_PASSCRED on this socket; 0: not asked for, or not a process that is visible here */
};

/* Sends bytes with fd_count descriptors, which stay open here; 0: fds may be NULL. */
ssize_t quoit_send_with_descriptors(int fd, const void *bytes, size_t byte_count, const int *fds, uint32_t fd_count,
                                    int flags);
/* Receives up to byte_count bytes, on a SOCK_SEQPACKET one message. Without bytes no descriptor came. */
ssize_t quoit_receive_with_descriptors(int fd, void *bytes_out, size_t byte_count, struct quoit_ancillary *ancillary,
                                       int flags);

/* How many this process may have open. */
uint64_t quoit_descriptor_limit(void);
/* Opens /dev/null in place of closed standard streams, whose numbers the first pipe or socket would get otherwise. */
void quoit_fill_standard_descriptors(void);

#endif
