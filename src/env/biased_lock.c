/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/biased_lock.h"
#include "env/membarrier.h"
#include "env/primitives.h"
#include "env/wait.h"

/* Checks a lock that another thread holds, before a yield. */
#define SPINS_MAX 100

static void pause_or_yield(uint32_t *spin_count)
{
    if (++*spin_count % SPINS_MAX == 0)
        quoit_wait_yield();
    else
        quoit_pause();
}

void quoit_biased_init(struct quoit_biased_lock *lock)
{
    *lock = (struct quoit_biased_lock){.claim = &lock->claims[0]};
}

/* Returns when the owner of the claim is outside and will stay so. */
static void revoke(struct quoit_biased_lock *lock, struct quoit_biased_claim *claim)
{
    atomic_store_explicit(&lock->claim, claim + 1, memory_order_relaxed);
    quoit_membarrier(); /* either the owner sees the new claim, or it is seen inside here */
    for (uint32_t spins = 0; atomic_load_explicit(&claim->is_inside, memory_order_acquire) != 0;)
        pause_or_yield(&spins);
}

/* Claims the lock for a thread that took it often in a row. */
static void count(struct quoit_biased_lock *lock, struct quoit_biased_claim *claim, uintptr_t self)
{
    lock->run_count = lock->last == self ? lock->run_count + 1 : 1;
    lock->last = self;
    if (lock->run_count < QUOIT_BIASED_RUN || claim == &lock->claims[QUOIT_BIASED_CLAIMS] || QUOIT_HAS_PRIMITIVES ||
        !quoit_membarrier_exists())
        return;
    atomic_store_explicit(&claim->owner, self, memory_order_relaxed);
    lock->run_count = 0;
}

quoit_biased_hold *quoit_biased_lock_ordinary(struct quoit_biased_lock *lock)
{
    for (uint32_t spins = 0; atomic_exchange_explicit(&lock->is_locked, 1, memory_order_acquire) != 0;)
        pause_or_yield(&spins);
    uintptr_t self = quoit_thread_number();
    struct quoit_biased_claim *claim = atomic_load_explicit(&lock->claim, memory_order_relaxed);
    uintptr_t owner = atomic_load_explicit(&claim->owner, memory_order_relaxed);
    if (owner != 0 && owner != self)
        revoke(lock, claim++);
    count(lock, claim, self);
    return &lock->is_locked;
}
