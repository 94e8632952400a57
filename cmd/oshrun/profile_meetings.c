/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_meetings.h"

#include <stdlib.h>

/* A PE's part in a collective. */
struct part {
    struct quoit_profile_group group; /* without its count */
    const struct quoit_profile_meeting *meeting;
    uint32_t pe;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_meetings(const struct part *x, const struct part *y)
{
    int order = compare_numbers(x->group.size, y->group.size);
    if (order == 0)
        order = compare_numbers(x->group.start, y->group.start);
    if (order == 0)
        order = compare_numbers(x->group.stride, y->group.stride);
    return order != 0 ? order : compare_numbers(x->meeting->number, y->meeting->number);
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = compare_meetings(x, y);
    return order != 0 ? order : compare_numbers(x->pe, y->pe);
}

static struct part *list_parts(const struct profile_table *table, size_t *count_out)
{
    size_t count = 0;
    for (uint32_t pe = 0; pe < table->pe_count; pe++)
        count += table->pes[pe] ? table->pes[pe]->meeting_count : 0;
    struct part *parts = calloc(count + 1, sizeof *parts);
    *count_out = 0;
    for (uint32_t pe = 0; pe < table->pe_count && parts; pe++)
        for (uint32_t i = 0; table->pes[pe] && i < table->pes[pe]->meeting_count; i++) {
            const struct quoit_profile_meeting *meeting = &table->pes[pe]->meetings[i];
            parts[(*count_out)++] =
                (struct part){.group = table->pes[pe]->groups[meeting->group], .meeting = meeting, .pe = pe};
        }
    if (parts)
        qsort(parts, *count_out, sizeof *parts, compare_parts);
    return parts;
}

/* How many parts from here on are of one collective. */
static size_t count_of(const struct part *parts, size_t left)
{
    size_t count = 1;
    while (count < left && compare_meetings(&parts[count], &parts[0]) == 0)
        count++;
    return count;
}

static int compare_differences(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* PEs leave a collective of the world at about the same time. Of what their clocks said then, the median. */
static bool compare_clocks(struct profile_table *table, const struct part *parts, size_t count)
{
    const struct job *job = table->job;
    int64_t *differences = calloc(QUOIT_PROFILE_MEETINGS, sizeof *differences);
    if (!differences)
        return false;
    for (uint32_t host = 1; host < job->plan->host_count; host++) {
        uint32_t first = job->hosts[host].layout.first_pe;
        size_t known = 0, members;
        if (job->hosts[host].layout.local_count == 0)
            continue;
        for (size_t i = 0; i < count && known < QUOIT_PROFILE_MEETINGS; i += members) {
            members = count_of(&parts[i], count - i);
            if (members == table->pe_count && parts[i].group.size == members)
                differences[known++] = (int64_t)(parts[i + first].meeting->end_ns - parts[i].meeting->end_ns);
        }
        qsort(differences, known, sizeof *differences, compare_differences);
        table->clock_ns[host] = known ? differences[known / 2] : 0;
    }
    free(differences);
    return true;
}

static uint64_t came_ns(const struct profile_table *table, const struct part *part)
{
    return part->meeting->begin_ns - (uint64_t)table->clock_ns[table->job->pes[part->pe].host];
}

/* All members of a collective. It belongs to the line of the first of them. */
static void note_last(struct profile_table *table, const struct part *parts, size_t count)
{
    uint64_t last_ns = came_ns(table, &parts[0]), held_ns = 0;
    size_t last = 0;
    for (size_t i = 1; i < count; i++)
        if ((int64_t)(came_ns(table, &parts[i]) - last_ns) > 0) {
            last = i;
            last_ns = came_ns(table, &parts[i]);
        }
    for (size_t i = 0; i < count; i++)
        held_ns += last_ns - came_ns(table, &parts[i]);
    const struct quoit_profile_site *site = &table->pes[parts[0].pe]->sites[parts[0].meeting->site];
    struct profile_row *row = &table->rows[site->unused];
    uint32_t pe = parts[last].pe;
    row->compared_count++;
    row->all.last_count++;
    row->all.held_ns += held_ns;
    row->cells[pe].last_count++;
    row->cells[pe].held_ns += held_ns;
    table->sums[pe].last_count++;
    table->sums[pe].held_ns += held_ns;
}

bool profile_meet(struct profile_table *table)
{
    size_t count = 0, members;
    struct part *parts = list_parts(table, &count);
    bool is_one_clock = table->job->role != ROLE_HEAD;
    bool is_done = parts && (is_one_clock || compare_clocks(table, parts, count));
    for (size_t i = 0; i < count && is_done; i += members) {
        members = count_of(&parts[i], count - i);
        if (members > 1 && members == parts[i].group.size)
            note_last(table, &parts[i], members);
    }
    free(parts);
    return is_done;
}
