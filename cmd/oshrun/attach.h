/* SPDX-License-Identifier: BSD-3-Clause */
/* attach.h - the second way from a PE to oshrun: an abstract socket, for programs behind a wrapper that closes the
 * descriptor of the first (boot/protocol.h).
 *
 * Whose program connects is the kernel's word: the process is of the same user and descends from one of a PE that has
 * not called shmem_init.
 */
#ifndef OSHRUN_ATTACH_H
#define OSHRUN_ATTACH_H

#include "job.h"

/* Listens, in this network namespace and in those of the hosts of --ring. Without it PEs have the descriptor alone, so
 * nothing is fatal. */
void attach_open(struct job *job);
/* Before the end of a PE is judged: if its program has attached and sent something, that is the PE's socket. */
void attach_drain(struct pe *pe);
/* The name, which QUOIT_BOOT_SOCKET gives the PEs; "": there is none. */
const char *attach_name(const struct job *job);

#endif
