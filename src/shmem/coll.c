/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of teams: checks arguments and reduces types to bytes; coll does the work. */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"
#include "shmem/combine.h"
#include "shmem/handle.h"

QUOIT_API(void, barrier_all, (void))
{
    QUOIT_JOB_ENTER("shmem_barrier_all");
    quoit_check_running("shmem_barrier_all");
    QUOIT_SPAN("shmem_barrier_all");
    quoit_span_world(&call_span, 0);
    QUOIT_AUDIT_COLLECTIVE(quoit_team_of(SHMEM_TEAM_WORLD, "shmem_barrier_all"), "shmem_barrier_all", {0});
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_coll_sync(quoit_job.world, "shmem_barrier_all");
}

QUOIT_API(void, sync_all, (void))
{
    QUOIT_JOB_ENTER("shmem_sync_all");
    quoit_check_running("shmem_sync_all");
    QUOIT_SPAN("shmem_sync_all");
    quoit_span_world(&call_span, 0);
    QUOIT_AUDIT_COLLECTIVE(quoit_team_of(SHMEM_TEAM_WORLD, "shmem_sync_all"), "shmem_sync_all", {0});
    quoit_coll_sync(quoit_job.world, "shmem_sync_all");
}

QUOIT_API(int, team_sync, (shmem_team_t team))
{
    QUOIT_JOB_ENTER("shmem_team_sync");
    QUOIT_SPAN("shmem_team_sync");
    struct quoit_team_slot *slot = quoit_team_for_collective(team, "shmem_team_sync");
    quoit_span_group(&call_span, &slot->range, 0);
    QUOIT_AUDIT_COLLECTIVE(slot, "shmem_team_sync", {0});
    quoit_coll_sync(slot->state, "shmem_team_sync");
    return 0;
}

/* The team, ready for collectives, and the offsets of dest and source. */
struct buffers {
    struct quoit_team_slot *team;
    uint64_t offset_dest;
    uint64_t offset_source;
    size_t bytes; /* size of nelems */
};

static struct buffers check_buffers(shmem_team_t team, const void *dest, const void *source, size_t nelems,
                                    size_t element_bytes, bool is_dest_of_all, bool is_source_of_all, const char *call)
{
    struct buffers buffers = {.team = quoit_team_for_collective(team, call)};
    size_t size = buffers.team->range.size;
    buffers.bytes = quoit_check_bytes(nelems, element_bytes, call);
    size_t all = quoit_check_bytes(buffers.bytes, size, call);
    buffers.offset_dest = quoit_check_symmetric(dest, is_dest_of_all ? all : buffers.bytes, "dest", call);
    buffers.offset_source = quoit_check_symmetric(source, is_source_of_all ? all : buffers.bytes, "source", call);
    return buffers;
}

/* Under --check: the PEs agree. An overlap is reported before: its cause is on this PE. */
static void compare_calls(const struct buffers *buffers, size_t nelems, int root, const char *call)
{
    QUOIT_AUDIT_COLLECTIVE(
        buffers->team, call, {"nelems", nelems, QUOIT_AUDIT_NUMBER}, {"PE_root", (uint64_t)root, QUOIT_AUDIT_NUMBER},
        {"dest", buffers->offset_dest, QUOIT_AUDIT_OFFSET}, {"source", buffers->offset_source, QUOIT_AUDIT_OFFSET});
}

static int broadcast(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes, int root,
                     const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, false, false, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    if ((uint32_t)root >= buffers.team->range.size)
        quoit_wrong_pe(call, "PE_root", root, buffers.team->range.size, "the team");
    if (__builtin_expect(quoit_job.audit != NULL, 0)) /* mostly harmless: only the root's source is read */
        quoit_check_disjoint(dest, buffers.bytes, source, buffers.bytes, true, call);
    compare_calls(&buffers, nelems, root, call);
    if (buffers.bytes != 0)
        quoit_coll_broadcast(buffers.team->state, buffers.offset_dest, buffers.offset_source, buffers.bytes,
                             (uint32_t)root, dest != source, call);
    return 0;
}

/* Sizes may differ, so dest must be as large as all of them together. A PE without elements may pass no source, so
 * sources are not compared. */
static void audit_collect(struct quoit_team_slot *team, const void *dest, const void *source, size_t bytes,
                          const char *call)
{
    const struct quoit_audit_argument arguments[] = {
        {"nelems", bytes, QUOIT_AUDIT_OWN}, {"dest", quoit_audit_offset(dest), QUOIT_AUDIT_OFFSET}, {0}};
    uint64_t all = quoit_audit_collective(team, call, arguments);
    if (dest)
        quoit_check_symmetric(dest, all, "dest", call);
    quoit_check_disjoint(dest, all, source, bytes, false, call);
}

/* A PE without elements still receives those of the others. Whether there are any is known only inside, so NULL is
 * refused only then. */
static int collect(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes,
                   const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, false, false, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    uint64_t offset_dest = dest ? quoit_check_symmetric(dest, 1, "dest", call) : QUOIT_COLL_NOWHERE;
    quoit_check_disjoint(dest, buffers.bytes, source, buffers.bytes, false, call); /* its own part at least */
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        audit_collect(buffers.team, dest, source, buffers.bytes, call);
    if (!quoit_coll_collect(buffers.team->state, offset_dest, buffers.offset_source, buffers.bytes, false, call))
        quoit_wrong_address(call, "dest", dest, 1);
    return 0;
}

static int fcollect(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes,
                    const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, true, false, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    quoit_check_disjoint(dest, buffers.bytes * buffers.team->range.size, source, buffers.bytes, false, call);
    compare_calls(&buffers, nelems, 0, call);
    if (buffers.bytes != 0)
        quoit_coll_collect(buffers.team->state, buffers.offset_dest, buffers.offset_source, buffers.bytes, true, call);
    return 0;
}

static int alltoall(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes,
                    const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, true, true, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    size_t all = buffers.bytes * buffers.team->range.size;
    quoit_check_disjoint(dest, all, source, all, false, call);
    compare_calls(&buffers, nelems, 0, call);
    if (all != 0)
        quoit_coll_alltoall(buffers.team->state, buffers.offset_dest, buffers.offset_source, buffers.bytes, call);
    return 0;
}

static int alltoalls(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                     size_t element_bytes, const char *call)
{
    QUOIT_SPAN(call);
    struct quoit_team_slot *slot = quoit_team_for_collective(team, call);
    if (dst < 1 || sst < 1)
        quoit_wrong(QUOIT_WRONG_STRIDE, call, "%s is %td, but a stride is at least 1", dst < 1 ? "dst" : "sst",
                    dst < 1 ? dst : sst);
    QUOIT_AUDIT_COLLECTIVE(slot, call, {"nelems", nelems, QUOIT_AUDIT_NUMBER},
                           {"dst", (uint64_t)dst, QUOIT_AUDIT_NUMBER}, {"sst", (uint64_t)sst, QUOIT_AUDIT_NUMBER});
    if (nelems == 0)
        return 0;
    /* No memory is needed between the last element and the next stride. */
    size_t count = quoit_check_bytes(nelems, slot->range.size, call);
    quoit_span_group(&call_span, &slot->range, nelems * element_bytes);
    size_t dest_bytes = quoit_check_bytes(quoit_check_extent(dst, 1, count, call), element_bytes, call);
    size_t source_bytes = quoit_check_bytes(quoit_check_extent(sst, 1, count, call), element_bytes, call);
    struct quoit_alltoalls blocks = {.offset_dest = quoit_check_symmetric(dest, dest_bytes, "dest", call),
                                     .offset_source = quoit_check_symmetric(source, source_bytes, "source", call),
                                     .dest_stride = dst,
                                     .source_stride = sst,
                                     .count = nelems,
                                     .element_bytes = (uint32_t)element_bytes};
    quoit_check_disjoint_strided(dest, dest_bytes, dst, source, source_bytes, sst, element_bytes, call);
    QUOIT_AUDIT_COLLECTIVE(slot, call, {"dest", blocks.offset_dest, QUOIT_AUDIT_OFFSET},
                           {"source", blocks.offset_source, QUOIT_AUDIT_OFFSET});
    quoit_coll_alltoalls(slot->state, &blocks, call);
    return 0;
}

#define COLLECTIVES(PREFIX, SUFFIX, T, BYTES)                                                                          \
    QUOIT_API(int, PREFIX##alltoall##SUFFIX, (shmem_team_t team, T * dest, const T *source, size_t nelems))            \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #PREFIX "alltoall" #SUFFIX);                                                          \
        return alltoall(team, dest, source, nelems, BYTES, "shmem_" #PREFIX "alltoall" #SUFFIX);                       \
    }                                                                                                                  \
    QUOIT_API(int, PREFIX##alltoalls##SUFFIX,                                                                          \
              (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))             \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #PREFIX "alltoalls" #SUFFIX);                                                         \
        return alltoalls(team, dest, source, dst, sst, nelems, BYTES, "shmem_" #PREFIX "alltoalls" #SUFFIX);           \
    }                                                                                                                  \
    QUOIT_API(int, PREFIX##broadcast##SUFFIX,                                                                          \
              (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root))                              \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #PREFIX "broadcast" #SUFFIX);                                                         \
        return broadcast(team, dest, source, nelems, BYTES, PE_root, "shmem_" #PREFIX "broadcast" #SUFFIX);            \
    }                                                                                                                  \
    QUOIT_API(int, PREFIX##collect##SUFFIX, (shmem_team_t team, T * dest, const T *source, size_t nelems))             \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #PREFIX "collect" #SUFFIX);                                                           \
        return collect(team, dest, source, nelems, BYTES, "shmem_" #PREFIX "collect" #SUFFIX);                         \
    }                                                                                                                  \
    QUOIT_API(int, PREFIX##fcollect##SUFFIX, (shmem_team_t team, T * dest, const T *source, size_t nelems))            \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #PREFIX "fcollect" #SUFFIX);                                                          \
        return fcollect(team, dest, source, nelems, BYTES, "shmem_" #PREFIX "fcollect" #SUFFIX);                       \
    }
#define X(N, T) COLLECTIVES(N##_, , T, sizeof(T))
QUOIT_RMA_TYPES(X)
#undef X
COLLECTIVES(, mem, void, 1)

static int reduce(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes,
                  quoit_combine *combine, const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, false, false, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    quoit_check_disjoint(dest, buffers.bytes, source, buffers.bytes, true, call);
    compare_calls(&buffers, nelems, 0, call);
    if (buffers.bytes != 0)
        quoit_coll_reduce(buffers.team->state, buffers.offset_dest, buffers.offset_source, nelems, element_bytes,
                          combine, call);
    return 0;
}

#define REDUCE(N, T, OP)                                                                                               \
    QUOIT_API(int, N##_##OP##_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce))                  \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #N "_" #OP "_reduce");                                                                \
        return reduce(team, dest, source, nreduce, sizeof(T), quoit_##OP##_##N, "shmem_" #N "_" #OP "_reduce");        \
    }
#define X(N, T) REDUCE(N, T, and) REDUCE(N, T, or) REDUCE(N, T, xor)
QUOIT_REDUCE_BITWISE_TYPES(X)
#undef X
#define X(N, T) REDUCE(N, T, min) REDUCE(N, T, max)
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(N, T) REDUCE(N, T, sum) REDUCE(N, T, prod)
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X

static int scan(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t element_bytes,
                quoit_combine *sum, bool is_inclusive, const char *call)
{
    QUOIT_SPAN(call);
    struct buffers buffers = check_buffers(team, dest, source, nelems, element_bytes, false, false, call);
    quoit_span_group(&call_span, &buffers.team->range, buffers.bytes);
    quoit_check_disjoint(dest, buffers.bytes, source, buffers.bytes, true, call);
    compare_calls(&buffers, nelems, 0, call);
    if (buffers.bytes != 0)
        quoit_coll_scan(buffers.team->state, buffers.offset_dest, buffers.offset_source, nelems, element_bytes, sum,
                        is_inclusive, call);
    return 0;
}

#define X(N, T)                                                                                                        \
    QUOIT_API(int, N##_sum_inscan, (shmem_team_t team, T * dest, const T *source, size_t nelems))                      \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #N "_sum_inscan");                                                                    \
        return scan(team, dest, source, nelems, sizeof(T), quoit_sum_##N, true, "shmem_" #N "_sum_inscan");            \
    }                                                                                                                  \
    QUOIT_API(int, N##_sum_exscan, (shmem_team_t team, T * dest, const T *source, size_t nelems))                      \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #N "_sum_exscan");                                                                    \
        return scan(team, dest, source, nelems, sizeof(T), quoit_sum_##N, false, "shmem_" #N "_sum_exscan");           \
    }
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X
