/* SPDX-License-Identifier: BSD-3-Clause */
/* context.h - what a context remembers of fences, when threads share it. Private to engine/ring.
 *
 * Fence: a fence that finds requests under way leaves a mark, and requests behind it are marked ORDERED until nothing
 * is under way any more. Each mark has a number of its own, so that a thread that clears an old one leaves alone the
 * new one that another thread's fence has set meanwhile.
 */
#ifndef QUOIT_ENGINE_RING_CONTEXT_H
#define QUOIT_ENGINE_RING_CONTEXT_H

#include "engine/engine.h"

/* A fence of this thread comes after what it has handed over. */
static inline void quoit_ring_context_fence(struct quoit_ring_context *context)
{
    if (atomic_load_explicit(&context->outstanding_count, memory_order_relaxed) == 0)
        return;
    uint32_t mark;
    do /* 0 would be no mark */
        mark = atomic_fetch_add_explicit(&context->last_mark, 1, memory_order_relaxed) + 1;
    while (mark == 0);
    /* pairs with the acquire below: whoever sees the mark sees what was under way before it */
    atomic_store_explicit(&context->fence_mark, mark, memory_order_release);
}

/* Whether something that a fence stands behind may still be under way. */
static inline bool quoit_ring_context_is_fenced(struct quoit_ring_context *context)
{
    uint32_t mark = atomic_load_explicit(&context->fence_mark, memory_order_acquire);
    if (mark == 0)
        return false;
    if (atomic_load_explicit(&context->outstanding_count, memory_order_relaxed) != 0)
        return true;
    atomic_compare_exchange_strong_explicit(&context->fence_mark, &mark, 0, memory_order_relaxed, memory_order_relaxed);
    return false;
}

#endif
