/* SPDX-License-Identifier: BSD-3-Clause */
/* shmemx.h - extensions of the specification.
 *
 * Slices of a program's own in the timeline of `oshrun --trace`, on the track of the calling thread, around the calls
 * and slices between begin and end. begin returns what end takes; without --trace both return at once. Only the first
 * 47 bytes of `name` are recorded; `bytes` and `pe` are shown beside it, unless they are 0 and -1. Any thread, also in
 * a signal handler; end is called by the thread that called begin, the innermost slice first. Errors: none. */
#ifndef QUOIT_SHMEMX_H
#define QUOIT_SHMEMX_H

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

uint64_t shmemx_trace_begin(const char *name, size_t bytes, int pe);
void shmemx_trace_end(uint64_t begun);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
