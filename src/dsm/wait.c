/* SPDX-License-Identifier: BSD-3-Clause */
/* The synchronisation objects of dsm.h, each a monitor of sync.h: state changes under the object's lock, and waiters
 * are woken after it was released. */
#include <dsm.h>
#include <errno.h>
#include <time.h>

#include "dsm/net.h"
#include "dsm/profile.h"
#include "dsm/stats.h"
#include "dsm/sync.h"

#define TRY_NS 50000

static uint64_t deadline_after(uint64_t timeout_ns)
{
    uint64_t deadline;
    return __builtin_add_overflow(quoit_dsm_now_ns(), timeout_ns, &deadline) ? UINT64_MAX - 1 : deadline;
}

static void reset(const void *address, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    quoit_dsm_monitor_reset(dsm, quoit_dsm_object(dsm, address, call));
}

/* The last step of a routine that has left the monitor: waits. If the deadline passes the waiter is removed. */
static int wait_for(struct quoit_dsm *dsm, struct quoit_dsm_object object, uint64_t waiter, uint64_t deadline_ns)
{
    int result = 0;
    if (!quoit_dsm_waiter_wait(dsm, waiter, deadline_ns)) {
        struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
        bool was_there = quoit_dsm_waiter_remove(dsm, &monitor, waiter);
        quoit_dsm_monitor_leave(dsm, object, &monitor);
        if (was_there)
            result = ETIMEDOUT;
        else
            quoit_dsm_waiter_wait(dsm, waiter, UINT64_MAX);
    }
    quoit_dsm_waiter_free(dsm, waiter);
    return result;
}

/* Locks */

/* Does not touch the lock word, so a held lock stays held: init is for a free one. */
void dsm_lock_init(dsm_lock_t *lock)
{
    QUOIT_DSM_CALL("dsm_lock_init");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_lock_init");
    quoit_dsm_object(dsm, lock, "dsm_lock_init");
}

void dsm_lock(dsm_lock_t *lock)
{
    QUOIT_DSM_CALL("dsm_lock");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_lock");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_hold(dsm);
    quoit_dsm_object_lock(dsm, quoit_dsm_object(dsm, lock, "dsm_lock"));
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

int dsm_trylock(dsm_lock_t *lock)
{
    QUOIT_DSM_CALL("dsm_trylock");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_trylock");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    bool is_mine = quoit_dsm_object_try(dsm, quoit_dsm_object(dsm, lock, "dsm_trylock"));
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return is_mine ? 0 : EBUSY;
}

int dsm_timedlock(dsm_lock_t *lock, uint64_t timeout_ns)
{
    QUOIT_DSM_CALL("dsm_timedlock");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_timedlock");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, lock, "dsm_timedlock");
    uint64_t deadline_ns = deadline_after(timeout_ns);
    bool is_mine = quoit_dsm_object_try(dsm, object);
    while (!is_mine && quoit_dsm_now_ns() < deadline_ns) {
        nanosleep(&(struct timespec){0, TRY_NS}, NULL);
        is_mine = quoit_dsm_object_try(dsm, object);
    }
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return is_mine ? 0 : ETIMEDOUT;
}

void dsm_unlock(dsm_lock_t *lock)
{
    QUOIT_DSM_CALL("dsm_unlock");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_unlock");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    if (!quoit_dsm_object_unlock(dsm, quoit_dsm_object(dsm, lock, "dsm_unlock")))
        quoit_dsm_wrong("dsm_unlock: the lock at %p is not held by this PE", (void *)lock);
    quoit_dsm_workers_go(dsm);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

/* Reader-writer locks: inside is the number of readers, or WRITING. Waiters' kinds: */

enum { READER, WRITER };

#define WRITING UINT64_MAX

void dsm_rwlock_init(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_rwlock_init");
    reset(lock, "dsm_rwlock_init");
}

static int rw_enter(dsm_rwlock_t *lock, uint64_t kind, bool may_wait, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_go(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, lock, call);
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    bool is_free = monitor.head == 0 && (monitor.inside == 0 || (kind == READER && monitor.inside != WRITING));
    uint64_t waiter = 0;
    if (!is_free)
        waiter = may_wait ? quoit_dsm_waiter_append(dsm, &monitor, kind) : 0;
    else if (kind == READER)
        monitor.inside++;
    else
        monitor.inside = WRITING;
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    if (waiter != 0)
        wait_for(dsm, object, waiter, UINT64_MAX);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return is_free || may_wait ? 0 : EBUSY;
}

void dsm_rdlock(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_rdlock");
    rw_enter(lock, READER, true, "dsm_rdlock");
}

void dsm_wrlock(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_wrlock");
    rw_enter(lock, WRITER, true, "dsm_wrlock");
}

int dsm_tryrdlock(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_tryrdlock");
    return rw_enter(lock, READER, false, "dsm_tryrdlock");
}

int dsm_trywrlock(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_trywrlock");
    return rw_enter(lock, WRITER, false, "dsm_trywrlock");
}

/* The oldest waiter goes in, and with a reader all readers up to the next writer. They are woken once the monitor was
 * left: `admitted` is the last of them, the first is the head before. */
void dsm_rwunlock(dsm_rwlock_t *lock)
{
    QUOIT_DSM_CALL("dsm_rwunlock");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_rwunlock");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, lock, "dsm_rwunlock");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    if (monitor.inside == 0)
        quoit_dsm_wrong("dsm_rwunlock: the lock at %p is not held", (void *)lock);
    monitor.inside = monitor.inside == WRITING ? 0 : monitor.inside - 1;
    uint64_t first = monitor.head, admitted = 0;
    while (monitor.head != 0 && monitor.inside != WRITING) {
        bool is_writer = quoit_dsm_waiter_kind(dsm, monitor.head) == WRITER;
        if (is_writer && monitor.inside > 0)
            break;
        admitted++;
        quoit_dsm_waiter_pop(dsm, &monitor);
        monitor.inside = is_writer ? WRITING : monitor.inside + 1;
    }
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    for (; admitted > 0; admitted--) {
        uint64_t next = admitted > 1 ? quoit_dsm_waiter_next(dsm, first) : 0;
        quoit_dsm_waiter_wake(dsm, first);
        first = next;
    }
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

/* Condition variables */

void dsm_cond_init(dsm_cond_t *cond)
{
    QUOIT_DSM_CALL("dsm_cond_init");
    reset(cond, "dsm_cond_init");
}

static int cond_wait(dsm_cond_t *cond, dsm_lock_t *lock, uint64_t deadline_ns, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_go(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, cond, call);
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t waiter = quoit_dsm_waiter_append(dsm, &monitor, 0);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    if (!quoit_dsm_object_unlock(dsm, quoit_dsm_object(dsm, lock, call)))
        quoit_dsm_wrong("%s: the lock at %p is not held by this PE", call, (void *)lock);
    int result = wait_for(dsm, object, waiter, deadline_ns);
    dsm_lock(lock);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return result;
}

void dsm_cond_wait(dsm_cond_t *cond, dsm_lock_t *lock)
{
    QUOIT_DSM_CALL("dsm_cond_wait");
    cond_wait(cond, lock, UINT64_MAX, "dsm_cond_wait");
}

int dsm_cond_timedwait(dsm_cond_t *cond, dsm_lock_t *lock, uint64_t timeout_ns)
{
    QUOIT_DSM_CALL("dsm_cond_timedwait");
    return cond_wait(cond, lock, deadline_after(timeout_ns), "dsm_cond_timedwait");
}

void dsm_cond_signal(dsm_cond_t *cond)
{
    QUOIT_DSM_CALL("dsm_cond_signal");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_cond_signal");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, cond, "dsm_cond_signal");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t first = quoit_dsm_waiter_pop(dsm, &monitor);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    quoit_dsm_waiter_wake(dsm, first);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

void dsm_cond_broadcast(dsm_cond_t *cond)
{
    QUOIT_DSM_CALL("dsm_cond_broadcast");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_cond_broadcast");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, cond, "dsm_cond_broadcast");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t first = monitor.head;
    monitor.head = monitor.tail = 0;
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    quoit_dsm_waiter_wake_chain(dsm, first);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

/* Semaphores: a post gives its unit to the oldest waiter directly. */

void dsm_sem_init(dsm_sem_t *sem, uint64_t value)
{
    QUOIT_DSM_CALL("dsm_sem_init");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_sem_init");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, sem, "dsm_sem_init");
    quoit_dsm_monitor_enter(dsm, object);
    quoit_dsm_monitor_leave(dsm, object, &(struct quoit_dsm_monitor){.value = value});
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

static int sem_wait_until(dsm_sem_t *sem, uint64_t deadline_ns, const char *call)
{
    struct quoit_dsm *dsm = quoit_dsm_running(call);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_go(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, sem, call);
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    bool is_taken = monitor.value > 0;
    uint64_t waiter = 0;
    if (is_taken)
        monitor.value--;
    else if (deadline_ns > 0)
        waiter = quoit_dsm_waiter_append(dsm, &monitor, 0);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    int result = is_taken ? 0 : EBUSY;
    if (waiter != 0)
        result = wait_for(dsm, object, waiter, deadline_ns);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return result;
}

void dsm_sem_wait(dsm_sem_t *sem)
{
    QUOIT_DSM_CALL("dsm_sem_wait");
    sem_wait_until(sem, UINT64_MAX, "dsm_sem_wait");
}

int dsm_sem_trywait(dsm_sem_t *sem)
{
    QUOIT_DSM_CALL("dsm_sem_trywait");
    return sem_wait_until(sem, 0, "dsm_sem_trywait");
}

int dsm_sem_timedwait(dsm_sem_t *sem, uint64_t timeout_ns)
{
    QUOIT_DSM_CALL("dsm_sem_timedwait");
    return sem_wait_until(sem, deadline_after(timeout_ns), "dsm_sem_timedwait");
}

void dsm_sem_post(dsm_sem_t *sem)
{
    QUOIT_DSM_CALL("dsm_sem_post");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_sem_post");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, sem, "dsm_sem_post");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t first = quoit_dsm_waiter_pop(dsm, &monitor);
    if (first == 0)
        monitor.value++;
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    quoit_dsm_waiter_wake(dsm, first);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

/* Flags: a waiter's kind is what it waits for. */

void dsm_flag_init(dsm_flag_t *flag)
{
    QUOIT_DSM_CALL("dsm_flag_init");
    reset(flag, "dsm_flag_init");
}

/* Those that the value satisfies are woken; the others wait on, behind them in a list of their own. */
void dsm_flag_set(dsm_flag_t *flag, uint64_t value)
{
    QUOIT_DSM_CALL("dsm_flag_set");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_flag_set");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, flag, "dsm_flag_set");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    if (monitor.value < value)
        monitor.value = value;
    uint64_t woken[64];
    bool is_more = true;
    while (is_more) {
        size_t count = 0;
        is_more = false;
        for (uint64_t at = monitor.head; at != 0 && !is_more;) {
            uint64_t next = at == monitor.tail ? 0 : quoit_dsm_waiter_next(dsm, at);
            if (quoit_dsm_waiter_kind(dsm, at) <= monitor.value) {
                quoit_dsm_waiter_remove(dsm, &monitor, at);
                woken[count++] = at;
                is_more = count == sizeof woken / sizeof woken[0];
            }
            at = next;
        }
        quoit_dsm_monitor_leave(dsm, object, &monitor);
        for (size_t i = 0; i < count; i++)
            quoit_dsm_waiter_wake(dsm, woken[i]);
        if (is_more)
            monitor = quoit_dsm_monitor_enter(dsm, object);
    }
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

uint64_t dsm_flag_get(dsm_flag_t *flag)
{
    QUOIT_DSM_CALL("dsm_flag_get");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_flag_get");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, flag, "dsm_flag_get");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    return monitor.value;
}

void dsm_flag_wait(dsm_flag_t *flag, uint64_t least)
{
    QUOIT_DSM_CALL("dsm_flag_wait");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_flag_wait");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_go(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, flag, "dsm_flag_wait");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t waiter = monitor.value < least ? quoit_dsm_waiter_append(dsm, &monitor, least) : 0;
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    if (waiter != 0)
        wait_for(dsm, object, waiter, UINT64_MAX);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
}

/* Once: inside is 1 while the routine runs, value is 1 afterwards. */

void dsm_once(dsm_once_t *once, void (*routine)(void))
{
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_once");
    struct quoit_dsm_row call = quoit_dsm_row_begin("dsm_once", __builtin_return_address(0), false);
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    quoit_dsm_workers_go(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, once, "dsm_once");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    bool is_first = monitor.value == 0 && monitor.inside == 0;
    uint64_t waiter = 0;
    if (is_first)
        monitor.inside = 1;
    else if (monitor.value == 0)
        waiter = quoit_dsm_waiter_append(dsm, &monitor, 0);
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    if (waiter != 0)
        wait_for(dsm, object, waiter, UINT64_MAX);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    quoit_dsm_row_end(&call);
    if (!is_first)
        return;
    routine();
    call = quoit_dsm_row_begin(NULL, NULL, false); /* of the same call */
    timer = quoit_dsm_span_begin(dsm);
    monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t first = monitor.head;
    monitor = (struct quoit_dsm_monitor){.value = 1};
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    quoit_dsm_waiter_wake_chain(dsm, first);
    quoit_dsm_span_end(dsm, QUOIT_DSM_LOCKING, timer);
    quoit_dsm_row_end(&call);
}

/* Barriers of a group: each caller acquires what the callers before it released, so the last one has everything. */

void dsm_barrier_init(dsm_barrier_t *barrier)
{
    QUOIT_DSM_CALL("dsm_barrier_init");
    reset(barrier, "dsm_barrier_init");
}

void dsm_barrier_wait(dsm_barrier_t *barrier, uint64_t count)
{
    QUOIT_DSM_CALL("dsm_barrier_wait");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_barrier_wait");
    struct quoit_dsm_timer timer = quoit_dsm_span_begin(dsm);
    if (count == 0)
        quoit_dsm_wrong("dsm_barrier_wait: count is 0, but it is at least 1");
    quoit_dsm_workers_meet(dsm);
    struct quoit_dsm_object object = quoit_dsm_object(dsm, barrier, "dsm_barrier_wait");
    struct quoit_dsm_monitor monitor = quoit_dsm_monitor_enter(dsm, object);
    uint64_t waiter = 0, first = 0;
    if (++monitor.value < count) {
        waiter = quoit_dsm_waiter_append(dsm, &monitor, 0);
    } else {
        first = monitor.head;
        monitor = (struct quoit_dsm_monitor){0};
    }
    quoit_dsm_monitor_leave(dsm, object, &monitor);
    if (waiter != 0)
        wait_for(dsm, object, waiter, UINT64_MAX);
    quoit_dsm_waiter_wake_chain(dsm, first);
    quoit_dsm_span_end(dsm, QUOIT_DSM_MEETING, timer);
}
