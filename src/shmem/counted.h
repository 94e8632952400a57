/* SPDX-License-Identifier: BSD-3-Clause */
/* counted.h - puts, gets and atomics to PEs of the same host under --profile: the work of fast.h, and the call counted.
 *
 * The slow path tries these first, directly from the routine (QUOIT_JOB_ENTER). False: nothing is done, since it is
 * another host, a mistake, a large copy, or the first call of its place; without --profile always.
 * Threads: any. Errors: none. */
#ifndef QUOIT_SHMEM_COUNTED_H
#define QUOIT_SHMEM_COUNTED_H

#include "shmem/api.h"

bool quoit_counted_put(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                       const char *call);
bool quoit_counted_get(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                       const char *call);
bool quoit_counted_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                       uint64_t compare, int pe, const char *call, uint64_t *old_out);

#endif
