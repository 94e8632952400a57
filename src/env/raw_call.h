/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_call.h - system calls that do not go through the C library.
 *
 * libqdsm filters the C library's calls by the place of their instruction (dsm/calls.h): a call whose buffers are
 * shared pages stops, and fetches them. That filter must let pass the call that is made in its stead, and those that
 * libshmem makes while it holds its locks, since the fetch of a page would need these again. So both are made from
 * here.
 *
 * Threads: any. No call is a cancellation point, and errno stays as it is. */
#ifndef QUOIT_ENV_RAW_CALL_H
#define QUOIT_ENV_RAW_CALL_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A system call by its number. Returns what the kernel returns: -errno for an error. */
long quoit_raw_call(long number, const uint64_t arguments[6]);

/* As sendmsg(2) and recvmsg(2), but -errno for an error. */
ssize_t quoit_raw_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t quoit_raw_recvmsg(int fd, struct msghdr *message, int flags);

#ifdef __x86_64__
extern const char
    quoit_raw_call_after[]; /* the instruction behind that of the call, where the kernel finds the thread */
#endif

#endif
