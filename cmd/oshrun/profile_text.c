/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_rows.h"

#include "boot/survey.h"

/* With the other lines, 20 at most. */
#define ROWS_SHOWN 9
#define LATE_SHOWN 3
#define TIME_BYTES 32

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *format_ns(uint64_t ns, char text[TIME_BYTES])
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    size_t i = 0;
    while (units[i].ns > 1 && ns < units[i].ns)
        i++;
    snprintf(text, TIME_BYTES, "%.3g %s", (double)ns / (double)units[i].ns, units[i].unit);
    return text;
}

static bool is_estimate(const struct profile_row *row)
{
    return row->all.timed_count < row->all.count;
}

static void print_rows(const struct profile_table *table, FILE *out)
{
    uint32_t shown = table->row_count <= ROWS_SHOWN + 1 ? table->row_count : ROWS_SHOWN;
    uint64_t rest_ns = 0;
    bool has_estimate = false;
    for (uint32_t i = 0; i < shown; i++)
        has_estimate |= is_estimate(&table->rows[i]);
    fprintf(out, "  %7s %8s %11s %14s  routine (line)%s\n", "time", "waiting", "calls", "bytes",
            has_estimate ? "; ~ estimated from some of its calls" : "");
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct profile_row *row = &table->rows[i];
        char text[2 * QUOIT_PLACE_TEXT_BYTES];
        const char *line = profile_line(row, text);
        if (i >= shown) {
            rest_ns += row->all.ns;
            continue;
        }
        fprintf(out, " %c%6.2f%% %7.2f%% %11llu %14llu  %s%s%s%s\n", is_estimate(row) ? '~' : ' ',
                percent(row->all.ns, table->run_ns), percent(row->all.wait_ns, table->run_ns),
                (unsigned long long)row->all.count, (unsigned long long)row->all.bytes, row->call, line[0] ? " (" : "",
                line, line[0] ? ")" : "");
    }
    if (shown < table->row_count)
        fprintf(out, "  %6.2f%% %42s %u further lines\n", percent(rest_ns, table->run_ns), "in",
                table->row_count - shown);
}

/* Which PE was in the library longest, and which least. */
static void print_balance(const struct profile_table *table, FILE *out)
{
    uint32_t most = 0, least = 0;
    double most_share = -1, least_share = 101;
    for (uint32_t pe = 0; pe < table->pe_count; pe++) {
        double share = table->pes[pe] ? percent(table->sums[pe].wait_ns, profile_run_ns(table, pe)) : -1;
        if (share < 0)
            continue;
        if (share > most_share) {
            most = pe;
            most_share = share;
        }
        if (share < least_share) {
            least = pe;
            least_share = share;
        }
    }
    if (most_share >= 0 && most != least)
        fprintf(out, "  PE %u waited longest, %.1f%% of its time; PE %u shortest, %.1f%%\n", most, most_share, least,
                least_share);
}

/* Those for which the others waited longest. */
static void print_late(const struct profile_table *table, FILE *out)
{
    char text[TIME_BYTES];
    uint64_t compared = 0, below_ns = UINT64_MAX;
    for (uint32_t i = 0; i < table->row_count; i++)
        compared += table->rows[i].compared_count;
    for (int shown = 0; shown < LATE_SHOWN; shown++) {
        uint32_t next = table->pe_count;
        for (uint32_t pe = 0; pe < table->pe_count; pe++)
            if (table->sums[pe].last_count != 0 && table->sums[pe].held_ns < below_ns &&
                (next == table->pe_count || table->sums[pe].held_ns > table->sums[next].held_ns))
                next = pe;
        if (next == table->pe_count)
            return;
        below_ns = table->sums[next].held_ns;
        fprintf(out, "  PE %u came last to %llu of %llu collectives; all others together waited %s for it\n", next,
                (unsigned long long)table->sums[next].last_count, (unsigned long long)compared,
                format_ns(below_ns, text));
    }
}

static void print_most_moved(const struct profile_table *table, FILE *out)
{
    static const char *const words[QUOIT_PROFILE_KIND_COUNT] = {"put to", "got from", "changed by atomics at"};
    uint64_t most = 0, count = 0;
    uint32_t from = 0, to = 0;
    int how = 0;
    char text[32];
    for (uint32_t pe = 0; pe < table->pe_count; pe++)
        for (uint32_t peer = 0; table->pes[pe] && peer < table->pe_count; peer++)
            for (int kind = 0; kind < QUOIT_PROFILE_KIND_COUNT; kind++) {
                const struct quoit_profile_peer *with = &table->pes[pe]->peers[peer];
                if (with->bytes[kind] <= most)
                    continue;
                most = with->bytes[kind];
                count = with->count[kind];
                from = pe;
                to = peer;
                how = kind;
            }
    if (most != 0)
        fprintf(out, "  most moved: PE %u %s PE %u %s in %llu calls\n", from, words[how], to,
                quoit_survey_format_bytes((double)most, text), (unsigned long long)count);
}

static void print_memory(const struct profile_table *table, FILE *out)
{
    uint64_t most = 0;
    uint32_t where = 0;
    char heap[32], data[32];
    for (uint32_t pe = 0; pe < table->pe_count; pe++)
        if (table->pes[pe] && table->pes[pe]->heap_bytes_most > most) {
            most = table->pes[pe]->heap_bytes_most;
            where = pe;
        }
    fprintf(out, "  memory of a PE: heap up to %s (PE %u), globals %s\n", quoit_survey_format_bytes((double)most, heap),
            where, quoit_survey_format_bytes((double)table->job->config.data_bytes, data));
}

void profile_print(const struct profile_table *table, FILE *out)
{
    char text[TIME_BYTES];
    struct profile_cell all = {0};
    uint32_t known = 0;
    for (uint32_t pe = 0; pe < table->pe_count; pe++) {
        known += table->pes[pe] != NULL;
        all.ns += table->sums[pe].ns;
        all.wait_ns += table->sums[pe].wait_ns;
    }
    if (known == 0) {
        fprintf(out, "oshrun: there is no profile, since no PE came through shmem_init\n");
        return;
    }
    fprintf(out, "oshrun: where the %stime of %u PE%s went, %s from shmem_init on: OpenSHMEM %.1f%%, waiting %.1f%%\n",
            table->job->clock ? "virtual " : "", known, known == 1 ? "" : "s",
            format_ns(table->end_ns - table->begin_ns, text), percent(all.ns, table->run_ns),
            percent(all.wait_ns, table->run_ns));
    print_rows(table, out);
    print_balance(table, out);
    print_late(table, out);
    print_most_moved(table, out);
    print_memory(table, out);
    fprintf(out, "  all of it: %s\n", plan_text(table->job->plan, QUOIT_OPT_PROFILE));
}
