/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/span.h"

struct quoit_span quoit_span_enter(const char *call, uint64_t bytes, uint32_t pe)
{
    struct quoit_span span = {.is_watched = true};
    if (!quoit_job.fabric)
        return (struct quoit_span){0}; /* before shmem_init, or after shmem_finalize: the checks that follow report it
                                        */
    if (quoit_job.audit)
        span.audit = quoit_audit_enter(call);
    span.trace = quoit_job.fabric->self.trace;
    if (span.trace)
        span.begin_ns = quoit_trace_enter(span.trace, call, bytes, pe);
    return span;
}

void quoit_span_end(struct quoit_span *span)
{
    if (span->audit)
        quoit_audit_leave(span->audit);
    if (span->trace)
        quoit_trace_leave(span->trace, span->begin_ns, 0);
}
