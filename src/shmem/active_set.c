/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of active sets, deprecated. An active set has no workspace but the caller's pSync, so these are written
 * on puts and atomics alone: simple and linear. Of pSync one word counts who arrived and one tells; both are 0 again at
 * return. Barriers have words of their own, so that one may follow another collective on the same pSync at once. */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"
#include "shmem/combine.h"

#define ARRIVED          0
#define RELEASED         1
#define BARRIER_ARRIVED  2
#define BARRIER_RELEASED 3
#define PSYNC_USED       4
#define PIECE_BYTES      32768 /* of a reduction at once */

struct set {
    uint32_t start;
    uint32_t stride;
    uint32_t size;
    uint32_t rank;
    uint64_t *sync; /* the own pSync */
    uint64_t offset_sync;
    const char *call;
};

static struct set check_set(int start, int log_stride, int size, long *psync, const char *call)
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
    return (struct set){.start = (uint32_t)start,
                        .stride = stride,
                        .size = (uint32_t)size,
                        .rank = distance / stride,
                        .sync = (uint64_t *)psync,
                        .offset_sync = quoit_check_symmetric(psync, PSYNC_USED * sizeof *psync, "pSync", call),
                        .call = call};
}

static uint32_t pe_of(const struct set *set, uint32_t rank)
{
    return set->start + rank * set->stride;
}

static struct quoit_context *context(void)
{
    return &quoit_job.fabric->default_context;
}

/* After all that was put to that PE before. */
static void tell(const struct set *set, uint32_t rank, uint32_t word, enum quoit_amo op, uint64_t value)
{
    quoit_fabric_amo(quoit_job.fabric, context(), op, sizeof(uint64_t), set->offset_sync + word * sizeof(uint64_t),
                     value, pe_of(set, rank));
}

struct wait_word {
    const uint64_t *word;
    uint64_t least;
};

static bool has_come(void *arg)
{
    const struct wait_word *wait = arg;
    return __atomic_load_n(wait->word, __ATOMIC_ACQUIRE) >= wait->least;
}

/* Waits until the own word is at least `least`, takes it back to 0 and returns what it was. */
static uint64_t take_word(const struct set *set, uint32_t word, uint64_t least)
{
    struct wait_word wait = {&set->sync[word], least};
    if (!has_come(&wait))
        quoit_fabric_wait(quoit_job.fabric, has_come, &wait, set->call);
    return __atomic_exchange_n(&set->sync[word], 0, __ATOMIC_ACQ_REL);
}

static void sync_set(const struct set *set)
{
    if (set->rank != 0) {
        tell(set, 0, BARRIER_ARRIVED, QUOIT_AMO_ADD, 1);
        take_word(set, BARRIER_RELEASED, 1);
        return;
    }
    take_word(set, BARRIER_ARRIVED, set->size - 1);
    for (uint32_t rank = 1; rank < set->size; rank++)
        tell(set, rank, BARRIER_RELEASED, QUOIT_AMO_SET, 1);
}

/* Tells all others that what this PE had for them is there, and waits until they told the same. */
static void exchange(const struct set *set)
{
    quoit_fabric_fence(quoit_job.fabric, context());
    for (uint32_t i = 1; i < set->size; i++)
        tell(set, (set->rank + i) % set->size, ARRIVED, QUOIT_AMO_ADD, 1);
    take_word(set, ARRIVED, set->size - 1);
}

static void sync_for_audit(void *arg)
{
    sync_set(arg);
}

/* Under --check: pSync is at rest and the PEs agree. */
static uint64_t begin(struct set *set, const struct quoit_audit_argument *arguments)
{
    const struct quoit_audit_set about = {.start = set->start,
                                          .stride = set->stride,
                                          .size = set->size,
                                          .psync = (const long *)set->sync,
                                          .offset_psync = set->offset_sync,
                                          .come_word = BARRIER_ARRIVED};
    return quoit_audit_set_begin(&about, set->call, arguments, sync_for_audit, set);
}

static void end(const struct set *set)
{
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        quoit_audit_set_end(set->offset_sync);
}

#define BEGIN(set, ...)                                                                                                \
    do {                                                                                                               \
        if (__builtin_expect(quoit_job.audit != NULL, 0))                                                              \
            begin(set, (const struct quoit_audit_argument[]){__VA_ARGS__, {0}});                                       \
    } while (0)

QUOIT_API(void, barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    QUOIT_JOB_ENTER("shmem_barrier");
    struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_barrier");
    QUOIT_SPAN(set.call);
    BEGIN(&set, {0});
    quoit_fabric_quiet(quoit_job.fabric, context());
    sync_set(&set);
    end(&set);
}

QUOIT_API(void, sync, (int PE_start, int logPE_stride, int PE_size, long *pSync))
{
    QUOIT_JOB_ENTER("shmem_sync");
    struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_sync");
    QUOIT_SPAN(set.call);
    BEGIN(&set, {0});
    sync_set(&set);
    end(&set);
}

static void broadcast(struct set *set, void *dest, const void *source, size_t nelems, size_t element_bytes, int root)
{
    QUOIT_SPAN(set->call);
    size_t bytes = quoit_check_bytes(nelems, element_bytes, set->call);
    uint64_t offset = quoit_check_symmetric(dest, bytes, "dest", set->call);
    quoit_check_symmetric(source, bytes, "source", set->call);
    if ((uint32_t)root >= set->size)
        quoit_wrong_pe(set->call, "PE_root", root, set->size, "the active set");
    BEGIN(set, {"nelems", nelems, QUOIT_AUDIT_NUMBER}, {"PE_root", (uint64_t)root, QUOIT_AUDIT_NUMBER},
          {"dest", offset, QUOIT_AUDIT_OFFSET});
    if (set->rank != (uint32_t)root) {
        tell(set, (uint32_t)root, ARRIVED, QUOIT_AMO_ADD, 1);
        take_word(set, RELEASED, 1);
        end(set);
        return;
    }
    /* Nobody is in an earlier call any more: programs take two pSyncs by turns, and look at dest before the next. */
    take_word(set, ARRIVED, set->size - 1);
    for (uint32_t i = 1; i < set->size; i++)
        quoit_fabric_put(quoit_job.fabric, context(), offset, source, bytes, pe_of(set, (set->rank + i) % set->size));
    quoit_fabric_fence(quoit_job.fabric, context());
    for (uint32_t i = 1; i < set->size; i++)
        tell(set, (set->rank + i) % set->size, RELEASED, QUOIT_AMO_SET, 1);
    end(set);
}

/* dest is as large as the parts of all together, which fcollect has equal. */
static void begin_collect(struct set *set, const void *dest, const void *source, size_t nelems, size_t bytes,
                          bool is_equal)
{
    const struct quoit_audit_argument arguments[] = {{"nelems", is_equal ? nelems : 0, QUOIT_AUDIT_NUMBER},
                                                     {"dest", quoit_audit_offset(dest), QUOIT_AUDIT_OFFSET},
                                                     {"bytes", bytes, QUOIT_AUDIT_OWN},
                                                     {0}};
    uint64_t all = begin(set, arguments);
    quoit_check_symmetric(dest, all, "dest", set->call);
    quoit_audit_disjoint(dest, all, source, bytes, false, set->call);
}

/* With different sizes each PE learns from the one before it where its part begins: that offset + 1, so never 0. */
static void collect(struct set *set, void *dest, const void *source, size_t nelems, size_t element_bytes, bool is_equal)
{
    QUOIT_SPAN(set->call);
    size_t bytes = quoit_check_bytes(nelems, element_bytes, set->call);
    uint64_t offset = quoit_check_symmetric(dest, is_equal ? quoit_check_bytes(bytes, set->size, set->call) : bytes,
                                            "dest", set->call);
    quoit_check_symmetric(source, bytes, "source", set->call);
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        begin_collect(set, dest, source, nelems, bytes, is_equal);
    uint64_t at = is_equal ? set->rank * bytes : 0;
    if (!is_equal && set->rank != 0)
        at = take_word(set, RELEASED, 1) - 1;
    if (!is_equal && set->rank + 1 < set->size)
        tell(set, set->rank + 1, RELEASED, QUOIT_AMO_SET, at + bytes + 1);
    for (uint32_t i = 0; i < set->size; i++)
        quoit_fabric_put(quoit_job.fabric, context(), offset + at, source, bytes,
                         pe_of(set, (set->rank + i) % set->size));
    exchange(set);
    end(set);
}

static void alltoalls(struct set *set, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                      size_t element_bytes)
{
    QUOIT_SPAN(set->call);
    if (dst < 1 || sst < 1)
        quoit_wrong(QUOIT_WRONG_STRIDE, set->call, "%s is %td, but a stride is at least 1", dst < 1 ? "dst" : "sst",
                    dst < 1 ? dst : sst);
    size_t dest_block = quoit_check_bytes(quoit_check_bytes(nelems, (size_t)dst, set->call), element_bytes, set->call);
    size_t source_block =
        quoit_check_bytes(quoit_check_bytes(nelems, (size_t)sst, set->call), element_bytes, set->call);
    size_t dest_gap = ((size_t)dst - 1) * element_bytes; /* nothing need lie behind the last element */
    size_t source_gap = ((size_t)sst - 1) * element_bytes;
    uint64_t offset = nelems ? quoit_check_symmetric(dest, dest_block * set->size - dest_gap, "dest", set->call) : 0;
    if (nelems != 0)
        quoit_check_symmetric(source, source_block * set->size - source_gap, "source", set->call);
    BEGIN(set, {"nelems", nelems, QUOIT_AUDIT_NUMBER}, {"dst", (uint64_t)dst, QUOIT_AUDIT_NUMBER},
          {"sst", (uint64_t)sst, QUOIT_AUDIT_NUMBER}, {"dest", offset, QUOIT_AUDIT_OFFSET});
    struct quoit_strided strided = {.offset = offset + set->rank * dest_block,
                                    .remote_stride = dst * (ptrdiff_t)element_bytes,
                                    .private_stride = sst * (ptrdiff_t)element_bytes,
                                    .count = nelems,
                                    .element_bytes = (uint32_t)element_bytes};
    for (uint32_t i = 0; i < set->size; i++) {
        uint32_t rank = (set->rank + i) % set->size;
        const char *from = (const char *)source + rank * source_block;
        if (dst == 1 && sst == 1)
            quoit_fabric_put(quoit_job.fabric, context(), strided.offset, from, dest_block, pe_of(set, rank));
        else
            quoit_fabric_iput(quoit_job.fabric, context(), &strided, from, pe_of(set, rank));
    }
    exchange(set);
    end(set);
}

/* The first PE reads a piece of all sources, then writes the result to all, and so on: no source is overwritten before
 * it was read, so dest may be source. */
static void reduce(struct set *set, void *dest, const void *source, int nreduce, size_t element_bytes,
                   quoit_combine *combine)
{
    QUOIT_SPAN(set->call);
    _Alignas(16) char sum[PIECE_BYTES], other[PIECE_BYTES];
    if (nreduce < 0)
        quoit_wrong(QUOIT_WRONG_COUNT, set->call, "nreduce is %d, but at least 0 is needed", nreduce);
    size_t bytes = (size_t)nreduce * element_bytes;
    uint64_t offset_dest = quoit_check_symmetric(dest, bytes, "dest", set->call);
    uint64_t offset_source = quoit_check_symmetric(source, bytes, "source", set->call);
    BEGIN(set, {"nreduce", (uint64_t)nreduce, QUOIT_AUDIT_NUMBER}, {"dest", offset_dest, QUOIT_AUDIT_OFFSET},
          {"source", offset_source, QUOIT_AUDIT_OFFSET});
    if (set->rank != 0) {
        tell(set, 0, ARRIVED, QUOIT_AMO_ADD, 1);
        take_word(set, RELEASED, 1);
        end(set);
        return;
    }
    take_word(set, ARRIVED, set->size - 1);
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        memcpy(sum, (const char *)source + at, part);
        for (uint32_t rank = 1; rank < set->size; rank++) {
            quoit_fabric_get(quoit_job.fabric, context(), other, offset_source + at, part, pe_of(set, rank));
            combine(sum, other, part / element_bytes);
        }
        for (uint32_t rank = 0; rank < set->size; rank++)
            quoit_fabric_put(quoit_job.fabric, context(), offset_dest + at, sum, part, pe_of(set, rank));
    }
    quoit_fabric_fence(quoit_job.fabric, context());
    for (uint32_t rank = 1; rank < set->size; rank++)
        tell(set, rank, RELEASED, QUOIT_AMO_SET, 1);
    end(set);
}

#define X(BITS, BYTES)                                                                                                 \
    QUOIT_API(void, broadcast##BITS,                                                                                   \
              (void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride,             \
               int PE_size, long *pSync))                                                                              \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_broadcast" #BITS);                                                                      \
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_broadcast" #BITS);                   \
        broadcast(&set, dest, source, nelems, BYTES, PE_root);                                                         \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, collect##BITS,                                                                                           \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_collect" #BITS);                                                                        \
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_collect" #BITS);                     \
        collect(&set, dest, source, nelems, BYTES, false);                                                             \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, fcollect##BITS,                                                                                          \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_fcollect" #BITS);                                                                       \
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_fcollect" #BITS);                    \
        collect(&set, dest, source, nelems, BYTES, true);                                                              \
    }                                                                                                                  \
    QUOIT_API(                                                                                                         \
        void, alltoall##BITS,                                                                                          \
        (void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, long *pSync))     \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_alltoall" #BITS);                                                                       \
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_alltoall" #BITS);                    \
        alltoalls(&set, dest, source, 1, 1, nelems, BYTES);                                                            \
    }                                                                                                                  \
    QUOIT_API(void, alltoalls##BITS,                                                                                   \
              (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start,              \
               int logPE_stride, int PE_size, long *pSync))                                                            \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_alltoalls" #BITS);                                                                      \
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_alltoalls" #BITS);                   \
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
        struct set set = check_set(PE_start, logPE_stride, PE_size, pSync, "shmem_" #N "_" #OP "_to_all");             \
        (void)pWrk;                                                                                                    \
        reduce(&set, dest, source, nreduce, sizeof(T), quoit_##OP##_##N);                                              \
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
