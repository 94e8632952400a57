/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: a queue lock (Mellor-Crummey and Scott). Each PE waits on a word of its own, so no waiter sends requests
 * across the ring, and the lock is granted in order of request.
 *
 * A lock is 8 bytes on each PE. Low half, on the lock's home PE only: the tail of the queue, PE + 1, 0 when free. High
 * half, on each PE: its successor (PE + 1), and whether this PE holds the lock or waits for it.
 */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"
#include "shmem/poll.h"

#include <stdatomic.h>

#define WAITING   0x80000000u
#define HELD      0x40000000u
#define NEXT_MASK 0x3fffffffu

struct lock {
    uint64_t tail;         /* segment offset of the low half */
    uint64_t link;         /* segment offset of the high half */
    _Atomic uint32_t *own; /* this PE's high half */
    uint32_t home;
};

/* `name` is a PE + 1, or 0. Anything else means memory that was not cleared, which is not a lock. */
static void check_name(const long *address, uint32_t name, const char *call)
{
    if (__builtin_expect(name > quoit_job.pe_count, 0))
        quoit_wrong(QUOIT_WRONG_LOCK, call,
                    "lock %p was not 0 before its first use: it names PE %u, but the job has %u PEs (0..%u)",
                    (const void *)address, name - 1, quoit_job.pe_count, quoit_job.pe_count - 1);
}

static struct lock find_lock(long *address, const char *call)
{
    struct lock lock;
    quoit_check_running(call);
    quoit_check_word(address, sizeof *address, "lock", call);
    lock.tail = quoit_check_symmetric(address, sizeof *address, "lock", call);
    lock.link = lock.tail + sizeof(uint32_t);
    lock.own = (_Atomic uint32_t *)address + 1;
    lock.home = (uint32_t)(lock.tail / sizeof(long) % quoit_job.pe_count);
    check_name(address, atomic_load_explicit(lock.own, memory_order_relaxed) & NEXT_MASK, call);
    return lock;
}

static uint32_t change_tail(const struct lock *lock, enum quoit_amo op, uint32_t value, uint32_t compare)
{
    return (uint32_t)quoit_fabric_amo_fetch(quoit_job.fabric, &quoit_job.fabric->default_context, op, sizeof(uint32_t),
                                            lock->tail, value, compare, lock->home);
}

static void change_link(const struct lock *lock, enum quoit_amo op, uint32_t value, uint32_t pe)
{
    quoit_fabric_amo(quoit_job.fabric, &quoit_job.fabric->default_context, op, sizeof(uint32_t), lock->link, value, pe);
}

static bool is_granted(void *arg)
{
    const struct lock *lock = arg;
    return (atomic_load_explicit(lock->own, memory_order_acquire) & WAITING) == 0;
}

static bool has_next(void *arg)
{
    const struct lock *lock = arg;
    return (atomic_load_explicit(lock->own, memory_order_acquire) & NEXT_MASK) != 0;
}

static void refuse_twice(const struct lock *lock, const char *call)
{
    if (atomic_load_explicit(lock->own, memory_order_relaxed) & HELD)
        quoit_wrong(QUOIT_WRONG_LOCK, call, "this PE holds the lock already, and would wait for itself for ever");
}

QUOIT_API(void, set_lock, (long *address))
{
    const char *call = "shmem_set_lock";
    QUOIT_JOB_ENTER(call);
    QUOIT_SPAN(call);
    struct lock lock = find_lock(address, call);
    refuse_twice(&lock, call);
    uint32_t before = change_tail(&lock, QUOIT_AMO_SWAP, quoit_job.pe + 1, 0);
    check_name(address, before, call);
    if (before != 0) {
        /* Before the predecessor can learn of us, so that its grant finds the mark to clear. */
        atomic_fetch_or_explicit(lock.own, WAITING, memory_order_release);
        change_link(&lock, QUOIT_AMO_OR, quoit_job.pe + 1, before - 1);
        const struct quoit_wait_desc wait_desc = {.offset = lock.link,
                                                  .address = quoit_job_file_address(address),
                                                  .wanted = HELD,
                                                  .count = 1,
                                                  .bytes = sizeof(uint32_t),
                                                  .is_lock = 1};
        if (!is_granted(&lock))
            quoit_self_wait_at(&quoit_job.fabric->self, lock.link, sizeof(uint32_t), is_granted, &lock, call,
                               &wait_desc);
    }
    atomic_fetch_or_explicit(lock.own, HELD, memory_order_acquire);
}

QUOIT_API(int, test_lock, (long *address))
{
    const char *call = "shmem_test_lock";
    QUOIT_JOB_ENTER(call);
    QUOIT_SPAN(call);
    struct lock lock = find_lock(address, call);
    refuse_twice(&lock, call);
    uint32_t before = change_tail(&lock, QUOIT_AMO_COMPARE_SWAP, quoit_job.pe + 1, 0);
    check_name(address, before, call);
    if (before != 0) {
        quoit_poll_test(false);
        return 1;
    }
    quoit_poll_test(true);
    atomic_fetch_or_explicit(lock.own, HELD, memory_order_acquire);
    return 0;
}

QUOIT_API(void, clear_lock, (long *address))
{
    const char *call = "shmem_clear_lock";
    QUOIT_JOB_ENTER(call);
    QUOIT_SPAN(call);
    struct lock lock = find_lock(address, call);
    if ((atomic_load_explicit(lock.own, memory_order_relaxed) & HELD) == 0)
        quoit_wrong(QUOIT_WRONG_LOCK, call, "this PE does not hold the lock");
    quoit_fabric_quiet(quoit_job.fabric, &quoit_job.fabric->default_context);
    atomic_fetch_and_explicit(lock.own, ~HELD, memory_order_release);
    if (!has_next(&lock)) {
        if (change_tail(&lock, QUOIT_AMO_COMPARE_SWAP, 0, quoit_job.pe + 1) == quoit_job.pe + 1)
            return;
        /* A successor has joined but not linked itself yet. */
        quoit_self_wait_at(&quoit_job.fabric->self, lock.link, sizeof(uint32_t), has_next, &lock, call, NULL);
    }
    uint32_t next = atomic_exchange_explicit(lock.own, 0, memory_order_acq_rel) & NEXT_MASK;
    change_link(&lock, QUOIT_AMO_AND, ~WAITING, next - 1);
}
