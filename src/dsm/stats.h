/* SPDX-License-Identifier: BSD-3-Clause */
/* stats.h - the time of a PE by activity, always measured. Spans of a thread do not nest: the inner one counts. */
#ifndef QUOIT_DSM_STATS_H
#define QUOIT_DSM_STATS_H

#include "dsm/net.h"
#include "dsm/state.h"

static inline uint64_t quoit_dsm_span_begin(const struct quoit_dsm *dsm)
{
    (void)dsm;
    return quoit_dsm_now_ns();
}

static inline void quoit_dsm_span_end(struct quoit_dsm *dsm, enum quoit_dsm_span span, uint64_t since)
{
    /* Threads wait for locks at the same time. */
    __atomic_fetch_add(&dsm->stats.span_ns[span], quoit_dsm_now_ns() - since, __ATOMIC_RELAXED);
}

/* The time of fetches and diffs so far, which a wait subtracts from its own. */
static inline uint64_t quoit_dsm_inner_ns(const struct quoit_dsm *dsm)
{
    return __atomic_load_n(&dsm->stats.span_ns[QUOIT_DSM_FETCHING], __ATOMIC_RELAXED) +
           __atomic_load_n(&dsm->stats.span_ns[QUOIT_DSM_DIFFING], __ATOMIC_RELAXED);
}

/* Prints what DSM_STATS asks for. */
void quoit_dsm_stats_print(struct quoit_dsm *dsm);

#endif
