/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile_rows.h"

#include "base/json.h"
#include "stats.h"

#define FORMAT 1 /* of the file; docs/profile.md */

static void write_cell(struct quoit_json *json, const struct profile_cell *cell)
{
    quoit_json_count(json, "calls", cell->count);
    quoit_json_count(json, "bytes", cell->bytes);
    quoit_json_count(json, "sampled", cell->count - cell->timed_count);
    quoit_json_count(json, "ns", cell->ns);
    quoit_json_count(json, "wait_ns", cell->wait_ns);
    quoit_json_count(json, "longest_ns", cell->most_ns);
    quoit_json_count(json, "last", cell->last_count);
    quoit_json_count(json, "held_ns", cell->held_ns);
}

static void write_rows(struct quoit_json *json, const struct profile_table *table)
{
    char line[2 * QUOIT_PLACE_TEXT_BYTES];
    quoit_json_open_array(json, "rows");
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct profile_row *row = &table->rows[i];
        quoit_json_open_object(json, NULL);
        quoit_json_text(json, "routine", row->call);
        quoit_json_text(json, "line", profile_line(row, line));
        quoit_json_text(json, "function", row->place.function);
        quoit_json_text(json, "object", row->object);
        quoit_json_count(json, "address", row->address);
        quoit_json_count(json, "compared", row->compared_count);
        quoit_json_open_object(json, "all");
        write_cell(json, &row->all);
        quoit_json_close(json);
        quoit_json_open_array(json, "pes");
        for (uint32_t pe = 0; pe < table->pe_count; pe++) {
            if (row->cells[pe].count == 0)
                continue;
            quoit_json_open_object(json, NULL);
            quoit_json_count(json, "pe", pe);
            write_cell(json, &row->cells[pe]);
            quoit_json_close(json);
        }
        quoit_json_close(json);
        quoit_json_close(json);
    }
    quoit_json_close(json);
}

static void write_bins(struct quoit_json *json, const struct quoit_profile *profile, bool is_wait)
{
    uint64_t run_ns = profile->end_ns - profile->begin_ns;
    quoit_json_open_array(json, is_wait ? "wait_ns_of" : "call_ns_of");
    for (uint32_t i = 0; i < QUOIT_PROFILE_BINS && profile->bin_ns != 0 && i * profile->bin_ns < run_ns; i++)
        quoit_json_count(json, NULL, is_wait ? profile->bins[i].wait_ns : profile->bins[i].call_ns);
    quoit_json_close(json);
}

static void write_pes(struct quoit_json *json, const struct profile_table *table)
{
    quoit_json_open_array(json, "pes");
    for (uint32_t pe = 0; pe < table->pe_count; pe++) {
        const struct quoit_profile *profile = table->pes[pe];
        if (!profile)
            continue;
        quoit_json_open_object(json, NULL);
        quoit_json_count(json, "pe", pe);
        quoit_json_count(json, "host", table->job->pes[pe].host);
        quoit_json_count(json, "begin_ns", profile_begin_ns(table, pe) - table->begin_ns);
        quoit_json_count(json, "run_ns", profile_run_ns(table, pe));
        write_cell(json, &table->sums[pe]);
        quoit_json_count(json, "heap_bytes", profile->heap_bytes_most);
        quoit_json_count(json, "unplaced", profile->unplaced_count);
        quoit_json_count(json, "bin_ns", profile->bin_ns);
        write_bins(json, profile, false);
        write_bins(json, profile, true);
        quoit_json_close(json);
    }
    quoit_json_close(json);
}

/* One for each pair of PEs that had to do with each other: by whom, with whom, how often, how much. */
static void write_matrix(struct quoit_json *json, const struct profile_table *table, enum quoit_profile_kind kind,
                         const char *name)
{
    quoit_json_open_array(json, name);
    for (uint32_t pe = 0; pe < table->pe_count; pe++)
        for (uint32_t peer = 0; table->pes[pe] && peer < table->pe_count; peer++) {
            const struct quoit_profile_peer *with = &table->pes[pe]->peers[peer];
            if (with->count[kind] == 0)
                continue;
            quoit_json_open_array(json, NULL);
            quoit_json_count(json, NULL, pe);
            quoit_json_count(json, NULL, peer);
            quoit_json_count(json, NULL, with->count[kind]);
            quoit_json_count(json, NULL, with->bytes[kind]);
            quoit_json_close(json);
        }
    quoit_json_close(json);
}

void profile_write_json(const struct profile_table *table, FILE *out)
{
    const struct job *job = table->job;
    struct quoit_json json;
    quoit_json_start(&json, out);
    quoit_json_open_object(&json, NULL);
    quoit_json_count(&json, "quoit_profile", FORMAT);
    quoit_json_text(&json, "program", job->plan->programs[0].argv[0]);
    quoit_json_text(&json, "virtual", plan_text(job->plan, QUOIT_OPT_VIRTUAL));
    quoit_json_count(&json, "hosts", job->plan->host_count);
    quoit_json_count(&json, "pe_count", table->pe_count);
    quoit_json_count(&json, "status", (uint64_t)job->end.status);
    quoit_json_count(&json, "span_ns", table->end_ns - table->begin_ns);
    quoit_json_count(&json, "run_ns", table->run_ns);
    quoit_json_count(&json, "compared_every", table->meeting_step);
    quoit_json_count(&json, "data_bytes", job->config.data_bytes);
    quoit_json_count(&json, "heap_limit_bytes", job->config.heap_bytes);
    write_rows(&json, table);
    write_pes(&json, table);
    write_matrix(&json, table, QUOIT_PROFILE_PUT, "puts");
    write_matrix(&json, table, QUOIT_PROFILE_GET, "gets");
    write_matrix(&json, table, QUOIT_PROFILE_AMO, "atomics");
    quoit_json_open_object(&json, "carried");
    stats_write_items(job, out);
    quoit_json_close(&json);
    quoit_json_close(&json);
}
