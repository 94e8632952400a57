/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - the one place that decides how long to spin, when to yield and when to sleep.
 *
 * A wait checks its condition, spins `spin_count` times (a pause and a check each) and yields the processor, repeatedly
 * for `awake_ns`; then it sleeps on the waiter's park until it is woken, and starts over. spin_count depends on how
 * many threads of the job share the machine's processors: see quoit_wait_policy_for(). While threads outside the job
 * compute on its processor, yields that last long take about a sixteenth of a thread's time; otherwise it sleeps after
 * spinning.
 *
 * Threads: a waiter belongs to one thread.
 */
#ifndef QUOIT_ENV_WAIT_H
#define QUOIT_ENV_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "env/park.h"

struct quoit_wait_policy {
    uint32_t spin_count;
    uint32_t awake_ns;
};

/* The policy for `thread_count` threads that may all be runnable on `core_count` processors (see limits.h). */
struct quoit_wait_policy quoit_wait_policy_for(uint32_t thread_count, uint32_t core_count);
/* Whether, under this policy, threads of the job share processors. */
static inline bool quoit_wait_shares(struct quoit_wait_policy policy)
{
    return policy.spin_count == 0;
}

/* With sees_plain_stores, a sleeper checks again after an eighth of the time it has slept, within these bounds. */
#define QUOIT_WAIT_NAP_SHARE    8
#define QUOIT_WAIT_NAP_LEAST_NS 200000u
#define QUOIT_WAIT_NAP_MOST_NS  10000000u

struct quoit_waiter {
    struct quoit_park *park;
    struct quoit_wait_policy policy;
    /* Called after the sleeper is announced and before the last check; may be NULL. On a ring it clears doorbell bits,
     * so that the next ring wakes. */
    void (*arm)(void *arm_arg);
    void (*disarm)(void *arm_arg); /* called after each arm, whether the waiter slept or not; may be NULL */
    /* Called after every place_yields yields, when the thread may move to another processor; NULL: it stays. */
    void (*place)(void *arm_arg);
    uint32_t place_yields;
    /* Sleeps in place of a sleep on the park, for up to limit_ns, where what is waited for comes otherwise; wakes of
     * the park are then noticed at its end. False: not now. NULL: there is no such place. With sees_plain_stores only.
     */
    bool (*nap)(void *arm_arg, uint64_t limit_ns);
    void *arm_arg;
    /* How long other threads of the job are known to compute, on this processor too: a wait stays awake that much
     * longer, and a yield of up to this length is not attributed to threads outside the job. */
    uint64_t busy_ns;
    /* The condition may change by a plain store without a wake: from another thread, a signal handler, a forked child,
     * or a PE that holds a pointer from shmem_ptr. The sleeper then polls at growing intervals without becoming
     * runnable. */
    bool sees_plain_stores;
    uint64_t watch_from; /* see park.h */
    uint64_t watch_to;
    uint64_t sleep_count; /* written by the waiter: number of sleeps */
};

/* Returns true once is_done(arg) is true, or false if timeout_ns (0: none) passes first. is_done is called many times:
 * it must be cheap, and may itself make progress. */
bool quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

/* Yields the processor once, or sleeps for some tens of microseconds where yields have lately taken too long. */
void quoit_wait_yield(void);
/* The same for a thread that polls by itself on shared processors: as in a wait, it may be moved to another processor.
 */
void quoit_wait_poll(const struct quoit_waiter *waiter);

static inline void quoit_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
