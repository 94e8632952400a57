/* SPDX-License-Identifier: BSD-3-Clause */
/* biased_lock.h - a lock that costs the thread that takes it nearly always a few plain loads and stores.
 *
 * What it is: a spin lock that a thread may claim. The thread that holds the claim says that it is inside by a plain
 * store and looks whether its claim still stands, with only a compiler barrier between. Another thread revokes the
 * claim, runs membarrier(2), and waits until the owner is outside; so the first lock of a second thread takes
 * microseconds. From then on the lock is an ordinary one, until one thread has taken it QUOIT_BIASED_RUN times in a
 * row: then that one has it. After QUOIT_BIASED_CLAIMS claims it stays an ordinary one. Kernels without membarrier have
 * no claims.
 *
 * Use: for a few instructions that wait for nothing and touch no memory of the user. A thread does not take it twice.
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
    struct quoit_biased_claim *_Atomic claim;                  /* the one that stands. Writer: who holds is_locked */
    _Atomic uint32_t is_locked;                                /* for all but the owner */
    uint32_t run_count;                                        /* under is_locked: how often in a row, */
    uintptr_t last;                                            /* and who took it the ordinary way */
    struct quoit_biased_claim claims[QUOIT_BIASED_CLAIMS + 1]; /* the last belongs to no thread */
};

void quoit_biased_init(struct quoit_biased_lock *lock);

/* What unlock clears: a word of the lock. */
typedef _Atomic uint32_t quoit_biased_hold;

quoit_biased_hold *quoit_biased_lock_ordinary(struct quoit_biased_lock *lock);

/* A number of the running thread that no other one has. */
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
