/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - arguments checked with a message for each mistake, then the work: what the fast way of fast.h leaves over.
 *
 * `call` is the routine's name, a string literal. `pe` counts in the context's team. Counts are in elements.
 */
#ifndef QUOIT_SHMEM_CHECK_H
#define QUOIT_SHMEM_CHECK_H

#include "shmem/api.h"
#include "shmem/wrong.h"

/* A checked target. */
struct quoit_target {
    struct quoit_context *context;
    uint64_t offset;
    uint32_t pe;
    size_t bytes;
};

/* The library runs, and under --check this thread may call it, or the job ends. */
void quoit_check_state(const char *call);
static inline void quoit_check_running(const char *call)
{
    if (__builtin_expect(quoit_job.fast.pe_count == 0, 0))
        quoit_check_state(call);
}
/* The same at the entry of a routine that is too quick for QUOIT_JOB_ENTER. */
#define QUOIT_ENTER_IF_WRONG(is_wrong, call)                                                                           \
    do {                                                                                                               \
        if (__builtin_expect((is_wrong) || quoit_job.fast.pe_count == 0, 0)) {                                         \
            QUOIT_JOB_ENTER(call);                                                                                     \
            quoit_check_running(call);                                                                                 \
        }                                                                                                              \
    } while (0)
/* nelems * element_bytes, or the job ends. */
size_t quoit_check_bytes(size_t nelems, size_t element_bytes, const char *call);
/* The segment offset of a symmetric argument, or the job ends. Nothing is asked of zero bytes, whose offset is 0. */
uint64_t quoit_check_symmetric(const void *address, size_t bytes, const char *argument, const char *call);
/* Any memory of this PE. Not NULL unless bytes is 0; under --check inside one object where it is one of the audit's. */
void quoit_check_private(const void *address, size_t bytes, const char *argument, const char *call);
/* An aligned symmetric word of the own PE. */
void quoit_check_word(const void *address, size_t bytes, const char *argument, const char *call);
/* All that a one-sided operation on `address` of `pe` needs. */
struct quoit_target quoit_check_target(shmem_ctx_t ctx, const void *address, const char *argument, size_t nelems,
                                       size_t element_bytes, int pe, const char *call);

/* More than a word to `to`, which lies in the segment of that PE of this host; wakes it. The ranges may be the same. */
void quoit_fast_put(const struct quoit_reach *reach, char *to, const void *source, size_t bytes);

void quoit_put_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call);
void quoit_get_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                    const char *call);
void quoit_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call);
void quoit_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                   const char *call);
/* `argument`: what the routine calls the word at `address`. */
void quoit_amo_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, const char *argument,
                    uint64_t operand, int pe, const char *call);
uint64_t quoit_amo_fetch_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                              uint64_t compare, int pe, const char *call);
void quoit_amo_nbi_slow(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, void *fetch, const void *address,
                        uint64_t operand, uint64_t compare, int pe, const char *call);

#endif
