/* SPDX-License-Identifier: BSD-3-Clause */
#include <shmemx.h>

#include "shmem/job.h"
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
