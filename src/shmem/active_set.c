/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of active sets, deprecated: checks the arguments; coll does the work, on the team behind the set. pSync
 * is used only while that team is made, and pWrk not at all: only --check looks at it. */
#include "shmem/audit.h"
#include "shmem/check.h"
#include "shmem/combine.h"
#include "shmem/set.h"
#include "shmem/span.h"

static struct quoit_set check_set(int start, int log_stride, int size, long *psync, const char *call)
{
    uint32_t pe_count = quoit_job.pe_count;
    quoit_check_running(call);
    if (log_stride < 0 || log_stride > 30 || size < 1 || start < 0 ||
        start + ((int64_t)(size - 1) << log_stride) >= (int64_t)pe_count)
        quoit_wrong(QUOIT_WRONG_ACTIVE_SET, call,
                    "PE_start %d, logPE_stride %d, PE_size %d reach outside the job, which has %u PEs (0..%u)", start,
                    log_stride, size, pe_count, pe_count - 1);
    uint32_t stride = 1u << log_stride;
    uint32_t distance = quoit_job.pe - (uint32_t)start;
    if (quoit_job.pe < (uint32_t)start || distance % stride != 0 || distance / stride >= (uint32_t)size)
        quoit_wrong(QUOIT_WRONG_ACTIVE_SET, call,
                    "PE %u calls, but is not in the set of PE_start %d, logPE_stride %d, "
                    "PE_size %d",
                    quoit_job.pe, start, log_stride, size);
    quoit_check_word(psync, sizeof *psync, "pSync", call);
    return (struct quoit_set){
        .range = {.start = (uint32_t)start, .stride = size == 1 ? 1 : stride, .size = (uint32_t)size},
        .rank = distance / stride,
        .sync = (uint64_t *)psync,
        .offset_sync = quoit_check_symmetric(psync, QUOIT_SET_WORDS * sizeof *psync, "pSync", call),
        .call = call,
    };
}

static void sync_set(void *arg)
{
    struct quoit_set *set = arg;
    quoit_set_enter(set);
    quoit_coll_sync(set->team, set->call);
    quoit_set_leave(set);
}

/* Under --check: pSync holds its initial value and the PEs agree. Returns as quoit_audit_collective(). */
static uint64_t check_call(struct quoit_set *set, const struct quoit_audit_argument *arguments)
{
    const struct quoit_audit_set about = {.start = set->range.start,
                                          .stride = set->range.stride,
                                          .size = set->range.size,
                                          .psync = (const long *)set->sync,
                                          .offset_psync = set->offset_sync};
    return quoit_audit_set_begin(&about, set->call, arguments, sync_set, set);
}

#define BEGIN(set, ...)                                                                                                \
    do {                                                                                                               \
        if (__builtin_expect(quoit_job.audit != NULL, 0))                                                              \
            check_call(set, (const struct quoit_audit_argument[]){__VA_ARGS__, {0}});                                  \
        quoit_set_enter(set);                                                                                          \
    } while (0)

static void end(struct quoit_set *set)
{
    quoit_set_leave(set);
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        quoit_audit_set_end(set->offset_sync);
}

QUOIT_API(void, barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    QUOIT_JOB_ENTER("shmem_barrier");
    struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_barrier");
    QUOIT_SPAN(set.call);
    quoit_span_group(&call_span, &set.range, 0);
    BEGIN(&set, {0});
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    quoit_coll_sync(set.team, set.call);
    end(&set);
}

QUOIT_API(void, sync, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    QUOIT_JOB_ENTER("shmem_sync");
    struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_sync");
    QUOIT_SPAN(set.call);
    quoit_span_group(&call_span, &set.range, 0);
    BEGIN(&set, {0});
    quoit_coll_sync(set.team, set.call);
    end(&set);
}

/* The root's own dest is not written. */
static void broadcast(struct quoit_set *set, void *dest, const void *source, size_t nelems, size_t element_bytes,
                      int root)
{
    QUOIT_SPAN(set->call);
    size_t bytes = quoit_check_bytes(nelems, element_bytes, set->call);
    quoit_span_group(&call_span, &set->range, bytes);
    uint64_t offset_dest = quoit_check_symmetric(dest, bytes, "dest", set->call);
    uint64_t offset_source = quoit_check_symmetric(source, bytes, "source", set->call);
    if ((uint32_t)root >= set->range.size)
        quoit_wrong_pe(set->call, "PE_root", root, set->range.size, "the active set");
    if (__builtin_expect(quoit_job.audit != NULL, 0)) /* mostly harmless: only the root's source is read */
        quoit_check_disjoint(dest, bytes, source, bytes, true, set->call);
    BEGIN(set, {"nelems", nelems, QUOIT_AUDIT_NUMBER}, {"PE_root", (uint64_t)root, QUOIT_AUDIT_NUMBER},
          {"dest", offset_dest, QUOIT_AUDIT_OFFSET});
    quoit_coll_broadcast(set->team, offset_dest, offset_source, bytes, (uint32_t)root, false, set->call);
    end(set);
}

/* Under --check. Sizes may differ, so dest must be as large as the parts of all PEs together. */
static void check_collect(struct quoit_set *set, const void *dest, const void *source, size_t nelems, size_t bytes,
                          bool is_equal)
{
    const struct quoit_audit_argument arguments[] = {{"nelems", is_equal ? nelems : 0, QUOIT_AUDIT_NUMBER},
                                                     {"dest", quoit_audit_offset(dest), QUOIT_AUDIT_OFFSET},
                                                     {"bytes", bytes, QUOIT_AUDIT_OWN},
                                                     {0}};
    uint64_t all = check_call(set, arguments);
    if (dest)
        quoit_check_symmetric(dest, all, "dest", set->call);
    quoit_check_disjoint(dest, all, source, bytes, false, set->call);
}

static void collect(struct quoit_set *set, void *dest, const void *source, size_t nelems, size_t element_bytes,
                    bool is_equal)
{
    QUOIT_SPAN(set->call);
    size_t bytes = quoit_check_bytes(nelems, element_bytes, set->call);
    quoit_span_group(&call_span, &set->range, bytes);
    size_t all = is_equal ? quoit_check_bytes(bytes, set->range.size, set->call) : bytes;
    uint64_t offset_dest = quoit_check_symmetric(dest, all, "dest", set->call);
    uint64_t offset_source = quoit_check_symmetric(source, bytes, "source", set->call);
    if (!is_equal) /* a PE without elements still receives those of the others */
        offset_dest = dest ? quoit_check_symmetric(dest, 1, "dest", set->call) : QUOIT_COLL_NOWHERE;
    quoit_check_disjoint(dest, all, source, bytes, false, set->call); /* of a collect its own part at least */
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        check_collect(set, dest, source, nelems, bytes, is_equal);
    quoit_set_enter(set);
    if (!quoit_coll_collect(set->team, offset_dest, offset_source, bytes, is_equal, set->call))
        quoit_wrong_address(set->call, "dest", dest, 1);
    end(set);
}

static void alltoalls(struct quoit_set *set, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t element_bytes)
{
    QUOIT_SPAN(set->call);
    if (dst < 1 || sst < 1)
        quoit_wrong(QUOIT_WRONG_STRIDE, set->call, "%s is %td, but a stride is at least 1", dst < 1 ? "dst" : "sst",
                    dst < 1 ? dst : sst);
    struct quoit_alltoalls blocks = {.dest_stride = dst, .source_stride = sst, .count = nelems};
    blocks.element_bytes = (uint32_t)element_bytes;
    if (nelems != 0) {
        /* No memory is needed between the last element and the next stride. */
        size_t count = quoit_check_bytes(nelems, set->range.size, set->call);
        quoit_span_group(&call_span, &set->range, nelems * element_bytes);
        size_t dest_bytes = quoit_check_bytes(quoit_check_extent(dst, 1, count, set->call), element_bytes, set->call);
        size_t source_bytes = quoit_check_bytes(quoit_check_extent(sst, 1, count, set->call), element_bytes, set->call);
        blocks.offset_dest = quoit_check_symmetric(dest, dest_bytes, "dest", set->call);
        blocks.offset_source = quoit_check_symmetric(source, source_bytes, "source", set->call);
        quoit_check_disjoint_strided(dest, dest_bytes, dst, source, source_bytes, sst, element_bytes, set->call);
    }
    BEGIN(set, {"nelems", nelems, QUOIT_AUDIT_NUMBER}, {"dst", (uint64_t)dst, QUOIT_AUDIT_NUMBER},
          {"sst", (uint64_t)sst, QUOIT_AUDIT_NUMBER}, {"dest", blocks.offset_dest, QUOIT_AUDIT_OFFSET});
    if (dst == 1 && sst == 1)
        quoit_coll_alltoall(set->team, blocks.offset_dest, blocks.offset_source, nelems * element_bytes, set->call);
    else
        quoit_coll_alltoalls(set->team, &blocks, set->call);
    end(set);
}

/* Under --check. Includes pWrk, which other implementations use. */
static void check_work(const struct quoit_set *set, size_t nreduce, size_t element_bytes, const void *work)
{
    size_t most = nreduce / 2 + 1;
    size_t work_count = most < SHMEM_REDUCE_MIN_WRKDATA_SIZE ? SHMEM_REDUCE_MIN_WRKDATA_SIZE : most;
    quoit_check_symmetric(work, work_count * element_bytes, "pWrk", set->call);
}

static void reduce(struct quoit_set *set, void *dest, const void *source, int nreduce, size_t element_bytes,
                   const void *work, quoit_combine *combine)
{
    QUOIT_SPAN(set->call);
    if (nreduce < 0)
        quoit_wrong(QUOIT_WRONG_COUNT, set->call, "nreduce is %d, but at least 0 is needed", nreduce);
    size_t bytes = (size_t)nreduce * element_bytes;
    quoit_span_group(&call_span, &set->range, bytes);
    uint64_t offset_dest = quoit_check_symmetric(dest, bytes, "dest", set->call);
    uint64_t offset_source = quoit_check_symmetric(source, bytes, "source", set->call);
    quoit_check_disjoint(dest, bytes, source, bytes, true, set->call);
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        check_work(set, (size_t)nreduce, element_bytes, work);
    BEGIN(set, {"nreduce", (uint64_t)nreduce, QUOIT_AUDIT_NUMBER}, {"dest", offset_dest, QUOIT_AUDIT_OFFSET},
          {"source", offset_source, QUOIT_AUDIT_OFFSET});
    quoit_coll_reduce(set->team, offset_dest, offset_source, (size_t)nreduce, element_bytes, combine, set->call);
    end(set);
}

#define X(BITS, BYTES)                                                                                                 \
    QUOIT_API(void, broadcast##BITS,                                                                                   \
              (void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride,             \
               int PE_size, long *pSync))                                                                              \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_broadcast" #BITS);                                                                      \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_broadcast" #BITS);             \
        broadcast(&set, dest, source, nelems, BYTES, PE_root);                                                         \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, collect##BITS,                                                                                           \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_collect" #BITS);                                                                        \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_collect" #BITS);               \
        collect(&set, dest, source, nelems, BYTES, false);                                                             \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, fcollect##BITS,                                                                                          \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_fcollect" #BITS);                                                                       \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_fcollect" #BITS);              \
        collect(&set, dest, source, nelems, BYTES, true);                                                              \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, alltoall##BITS,                                                                                          \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_alltoall" #BITS);                                                                       \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_alltoall" #BITS);              \
        alltoalls(&set, dest, source, 1, 1, nelems, BYTES);                                                            \
    }                                                                                                                  \
    QUOIT_API(void, alltoalls##BITS,                                                                                   \
              (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start,              \
               int logPE_stride, int PE_size, long *pSync))                                                            \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_alltoalls" #BITS);                                                                      \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_alltoalls" #BITS);             \
        alltoalls(&set, dest, source, dst, sst, nelems, BYTES);                                                        \
    }
X(32, 4)
X(64, 8)
#undef X

#define TO_ALL(N, T, OP)                                                                                               \
    QUOIT_API(                                                                                                         \
        void, N##_##OP##_to_all,                                                                                       \
        (T * dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, long *pSync))   \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #N "_" #OP "_to_all");                                                                \
        struct quoit_set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_" #N "_" #OP "_to_all");       \
        reduce(&set, dest, source, nreduce, sizeof(T), pWrk, quoit_##OP##_##N);                                        \
    }
#define X(N, T) TO_ALL(N, T, and) TO_ALL(N, T, or) TO_ALL(N, T, xor)
QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#define X(N, T) TO_ALL(N, T, min) TO_ALL(N, T, max)
QUOIT_TO_ALL_ORDERED_TYPES(X)
#undef X
#define X(N, T) TO_ALL(N, T, sum) TO_ALL(N, T, prod)
QUOIT_TO_ALL_ARITHMETIC_TYPES(X)
#undef X
