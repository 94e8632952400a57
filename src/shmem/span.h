/* SPDX-License-Identifier: BSD-3-Clause */
/* span.h - a call from entry to return, observed by `oshrun --check`, `--trace` and `--profile`.
 *
 * With any of them, quoit_job.fast.pe_count stays 0, so every call comes here; otherwise a span costs one comparison.
 * Threads: any; a span belongs to the thread that began it. */
#ifndef QUOIT_SHMEM_SPAN_H
#define QUOIT_SHMEM_SPAN_H

#include "shmem/audit.h"

struct quoit_span {
    bool is_watched;
    struct quoit_audit *audit;      /* to leave; NULL: not audited, or nothing to leave */
    struct quoit_trace_ring *trace; /* likewise */
    uint64_t begin_ns;
    struct quoit_profile *profile; /* likewise */
    bool is_outermost;             /* of the calls that the profile counts */
};

/* `bytes` and `pe` (a PE of the context's team, recorded as given) are for the trace; the profile has the bytes, too.
 */
struct quoit_span quoit_span_enter(const char *call, uint64_t bytes, uint32_t pe);
void quoit_span_end(struct quoit_span *span);

static inline struct quoit_span quoit_span_begin(const char *call, uint64_t bytes, uint32_t pe)
{
    if (__builtin_expect(quoit_job.fast.pe_count == 0, 0))
        return quoit_span_enter(call, bytes, pe);
    return (struct quoit_span){0};
}
static inline void quoit_span_leave(struct quoit_span *span)
{
    if (__builtin_expect(span->is_watched, 0))
        quoit_span_end(span);
}

/* For the profile: to which PE of the job the call goes; which PEs take part in it, with how many bytes each. */
static inline void quoit_span_peer(const struct quoit_span *span, enum quoit_profile_kind kind, uint32_t pe)
{
    if (__builtin_expect(span->is_outermost, 0))
        quoit_profile_note_peer(kind, pe);
}
static inline void quoit_span_group(const struct quoit_span *span, const struct quoit_team_range *range, uint64_t bytes)
{
    if (__builtin_expect(span->is_outermost, 0))
        quoit_profile_note_group(range->start, range->stride, range->size, bytes);
}
void quoit_span_world(const struct quoit_span *span, uint64_t bytes);

/* From here to the end of the function this thread is inside the library. */
#define QUOIT_SPAN_TO(call, bytes, pe)                                                                                 \
    __attribute__((cleanup(quoit_span_leave), unused)) struct quoit_span call_span = quoit_span_begin(call, bytes, pe)
#define QUOIT_SPAN(call) QUOIT_SPAN_TO(call, 0, QUOIT_TRACE_NO_PE)

#endif
