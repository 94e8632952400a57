/* SPDX-License-Identifier: BSD-3-Clause */
#include "meetings.h"

#include <stdlib.h>
#include <string.h>

struct quoit_profile *meetings_record(const struct job *job, uint32_t pe)
{
    const struct host *host = &job->hosts[job->pes[pe].host];
    if (!job->has_layout || !host->front)
        return NULL;
    struct quoit_profile *record = quoit_memory_profile(&host->layout, host->front, pe - host->layout.first_pe);
    if (!record || record->begin_ns == 0 || record->end_ns < record->begin_ns)
        return NULL;
    quoit_profile_mend(record);
    return record;
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_meetings(const struct meeting_part *x, const struct meeting_part *y)
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
    const struct meeting_part *x = a, *y = b;
    int order = compare_meetings(x, y);
    return order != 0 ? order : compare_numbers(x->pe, y->pe);
}

struct meeting_part *meetings_list(struct quoit_profile *const *records, uint32_t pe_count, size_t *count_out)
{
    size_t count = 0;
    for (uint32_t pe = 0; pe < pe_count; pe++)
        count += records[pe] ? records[pe]->meeting_count : 0;
    struct meeting_part *parts = calloc(count + 1, sizeof *parts);
    *count_out = 0;
    for (uint32_t pe = 0; pe < pe_count && parts; pe++)
        for (uint32_t i = 0; records[pe] && i < records[pe]->meeting_count; i++) {
            const struct quoit_profile_meeting *meeting = &records[pe]->meetings[i];
            parts[(*count_out)++] =
                (struct meeting_part){.group = records[pe]->groups[meeting->group], .meeting = meeting, .pe = pe};
        }
    if (parts)
        qsort(parts, *count_out, sizeof *parts, compare_parts);
    return parts;
}

size_t meetings_count(const struct meeting_part *parts, size_t left)
{
    size_t count = 1;
    while (count < left && compare_meetings(&parts[count], &parts[0]) == 0)
        count++;
    return count;
}

/* --- Clocks --- */

/* What is known of the difference of two clocks: it is least_ns..most_ns. */
struct difference {
    int64_t least_ns;
    int64_t most_ns;
    int64_t *of_leaving; /* one for each collective, as PEs left it */
    size_t count;
};

static int compare_differences(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* PEs can have recorded any times: differences wrap. */
static int64_t less(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Whether each PE waits for all others in it, whatever its arguments are. */
static bool waits_for_all(const struct quoit_profile *record, const struct quoit_profile_meeting *meeting)
{
    const char *call = record->sites[meeting->site].call;
    return strstr(call, "barrier") || strstr(call, "sync") || strstr(call, "finalize");
}

/* When the last PE of a host came, and the first one left. */
static void find_span(const struct meeting_part *parts, const struct quoit_layout *layout, int64_t *came_ns_out,
                      int64_t *left_ns_out)
{
    *came_ns_out = INT64_MIN;
    *left_ns_out = INT64_MAX;
    for (uint32_t pe = layout->first_pe; pe < layout->first_pe + layout->local_count; pe++) {
        int64_t came_ns = (int64_t)parts[pe].meeting->begin_ns, left_ns = (int64_t)parts[pe].meeting->end_ns;
        if (came_ns > *came_ns_out)
            *came_ns_out = came_ns;
        if (left_ns < *left_ns_out)
            *left_ns_out = left_ns;
    }
}

/* parts: of one collective of all PEs. */
static void note_difference(const struct job *job, uint32_t host, const struct quoit_profile *record,
                            const struct meeting_part *parts, struct difference *known)
{
    int64_t came_ns[2], left_ns[2];
    find_span(parts, &job->hosts[0].layout, &came_ns[0], &left_ns[0]);
    find_span(parts, &job->hosts[host].layout, &came_ns[1], &left_ns[1]);
    int64_t most_ns = less(left_ns[1], came_ns[0]), least_ns = less(came_ns[1], left_ns[0]);
    known->of_leaving[known->count++] = less(left_ns[1], left_ns[0]);
    if (!waits_for_all(record, parts[0].meeting))
        return;
    if (most_ns < known->most_ns)
        known->most_ns = most_ns;
    if (least_ns > known->least_ns)
        known->least_ns = least_ns;
}

/* When the first PE of a host came out of shmem_init; 0: none has. */
static int64_t begin_of(const struct quoit_layout *layout, struct quoit_profile *const *records)
{
    int64_t begin_ns = 0;
    for (uint32_t pe = layout->first_pe; pe < layout->first_pe + layout->local_count; pe++)
        if (records[pe] && (begin_ns == 0 || (int64_t)records[pe]->begin_ns < begin_ns))
            begin_ns = (int64_t)records[pe]->begin_ns;
    return begin_ns;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static struct meeting_clock estimate(const struct job *job, uint32_t host, struct quoit_profile *const *records,
                                     struct difference *known)
{
    struct meeting_clock clock = {.error_ns = UINT64_MAX};
    if (known->count > 0) {
        qsort(known->of_leaving, known->count, sizeof *known->of_leaving, compare_differences);
        clock.ahead_ns = known->of_leaving[known->count / 2];
    } else {
        int64_t first_ns = begin_of(&job->hosts[0].layout, records);
        int64_t own_ns = begin_of(&job->hosts[host].layout, records);
        clock.ahead_ns = first_ns && own_ns ? less(own_ns, first_ns) : 0;
    }
    if (known->least_ns == INT64_MIN || known->most_ns == INT64_MAX)
        return clock;
    if (known->least_ns <= known->most_ns && clock.ahead_ns < known->least_ns)
        clock.ahead_ns = known->least_ns;
    if (known->least_ns <= known->most_ns && clock.ahead_ns > known->most_ns)
        clock.ahead_ns = known->most_ns;
    uint64_t below_ns = distance(clock.ahead_ns, known->least_ns), above_ns = distance(clock.ahead_ns, known->most_ns);
    clock.error_ns = below_ns > above_ns ? below_ns : above_ns;
    return clock;
}

bool meetings_compare_clocks(const struct job *job, struct quoit_profile *const *records,
                             const struct meeting_part *parts, size_t count, struct meeting_clock *clocks_out)
{
    const uint32_t pe_count = job->plan->pe_count;
    memset(clocks_out, 0, job->plan->host_count * sizeof *clocks_out);
    if (job->role != ROLE_HEAD)
        return true;
    int64_t *of_leaving = calloc(count / pe_count + 1, sizeof *of_leaving);
    for (uint32_t host = 1; host < job->plan->host_count && of_leaving; host++) {
        struct difference known = {.least_ns = INT64_MIN, .most_ns = INT64_MAX, .of_leaving = of_leaving};
        for (size_t i = 0, members; i < count; i += members) {
            members = meetings_count(&parts[i], count - i);
            if (members == pe_count && parts[i].group.size == members)
                note_difference(job, host, records[parts[i].pe], &parts[i], &known);
        }
        clocks_out[host] = estimate(job, host, records, &known);
    }
    free(of_leaving);
    return of_leaving != NULL;
}
