/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_rows.h"

#include <stdlib.h>
#include <string.h>

#include "env/clock.h"
#include "meetings.h"

#define PLACES_A_QUESTION 32
#define PLACES_LIMIT_NS   10000000000u
#define OTHER_FILES       "(other)" /* those that found no room in the profile */

/* A site of a PE. */
struct entry {
    uint32_t pe;
    const struct quoit_profile_site *site;
    const char *object;
    const struct quoit_place *place; /* NULL: not asked for */
};

static const char *object_of(const struct profile_table *table, uint32_t pe, const struct quoit_profile_site *site)
{
    const char *executable = table->job->pes[pe].executable;
    if (quoit_profile_is_line(site->from))
        return site->object != 0 ? table->pes[pe]->objects[site->object] : OTHER_FILES;
    if (site->address == 0)
        return "";
    return site->object != 0 ? table->pes[pe]->objects[site->object] : executable ? executable : "";
}

static struct entry *list_entries(const struct profile_table *table, size_t *count_out)
{
    size_t count = 0;
    for (uint32_t pe = 0; pe < table->pe_count; pe++)
        for (uint32_t i = 0; table->pes[pe] && i < QUOIT_PROFILE_SITES; i++)
            count += table->pes[pe]->sites[i].call_id != 0;
    struct entry *entries = calloc(count + 1, sizeof *entries);
    *count_out = 0;
    for (uint32_t pe = 0; pe < table->pe_count && entries; pe++)
        for (uint32_t i = 0; table->pes[pe] && i < QUOIT_PROFILE_SITES; i++) {
            const struct quoit_profile_site *site = &table->pes[pe]->sites[i];
            if (site->call_id != 0)
                entries[(*count_out)++] = (struct entry){.pe = pe, .site = site, .object = object_of(table, pe, site)};
        }
    return entries;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->object, y->object);
    return order != 0 ? order : (x->site->address > y->site->address) - (x->site->address < y->site->address);
}

/* A row is one routine at one line. Where lines are unknown, at one address. */
static int compare_rows(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->site->call, y->site->call);
    if (order == 0)
        order = strcmp(x->place->line, y->place->line);
    if (order == 0)
        order = strcmp(x->place->function, y->place->function);
    if (order != 0 || x->place->line[0])
        return order;
    return compare_addresses(a, b);
}

/* Rows in an order that depends on nothing but what the PEs recorded. */
static int compare_entries(const void *a, const void *b)
{
    int order = compare_rows(a, b);
    return order != 0 ? order : compare_addresses(a, b);
}

/* Of one object, whose addresses are in order: one question for up to PLACES_A_QUESTION different ones. */
static void ask_places(struct entry *entries, size_t count, uint64_t deadline_ns, struct quoit_place *places)
{
    uint64_t addresses[PLACES_A_QUESTION];
    size_t asked = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t before = entries[i].site->address - 1; /* the call stands before the address it returns to */
        if (asked == 0 || addresses[asked - 1] != before)
            addresses[asked++] = before;
        entries[i].place = &places[asked - 1];
    }
    quoit_place_find(entries[0].object, addresses, asked, deadline_ns, places);
}

/* What is known without a question: a line that the program gave, or nothing. */
static void set_place(struct entry *entry, struct quoit_place *place)
{
    const char *slash = strrchr(entry->object, '/'), *file = slash ? slash + 1 : entry->object;
    entry->place = place;
    if (!quoit_profile_is_line(entry->site->from))
        return;
    snprintf(place->line, sizeof place->line, "%.80s", file);
    if (entry->site->object != 0)
        snprintf(place->line, sizeof place->line, "%.80s:%u", file, (uint32_t)entry->site->from);
}

static bool is_asked_for(const struct entry *entry)
{
    return entry->object[0] && !quoit_profile_is_line(entry->site->from);
}

/* Entries are ordered by object and address. */
static void find_places(struct entry *entries, size_t count, struct quoit_place *places)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + PLACES_LIMIT_NS;
    for (size_t i = 0, end; i < count; i = end) {
        size_t different = 1;
        for (end = i + 1; end < count && strcmp(entries[end].object, entries[i].object) == 0; end++) {
            different += entries[end].site->address != entries[end - 1].site->address;
            if (different > PLACES_A_QUESTION)
                break;
        }
        if (is_asked_for(&entries[i]))
            ask_places(&entries[i], end - i, deadline_ns, &places[i]);
        for (size_t j = i; j < end && !is_asked_for(&entries[i]); j++)
            set_place(&entries[j], &places[j]);
    }
}

static void add(struct profile_cell *cell, const struct quoit_profile_site *site)
{
    cell->count += site->count;
    cell->bytes += site->bytes;
    cell->timed_count += site->timed_count;
    cell->ns += site->ns;
    cell->wait_ns += site->wait_ns;
    if (site->most_ns > cell->most_ns)
        cell->most_ns = site->most_ns;
}

/* Entries are ordered by row. Each site remembers its row in `unused`, for the collectives. */
static bool make_rows(struct profile_table *table, const struct entry *entries, size_t count)
{
    size_t row_count = 0;
    for (size_t i = 0; i < count; i++)
        row_count += i == 0 || compare_rows(&entries[i], &entries[i - 1]) != 0;
    table->rows = calloc(row_count + 1, sizeof *table->rows);
    table->cells = calloc(row_count * table->pe_count + 1, sizeof *table->cells);
    if (!table->rows || !table->cells)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &entries[i];
        if (i == 0 || compare_rows(entry, &entries[i - 1]) != 0) {
            struct profile_row *next = &table->rows[table->row_count];
            next->call = entry->site->call;
            next->object = entry->object;
            next->address = entry->site->address;
            next->place = *entry->place;
            next->cells = &table->cells[(size_t)table->row_count++ * table->pe_count];
        }
        struct profile_row *row = &table->rows[table->row_count - 1];
        add(&row->cells[entry->pe], entry->site);
        add(&row->all, entry->site);
        add(&table->sums[entry->pe], entry->site);
        table->pes[entry->pe]->sites[entry->site - table->pes[entry->pe]->sites].unused = table->row_count - 1;
    }
    return true;
}

static int compare_times(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    if (x->all.ns != y->all.ns)
        return x->all.ns < y->all.ns ? 1 : -1;
    int order = strcmp(x->call, y->call);
    return order != 0 ? order : strcmp(x->place.line, y->place.line);
}

uint64_t profile_begin_ns(const struct profile_table *table, uint32_t pe)
{
    return table->pes[pe]->begin_ns - (uint64_t)table->clock_ns[table->job->pes[pe].host];
}

uint64_t profile_run_ns(const struct profile_table *table, uint32_t pe)
{
    return table->pes[pe]->end_ns - table->pes[pe]->begin_ns;
}

static void find_pes(struct profile_table *table)
{
    const struct job *job = table->job;
    for (uint32_t pe = 0; pe < table->pe_count; pe++) {
        struct quoit_profile *profile = meetings_record(job, pe);
        if (!profile)
            continue;
        table->pes[pe] = profile;
        table->sums[pe].count = table->sums[pe].timed_count = profile->unplaced_count;
        table->sums[pe].ns = profile->unplaced_ns;
        table->run_ns += profile_run_ns(table, pe);
        if (profile->meeting_step > table->meeting_step)
            table->meeting_step = profile->meeting_step;
    }
}

static void find_span(struct profile_table *table)
{
    table->begin_ns = UINT64_MAX;
    for (uint32_t pe = 0; pe < table->pe_count; pe++) {
        if (!table->pes[pe])
            continue;
        uint64_t begin_ns = profile_begin_ns(table, pe), end_ns = begin_ns + profile_run_ns(table, pe);
        if (begin_ns < table->begin_ns)
            table->begin_ns = begin_ns;
        if (end_ns > table->end_ns)
            table->end_ns = end_ns;
    }
    if (table->begin_ns > table->end_ns)
        table->begin_ns = table->end_ns;
}

bool profile_make(struct profile_table *table, const struct job *job)
{
    size_t count = 0;
    *table = (struct profile_table){.job = job, .pe_count = job->plan->pe_count, .meeting_step = 1};
    table->pes = calloc(table->pe_count, sizeof *table->pes);
    table->sums = calloc(table->pe_count, sizeof *table->sums);
    table->clock_ns = calloc(job->plan->host_count, sizeof *table->clock_ns);
    if (!table->pes || !table->sums || !table->clock_ns)
        return false;
    find_pes(table);
    struct entry *entries = list_entries(table, &count);
    struct quoit_place *places = calloc(count + 1, sizeof *places);
    bool is_made = entries && places;
    if (is_made) {
        qsort(entries, count, sizeof *entries, compare_addresses);
        find_places(entries, count, places);
        qsort(entries, count, sizeof *entries, compare_entries);
        is_made = make_rows(table, entries, count);
    }
    free(places);
    free(entries);
    return is_made;
}

void profile_order(struct profile_table *table)
{
    find_span(table);
    qsort(table->rows, table->row_count, sizeof *table->rows, compare_times);
}

void profile_free(struct profile_table *table)
{
    free(table->pes);
    free(table->sums);
    free(table->clock_ns);
    free(table->rows);
    free(table->cells);
}

const char *profile_line(const struct profile_row *row, char text[2 * QUOIT_PLACE_TEXT_BYTES])
{
    if (row->place.line[0])
        return row->place.line;
    text[0] = '\0';
    if (row->place.function[0])
        snprintf(text, 2 * QUOIT_PLACE_TEXT_BYTES, "in %s", row->place.function);
    return text;
}
