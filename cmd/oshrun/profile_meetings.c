/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_meetings.h"

#include <stdlib.h>

#include "meetings.h"

static uint64_t came_ns(const struct profile_table *table, const struct meeting_part *part)
{
    return part->meeting->begin_ns - (uint64_t)table->clock_ns[table->job->pes[part->pe].host];
}

/* All members of a collective. It belongs to the line of the first of them. */
static void note_last(struct profile_table *table, const struct meeting_part *parts, size_t count)
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

static bool compare_clocks(struct profile_table *table, const struct meeting_part *parts, size_t count)
{
    struct meeting_clock *clocks = calloc(table->job->plan->host_count, sizeof *clocks);
    bool is_done = clocks && meetings_compare_clocks(table->job, table->pes, parts, count, clocks);
    for (uint32_t host = 0; host < table->job->plan->host_count && is_done; host++)
        table->clock_ns[host] = clocks[host].ahead_ns;
    free(clocks);
    return is_done;
}

bool profile_meet(struct profile_table *table)
{
    size_t count = 0, members;
    struct meeting_part *parts = meetings_list(table->pes, table->pe_count, &count);
    bool is_done = parts && compare_clocks(table, parts, count);
    for (size_t i = 0; i < count && is_done; i += members) {
        members = meetings_count(&parts[i], count - i);
        if (members > 1 && members == parts[i].group.size)
            note_last(table, &parts[i], members);
    }
    free(parts);
    return is_done;
}
