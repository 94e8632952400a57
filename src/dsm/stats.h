/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h - the time of a PE by activity, where DSM_STATS is set: readings of the clock would take half as long as a
 * lock does. Where a span lies within another one of its thread, the inner one counts. Threads that wait at the same
 * time are added up. */
#ifndef QUOIT_DSM_STATS_H
#define QUOIT_DSM_STATS_H

#include "dsm/net.h"
#include "dsm/state.h"

/* Of the calling thread: what the spans within its innermost open one took. */
extern _Thread_local uint64_t quoit_dsm_inner_ns __attribute__((tls_model("initial-exec")));

struct quoit_dsm_timer {
    uint64_t since, outer_ns;
};

static inline struct quoit_dsm_timer quoit_dsm_span_begin(const struct quoit_dsm *dsm)
{
    struct quoit_dsm_timer timer = {0, 0};
    if (dsm->options.values[QUOIT_DSM_STATS] == 0)
        return timer;
    timer = (struct quoit_dsm_timer){quoit_dsm_now_ns(), quoit_dsm_inner_ns};
    quoit_dsm_inner_ns = 0;
    return timer;
}

static inline void quoit_dsm_span_end(struct quoit_dsm *dsm, enum quoit_dsm_span span, struct quoit_dsm_timer timer)
{
    if (dsm->options.values[QUOIT_DSM_STATS] == 0)
        return;
    uint64_t all = quoit_dsm_now_ns() - timer.since;
    __atomic_fetch_add(&dsm->stats.span_ns[span], all - quoit_dsm_inner_ns, __ATOMIC_RELAXED);
    quoit_dsm_inner_ns = timer.outer_ns + all;
}

/* Prints what DSM_STATS asks for. */
void quoit_dsm_stats_print(struct quoit_dsm *dsm);

#endif
