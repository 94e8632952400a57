/* SPDX-License-Identifier: BSD-3-Clause */
/* context.h - a context's record of fences, for threads that share it. Private to engine/ring.
 *
 * A fence that finds outstanding requests leaves a mark, and later requests are marked ORDERED until nothing is
 * outstanding any more. Each mark has a number, so a thread that clears an old one does not clear a newer one that
 * another thread's fence has set meanwhile.
 */
#ifndef QUOIT_ENGINE_RING_CONTEXT_H
#define QUOIT_ENGINE_RING_CONTEXT_H

#include "engine/engine.h"

/* The number of a new one: never 0, which would mean no mark. */
static inline uint32_t quoit_ring_context_new_mark(struct quoit_ring_context *context)
{
    uint32_t mark;
    do
        mark = atomic_fetch_add_explicit(&context->last_mark, 1, memory_order_relaxed) + 1;
    while (mark == 0);
    return mark;
}

/* This thread's fence follows what the thread has submitted. */
static inline void quoit_ring_context_fence(struct quoit_ring_context *context)
{
    if (atomic_load_explicit(&context->outstanding_count, memory_order_relaxed) == 0)
        return;
    /* pairs with the acquire below: a thread that sees the mark sees what was outstanding before it */
    atomic_store_explicit(&context->fence_mark, quoit_ring_context_new_mark(context), memory_order_release);
}

/* Whether something that precedes a fence may still be outstanding. */
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
