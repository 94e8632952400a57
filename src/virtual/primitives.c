/* SPDX-License-Identifier: BSD-3-Clause */
/* The primitives of env on the virtual clock, and what the model charges for. */
#include "env/primitives.h"
#include "base/log.h"
#include "base/observer.h"
#include "virtual/turn.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORDS_KNOWN  16 /* mappings that hold words on which this process slept */
#define LINE_BYTES   512
#define PRIVATE_FILE UINT64_MAX
#define NS_PER_S     1000000000ull
#define GLANCE_NS    1000000

/* A mapping of this process with words in it. */
struct mapping {
    uint64_t from;
    uint64_t to;
    uint64_t file; /* its inode; PRIVATE_FILE less the pid: memory of this process alone */
    uint64_t offset;
};

static bool is_pe; /* this process is a PE */

static struct {
    struct mapping list[WORDS_KNOWN];
    uint32_t count;
} mappings;

static _Thread_local uint64_t computes_since_ns; /* of its processor time */

/* Fills what /proc/self/maps says of the address. */
static bool read_mapping(uint64_t address, struct mapping *mapping_out)
{
    char line[LINE_BYTES];
    bool is_found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !is_found && fgets(line, sizeof line, maps)) {
        struct mapping one;
        unsigned major, minor;
        char mode[8];
        int n = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &one.from, &one.to, mode,
                       &one.offset, &major, &minor, &one.file);
        is_found = n == 7 && address >= one.from && address < one.to;
        if (is_found && (mode[3] != 's' || one.file == 0))
            one = (struct mapping){one.from, one.to, PRIVATE_FILE - (uint64_t)getpid(), one.from};
        if (is_found)
            *mapping_out = one;
    }
    if (maps)
        fclose(maps);
    return is_found;
}

/* The same word of shared memory has another address in each process. */
static struct quoit_virtual_word word_of(const _Atomic uint32_t *word)
{
    uint64_t address = (uintptr_t)word;
    struct mapping *last = &mappings.list[mappings.count % WORDS_KNOWN], *found = NULL;
    for (uint32_t i = 0; i < WORDS_KNOWN && !found; i++)
        if (address >= mappings.list[i].from && address < mappings.list[i].to)
            found = &mappings.list[i];
    if (!found && read_mapping(address, last)) {
        found = last;
        mappings.count++;
    }
    if (!found)
        return (struct quoit_virtual_word){PRIVATE_FILE - (uint64_t)getpid(), address};
    return (struct quoit_virtual_word){found->file, address - found->from + found->offset};
}

/* Whether the caller has turns of the clock. A service thread has none at the start and the end: the machine's time is
 * its own then. */
static bool has_turns(void)
{
    uint32_t phase =
        atomic_load_explicit(&quoit_virtual_clock->phase, memory_order_acquire); /* pairs with join, leave */
    bool is_service = quoit_virtual_self >= quoit_virtual_clock->pe_count && quoit_virtual_self != QUOIT_VIRTUAL_NOBODY;
    if (is_service && phase == QUOIT_VIRTUAL_GOES && !quoit_virtual_is_here)
        quoit_virtual_come();
    if (is_service)
        return phase == QUOIT_VIRTUAL_GOES;
    return quoit_virtual_is_here;
}

/* One thread of a PE has the PE's turns; a second one that waited would wait for ever. Of a proxy the threads that have
 * none only start and end it. */
static void need_turns(void)
{
    if (!is_pe)
        return;
    quoit_say("a second thread waits in a routine, but with --virtual one thread of a PE may wait [Q0705]");
    _exit(1);
}

static uint64_t processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

void quoit_virtual_compute(void)
{
    if (quoit_virtual_clock->is_compute_measured)
        computes_since_ns = processor_ns();
}

uint64_t quoit_virtual_computed_ns(void)
{
    const struct quoit_virtual *clock = quoit_virtual_clock;
    return clock->is_compute_measured && quoit_virtual_self < clock->pe_count ? processor_ns() - computes_since_ns : 0;
}

/* What it has computed comes first: others run up to that time. */
static struct quoit_virtual_thread *begin(void)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    uint64_t computed_ns = quoit_virtual_computed_ns();
    pthread_mutex_lock(&clock->lock);
    struct quoit_virtual_thread *thread = &clock->threads[quoit_virtual_self];
    if (computed_ns != 0) {
        thread->now_ns += computed_ns;
        quoit_virtual_pass(clock);
    }
    return thread;
}

static void end(void)
{
    pthread_mutex_unlock(&quoit_virtual_clock->lock);
    quoit_virtual_compute();
}

/* Time passes for this thread, which has turns. */
static void spend(uint64_t duration_ns)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    struct quoit_virtual_thread *thread = begin();
    thread->now_ns += duration_ns;
    clock->changed_ns = thread->now_ns;
    quoit_virtual_pass(clock);
    end();
}

static uint64_t machine_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The machine's time after the end is later than all virtual time. */
static uint64_t now_ns(void)
{
    const struct quoit_virtual *clock = quoit_virtual_clock;
    uint32_t phase = atomic_load_explicit(&clock->phase, memory_order_acquire);
    if (quoit_virtual_is_here && phase == QUOIT_VIRTUAL_GOES)
        return clock->threads[quoit_virtual_self].now_ns + quoit_virtual_computed_ns();
    if (phase == QUOIT_VIRTUAL_GOES)
        return atomic_load_explicit(&clock->now_ns, memory_order_relaxed);
    return machine_now_ns() + (phase == QUOIT_VIRTUAL_OVER ? 2 * QUOIT_VIRTUAL_BEGIN_NS : 0);
}

static void sleep_ns(uint64_t duration_ns)
{
    if (has_turns()) {
        spend(duration_ns);
        return;
    }
    need_turns();
    struct timespec time = {.tv_sec = (time_t)(duration_ns / NS_PER_S), .tv_nsec = (long)(duration_ns % NS_PER_S)};
    nanosleep(&time, NULL);
}

static void look(void)
{
    if (has_turns()) {
        spend(quoit_virtual_clock->model.look_time);
        return;
    }
    need_turns();
    sched_yield();
}

static uint32_t pause_once(uint32_t most, bool is_in_vain)
{
    (void)most;
    (void)is_in_vain;
    look();
    return 1;
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    look();
}

/* Before each sleep for something new. One thread runs at a time, so there is nothing to order, but at the start and
 * the end. A service that sleeps again has done nothing by that. */
static void barrier(void)
{
    if (!has_turns()) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
        return;
    }
    struct quoit_virtual_thread *thread = begin();
    if (quoit_virtual_self < quoit_virtual_clock->pe_count)
        quoit_virtual_clock->changed_ns = thread->now_ns;
    end();
}

/* Until the phase is another one, too: all PEs may have joined, or left. */
static void sleep_on_machine(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, uint32_t phase)
{
    uint64_t until_ns = timeout_ns ? machine_now_ns() + timeout_ns : UINT64_MAX;
    while (atomic_load(word) == value && machine_now_ns() < until_ns &&
           atomic_load_explicit(&quoit_virtual_clock->phase, memory_order_acquire) == phase) {
        struct timespec limit = {.tv_nsec = GLANCE_NS};
        syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
    }
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    uint32_t phase =
        atomic_load_explicit(&quoit_virtual_clock->phase, memory_order_acquire); /* pairs with join, leave */
    if (!has_turns()) {
        need_turns();
        sleep_on_machine(word, value, timeout_ns, phase);
        return;
    }
    struct quoit_virtual_word where = word_of(word);
    struct quoit_virtual_thread *thread = begin();
    if (atomic_load(word) == value) {
        thread->word = where;
        thread->limit_ns = timeout_ns ? thread->now_ns + timeout_ns : UINT64_MAX;
        thread->state = QUOIT_VIRTUAL_ASLEEP;
        quoit_virtual_pass(quoit_virtual_clock);
    }
    end();
}

/* Sleepers go on once the line has reached them. */
static void wake_all(_Atomic uint32_t *word)
{
    struct quoit_virtual *clock = quoit_virtual_clock;
    struct quoit_virtual_word where = word_of(word);
    if (atomic_load_explicit(&clock->phase, memory_order_acquire) != QUOIT_VIRTUAL_GOES) {
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
    pthread_mutex_lock(&clock->lock);
    uint64_t from_ns = now_ns();
    for (uint32_t i = 0; i < clock->thread_count; i++) {
        struct quoit_virtual_thread *thread = &clock->threads[i];
        if (thread->state != QUOIT_VIRTUAL_ASLEEP || thread->word.file != where.file ||
            thread->word.offset != where.offset)
            continue;
        thread->state = QUOIT_VIRTUAL_READY;
        thread->now_ns = from_ns + clock->model.line_latency;
        clock->changed_ns = from_ns;
    }
    pthread_mutex_unlock(&clock->lock);
}

static struct quoit_wait_habit *habit(void)
{
    static _Thread_local struct quoit_wait_habit own;
    return &own;
}

static bool processor_is_free(cpu_set_t *allowed_out)
{
    CPU_ZERO(allowed_out);
    return false;
}

static int processor_own(void)
{
    return -1;
}

static bool processor_go(int processor)
{
    (void)processor;
    return true;
}

static const struct quoit_primitives primitives = {
    .now_ns = now_ns,
    .sleep_ns = sleep_ns,
    .ends_sleeps_in_time = true,
    .pause = pause_once,
    .yield = yield,
    .barrier = barrier,
    .sleep_on = sleep_on,
    .wake_all = wake_all,
    .habit = habit,
    .processor_is_free = processor_is_free,
    .processor_own = processor_own,
    .processor_go = processor_go,
};

static void copied(size_t bytes)
{
    const struct quoit_model *model = &quoit_virtual_clock->model;
    if (has_turns())
        spend(model->line_latency + (uint64_t)((unsigned __int128)bytes * NS_PER_S / model->memory_rate));
}

static void request_submitted(struct quoit_ring_engine *ring, struct quoit_slot *slot)
{
    (void)ring;
    (void)slot;
    if (has_turns())
        spend(quoit_virtual_clock->model.request_time);
}

static void request_taken(struct quoit_lane *lane)
{
    (void)lane;
    if (has_turns())
        spend(quoit_virtual_clock->model.frame_time);
}

static void frame_received(struct quoit_lane *lane, struct quoit_frame *frame)
{
    (void)frame;
    request_taken(lane);
}

static const struct quoit_observer observer = {.copied = copied,
                                               .accessed = copied,
                                               .request_submitted = request_submitted,
                                               .request_taken = request_taken,
                                               .frame_received = frame_received};

void quoit_virtual_attach(void)
{
    is_pe = quoit_virtual_self < quoit_virtual_clock->pe_count;
    quoit_primitives = &primitives;
    quoit_observer = &observer;
}

void quoit_virtual_detach(void)
{
    quoit_primitives = NULL;
    quoit_observer = NULL;
}
