/* SPDX-License-Identifier: BSD-3-Clause */
/* biased_lock.h - a biased lock: a few plain loads and stores for the thread that nearly always takes it.
 *
 * What it is: a spin lock that can be biased towards one thread, its owner. The owner announces that it is inside by a
 * plain store and then checks that the bias still stands, with only a compiler barrier between the two. Another thread
 * revokes the bias, runs membarrier(2), and waits until the owner is outside; so the first acquisition by a second
 * thread takes microseconds. From then on it is an ordinary spin lock, until one thread has acquired it
 * QUOIT_BIASED_RUN times in a row and becomes the owner. After QUOIT_BIASED_CLAIMS owners it remains an ordinary lock.
 * On kernels without membarrier it is never biased.
 *
 * Use: for critical sections of a few instructions that never block and access no user memory. Not recursive.
 * Threads: any of one process.
 */
#ifndef QUOIT_ENV_BIASED_LOCK_H
#define QUOIT_ENV_BIASED_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define QUOIT_BIASED_CLAIMS 4
#define QUOIT_BIASED_RUN    64

struct quoit_biased_claim {
    _Atomic uintptr_t owner;    /* 0: none yet. Writer: the owner, with the lock held; once */
    _Atomic uint32_t is_inside; /* writer: the owner */
};

struct quoit_biased_lock {
    struct quoit_biased_claim *_Atomic claim;                  /* the current one. Writer: the holder of is_locked */
    _Atomic uint32_t is_locked;                                /* taken by all threads but the owner */
    uint32_t run_count;                                        /* under is_locked: consecutive acquisitions by */
    uintptr_t last;                                            /* this thread through is_locked */
    struct quoit_biased_claim claims[QUOIT_BIASED_CLAIMS + 1]; /* the last has no owner */
};

void quoit_biased_init(struct quoit_biased_lock *lock);

/* The word of the lock that unlock clears. */
typedef _Atomic uint32_t quoit_biased_hold;

quoit_biased_hold *quoit_biased_lock_ordinary(struct quoit_biased_lock *lock);

/* A number unique to the calling thread among those that run. */
static inline uintptr_t quoit_thread_number(void)
{
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
}

/* Returns with the lock held; unlock takes the result. */
static inline quoit_biased_hold *quoit_biased_lock(struct quoit_biased_lock *lock)
{
    struct quoit_biased_claim *claim = atomic_load_explicit(&lock->claim, memory_order_relaxed);
    if (__builtin_expect(atomic_load_explicit(&claim->owner, memory_order_relaxed) == quoit_thread_number(), 1)) {
        atomic_store_explicit(&claim->is_inside, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst); /* pairs with the membarrier in revoke() */
        if (__builtin_expect(atomic_load_explicit(&lock->claim, memory_order_relaxed) == claim, 1)) {
            atomic_signal_fence(memory_order_seq_cst);
            return &claim->is_inside;
        }
        atomic_store_explicit(&claim->is_inside, 0, memory_order_release);
    }
    return quoit_biased_lock_ordinary(lock);
}

static inline void quoit_biased_unlock(quoit_biased_hold *hold)
{
    atomic_store_explicit(hold, 0, memory_order_release); /* pairs with the acquires in biased_lock.c */
}

#endif
