/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace.h"
#include "env/clock.h"
#include "env/libc.h"

#include <string.h>
#include <unistd.h>

/* Cached per thread: its kernel thread id, and the depth of names it is in. */
static _Thread_local uint32_t own_tid;
static _Thread_local uint32_t own_depth;

void quoit_trace_write(struct quoit_trace_ring *ring, struct quoit_trace_event *event)
{
    if (own_tid == 0)
        own_tid = (uint32_t)quoit_thread_id();
    event->tid = own_tid;
    uint64_t at = atomic_load_explicit(&ring->reserved_count, memory_order_relaxed);
    do {
        uint64_t taken = atomic_load_explicit(&ring->taken_count, memory_order_acquire);
        if (at - taken >= ring->event_count) {
            atomic_fetch_add_explicit(&ring->lost_count, 1, memory_order_relaxed);
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&ring->reserved_count, &at, at + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    struct quoit_trace_slot *slot = &ring->slots[at & (ring->event_count - 1)];
    slot->event = *event;
    atomic_store_explicit(&slot->sequence, at + 1, memory_order_release); /* pairs with acquire in quoit_trace_take() */
}

bool quoit_trace_take(struct quoit_trace_ring *ring, uint64_t event_count, struct quoit_trace_event *event_out)
{
    uint64_t at = atomic_load_explicit(&ring->taken_count, memory_order_relaxed);
    struct quoit_trace_slot *slot = &ring->slots[at & (event_count - 1)];
    if (atomic_load_explicit(&slot->sequence, memory_order_acquire) != at + 1)
        return false;
    *event_out = slot->event;
    atomic_store_explicit(&ring->taken_count, at + 1, memory_order_release);
    return true;
}

bool quoit_trace_keep(struct quoit_trace_ring *ring, const struct quoit_trace_event *event)
{
    uint64_t at = atomic_load_explicit(&ring->reserved_count, memory_order_relaxed);
    if (at >= ring->event_count)
        return false;
    atomic_store_explicit(&ring->reserved_count, at + 1, memory_order_relaxed);
    struct quoit_trace_slot *slot = &ring->slots[at];
    slot->event = *event;
    atomic_store_explicit(&slot->sequence, at + 1, memory_order_release);
    return true;
}

uint64_t quoit_trace_enter(struct quoit_trace_ring *ring, const char *name, uint64_t bytes, uint32_t pe)
{
    struct quoit_trace_event event = {.kind = QUOIT_TRACE_ENTER, .bytes = bytes, .pe = pe, .depth = own_depth++};
    strncpy(event.name, name, sizeof event.name - 1);
    event.begin_ns = quoit_clock_now_ns();
    quoit_trace_write(ring, &event);
    return event.begin_ns;
}

void quoit_trace_leave(struct quoit_trace_ring *ring, uint64_t begin_ns, uint64_t sleep_count)
{
    struct quoit_trace_event event = {.kind = QUOIT_TRACE_LEAVE,
                                      .begin_ns = begin_ns,
                                      .end_ns = quoit_clock_now_ns(),
                                      .value = sleep_count,
                                      .pe = QUOIT_TRACE_NO_PE,
                                      .depth = --own_depth};
    quoit_trace_write(ring, &event);
}
