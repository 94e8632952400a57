/* SPDX-License-Identifier: BSD-3-Clause */
/* ended.h - how a PE ended, from its record, for processes that are not its parent. For jobs without oshrun.
 *
 * Threads: any. One process of a job reports why the job ends: the first that claims it (quoit_ended_claim).
 */
#ifndef QUOIT_BOOT_ENDED_H
#define QUOIT_BOOT_ENDED_H

#include <stdbool.h>
#include <sys/types.h>

#include "boot/awaited.h"
#include "host/layout.h"

/* Decides that the job ends with `status`. False: that was decided before. */
bool quoit_ended_claim(struct quoit_host_header *header, int status);
/* The decided status; -1: none yet. */
int quoit_ended_decision(const struct quoit_host_header *header);

/* The exit status of a PE that ended before shmem_finalize: as recorded, 128 + the recorded signal, or 1. */
int quoit_ended_status(struct quoit_pe_shared *shared);
/* Reports how it ended. False: the PE has reported that itself. host: its name. process: its pid, if it is still there
 * to be looked at; 0: not known. */
bool quoit_ended_report(uint32_t pe, const char *host, struct quoit_pe_shared *shared, pid_t process);
/* Q0204: who has ended, "PE", "3", is waited for in another shmem_init. The job ends with status 1. */
void quoit_ended_report_absent(const char *kind, const char *name);
/* Q0237: who is awaited, "PE 3 on east", and what is late; or Q0238: hangs, by which the job ends with status 1. */
void quoit_ended_report_awaited(const struct quoit_awaited *awaited, const char *who, const char *deed,
                                uint64_t waited_ns, bool hangs);
/* Reports that the agent of this host (agent.h) has ended before its PEs. */
void quoit_ended_report_agent(void);
/* Prints "quoit: text" on standard error. Unlike quoit_say() it names no PE as the speaker. */
void quoit_ended_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Before something lets the launcher end the job, since launchers drop what they have not read then: waits 200 ms for
 * the last output of PEs, and on until the reader of this process's standard error, a pipe or a socket, has read all
 * that was written to it. At most 5 s. */
void quoit_ended_pause(void);

#endif
