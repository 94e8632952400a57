/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - faults, fetches and diffs in the timeline of `oshrun --trace`. Another OpenSHMEM library than Quoit's,
 * which its shmem.h shows, has no such extension: then nothing is recorded. The references are not weak, since a static
 * link takes nothing from libshmem.a for those. */
#ifndef QUOIT_DSM_TRACE_H
#define QUOIT_DSM_TRACE_H

#include <shmem.h>
#include <stddef.h>
#include <stdint.h>

#ifdef QUOIT_SHMEM_H
#include <shmemx.h>

static inline uint64_t quoit_dsm_trace_begin(const char *name, size_t bytes, int pe)
{
    return shmemx_trace_begin(name, bytes, pe);
}

static inline void quoit_dsm_trace_end(uint64_t begun)
{
    if (begun != 0)
        shmemx_trace_end(begun);
}
#else
static inline uint64_t quoit_dsm_trace_begin(const char *name, size_t bytes, int pe)
{
    (void)name, (void)bytes, (void)pe;
    return 0;
}

static inline void quoit_dsm_trace_end(uint64_t begun)
{
    (void)begun;
}
#endif

#endif
