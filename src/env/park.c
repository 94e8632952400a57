/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/park.h"
#include "env/membarrier.h"
#include "env/primitives.h"
#include "env/wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

/* Looks at a lock held by another thread between two yields. */
#define SPINS_MAX 100

void quoit_park_setup(void)
{
    quoit_membarrier_setup();
}

uint32_t quoit_park_prepare(struct quoit_park *park)
{
    uint32_t key = atomic_load(&park->epoch);
    atomic_fetch_add(&park->sleeper_count, 1);
    quoit_membarrier();
    return key;
}

static void lock_watch(struct quoit_park *park)
{
    for (uint32_t spins = 0; atomic_exchange_explicit(&park->is_watch_locked, 1, memory_order_acquire) != 0;)
        if (++spins % SPINS_MAX == 0)
            quoit_wait_yield();
        else
            quoit_pause();
}

/* While a sleeper is announced the range only grows, so that a waker that reads one end of the old range and one of the
 * new still finds all that the earlier sleepers watch. */
uint32_t quoit_park_prepare_at(struct quoit_park *park, uint64_t from, uint64_t to)
{
    lock_watch(park);
    if (atomic_load_explicit(&park->sleeper_count, memory_order_acquire) != 0) {
        uint64_t first = atomic_load_explicit(&park->watch_from, memory_order_relaxed);
        uint64_t last = atomic_load_explicit(&park->watch_to, memory_order_relaxed);
        from = from < first ? from : first;
        to = to > last ? to : last;
    }
    atomic_store_explicit(&park->watch_from, from, memory_order_relaxed);
    atomic_store_explicit(&park->watch_to, to, memory_order_relaxed);
    uint32_t key = atomic_load(&park->epoch);
    atomic_fetch_add(&park->sleeper_count, 1);
    atomic_store_explicit(&park->is_watch_locked, 0, memory_order_release);
    quoit_membarrier();
    return key;
}

void quoit_park_cancel(struct quoit_park *park)
{
    atomic_fetch_sub(&park->sleeper_count, 1);
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    if (!quoit_membarrier_exists() && (timeout_ns == 0 || timeout_ns > QUOIT_PARK_BLIND_NS))
        timeout_ns = QUOIT_PARK_BLIND_NS;
    struct timespec limit = {.tv_sec = (time_t)(timeout_ns / NS_PER_S), .tv_nsec = (long)(timeout_ns % NS_PER_S)};
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns ? &limit : NULL, NULL, 0);
}

void quoit_park_nap(struct quoit_park *park, uint32_t key, uint64_t timeout_ns)
{
    if (QUOIT_HAS_PRIMITIVES)
        quoit_primitives->sleep_on(&park->epoch, key, timeout_ns);
    else
        sleep_on(&park->epoch, key, timeout_ns);
}

void quoit_park_sleep(struct quoit_park *park, uint32_t key, uint64_t timeout_ns)
{
    quoit_park_nap(park, key, timeout_ns);
    quoit_park_cancel(park);
}

void quoit_park_wake_sleepers(struct quoit_park *park)
{
    atomic_fetch_add(&park->epoch, 1);
    if (QUOIT_HAS_PRIMITIVES)
        quoit_primitives->wake_all(&park->epoch);
    else
        syscall(SYS_futex, &park->epoch, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void quoit_park_wake_watchers(struct quoit_park *park, uint64_t at, uint64_t bytes)
{
    if (quoit_park_is_watched(park, at, bytes))
        quoit_park_wake_sleepers(park);
}
