/* SPDX-License-Identifier: BSD-3-Clause */
/* membarrier.h - asymmetric barriers: the rare side runs membarrier(2), which executes a full barrier on every running
 * thread of the job; the frequent side needs only a compiler barrier between its store and its load.
 *
 * Threads: any. Errors: none; quoit_membarrier_exists() is false on kernels without membarrier(2).
 */
#ifndef QUOIT_ENV_MEMBARRIER_H
#define QUOIT_ENV_MEMBARRIER_H

#include <stdbool.h>

/* Registers the process; each process of the job calls it once. Repeating it is harmless. */
void quoit_membarrier_setup(void);
/* Whether the kernel supports it. */
bool quoit_membarrier_exists(void);
/* Every running thread of the registered processes of this machine executes a full barrier before this returns. Takes
 * microseconds. No effect without kernel support. */
void quoit_membarrier(void);

#endif
