/* SPDX-License-Identifier: BSD-3-Clause */
/* ended.h - what is known of a PE that has ended, without being its parent: from its record. For jobs without oshrun.
 *
 * Threads: any. Of the processes of a job one tells why it ends, the first that decides (quoit_ended_claim).
 */
#ifndef QUOIT_BOOT_ENDED_H
#define QUOIT_BOOT_ENDED_H

#include <stdbool.h>

#include "host/layout.h"

/* Decides that the job ends with `status`. False: it has been decided before. */
bool quoit_ended_claim(struct quoit_host_header *header, int status);
/* The status that was decided; -1: none. */
int quoit_ended_decision(const struct quoit_host_header *header);

/* The status of a PE that has ended before shmem_finalize: what it left, 128 + the signal that it recorded, or 1. */
int quoit_ended_status(struct quoit_pe_shared *shared);
/* Says how it ended, unless the PE has done so itself. */
void quoit_ended_say(uint32_t pe, struct quoit_pe_shared *shared);
/* Prints "quoit: text" on standard error: not the words of one PE, as those of quoit_say are. */
void quoit_ended_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
