/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual/clock.h"
#include "base/assert.h"
#include "base/log.h"
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

#define NOBODY QUOIT_VIRTUAL_PES_MAX

enum quoit_status quoit_virtual_create(const struct quoit_model *model, uint32_t pe_count, uint64_t limit_ns,
                                       struct quoit_virtual **clock_out, char path_out[64])
{
    quoit_assert(pe_count <= QUOIT_VIRTUAL_PES_MAX);
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
    clock->model = *model;
    clock->limit_ns = limit_ns;
    clock->pe_count = pe_count;
    clock->turn = NOBODY;
    clock->changed_ns = QUOIT_VIRTUAL_BEGIN_NS;
    atomic_store(&clock->now_ns, QUOIT_VIRTUAL_BEGIN_NS);
    snprintf(path_out, 64, "/proc/%d/fd/%d", (int)getpid(), fd);
    *clock_out = clock;
    return QUOIT_OK;
}

struct quoit_virtual_self quoit_virtual_self = {.pe = NOBODY};

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
    quoit_virtual_self.clock = clock;
    unsetenv(QUOIT_VIRTUAL_VARIABLE); /* programs started by this one have the machine's time */
    return QUOIT_OK;
}

static uint64_t due_ns(const struct quoit_virtual_pe *pe)
{
    return pe->state == QUOIT_VIRTUAL_READY    ? pe->now_ns
           : pe->state == QUOIT_VIRTUAL_ASLEEP ? pe->limit_ns
                                               : UINT64_MAX;
}

/* Whom the turn goes to: NOBODY, if nobody can run. */
static uint32_t find_next(const struct quoit_virtual *clock)
{
    uint32_t next = NOBODY;
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t i = 0; i < clock->pe_count; i++) {
        uint64_t ns = due_ns(&clock->pes[i]);
        if (ns < next_ns) {
            next = i;
            next_ns = ns;
        }
    }
    return next;
}

static bool all_sleep(const struct quoit_virtual *clock)
{
    uint32_t asleep_count = 0;
    for (uint32_t i = 0; i < clock->pe_count; i++) {
        if (clock->pes[i].state == QUOIT_VIRTUAL_READY)
            return false;
        asleep_count += clock->pes[i].state == QUOIT_VIRTUAL_ASLEEP;
    }
    return asleep_count > 0;
}

/* The verdict, if the next one to run is this one. */
static enum quoit_virtual_verdict judge(const struct quoit_virtual *clock, uint32_t next)
{
    uint64_t next_ns = next == NOBODY ? UINT64_MAX : due_ns(&clock->pes[next]);
    if (all_sleep(clock) && (next == NOBODY || next_ns - clock->changed_ns > QUOIT_VIRTUAL_STILL_NS))
        return QUOIT_VIRTUAL_STILL;
    if (next != NOBODY && clock->limit_ns != 0 && next_ns - QUOIT_VIRTUAL_BEGIN_NS > clock->limit_ns)
        return QUOIT_VIRTUAL_LATE;
    return QUOIT_VIRTUAL_RUNS;
}

static void give_turn(struct quoit_virtual *clock)
{
    uint32_t next = find_next(clock);
    enum quoit_virtual_verdict verdict = judge(clock, next);
    if (verdict != QUOIT_VIRTUAL_RUNS) {
        atomic_store_explicit(&clock->verdict, verdict, memory_order_release); /* pairs with the look of oshrun */
        next = NOBODY;
    }
    clock->turn = next;
    if (next == NOBODY)
        return;
    struct quoit_virtual_pe *pe = &clock->pes[next];
    pe->now_ns = due_ns(pe);
    pe->state = QUOIT_VIRTUAL_READY;
    atomic_store_explicit(&clock->now_ns, pe->now_ns, memory_order_relaxed);
    if (next == quoit_virtual_self.pe)
        return;
    atomic_fetch_add_explicit(&pe->turn_count, 1, memory_order_release); /* pairs with the load in await_turn() */
    syscall(SYS_futex, &pe->turn_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* With the lock, which it gives up meanwhile. */
static void await_turn(struct quoit_virtual *clock)
{
    struct quoit_virtual_pe *pe = &clock->pes[quoit_virtual_self.pe];
    while (clock->turn != quoit_virtual_self.pe) {
        uint32_t seen = atomic_load_explicit(&pe->turn_count, memory_order_acquire);
        pthread_mutex_unlock(&clock->lock);
        syscall(SYS_futex, &pe->turn_count, FUTEX_WAIT, seen, NULL, NULL, 0);
        pthread_mutex_lock(&clock->lock);
    }
}

void quoit_virtual_pass(struct quoit_virtual *clock)
{
    give_turn(clock);
    await_turn(clock);
}

void quoit_virtual_join(uint32_t pe)
{
    struct quoit_virtual *clock = quoit_virtual_self.clock;
    quoit_assert(clock != NULL && pe < clock->pe_count);
    quoit_virtual_self.pe = pe;
    quoit_virtual_attach();
    pthread_mutex_lock(&clock->lock);
    clock->pes[pe].state = QUOIT_VIRTUAL_READY;
    clock->pes[pe].now_ns = QUOIT_VIRTUAL_BEGIN_NS;
    if (++clock->joined_count == clock->pe_count)
        give_turn(clock);
    await_turn(clock);
    pthread_mutex_unlock(&clock->lock);
}

void quoit_virtual_leave(void)
{
    struct quoit_virtual *clock = quoit_virtual_self.clock;
    if (quoit_virtual_self.pe == NOBODY)
        return;
    quoit_virtual_detach();
    pthread_mutex_lock(&clock->lock);
    struct quoit_virtual_pe *pe = &clock->pes[quoit_virtual_self.pe];
    pe->state = QUOIT_VIRTUAL_AWAY;
    clock->changed_ns = pe->now_ns;
    if (atomic_load_explicit(&clock->ended_ns, memory_order_relaxed) < pe->now_ns)
        atomic_store_explicit(&clock->ended_ns, pe->now_ns, memory_order_relaxed);
    quoit_virtual_self.pe = NOBODY;
    give_turn(clock);
    pthread_mutex_unlock(&clock->lock);
}
