/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual/clock.h"
#include "base/assert.h"
#include "virtual/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY QUOIT_VIRTUAL_NOBODY

struct quoit_virtual *quoit_virtual_clock;
_Thread_local uint32_t quoit_virtual_self = NOBODY;
_Thread_local bool quoit_virtual_is_here;

enum quoit_status quoit_virtual_create(const struct quoit_virtual_config *config, struct quoit_virtual **clock_out,
                                       char path_out[64])
{
    uint64_t thread_count = config->pe_count + (uint64_t)config->host_count * config->service_count;
    quoit_assert(thread_count <= QUOIT_VIRTUAL_THREADS_MAX);
    int fd = memfd_create("quoit-clock", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(struct quoit_virtual)) != 0)
        return QUOIT_SYSTEM;
    struct quoit_virtual *clock = mmap(NULL, sizeof *clock, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (clock == MAP_FAILED)
        return QUOIT_SYSTEM;
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&clock->lock, &shared);
    pthread_mutexattr_destroy(&shared);
    clock->model = config->model;
    clock->limit_ns = config->limit_ns;
    clock->is_compute_measured = config->is_compute_measured;
    clock->pe_count = config->pe_count;
    clock->service_count = config->service_count;
    clock->thread_count = (uint32_t)thread_count;
    atomic_store_explicit(&clock->turn, NOBODY, memory_order_relaxed);
    clock->changed_ns = QUOIT_VIRTUAL_BEGIN_NS;
    atomic_store(&clock->now_ns, QUOIT_VIRTUAL_BEGIN_NS);
    snprintf(path_out, 64, "/proc/%d/fd/%d", (int)getpid(), fd);
    *clock_out = clock;
    return QUOIT_OK;
}

enum quoit_status quoit_virtual_open(bool *is_virtual_out)
{
    const char *path = getenv(QUOIT_VIRTUAL_VARIABLE);
    *is_virtual_out = path != NULL;
    if (!path)
        return QUOIT_OK;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return QUOIT_SYSTEM;
    void *clock = mmap(NULL, sizeof(struct quoit_virtual), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (clock == MAP_FAILED)
        return QUOIT_SYSTEM;
    quoit_virtual_clock = clock;
    unsetenv(QUOIT_VIRTUAL_VARIABLE); /* programs started by this one have the machine's time */
    return QUOIT_OK;
}

static uint64_t due_ns(const struct quoit_virtual_thread *thread)
{
    return thread->state == QUOIT_VIRTUAL_READY    ? thread->now_ns
           : thread->state == QUOIT_VIRTUAL_ASLEEP ? thread->limit_ns
                                                   : UINT64_MAX;
}

/* Whom the turn goes to: NOBODY, if nobody can run. */
static uint32_t find_next(const struct quoit_virtual *clock)
{
    uint32_t next = NOBODY;
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < clock->thread_count; i++) {
        uint64_t ns = due_ns(&clock->threads[i]);
        if (ns < next_ns) {
            next = i;
            next_ns = ns;
        }
    }
    return next;
}

static bool all_sleep(const struct quoit_virtual *clock)
{
    for (uint32_t i = 0; i < clock->thread_count; i++)
        if (clock->threads[i].state == QUOIT_VIRTUAL_READY)
            return false;
    return clock->present_count > 0;
}

/* The verdict, if the next one to run is this one. */
static enum quoit_virtual_verdict judge(const struct quoit_virtual *clock, uint32_t next)
{
    uint64_t next_ns = next == NOBODY ? UINT64_MAX : due_ns(&clock->threads[next]);
    if (all_sleep(clock) && (next == NOBODY || next_ns > clock->changed_ns + QUOIT_VIRTUAL_STILL_NS))
        return QUOIT_VIRTUAL_STILL;
    if (next != NOBODY && clock->limit_ns != 0 && next_ns > QUOIT_VIRTUAL_BEGIN_NS + clock->limit_ns)
        return QUOIT_VIRTUAL_LATE;
    return QUOIT_VIRTUAL_RUNS;
}

static void wake(struct quoit_virtual_thread *thread)
{
    atomic_fetch_add_explicit(&thread->turn_count, 1, memory_order_release); /* pairs with the load in await_turn() */
    syscall(SYS_futex, &thread->turn_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Returns who is to be woken once the lock is released; NOBODY: none, or the caller itself. */
static uint32_t give_turn(struct quoit_virtual *clock)
{
    if (atomic_load_explicit(&clock->phase, memory_order_relaxed) == QUOIT_VIRTUAL_OVER)
        return NOBODY;
    uint32_t next = find_next(clock);
    enum quoit_virtual_verdict verdict = judge(clock, next);
    if (verdict != QUOIT_VIRTUAL_RUNS) {
        atomic_store_explicit(&clock->verdict, verdict, memory_order_release); /* pairs with the look of oshrun */
        next = NOBODY;
    }
    atomic_store_explicit(&clock->turn, next, memory_order_relaxed);
    atomic_fetch_add_explicit(&clock->turn_count, 1, memory_order_relaxed);
    if (next == NOBODY)
        return NOBODY;
    struct quoit_virtual_thread *thread = &clock->threads[next];
    thread->now_ns = due_ns(thread);
    thread->state = QUOIT_VIRTUAL_READY;
    atomic_store_explicit(&clock->now_ns, thread->now_ns, memory_order_relaxed);
    return next != quoit_virtual_self ? next : NOBODY;
}

/* Ends the lock. A thread that was woken before would run into it, and sleep again. */
static void release(struct quoit_virtual *clock, uint32_t next)
{
    pthread_mutex_unlock(&clock->lock);
    if (next != NOBODY)
        wake(&clock->threads[next]);
}

/* With the lock, which it gives up meanwhile: then `next` is woken. */
static void await_turn(struct quoit_virtual *clock, uint32_t next)
{
    struct quoit_virtual_thread *thread = &clock->threads[quoit_virtual_self];
    while (atomic_load_explicit(&clock->turn, memory_order_relaxed) != quoit_virtual_self &&
           atomic_load_explicit(&clock->phase, memory_order_relaxed) != QUOIT_VIRTUAL_OVER) {
        uint32_t seen = atomic_load_explicit(&thread->turn_count, memory_order_acquire);
        release(clock, next);
        next = NOBODY;
        syscall(SYS_futex, &thread->turn_count, FUTEX_WAIT, seen, NULL, NULL, 0);
        pthread_mutex_lock(&clock->lock);
    }
}

void quoit_virtual_pass(struct quoit_virtual *clock)
{
    await_turn(clock, give_turn(clock));
}

/* With the lock: this thread has turns from begin_ns on. Once all have, the first gets its turn. */
static void come(struct quoit_virtual *clock, uint64_t begin_ns)
{
    struct quoit_virtual_thread *thread = &clock->threads[quoit_virtual_self];
    quoit_virtual_is_here = true;
    thread->state = QUOIT_VIRTUAL_READY;
    thread->now_ns = begin_ns;
    await_turn(clock, ++clock->here_count == clock->thread_count ? give_turn(clock) : NOBODY);
}

void quoit_virtual_come(void)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    pthread_mutex_lock(&clock->lock);
    come(clock, QUOIT_VIRTUAL_BEGIN_NS - QUOIT_VIRTUAL_REST_NS);
    pthread_mutex_unlock(&clock->lock);
}

void quoit_virtual_join(uint32_t pe)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    quoit_assert(clock != NULL && pe < clock->pe_count);
    quoit_virtual_self = pe;
    quoit_virtual_attach();
    pthread_mutex_lock(&clock->lock);
    clock->present_count++;
    if (++clock->joined_count == clock->pe_count)
        atomic_store_explicit(&clock->phase, QUOIT_VIRTUAL_GOES, memory_order_release); /* pairs with the services */
    come(clock, QUOIT_VIRTUAL_BEGIN_NS);
    pthread_mutex_unlock(&clock->lock);
    quoit_virtual_compute();
}

/* The service threads go on in the machine's time. */
static void end_services(struct quoit_virtual *clock)
{
    atomic_store_explicit(&clock->phase, QUOIT_VIRTUAL_OVER, memory_order_release); /* pairs with the services */
    atomic_store_explicit(&clock->turn, NOBODY, memory_order_relaxed);
    for (uint32_t i = clock->pe_count; i < clock->thread_count; i++)
        wake(&clock->threads[i]);
}

void quoit_virtual_leave(void)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    if (!quoit_virtual_is_here)
        return;
    uint64_t computed_ns = quoit_virtual_computed_ns();
    quoit_virtual_detach();
    pthread_mutex_lock(&clock->lock);
    struct quoit_virtual_thread *thread = &clock->threads[quoit_virtual_self];
    thread->now_ns += computed_ns;
    thread->state = QUOIT_VIRTUAL_AWAY;
    clock->changed_ns = thread->now_ns;
    if (atomic_load_explicit(&clock->ended_ns, memory_order_relaxed) < thread->now_ns)
        atomic_store_explicit(&clock->ended_ns, thread->now_ns, memory_order_relaxed);
    quoit_virtual_is_here = false;
    quoit_virtual_self = NOBODY;
    uint32_t next = NOBODY;
    if (--clock->present_count > 0)
        next = give_turn(clock);
    else
        end_services(clock);
    release(clock, next);
}

void quoit_virtual_begin_services(void)
{
    if (quoit_virtual_clock)
        quoit_virtual_attach();
}

void quoit_virtual_serve(uint32_t host, uint32_t service)
{
    const struct quoit_virtual *clock = quoit_virtual_clock;
    if (!clock)
        return;
    quoit_assert(service < clock->service_count);
    quoit_virtual_self = clock->pe_count + host * clock->service_count + service;
    quoit_assert(quoit_virtual_self < clock->thread_count);
}
