/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmemx.h>

#include "shmem/job.h"
#include "trace/profile.h"
#include "trace/trace.h"

static struct quoit_trace_ring *own_ring(void)
{
    return quoit_job.fabric ? quoit_job.fabric->self.trace : NULL;
}

uint64_t shmemx_trace_begin(const char *name, size_t bytes, int pe)
{
    struct quoit_trace_ring *ring = own_ring();
    return ring ? quoit_trace_enter(ring, name, bytes, pe < 0 ? QUOIT_TRACE_NO_PE : (uint32_t)pe) : 0;
}

/* A slice that was begun ends even if shmem_finalize came between: there is no ring any more then. */
void shmemx_trace_end(uint64_t begun)
{
    struct quoit_trace_ring *ring = own_ring();
    if (begun != 0 && ring)
        quoit_trace_leave(ring, begun, 0);
}

static struct quoit_profile *own_profile(void)
{
    return quoit_job.fabric ? quoit_job.fabric->self.profile : NULL;
}

int shmemx_profiled(void)
{
    return own_profile() != NULL;
}

int shmemx_profile_file(const char *path)
{
    return own_profile() ? (int)quoit_profile_file(own_profile(), path) : 0;
}

void shmemx_profile_line(int file, int line)
{
    quoit_profile_set_line((uint32_t)file, line > 0 ? (uint32_t)line : 0);
}
