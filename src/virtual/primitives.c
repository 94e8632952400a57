/* SPDX-License-Identifier: BSD-3-Clause */
/* The primitives of env on the virtual clock, and what the model charges for. */
#include "env/primitives.h"
#include "base/log.h"
#include "base/observer.h"
#include "virtual/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define WORDS_KNOWN  16 /* mappings that hold words on which this process slept */
#define LINE_BYTES   512
#define PRIVATE_FILE UINT64_MAX
#define NS_PER_S     1000000000ull

static _Thread_local bool is_joined;

/* A mapping of this process with words in it. */
struct mapping {
    uint64_t from;
    uint64_t to;
    uint64_t file; /* its inode; PRIVATE_FILE less the PE: memory of this process alone */
    uint64_t offset;
};

static struct {
    struct mapping list[WORDS_KNOWN];
    uint32_t count;
} mappings;

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
            one = (struct mapping){one.from, one.to, PRIVATE_FILE - quoit_virtual_self.pe, one.from};
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
        return (struct quoit_virtual_word){PRIVATE_FILE - quoit_virtual_self.pe, address};
    return (struct quoit_virtual_word){found->file, address - found->from + found->offset};
}

/* One thread of a PE has the PE's turn; a second one that waited would wait for ever. */
static void need_joined(void)
{
    if (is_joined)
        return;
    quoit_say("a second thread waits in a routine, but with --virtual one thread of a PE may wait [Q0705]");
    _exit(1);
}

static struct quoit_virtual_pe *begin(void)
{
    need_joined();
    pthread_mutex_lock(&quoit_virtual_self.clock->lock);
    return &quoit_virtual_self.clock->pes[quoit_virtual_self.pe];
}

static void end(void)
{
    pthread_mutex_unlock(&quoit_virtual_self.clock->lock);
}

/* Time passes for this PE. */
static void spend(uint64_t duration_ns)
{
    struct quoit_virtual *clock = quoit_virtual_self.clock;
    struct quoit_virtual_pe *pe = begin();
    pe->now_ns += duration_ns;
    clock->changed_ns = pe->now_ns;
    quoit_virtual_pass(clock);
    end();
}

static uint64_t now_ns(void)
{
    const struct quoit_virtual *clock = quoit_virtual_self.clock;
    return is_joined ? clock->pes[quoit_virtual_self.pe].now_ns
                     : atomic_load_explicit(&clock->now_ns, memory_order_relaxed);
}

static uint32_t pause_once(uint32_t most, bool is_in_vain)
{
    (void)most;
    (void)is_in_vain;
    spend(quoit_virtual_self.clock->model.look_time);
    return 1;
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    spend(quoit_virtual_self.clock->model.look_time);
}

/* Before each sleep for something new: one PE runs at a time, so there is nothing to order. */
static void barrier(void)
{
    struct quoit_virtual_pe *pe = begin();
    quoit_virtual_self.clock->changed_ns = pe->now_ns;
    end();
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct quoit_virtual_word where = word_of(word);
    struct quoit_virtual_pe *pe = begin();
    if (atomic_load(word) == value) {
        pe->word = where;
        pe->limit_ns = timeout_ns ? pe->now_ns + timeout_ns : UINT64_MAX;
        pe->state = QUOIT_VIRTUAL_ASLEEP;
        quoit_virtual_pass(quoit_virtual_self.clock);
    }
    end();
}

/* Sleepers go on once the line has reached them. */
static void wake_all(_Atomic uint32_t *word)
{
    struct quoit_virtual *clock = quoit_virtual_self.clock;
    struct quoit_virtual_word where = word_of(word);
    pthread_mutex_lock(&clock->lock);
    uint64_t from_ns = now_ns();
    clock->changed_ns = from_ns;
    for (uint32_t i = 0; i < clock->pe_count; i++) {
        struct quoit_virtual_pe *pe = &clock->pes[i];
        if (pe->state != QUOIT_VIRTUAL_ASLEEP || pe->word.file != where.file || pe->word.offset != where.offset)
            continue;
        pe->state = QUOIT_VIRTUAL_READY;
        pe->now_ns = from_ns + clock->model.line_latency;
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
    .sleep_ns = spend,
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
    const struct quoit_model *model = &quoit_virtual_self.clock->model;
    if (is_joined)
        spend(model->line_latency + (uint64_t)((unsigned __int128)bytes * NS_PER_S / model->memory_rate));
}

static const struct quoit_observer observer = {.copied = copied, .accessed = copied};

void quoit_virtual_attach(void)
{
    is_joined = true;
    quoit_primitives = &primitives;
    quoit_observer = &observer;
}

void quoit_virtual_detach(void)
{
    is_joined = false;
    quoit_primitives = NULL;
    quoit_observer = NULL;
}
