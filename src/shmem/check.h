/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - the slow path behind fast.h: checks arguments, with a message for each mistake, then does the work.
 *
 * Arguments: `call` is the routine's name, a string literal. `pe` is a PE of the context's team. Counts are in
 * elements.
 * Threads: any. Errors: a mistake ends the job (wrong.h), so every function that returns has valid arguments.
 */
#ifndef QUOIT_SHMEM_CHECK_H
#define QUOIT_SHMEM_CHECK_H

#include "shmem/api.h"
#include "shmem/wrong.h"

/* A checked target of a one-sided operation. */
struct quoit_target {
    struct quoit_context *context;
    uint64_t offset;
    uint32_t pe;
    size_t bytes;
};

/* Ends the job unless the library is initialized and, under --check, this thread may call it. */
void quoit_check_state(const char *call);
static inline void quoit_check_running(const char *call)
{
    if (__builtin_expect(quoit_job.fast.pe_count == 0, 0))
        quoit_check_state(call);
}
/* The same on entry to a routine that is too quick for QUOIT_JOB_ENTER. */
#define QUOIT_ENTER_IF_WRONG(is_wrong, call)                                                                           \
    do {                                                                                                               \
        if (__builtin_expect((is_wrong) || quoit_job.fast.pe_count == 0, 0)) {                                         \
            QUOIT_JOB_ENTER(call);                                                                                     \
            quoit_check_running(call);                                                                                 \
        }                                                                                                              \
    } while (0)
/* nelems * element_bytes; ends the job on overflow. */
size_t quoit_check_bytes(size_t nelems, size_t element_bytes, const char *call);
/* Elements from the first to the last, inclusive, of `count` blocks; ends the job on overflow. */
size_t quoit_check_extent(ptrdiff_t stride, size_t block_count, size_t count, const char *call);
/* The segment offset of a symmetric argument; ends the job if it is not symmetric. Zero bytes are not checked and have
 * offset 0. */
uint64_t quoit_check_symmetric(const void *address, size_t bytes, const char *argument, const char *call);
/* Checks any memory of this PE: not NULL unless bytes is 0; under --check within one object, if it lies in a known one.
 */
void quoit_check_private(const void *address, size_t bytes, const char *argument, const char *call);
/* Checks an aligned symmetric word of this PE. */
void quoit_check_word(const void *address, size_t bytes, const char *argument, const char *call);
/* Checks that dest and source, both in this PE's memory, do not overlap; may_be_same permits identical addresses. */
static inline void quoit_check_disjoint(const void *dest, size_t dest_bytes, const void *source, size_t source_bytes,
                                        bool may_be_same, const char *call)
{
    uintptr_t to = (uintptr_t)dest, from = (uintptr_t)source;
    bool is_apart = to >= from + source_bytes || from >= to + dest_bytes || dest_bytes == 0 || source_bytes == 0;
    if (__builtin_expect(!is_apart && !(may_be_same && to == from), 0))
        quoit_wrong_overlap(call, dest, dest_bytes, source, source_bytes, may_be_same);
}
/* The same for strided arrays, strides in elements; arrays with one stride may interleave. */
void quoit_check_disjoint_strided(const void *dest, size_t dest_bytes, ptrdiff_t dst, const void *source,
                                  size_t source_bytes, ptrdiff_t sst, size_t element_bytes, const char *call);
/* Checks all arguments of a one-sided operation on `address` of `pe`. */
struct quoit_target quoit_check_target(shmem_ctx_t ctx, const void *address, const char *argument, size_t nelems,
                                       size_t element_bytes, int pe, const char *call);

/* The complete operations, for arguments that the fast path did not accept; semantics as in shmem.h. */
void quoit_put_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call);
void quoit_get_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call);
void quoit_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call);
void quoit_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call);
/* `argument`: the specification's name of the word at `address`. */
void quoit_amo_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, const char *argument,
                    uint64_t operand, int pe, const char *call);
uint64_t quoit_amo_fetch_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                              uint64_t compare, int pe, const char *call);
void quoit_amo_nbi_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, void *fetch, const void *address,
                        uint64_t operand, uint64_t compare, int pe, const char *call);

#endif
