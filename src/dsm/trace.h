/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - faults, fetches and diffs in the timeline of `oshrun --trace`. Another OpenSHMEM library than Quoit's has
 * no such extension: then nothing is recorded. */
#ifndef QUOIT_DSM_TRACE_H
#define QUOIT_DSM_TRACE_H

#include <stddef.h>
#include <stdint.h>

extern uint64_t shmemx_trace_begin(const char *name, size_t bytes, int pe) __attribute__((weak));
extern void shmemx_trace_end(uint64_t begun) __attribute__((weak));

static inline uint64_t quoit_dsm_trace_begin(const char *name, size_t bytes, int pe)
{
    return shmemx_trace_begin ? shmemx_trace_begin(name, bytes, pe) : 0;
}

static inline void quoit_dsm_trace_end(uint64_t begun)
{
    if (begun != 0)
        shmemx_trace_end(begun);
}

#endif
