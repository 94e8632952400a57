/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/check.h"
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/counted.h"
#include "shmem/handle.h"

#include <string.h>

void quoit_check_state(const char *call)
{
    if (quoit_job.pe_count == 0)
        quoit_wrong_state(call);
    if (quoit_job.audit)
        quoit_audit_thread(call);
}

size_t quoit_check_bytes(size_t nelems, size_t element_bytes, const char *call)
{
    size_t bytes;
    if (__builtin_mul_overflow(nelems, element_bytes, &bytes))
        quoit_wrong(QUOIT_WRONG_COUNT, call, "nelems is %zu, but elements of %zu bytes are counted up to %zu", nelems,
                    element_bytes, SIZE_MAX / element_bytes);
    return bytes;
}

size_t quoit_check_extent(ptrdiff_t stride, size_t block_count, size_t count, const char *call)
{
    size_t between;
    if (count == 0 || block_count == 0)
        return 0;
    if (__builtin_mul_overflow((size_t)stride, count - 1, &between) ||
        __builtin_add_overflow(between, block_count, &between))
        quoit_wrong(QUOIT_WRONG_COUNT, call, "%zu elements %td apart are more than any memory holds", count, stride);
    return between;
}

uint64_t quoit_check_symmetric(const void *address, size_t bytes, const char *argument, const char *call)
{
    uint64_t offset = 0;
    if (__builtin_expect(quoit_job.audit != NULL, 0) && bytes != 0)
        quoit_audit_object(address, bytes, argument, call);
    if (bytes != 0 && !quoit_job_locate(address, bytes, &offset))
        quoit_wrong_address(call, argument, address, bytes);
    return offset;
}

void quoit_check_private(const void *address, size_t bytes, const char *argument, const char *call)
{
    if (!address && bytes != 0)
        quoit_wrong(QUOIT_WRONG_NULL, call, "%s is NULL, but %zu bytes are needed there", argument, bytes);
    if (__builtin_expect(quoit_job.audit != NULL, 0) && bytes != 0)
        quoit_audit_local(address, bytes, argument, call);
}

void quoit_check_word(const void *address, size_t bytes, const char *argument, const char *call)
{
    quoit_check_symmetric(address, bytes, argument, call);
    if (((uintptr_t)address & (bytes - 1)) != 0)
        quoit_wrong(QUOIT_WRONG_ALIGNMENT, call, "%s %p is not aligned to its %zu bytes", argument, address, bytes);
}

struct quoit_target quoit_check_target(shmem_ctx_t ctx, const void *address, const char *argument, size_t nelems,
                                       size_t element_bytes, int pe, const char *call)
{
    struct quoit_target target;
    quoit_check_running(call);
    target.context = quoit_ctx_reach(ctx, &pe, call);
    target.pe = (uint32_t)pe;
    target.bytes = quoit_check_bytes(nelems, element_bytes, call);
    target.offset = quoit_check_symmetric(address, target.bytes, argument, call);
    return target;
}

/* Copies within this PE: a copy onto itself is harmless, and occurs in programs that write to all PEs. */
static void check_apart(const void *dest, const void *source, const struct quoit_target *target, const char *call)
{
    if (__builtin_expect(quoit_job.audit != NULL, 0) && target->pe == quoit_job.pe)
        quoit_check_disjoint(dest, target->bytes, source, target->bytes, true, call);
}

void quoit_put_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call)
{
    if (quoit_counted_put(ctx, dest, source, nelems, element_bytes, pe, call))
        return;
    QUOIT_SPAN_TO(call, nelems * element_bytes, (uint32_t)pe);
    struct quoit_target target = quoit_check_target(ctx, dest, "dest", nelems, element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_PUT, target.pe);
    quoit_check_private(source, target.bytes, "source", call);
    check_apart(dest, source, &target, call);
    quoit_fabric_put(quoit_job.fabric, target.context, target.offset, source, target.bytes, target.pe);
}

void quoit_get_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call)
{
    if (quoit_counted_get(ctx, dest, source, nelems, element_bytes, pe, call))
        return;
    QUOIT_SPAN_TO(call, nelems * element_bytes, (uint32_t)pe);
    struct quoit_target target = quoit_check_target(ctx, source, "source", nelems, element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_GET, target.pe);
    quoit_check_private(dest, target.bytes, "dest", call);
    check_apart(dest, source, &target, call);
    quoit_fabric_get(quoit_job.fabric, target.context, dest, target.offset, target.bytes, target.pe);
}

void quoit_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call)
{
    if (quoit_counted_put(ctx, dest, source, nelems, element_bytes, pe, call))
        return;
    QUOIT_SPAN_TO(call, nelems * element_bytes, (uint32_t)pe);
    struct quoit_target target = quoit_check_target(ctx, dest, "dest", nelems, element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_PUT, target.pe);
    quoit_check_private(source, target.bytes, "source", call);
    check_apart(dest, source, &target, call);
    quoit_fabric_put_nbi(quoit_job.fabric, target.context, target.offset, source, target.bytes, target.pe);
}

void quoit_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call)
{
    if (quoit_counted_get(ctx, dest, source, nelems, element_bytes, pe, call))
        return;
    QUOIT_SPAN_TO(call, nelems * element_bytes, (uint32_t)pe);
    struct quoit_target target = quoit_check_target(ctx, source, "source", nelems, element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_GET, target.pe);
    quoit_check_private(dest, target.bytes, "dest", call);
    check_apart(dest, source, &target, call);
    quoit_fabric_get_nbi(quoit_job.fabric, target.context, dest, target.offset, target.bytes, target.pe);
}

static struct quoit_target check_word_at(shmem_ctx_t ctx, uint32_t size, const void *address, const char *argument,
                                         int pe, const char *call)
{
    struct quoit_target target = quoit_check_target(ctx, address, argument, 1, size, pe, call);
    quoit_check_word(address, size, argument, call);
    return target;
}

/* The specification's name of the word in fetching atomics. */
static const char *fetched_argument(enum quoit_amo op)
{
    return op == QUOIT_AMO_FETCH ? "source" : "dest";
}

void quoit_amo_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, const char *argument,
                    uint64_t operand, int pe, const char *call)
{
    uint64_t old;
    if (quoit_counted_amo(ctx, op, size, address, operand, 0, pe, call, &old))
        return;
    QUOIT_SPAN_TO(call, size, (uint32_t)pe);
    struct quoit_target target = check_word_at(ctx, size, address, argument, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_AMO, target.pe);
    quoit_fabric_amo(quoit_job.fabric, target.context, op, size, target.offset, operand, target.pe);
}

uint64_t quoit_amo_fetch_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                              uint64_t compare, int pe, const char *call)
{
    uint64_t old;
    if (quoit_counted_amo(ctx, op, size, address, operand, compare, pe, call, &old))
        return old;
    QUOIT_SPAN_TO(call, size, (uint32_t)pe);
    struct quoit_target target = check_word_at(ctx, size, address, fetched_argument(op), pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_AMO, target.pe);
    return quoit_fabric_amo_fetch(quoit_job.fabric, target.context, op, size, target.offset, operand, compare,
                                  target.pe);
}

void quoit_amo_nbi_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, void *fetch, const void *address,
                        uint64_t operand, uint64_t compare, int pe, const char *call)
{
    uint64_t old;
    if (fetch && quoit_counted_amo(ctx, op, size, address, operand, compare, pe, call, &old)) {
        memcpy(fetch, &old, size);
        return;
    }
    QUOIT_SPAN_TO(call, size, (uint32_t)pe);
    struct quoit_target target = check_word_at(ctx, size, address, fetched_argument(op), pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_AMO, target.pe);
    quoit_check_private(fetch, size, "fetch", call);
    quoit_fabric_amo_fetch_nbi(quoit_job.fabric, target.context, op, size, target.offset, operand, compare, fetch,
                               target.pe);
}

void quoit_check_disjoint_strided(const void *dest, size_t dest_bytes, ptrdiff_t dst, const void *source,
                                  size_t source_bytes, ptrdiff_t sst, size_t element_bytes, const char *call)
{
    ptrdiff_t element = (ptrdiff_t)element_bytes, step = dst * element;
    ptrdiff_t shift = ((const char *)dest - (const char *)source) % step;
    if (dst != sst || (shift < 0 ? shift + step : shift) < element || (shift < 0 ? -shift : step - shift) < element)
        quoit_check_disjoint(dest, dest_bytes, source, source_bytes, false, call);
}
