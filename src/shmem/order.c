/* SPDX-License-Identifier: BSD-3-Clause */
/* Fence and quiet. */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"
#include "shmem/handle.h"
#include "shmem/poll.h"

#include <stdio.h>

QUOIT_API(void, fence, (void))
{
    QUOIT_JOB_ENTER("shmem_fence");
    quoit_check_running("shmem_fence");
    QUOIT_SPAN("shmem_fence");
    quoit_fabric_fence(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_poll(QUOIT_POLL_ORDER);
}

QUOIT_API(void, ctx_fence, (shmem_ctx_t ctx))
{
    QUOIT_JOB_ENTER("shmem_ctx_fence");
    QUOIT_SPAN("shmem_ctx_fence");
    if (ctx == SHMEM_CTX_INVALID)
        return; /* as the specification says; likewise below */
    struct quoit_context *context = quoit_ctx_of(ctx, "shmem_ctx_fence");
    quoit_fabric_fence(quoit_job.fabric, context);
    quoit_poll(QUOIT_POLL_ORDER);
}

QUOIT_API(void, quiet, (void))
{
    QUOIT_JOB_ENTER("shmem_quiet");
    quoit_check_running("shmem_quiet");
    QUOIT_SPAN("shmem_quiet");
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_poll(QUOIT_POLL_ORDER);
}

QUOIT_API(void, ctx_quiet, (shmem_ctx_t ctx))
{
    QUOIT_JOB_ENTER("shmem_ctx_quiet");
    QUOIT_SPAN("shmem_ctx_quiet");
    if (ctx == SHMEM_CTX_INVALID)
        return;
    struct quoit_context *context = quoit_ctx_of(ctx, "shmem_ctx_quiet");
    quoit_fabric_quiet(quoit_job.fabric, context);
    quoit_poll(QUOIT_POLL_ORDER);
}

/* Completes all PEs, which includes the given ones. */
static void pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes, const char *call)
{
    struct quoit_context *context = quoit_ctx_of(ctx, call);
    uint32_t pe_count = quoit_ctx_pe_count(ctx, call);
    quoit_check_private(target_pes, npes * sizeof *target_pes, "target_pes", call);
    for (size_t i = 0; i < npes; i++) {
        char argument[40];
        if ((uint32_t)target_pes[i] < pe_count)
            continue;
        snprintf(argument, sizeof argument, "target_pes[%zu]", i);
        quoit_wrong_pe(call, argument, target_pes[i], pe_count,
                       ctx == SHMEM_CTX_DEFAULT ? "the job" : "the team of ctx");
    }
    if (npes != 0)
        quoit_fabric_quiet(quoit_job.fabric, context);
    quoit_poll(QUOIT_POLL_ORDER);
}

QUOIT_API(void, pe_quiet, (const int *target_pes, size_t npes))
{
    QUOIT_JOB_ENTER("shmem_pe_quiet");
    QUOIT_SPAN("shmem_pe_quiet");
    pe_quiet(SHMEM_CTX_DEFAULT, target_pes, npes, "shmem_pe_quiet");
}

QUOIT_API(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes))
{
    QUOIT_JOB_ENTER("shmem_ctx_pe_quiet");
    QUOIT_SPAN("shmem_ctx_pe_quiet");
    pe_quiet(ctx, target_pes, npes, "shmem_ctx_pe_quiet");
}
