/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.h - the one place that decides how long to spin, when to yield and when to sleep.
 *
 * A wait looks, spins `spin_count` times (a pause and a look each) and yields the processor, again and again for
 * `awake_ns`, then sleeps on the waiter's park until somebody wakes it, and starts over. How often it spins comes from
 * how many threads of the job share the processors of this machine: see quoit_wait_policy_for(). While strangers
 * compute on its processor a waiter does not yield, but sleeps after it has spun.
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

/* The policy for `thread_count` threads that may all want to run on `core_count` processors: see limits.h. */
struct quoit_wait_policy quoit_wait_policy_for(uint32_t thread_count, uint32_t core_count);
/* Whether, by this policy, threads of the job share processors. */
static inline bool quoit_wait_shares(struct quoit_wait_policy policy)
{
    return policy.spin_count == 0;
}

/* See sees_plain_stores: a sleeper looks again after an eighth of the time that it has slept, within these bounds. */
#define QUOIT_WAIT_NAP_SHARE    8
#define QUOIT_WAIT_NAP_LEAST_NS 200000u
#define QUOIT_WAIT_NAP_MOST_NS  10000000u

struct quoit_waiter {
    struct quoit_park *park;
    struct quoit_wait_policy policy;
    /* Called after the sleeper is announced and before the last look; NULL if nothing needs it. A host on a ring clears
     * its doorbell bits here, so that the next ring wakes. */
    void (*arm)(void *arm_arg);
    void (*disarm)(void *arm_arg); /* called after each arm, when it slept or needed not to; NULL if nothing needs it */
    /* Called after every settle_yields yields, when the thread may move to another processor; NULL: it stays. */
    void (*settle)(void *arm_arg);
    uint32_t settle_yields;
    void *arm_arg;
    /* For so long others of the job are known to work, on this processor too: a wait stays awake longer by it, and no
     * yield that lasts so long is thought to be a stranger's doing. */
    uint64_t busy_ns;
    /* A change may come without a wake, by a plain store: of another thread, a signal handler, a forked child, a PE
     * with a pointer from shmem_ptr. The sleeper looks by itself now and then, without waking up for more. */
    bool sees_plain_stores;
    uint64_t watch_from; /* see park.h */
    uint64_t watch_to;
    uint64_t sleep_count; /* written by the waiter: how often it slept */
};

/* Returns true when is_done(arg) is true; false if timeout_ns (0: none) passed first. is_done is called many times and
 * must be cheap; it may make progress of its own. */
bool quoit_wait_until(struct quoit_waiter *waiter, bool (*is_done)(void *arg), void *arg, uint64_t timeout_ns);

/* Lets others run once. */
void quoit_wait_yield(void);
/* The same for a thread that polls by itself, where threads share processors: like the yields of a wait, it is left out
 * for a while when a stranger took long, and may settle the thread. */
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
