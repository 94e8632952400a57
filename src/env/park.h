/* SPDX-License-Identifier: BSD-3-Clause */
/* park.h - where a PE or service thread sleeps, in the memory of its host.
 *
 * What it is: a futex word and the number of its sleepers in one cache line, shared between processes of one host. A
 * zeroed park is valid and unused.
 *
 * Promise: a waker that makes its change visible with a plain store and then calls quoit_park_wake() is never missed,
 * and pays one load when nobody sleeps. The sleeper pays instead: between announcing itself and its last look at the
 * condition it runs membarrier(2), which makes every processor execute a full barrier. Without membarrier the sleep is
 * divided into intervals of QUOIT_PARK_BLIND_NS, which bound the delay of a missed wake.
 *
 * Watch: a sleeper may name the range it watches, in any unit its wakers share; quoit_park_wake_at() of another range
 * leaves it asleep. Several sleepers on one park share one range, from the first to the last byte that any of them
 * watches, until all of them have left. On one park either all sleepers watch or none does.
 *
 * Use:  for (;;) { key = quoit_park_prepare(park); if (done()) { quoit_park_cancel(park); break; }
 *                  quoit_park_sleep(park, key, timeout_ns); if (done()) break; }
 *
 * Threads: any thread of any process of the host may wake; several threads may sleep on one park.
 */
#ifndef QUOIT_ENV_PARK_H
#define QUOIT_ENV_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QUOIT_PARK_BLIND_NS 1000000u

struct quoit_park {
    _Alignas(64) _Atomic uint32_t epoch; /* writers: wakers. The futex word; each wake changes it */
    _Atomic uint32_t sleeper_count;      /* writers: the sleepers */
    _Atomic uint64_t watch_from;         /* writers: the sleepers, before they announce themselves */
    _Atomic uint64_t watch_to;
    _Atomic uint32_t is_watch_locked; /* writers: the sleepers, while they announce themselves */
    uint32_t unused[9];
};
_Static_assert(sizeof(struct quoit_park) == 64, "a park is one cache line");

/* Registers the process for membarrier. Every process that wakes or sleeps calls it once; repeating it is harmless. */
void quoit_park_setup(void);

/* Announces a sleeper and returns its key; the caller checks its condition once more, then cancels or sleeps. */
uint32_t quoit_park_prepare(struct quoit_park *park);
/* The same for a sleeper that watches the range [from, to), from <= to <= INT64_MAX. */
uint32_t quoit_park_prepare_at(struct quoit_park *park, uint64_t from, uint64_t to);
void quoit_park_cancel(struct quoit_park *park);
/* Sleeps until a wake that came after prepare, a signal, or timeout_ns (0: no limit). May return early. */
void quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
/* The same, but the sleeper stays announced: it may check, and nap again with the same key, or cancel. */
void quoit_park_nap(struct quoit_park *park, uint32_t key, uint64_t timeout_ns);
/* Whether a wake came since prepare. */
static inline bool quoit_park_was_woken(const struct quoit_park *park, uint32_t key)
{
    return atomic_load_explicit(&park->epoch, memory_order_acquire) != key;
}

void quoit_park_wake_sleepers(struct quoit_park *park);
/* Wakes the sleepers that may watch part of [at, at + bytes). */
void quoit_park_wake_watchers(struct quoit_park *park, uint64_t at, uint64_t bytes);

/* Whether a sleeper may watch part of [at, at + bytes). A waker that saw an earlier sleeper may read a mixture of two
 * watches and leave the later sleeper asleep. That is safe: the later sleeper checks once more after its membarrier and
 * finds the change, which was made before the waker saw the sleeper. */
static inline bool quoit_park_is_watched(const struct quoit_park *park, uint64_t at, uint64_t bytes)
{
    atomic_thread_fence(memory_order_acquire); /* pairs with the increment in quoit_park_prepare_at() */
    uint64_t from = atomic_load_explicit(&park->watch_from, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&park->watch_to, memory_order_relaxed);
    /* Overlap test with one comparison, so a change before the watched range costs as little as one behind it. */
    return at + bytes - 1 - from < to - from + bytes - 1;
}

static inline void quoit_park_wake(struct quoit_park *park)
{
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the membarrier in quoit_park_prepare() */
    if (__builtin_expect(atomic_load_explicit(&park->sleeper_count, memory_order_relaxed) != 0, 0))
        quoit_park_wake_sleepers(park);
}

/* Wakes for a change to [at, at + bytes) of what sleepers watch. */
static inline void quoit_park_wake_at(struct quoit_park *park, uint64_t at, uint64_t bytes)
{
    atomic_signal_fence(memory_order_seq_cst); /* as above */
    if (__builtin_expect(atomic_load_explicit(&park->sleeper_count, memory_order_relaxed) != 0, 0))
        quoit_park_wake_watchers(park, at, bytes);
}

#endif
