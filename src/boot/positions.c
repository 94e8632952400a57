/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/positions.h"
#include "boot/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define GROUPS_MAX         8 /* more than this explain nothing */
#define GROUPS_WRITTEN_MAX 4

/* PEs at the same position. */
struct group {
    const struct quoit_position *position;
    const char *executable;
    struct quoit_place place;  /* of the call */
    uint32_t like[GROUPS_MAX]; /* the first PE at each address: compilers make several calls of one line */
    uint32_t like_count;
    uint32_t count;
    char pes[QUOIT_POSITIONS_LIST_BYTES];
};

struct membership {
    const struct quoit_positions *positions;
    const struct group *group;
    uint32_t except;
};

uint32_t quoit_positions_list(uint32_t first, uint32_t count, bool (*is_member)(const void *arg, uint32_t pe),
                              const void *arg, char text_out[QUOIT_POSITIONS_LIST_BYTES])
{
    char list[QUOIT_POSITIONS_LIST_BYTES - 8] = "";
    size_t used = 0;
    uint32_t member_count = 0, end = first + count;
    for (uint32_t pe = first; pe < end; pe++) {
        if (!is_member(arg, pe))
            continue;
        uint32_t last = pe;
        while (last + 1 < end && is_member(arg, last + 1))
            last++;
        if (last == pe + 1)
            last = pe; /* "3,4", not "3-4" */
        member_count += last - pe + 1;
        if (used + 28 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, last > pe ? "%s%u-%u" : "%s%u", used ? "," : "",
                                     pe, last);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, ",...");
        pe = last;
    }
    snprintf(text_out, QUOIT_POSITIONS_LIST_BYTES, "PE%s %s", member_count == 1 ? "" : "s", list);
    return member_count;
}

void quoit_position_note(struct quoit_position *position, const struct quoit_pe_shared *shared)
{
    memcpy(position->call, shared->waiting_in, sizeof position->call);
    position->call[sizeof position->call - 1] = '\0';
    if (position->call[0])
        position->wait_desc = shared->wait_desc;
    uint64_t from = atomic_load(&shared->waiting_from), base = atomic_load(&shared->load_base);
    bool is_in_program = !atomic_load(&shared->has_interpreter); /* else an extension has called, and has a line */
    position->from = position->call[0] && from > base && is_in_program ? from - base : 0;
}

void quoit_position_describe(struct quoit_position *position, const struct quoit_wait_desc_job *job, uint32_t pe,
                             const char *executable)
{
    struct quoit_wait_desc_reading reading = {0};
    if (!position->is_alive || !position->call[0])
        return;
    quoit_wait_desc_read(job, pe, &position->wait_desc, NULL, &reading);
    quoit_wait_desc_describe(&reading, executable, position->wait_desc_text);
    position->holder = reading.holder;
}

/* The numbers of this file are indices of the list, but those of except and of quoit_positions_list(). */

/* In the same call of the same line, as far as the PEs wrote it. */
static bool is_alike(const struct quoit_positions *positions, uint32_t a, uint32_t b)
{
    const struct quoit_position *x = &positions->list[a], *y = &positions->list[b];
    const char *p = positions->executable_of(positions->arg, a), *q = positions->executable_of(positions->arg, b);
    if (!x->is_alive || !y->is_alive)
        return x->is_alive == y->is_alive;
    return x->phase == y->phase && x->is_stopped == y->is_stopped && strcmp(x->call, y->call) == 0 &&
           strcmp(x->wait_desc_text, y->wait_desc_text) == 0 && strcmp(x->line, y->line) == 0 &&
           (p == q || (p && q && strcmp(p, q) == 0));
}

static bool is_same_place(const struct quoit_positions *positions, uint32_t a, uint32_t b)
{
    const struct quoit_position *x = &positions->list[a], *y = &positions->list[b];
    return is_alike(positions, a, b) && (!x->is_alive || x->from == y->from);
}

static bool is_in_group(const void *arg, uint32_t pe)
{
    const struct membership *membership = arg;
    const struct quoit_positions *positions = membership->positions;
    bool is_member = false;
    for (uint32_t i = 0; i < membership->group->like_count && !is_member; i++)
        is_member = is_same_place(positions, pe - positions->first, membership->group->like[i]);
    return pe != membership->except && is_member;
}

static void find_place(const struct quoit_positions *positions, struct group *group)
{
    uint64_t before = group->position->from - 1; /* the call stands before the address it returns to */
    if (group->position->is_alive && group->position->call[0] && group->position->from)
        quoit_place_find(group->executable, &before, 1, positions->until_ns, &group->place);
}

/* Joins the groups whose addresses are of one line. Returns how many are left. */
static uint32_t join_lines(const struct quoit_positions *positions, struct group *groups, uint32_t group_count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group_count; i++) {
        const struct group *group = &groups[i];
        uint32_t k = 0;
        while (k < kept && !(group->place.line[0] && strcmp(groups[k].place.line, group->place.line) == 0 &&
                             is_alike(positions, groups[k].like[0], group->like[0])))
            k++;
        if (k < kept)
            groups[k].like[groups[k].like_count++] = group->like[0];
        else
            groups[kept++] = *group;
    }
    return kept;
}

/* Returns the number of groups, at most GROUPS_MAX. */
static uint32_t group_pes(const struct quoit_positions *positions, uint32_t except, struct group *groups)
{
    uint32_t group_count = 0;
    for (uint32_t index = 0; index < positions->count && group_count < GROUPS_MAX && positions->list; index++) {
        bool is_known = positions->first + index == except;
        for (uint32_t i = 0; i < group_count && !is_known; i++)
            is_known = is_same_place(positions, index, groups[i].like[0]);
        if (is_known)
            continue;
        struct group *group = &groups[group_count++];
        *group = (struct group){.position = &positions->list[index],
                                .executable = positions->executable_of(positions->arg, index),
                                .like = {index},
                                .like_count = 1};
        find_place(positions, group);
    }
    group_count = join_lines(positions, groups, group_count);
    for (uint32_t i = 0; i < group_count; i++) {
        const struct membership membership = {positions, &groups[i], except};
        groups[i].count =
            quoit_positions_list(positions->first, positions->count, is_in_group, &membership, groups[i].pes);
    }
    return group_count;
}

/* The position of the first of them that answered the supervisor's request; see crash.h. */
static void write_computing(FILE *out, const struct quoit_positions *positions, const struct group *group)
{
    for (uint32_t index = group->like[0]; index < positions->count; index++) {
        const struct quoit_pe_shared *shared = positions->shared_of(positions->arg, index);
        struct quoit_place place;
        if (!shared || atomic_load_explicit(&shared->crash.signal, memory_order_acquire) != SIGURG ||
            !is_same_place(positions, index, group->like[0]))
            continue;
        uint64_t base = atomic_load(&shared->load_base);
        uint64_t address = shared->crash.instruction - base - (shared->crash.is_inside ? 1 : 0);
        if (shared->crash.instruction <= base)
            return;
        quoit_place_find(positions->executable_of(positions->arg, index), &address, 1, positions->until_ns, &place);
        if (!place.function[0] && !place.line[0])
            return;
        fprintf(out, " (");
        if (group->count > 1)
            fprintf(out, "PE %u ", positions->first + index);
        fprintf(out, "%s%s%s%s)", place.function[0] ? "in " : "at ", place.function, place.function[0] ? "() " : "",
                place.line);
        return;
    }
}

static void write_group(const struct quoit_report *report, const struct quoit_positions *positions,
                        const struct group *group)
{
    const struct quoit_position *position = group->position;
    FILE *out = report->out;
    bool is_one = group->count == 1;
    const char *were = positions->goes_on ? (is_one ? "is" : "are") : is_one ? "was" : "were";
    const struct quoit_place *place = &group->place;
    if (!position->is_alive)
        fprintf(out, "  %s had ended", group->pes);
    else if (position->is_stopped)
        fprintf(out, "  %s %s stopped by a signal", group->pes, were);
    else if (position->phase == QUOIT_PHASE_STARTED)
        fprintf(out, "  %s had not called shmem_init", group->pes);
    else if (position->phase == QUOIT_PHASE_FINALIZED)
        fprintf(out, "  %s %s through shmem_finalize", group->pes, were);
    else if (position->phase != QUOIT_PHASE_RUNNING)
        fprintf(out, "  %s %s waiting in shmem_init", group->pes, were);
    else
        quoit_report_place(report, group->pes, is_one, positions->goes_on, position->call, "", "");
    if (position->is_alive && position->line[0])
        fprintf(out, " (%s)", position->line);
    else if (place->line[0])
        fprintf(out, " (%s)", place->line);
    else if (place->function[0])
        fprintf(out, " (in %s)", place->function);
    if (position->is_alive && position->call[0])
        fprintf(out, "%s", position->wait_desc_text);
    else if (position->is_alive && position->phase == QUOIT_PHASE_RUNNING && !position->line[0])
        write_computing(out, positions, group);
    fputc('\n', out);
}

bool quoit_positions_write(const struct quoit_report *report, const struct quoit_positions *positions, uint32_t except,
                           bool includes_ended)
{
    struct group groups[GROUPS_MAX];
    uint32_t written = 0, group_count = report->out ? group_pes(positions, except, groups) : 0;
    bool has_alive = false;
    for (uint32_t i = 0; i < group_count; i++) {
        has_alive |= groups[i].position->is_alive;
        if (!groups[i].position->is_alive && !includes_ended)
            continue;
        if (written == GROUPS_WRITTEN_MAX) {
            fprintf(report->out, "  and others elsewhere\n");
            break;
        }
        write_group(report, positions, &groups[i]);
        written++;
    }
    return has_alive;
}

/* Whether a routine is one that all PEs of a team call. */
static bool is_collective(const char *call)
{
    static const char *const parts[] = {"barrier", "sync",       "broadcast",   "collect", "alltoall",
                                        "reduce",  "_to_all",    "malloc",      "calloc",  "align",
                                        "free",    "team_split", "team_destroy"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(call, parts[i]))
            return true;
    return false;
}

enum waits { WAITS_FOR_VALUE, WAITS_FOR_LOCK, WAITS_FOR_OTHERS, WAITS_OTHERWISE };

static enum waits waits_of(const struct quoit_position *position)
{
    if (!position->is_alive || position->is_stopped || position->phase != QUOIT_PHASE_RUNNING || !position->call[0])
        return WAITS_OTHERWISE;
    if (position->wait_desc.count > 0)
        return position->wait_desc.is_lock ? WAITS_FOR_LOCK : WAITS_FOR_VALUE;
    return is_collective(position->call) ? WAITS_FOR_OTHERS : WAITS_OTHERWISE;
}

struct waiting {
    const struct quoit_positions *positions;
    enum waits waits;
};

static bool waits_as(const void *arg, uint32_t pe)
{
    const struct waiting *waiting = arg;
    return waits_of(&waiting->positions->list[pe - waiting->positions->first]) == waiting->waits;
}

static uint32_t list_waiting(const struct quoit_positions *positions, enum waits waits,
                             char text_out[QUOIT_POSITIONS_LIST_BYTES])
{
    const struct waiting waiting = {positions, waits};
    return quoit_positions_list(positions->first, positions->count, waits_as, &waiting, text_out);
}

/* One that waits for a lock whose holder is known; NULL. */
static const struct quoit_position *find_lock_waiter(const struct quoit_positions *positions)
{
    for (uint32_t index = 0; index < positions->count; index++)
        if (waits_of(&positions->list[index]) == WAITS_FOR_LOCK &&
            positions->list[index].holder - positions->first < positions->count)
            return &positions->list[index];
    return NULL;
}

void quoit_positions_describe_hang(uint64_t still_ns, char begin_out[96])
{
    snprintf(begin_out, 96, "warning: every PE waits, and nothing has moved for %u s",
             (unsigned)(still_ns / 1000000000u));
}

bool quoit_positions_report_hang(struct quoit_report *report, const struct quoit_positions *positions,
                                 const char *begin)
{
    char values[QUOIT_POSITIONS_LIST_BYTES], others[QUOIT_POSITIONS_LIST_BYTES];
    const struct quoit_position *waiter = find_lock_waiter(positions);
    uint32_t value_count = list_waiting(positions, WAITS_FOR_VALUE, values);
    uint32_t other_count = list_waiting(positions, WAITS_FOR_OTHERS, others);
    if (list_waiting(positions, WAITS_OTHERWISE, others) > 0)
        return false;
    if (waiter)
        quoit_report_line(report, "Q0142", "%s: PE %u waits for a lock whose holder, PE %u, waits too", begin,
                          positions->first + (uint32_t)(waiter - positions->list), waiter->holder);
    else if (value_count > 0)
        quoit_report_line(report, "Q0140", "%s: no PE is left to write what %s %s for", begin, values,
                          value_count == 1 ? "waits" : "wait");
    else if (other_count == positions->count)
        quoit_report_line(report, "Q0141", "%s: the collectives that the PEs are in do not match", begin);
    else
        return false;
    return true;
}
