/* SPDX-License-Identifier: BSD-3-Clause */
/* membarrier.h - a full barrier that one thread has all running threads of the job pass, for pairs of which one side is
 * frequent and the other is not: the frequent side needs only a compiler barrier between its store and its load.
 *
 * Threads: any. Errors: none; a kernel without membarrier(2) says so.
 */
#ifndef QUOIT_ENV_MEMBARRIER_H
#define QUOIT_ENV_MEMBARRIER_H

#include <stdbool.h>

/* Called once by each process of the job: registers it. Safe to repeat. */
void quoit_membarrier_setup(void);
/* Whether this kernel has it. */
bool quoit_membarrier_exists(void);
/* All running threads of the registered processes of this machine pass a full barrier before it returns. Takes
 * microseconds. Without one in the kernel: nothing. */
void quoit_membarrier(void);

#endif
