/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/park.h"
#include "env/primitives.h"

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000u

/* Whether the kernel supports membarrier: probed once per process, the same in all of them. */
static _Atomic int has_membarrier;

void quoit_park_setup(void)
{
    long registered = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
    atomic_store(&has_membarrier, registered == 0);
}

void quoit_park_watch(struct quoit_park *park, uint64_t from, uint64_t to)
{
    atomic_store_explicit(&park->watch_from, from, memory_order_relaxed);
    atomic_store_explicit(&park->watch_to, to, memory_order_relaxed);
}

uint32_t quoit_park_prepare(struct quoit_park *park)
{
    uint32_t key = atomic_load(&park->epoch);
    atomic_fetch_add(&park->sleeper_count, 1);
    if (QUOIT_HAS_PRIMITIVES)
        quoit_primitives->barrier();
    else if (atomic_load_explicit(&has_membarrier, memory_order_relaxed))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    return key;
}

void quoit_park_cancel(struct quoit_park *park)
{
    atomic_fetch_sub(&park->sleeper_count, 1);
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    if (!atomic_load_explicit(&has_membarrier, memory_order_relaxed) &&
        (timeout_ns == 0 || timeout_ns > QUOIT_PARK_BLIND_NS))
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
