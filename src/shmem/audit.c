/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/audit_state.h"
#include "base/assert.h"
#include "boot/place.h"
#include "env/clock.h"
#include "shmem/check.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACE_NS   2000000000u /* time limit for finding the place of an allocation */
#define SMALL_TEAM 16u         /* members that all look at each other */

void quoit_audit_start(uint64_t load_base)
{
    struct quoit_audit *audit = calloc(1, sizeof *audit);
    if (!audit)
        quoit_boot_abort(&quoit_job.boot, 1, "no memory for --check");
    audit->load_base = load_base;
    audit->init_thread = pthread_self();
    pthread_mutex_init(&audit->lock, NULL);
    audit->shared_self = (struct quoit_audit_shared *)(quoit_job.fabric->self.segment + QUOIT_RUNTIME_AUDIT_AT);
    quoit_audit_read_variables(audit);
    quoit_job.audit = audit;
}

void quoit_audit_delete(void)
{
    struct quoit_audit *audit = quoit_job.audit;
    quoit_job.audit = NULL;
    if (!audit)
        return;
    quoit_symbols_close(&audit->symbols);
    free(audit->blocks);
    free(audit->sets);
    free(audit->variables);
    pthread_mutex_destroy(&audit->lock);
    free(audit);
}

/* --- texts --- */

uintptr_t quoit_audit_from(void)
{
    return (uintptr_t)__atomic_load_n(&quoit_job.fabric->self.call_from, __ATOMIC_RELAXED);
}

/* The library through which interpreters call C: an address in it is no place of anybody's program. */
static bool is_interface(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, "libffi.", 7) == 0;
}

const char *quoit_audit_place(uintptr_t from, char text[QUOIT_AUDIT_PLACE_BYTES])
{
    Dl_info info;
    struct link_map *object = NULL;
    struct quoit_place place;
    text[0] = '\0';
    if (from == 0 || dladdr1((void *)from, &info, (void **)&object, RTLD_DL_LINKMAP) == 0 ||
        is_interface(object->l_name))
        return text;
    char program[32];
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid()); /* "self" would be the process that resolves it */
    const char *path = object->l_name[0] ? object->l_name : program;
    uint64_t address = from - object->l_addr - 1; /* the call precedes its return address */
    quoit_place_find(path, &address, 1, quoit_clock_now_ns() + PLACE_NS, &place);
    struct quoit_symbol function;
    bool has_function = !object->l_name[0] && quoit_symbols_find(&quoit_job.audit->symbols, address, true, &function);
    if (place.line[0])
        snprintf(text, QUOIT_AUDIT_PLACE_BYTES, " (%s)", place.line);
    else if (has_function)
        snprintf(text, QUOIT_AUDIT_PLACE_BYTES, " (%.80s+0x%" PRIx64 ")", function.name,
                 address - function.address + 1);
    else
        snprintf(text, QUOIT_AUDIT_PLACE_BYTES, " (%s+0x%" PRIx64 ")", object->l_name[0] ? object->l_name : "program",
                 address + 1);
    return text;
}

/* --- threads --- */

void quoit_audit_thread(const char *call)
{
    const struct quoit_audit *audit = quoit_job.audit;
    if (quoit_job.thread_level > SHMEM_THREAD_FUNNELED || pthread_equal(audit->init_thread, pthread_self()))
        return;
    if (quoit_job.thread_level == SHMEM_THREAD_SINGLE)
        quoit_wrong(QUOIT_WRONG_THREAD, call,
                    "called by a second thread, but the thread level is SHMEM_THREAD_SINGLE; shmem_init_thread asks "
                    "for more");
    quoit_wrong(QUOIT_WRONG_THREAD, call,
                "called by another thread than shmem_init_thread, but the thread level is SHMEM_THREAD_FUNNELED");
}

/* Of the calling thread: the nesting depth of routines, and the context that it uses there. */
static _Thread_local struct {
    uint32_t depth;
    struct quoit_ctx_slot *ctx;
} inside;

struct quoit_audit *quoit_audit_enter(const char *call)
{
    struct quoit_audit *audit = quoit_job.audit;
    uintptr_t nobody = 0, self = (uintptr_t)pthread_self();
    quoit_check_running(call);
    if (inside.depth++ != 0 || quoit_job.thread_level != SHMEM_THREAD_SERIALIZED)
        return audit;
    if (!atomic_compare_exchange_strong(&audit->thread_inside, &nobody, self)) {
        const char *other = atomic_load(&audit->call_inside);
        quoit_wrong(QUOIT_WRONG_THREAD, call,
                    "called while another thread is in %s, but the thread level is SHMEM_THREAD_SERIALIZED",
                    other ? other : "another routine");
    }
    atomic_store(&audit->call_inside, call);
    return audit;
}

void quoit_audit_leave(struct quoit_audit *audit)
{
    if (--inside.depth != 0)
        return;
    if (inside.ctx)
        atomic_store(&inside.ctx->user, 0);
    inside.ctx = NULL;
    if (quoit_job.thread_level == SHMEM_THREAD_SERIALIZED)
        atomic_store(&audit->thread_inside, 0);
}

void quoit_audit_use(struct quoit_ctx_slot *slot, const char *call)
{
    char place[QUOIT_AUDIT_PLACE_BYTES];
    uint64_t nobody = 0;
    if (inside.depth == 0 || inside.ctx == slot || !(slot->options & SHMEM_CTX_SERIALIZED))
        return;
    if (!atomic_compare_exchange_strong(&slot->user, &nobody, (uint64_t)pthread_self())) {
        const char *other = atomic_load(&slot->user_call);
        quoit_wrong(QUOIT_WRONG_THREAD, call,
                    "ctx is SHMEM_CTX_SERIALIZED%s, so no two threads may use it at once, but another is in %s with it",
                    quoit_audit_place(slot->made_from, place), other ? other : "a routine");
    }
    atomic_store(&slot->user_call, call);
    inside.ctx = slot;
}

/* --- collectives --- */

static void write_note(struct quoit_audit_note *note, const char *call, const struct quoit_audit_argument *arguments)
{
    memset(note, 0, sizeof *note);
    strncpy(note->call, call, sizeof note->call - 1);
    note->from = quoit_audit_from() - quoit_job.audit->load_base;
    for (size_t i = 0; arguments[i].name; i++) {
        quoit_assert(i < QUOIT_AUDIT_WORDS);
        note->values[i] = arguments[i].value;
    }
}

static void format_value(const struct quoit_audit_argument *argument, uint64_t value, char text[96])
{
    if (argument->kind != QUOIT_AUDIT_OFFSET) {
        snprintf(text, 96, "%" PRId64, (int64_t)value);
        return;
    }
    const struct quoit_region *region = quoit_regions_at(&quoit_job.regions, value);
    if (!region) { /* of another PE, whose program differs */
        snprintf(text, 96, "no object here");
        return;
    }
    const void *address = (const void *)(region->base + (value - region->segment_offset));
    quoit_audit_describe(address, text, 96);
}

/* Compares this PE's note with that of PE `other`. */
static void compare_notes(const struct quoit_audit_note *mine, const struct quoit_audit_note *theirs, uint32_t other,
                          const char *call, const struct quoit_audit_argument *arguments)
{
    char here[QUOIT_AUDIT_PLACE_BYTES], there[QUOIT_AUDIT_PLACE_BYTES];
    const uint64_t base = quoit_job.audit->load_base;
    if (strncmp(mine->call, theirs->call, sizeof mine->call) != 0)
        quoit_wrong(QUOIT_WRONG_COLLECTIVE, call, "PE %u is in it%s, but PE %u is in %.47s%s; all call the same",
                    quoit_job.pe, quoit_audit_place(mine->from + base, here), other, theirs->call,
                    quoit_audit_place(theirs->from + base, there));
    for (size_t i = 0; arguments[i].name; i++) {
        char my_value[96], their_value[96];
        if (mine->values[i] == theirs->values[i] || arguments[i].kind == QUOIT_AUDIT_OWN)
            continue;
        format_value(&arguments[i], mine->values[i], my_value);
        format_value(&arguments[i], theirs->values[i], their_value);
        quoit_wrong(QUOIT_WRONG_COLLECTIVE, call, "%s is %s on PE %u%s, but %s on PE %u%s; it must be the same",
                    arguments[i].name, my_value, quoit_job.pe, quoit_audit_place(mine->from + base, here), their_value,
                    other, quoit_audit_place(theirs->from + base, there));
    }
}

/* Sums the OWN argument over the members, whose notes are at `at` in their segments; the sum wraps only if a PE's value
 * is already wrong. */
static uint64_t add_up(const struct quoit_team_range *members, size_t at, const struct quoit_audit_argument *arguments)
{
    uint64_t sum = 0, value;
    for (size_t i = 0; arguments[i].name; i++)
        for (uint32_t rank = 0; arguments[i].kind == QUOIT_AUDIT_OWN && rank < members->size; rank++) {
            quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &value,
                             at + offsetof(struct quoit_audit_note, values[i]), sizeof value,
                             members->start + rank * members->stride);
            sum += value;
        }
    return sum;
}

static bool is_member(const struct quoit_team_range *range, uint32_t pe)
{
    for (uint32_t rank = 0; rank < range->size; rank++)
        if (range->start + rank * range->stride == pe)
            return true;
    return false;
}

/* Detects a deadlock: a PE that has not entered this collective is inside one of another team that this PE has not
 * entered. Certain where a PE is in one collective at a time. */
static void check_crossing(const struct quoit_team_slot *team, uint32_t pe, const char *call)
{
    const size_t at = QUOIT_RUNTIME_AUDIT_AT + offsetof(struct quoit_audit_shared, turns);
    const struct quoit_audit_shared *self = quoit_job.audit->shared_self;
    struct quoit_audit_turns theirs;
    struct quoit_audit_note note;
    char here[QUOIT_AUDIT_PLACE_BYTES], there[QUOIT_AUDIT_PLACE_BYTES];
    quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &theirs, at, sizeof theirs, pe);
    if (theirs.counts[team->piece] >= team->call_count || theirs.piece == team->piece ||
        theirs.counts[theirs.piece] <= self->turns.counts[theirs.piece] || !is_member(&theirs.range, quoit_job.pe))
        return;
    quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &note,
                     QUOIT_RUNTIME_AUDIT_AT + offsetof(struct quoit_audit_shared, notes) + theirs.piece * sizeof note,
                     sizeof note, pe);
    quoit_wrong(QUOIT_WRONG_COLLECTIVE, call,
                "PE %u is in it%s, but PE %u is in %.47s%s of another team, and each waits for the other; all call the "
                "collectives of their teams in the same order",
                quoit_job.pe, quoit_audit_place(self->notes[team->piece].from + quoit_job.audit->load_base, here), pe,
                note.call, quoit_audit_place(note.from + quoit_job.audit->load_base, there));
}

/* Publishes that this PE has entered, then checks the PEs that it waits for: of two that cross, the second one sees it.
 * In a large team only the first member looks at all, and the others at the first: of two others neither may see it. */
static void come(struct quoit_team_slot *team, const char *call)
{
    struct quoit_audit_turns *turns = &quoit_job.audit->shared_self->turns;
    uint32_t count = team->rank == 0 || team->range.size <= SMALL_TEAM ? team->range.size : 1;
    if (quoit_job.thread_level > SHMEM_THREAD_SERIALIZED)
        return;
    turns->piece = team->piece;
    turns->range = team->range;
    __atomic_store_n(&turns->counts[team->piece], ++team->call_count, __ATOMIC_RELEASE);
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t rank = 0; rank < count; rank++)
        if (rank != team->rank)
            check_crossing(team, quoit_team_pe(team, rank), call);
}

uint64_t quoit_audit_collective(struct quoit_team_slot *team, const char *call,
                                const struct quoit_audit_argument *arguments)
{
    const size_t at = QUOIT_RUNTIME_AUDIT_AT + offsetof(struct quoit_audit_shared, notes[team->piece]);
    struct quoit_audit_note *mine = &quoit_job.audit->shared_self->notes[team->piece], first;
    uint32_t pe = quoit_team_pe(team, 0);
    write_note(mine, call, arguments);
    come(team, call);
    quoit_coll_sync(team->state, call);
    quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &first, at, sizeof first, pe);
    compare_notes(mine, &first, pe, call, arguments);
    uint64_t sum = add_up(&team->range, at, arguments);
    quoit_coll_sync(team->state, call); /* all have read before any member writes the next note */
    return sum;
}

/* --- active sets --- */

static struct quoit_audit_set_note *own_set(uint64_t offset_psync, size_t *at_out)
{
    uint64_t index = (offset_psync / sizeof(long) * 0x9e3779b97f4a7c15u) >> 59;
    _Static_assert(QUOIT_AUDIT_SETS == 1u << (64 - 59), "the hash gives an index");
    *at_out = QUOIT_RUNTIME_AUDIT_AT + offsetof(struct quoit_audit_shared, sets) +
              index * sizeof(struct quoit_audit_set_note);
    return &quoit_job.audit->shared_self->sets[index];
}

/* What other PEs write there waits for this one. */
static void check_psync(const struct quoit_audit_set *set, const char *call)
{
    for (size_t i = 0; i < SHMEM_SYNC_SIZE; i++) {
        int64_t value = __atomic_load_n(&set->psync[i], __ATOMIC_ACQUIRE);
        if (value != SHMEM_SYNC_VALUE)
            quoit_wrong(QUOIT_WRONG_PSYNC, call,
                        "pSync[%zu] is %" PRId64 ", but all words of pSync are SHMEM_SYNC_VALUE (%ld) before the "
                        "call; set them on all PEs, then shmem_barrier_all",
                        i, value, SHMEM_SYNC_VALUE);
    }
}

/* Barriers leave at the same time as all others, and their pSync may be reused at once by the same set. */
static bool is_barrier(const char *call)
{
    return strcmp(call, "shmem_barrier") == 0 || strcmp(call, "shmem_sync") == 0;
}

static void check_in_use(const struct quoit_audit_set *set, const struct quoit_audit_set_note *mine, size_t at,
                         const char *call)
{
    char place[QUOIT_AUDIT_PLACE_BYTES];
    for (uint32_t rank = 0; rank < set->size; rank++) {
        struct quoit_audit_set_note theirs;
        uint32_t pe = set->start + rank * set->stride;
        if (pe == quoit_job.pe)
            continue;
        quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &theirs, at, sizeof theirs, pe);
        bool is_same_set = theirs.members == mine->members;
        if (!theirs.is_inside || theirs.offset_psync != mine->offset_psync ||
            (is_same_set && (theirs.call_count >= mine->call_count || is_barrier(theirs.note.call))))
            continue;
        quoit_wrong(QUOIT_WRONG_PSYNC, call,
                    "pSync %p is still in use by PE %u in %.47s%s; another pSync or a barrier between the calls is "
                    "needed",
                    (const void *)set->psync, pe, theirs.note.call,
                    quoit_audit_place(theirs.note.from + quoit_job.audit->load_base, place));
    }
}

/* Counts this PE's calls with this pSync and set: members of a set agree on the number. */
static uint64_t count_call(uint64_t offset_psync, uint64_t members)
{
    struct quoit_audit *audit = quoit_job.audit;
    struct quoit_audit_set_count *count = NULL;
    pthread_mutex_lock(&audit->lock);
    for (size_t i = 0; i < audit->set_count && !count; i++)
        if (audit->sets[i].offset_psync == offset_psync && audit->sets[i].members == members)
            count = &audit->sets[i];
    if (!count) {
        void *sets = realloc(audit->sets, (audit->set_count + 1) * sizeof *audit->sets);
        if (!sets)
            quoit_boot_abort(&quoit_job.boot, 1, "no memory for --check");
        audit->sets = sets;
        count = &audit->sets[audit->set_count++];
        *count = (struct quoit_audit_set_count){offset_psync, members, 0};
    }
    uint64_t call_count = ++count->call_count;
    pthread_mutex_unlock(&audit->lock);
    return call_count;
}

uint64_t quoit_audit_set_begin(const struct quoit_audit_set *set, const char *call,
                               const struct quoit_audit_argument *arguments, void (*sync)(void *arg), void *sync_arg)
{
    size_t at;
    struct quoit_audit_set_note *mine = own_set(set->offset_psync, &at), first;
    check_psync(set, call);
    mine->offset_psync = set->offset_psync + 1;
    mine->members = ((uint64_t)set->start << 40) ^ ((uint64_t)set->stride << 20) ^ set->size;
    mine->call_count = count_call(mine->offset_psync, mine->members);
    write_note(&mine->note, call, arguments);
    __atomic_store_n(&mine->is_inside, 1, __ATOMIC_RELEASE);
    check_in_use(set, mine, at, call);
    sync(sync_arg);
    quoit_fabric_get(quoit_job.fabric, &quoit_job.fabric->default_context, &first, at, sizeof first, set->start);
    if (first.offset_psync == mine->offset_psync && first.members == mine->members)
        compare_notes(&mine->note, &first.note, set->start, call, arguments);
    const struct quoit_team_range members = {.start = set->start, .stride = set->stride, .size = set->size};
    uint64_t sum = add_up(&members, at + offsetof(struct quoit_audit_set_note, note), arguments);
    sync(sync_arg);
    return sum;
}

void quoit_audit_set_end(uint64_t offset_psync)
{
    size_t at;
    __atomic_store_n(&own_set(offset_psync, &at)->is_inside, 0, __ATOMIC_RELEASE);
}
