/* SPDX-License-Identifier: BSD-3-Clause */
/* perf - benchmarks of an OpenSHMEM library: the table of tests, and the loop over its rows. */
#include "perf.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define CELLS_BYTES   4096
#define NAME_BYTES    64
#define PROGRESS_NS   2e9
#define ROW_SECONDS   2.0 /* at most: more adds no information */
#define MACHINE_EVERY 8   /* rows between two measurements of the machine's own times, since its load changes */

struct rows {
    struct perf_row *rows;
    int count, capacity;
};

static const struct perf_test *const families[] = {perf_rma_tests, perf_sync_tests, perf_coll_tests,
                                                   perf_machine_tests};

void perf_fail(const struct perf *perf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "perf: PE %d: ", perf->me);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    shmem_global_exit(1);
    abort();
}

/* Whether the list with commas names the test; an empty entry names none. */
static bool is_named(const char *list, const char *name)
{
    for (const char *rest = list;;) {
        char pattern[NAME_BYTES];
        size_t length = strcspn(rest, ",");
        if (length < sizeof pattern) {
            memcpy(pattern, rest, length);
            pattern[length] = '\0';
            if (fnmatch(pattern, name, 0) == 0)
                return true;
        }
        if (rest[length] == '\0')
            return false;
        rest += length + 1;
    }
}

/* Each entry of --tests must match a test. */
static bool check_names(const char *list)
{
    for (const char *rest = list; rest;) {
        char entry[NAME_BYTES];
        size_t length = strcspn(rest, ",");
        snprintf(entry, sizeof entry, "%.*s", (int)length, rest);
        bool is_known = false;
        for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
            for (const struct perf_test *test = families[f]; test->name; test++)
                is_known = is_known || is_named(entry, test->name);
        if (!is_known) {
            fprintf(stderr, "quoit perf: --tests: there is no test \"%s\"; --list names them\n", entry);
            return false;
        }
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    return true;
}

static void add_row(struct rows *rows, const struct perf_test *test, size_t bytes, enum perf_buffers buffers,
                    bool is_cold)
{
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity ? 2 * rows->capacity : 256;
        rows->rows = realloc(rows->rows, (size_t)rows->capacity * sizeof rows->rows[0]);
        if (!rows->rows)
            abort();
    }
    rows->rows[rows->count++] = (struct perf_row){.test = test, .bytes = bytes, .buffers = buffers, .is_cold = is_cold};
}

static void add_sizes(struct rows *rows, const struct perf_options *options, const struct perf_test *test,
                      enum perf_buffers buffers, bool is_cold)
{
    if (test->bytes_max <= test->bytes_min) {
        add_row(rows, test, test->bytes_min, buffers, is_cold);
        return;
    }
    for (int i = 0; i < options->size_count; i++)
        if (options->sizes[i] >= test->bytes_min && options->sizes[i] <= test->bytes_max &&
            (test->bytes_min != 8 || options->sizes[i] % 8 == 0))
            add_row(rows, test, options->sizes[i], buffers, is_cold);
}

/* All requested rows; those that do not fit the buffers are dropped later. */
static struct rows rows_of(const struct perf_options *options)
{
    struct rows rows = {0};
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++) {
        for (const struct perf_test *test = families[f]; test->name; test++) {
            if (!test->batch || (options->tests && !is_named(options->tests, test->name)))
                continue;
            unsigned buffers = options->buffers ? options->buffers : test->varies ? 7 : 1;
            unsigned caches = options->caches ? options->caches : test->varies ? 3 : 1;
            for (unsigned cold = 0; cold < 2; cold++)
                for (unsigned kind = 0; kind < PERF_BUFFERS_COUNT; kind++)
                    if (test->can_vary ? (caches >> cold & 1) && (buffers >> kind & 1) : cold == 0 && kind == PERF_HEAP)
                        add_sizes(&rows, options, test, (enum perf_buffers)kind, cold);
        }
    }
    return rows;
}

static void list(const struct rows *rows)
{
    for (int i = 0, first = 0; i < rows->count; i++) {
        const struct perf_test *test = rows->rows[i].test;
        if (i + 1 < rows->count && rows->rows[i + 1].test == test)
            continue;
        printf("%-14s %4d rows  %s; limit: %s\n", test->name, i + 1 - first, test->sentence, test->limit_name);
        first = i + 1;
    }
}

static void drop_what_cannot_be(const struct perf *perf, struct rows *rows)
{
    int kept = 0;
    bool has_cma = perf_cma_is_allowed(perf);
    for (int i = 0; i < rows->count; i++)
        if (perf_row_fits(perf, &rows->rows[i]) && (rows->rows[i].test != perf_machine_tests || has_cma))
            rows->rows[kept++] = rows->rows[i];
    rows->count = kept;
}

static bool prepare(struct perf *perf, const struct rows *rows)
{
    if (perf->npes < 2 || perf->peer >= perf->npes) {
        if (perf->me == 0)
            fprintf(stderr, perf->npes < 2 ? "quoit perf: at least 2 PEs are needed\n"
                                           : "quoit perf: --peer: there is no such PE\n");
        shmem_barrier_all(); /* the message comes before the end of the job */
        return false;
    }
    perf->cells = shmem_align(4096, CELLS_BYTES);
    for (int i = 0; i < 2; i++)
        perf->samples[i] = calloc(PERF_SAMPLES_MAX, sizeof(double));
    if (perf->twin && perf->cells && perf_orders_make(perf) && perf_buffers_make(perf, rows->rows, rows->count) &&
        perf->samples[0] && perf->samples[1])
        return true;
    fprintf(stderr,
            "quoit perf: PE %d: no memory for the buffers; fewer or smaller --sizes, less --cold-bytes, or a larger "
            "symmetric heap (SHMEM_SYMMETRIC_SIZE)\n",
            perf->me);
    return false;
}

static void say_progress(const struct perf *perf, const struct perf_row *row, int count, double *said_ns)
{
    if (!perf->options.shows_progress || perf->me != 0 || perf_now_ns() < *said_ns + PROGRESS_NS)
        return;
    *said_ns = perf_now_ns();
    fprintf(stderr, "quoit perf: %d of %d rows; now %s, %zu bytes\n", row->number, count, row->test->name, row->bytes);
}

static bool run(struct perf *perf, struct rows *rows)
{
    struct perf_result *results = calloc((size_t)rows->count + 1, sizeof results[0]);
    double said_ns = perf_now_ns(), seconds = perf->options.seconds / (rows->count + 1);
    bool is_fine = true;
    if (!results)
        abort();
    for (int i = 0; i < rows->count; i++) {
        struct perf_row *row = &rows->rows[i];
        row->number = i;
        if (i % MACHINE_EVERY == 0)
            perf_alone(perf, perf_limits_measure);
        if (perf->me == 0 && i == 0)
            perf_report_machine(perf);
        say_progress(perf, row, rows->count, &said_ns);
        perf_measure(perf, row, seconds < ROW_SECONDS ? seconds : ROW_SECONDS, &results[i]);
        if (perf->me == 0)
            perf_report_row(perf, &results[i]);
    }
    if (perf->me == 0 && perf->options.json)
        is_fine = perf_report_json(perf, results, rows->count);
    free(results);
    return is_fine;
}

int main(int argc, char **argv)
{
    struct perf perf = {0};
    if (!perf_options_parse(&perf.options, argc, argv) || (perf.options.tests && !check_names(perf.options.tests)))
        return 2;
    struct rows rows = rows_of(&perf.options);
    if (perf.options.is_help || perf.options.is_list) {
        if (perf.options.is_help)
            perf_options_help(stdout);
        else
            list(&rows);
        free(rows.rows);
        return 0;
    }
    perf.twin = perf_limits_fork();
    shmem_init();
    perf.me = shmem_my_pe();
    perf.npes = shmem_n_pes();
    perf.peer = perf.options.peer;
    if (!prepare(&perf, &rows))
        shmem_global_exit(2);
    drop_what_cannot_be(&perf, &rows);
    if (!run(&perf, &rows))
        shmem_global_exit(1);
    perf_buffers_free(&perf);
    perf_orders_free(&perf);
    shmem_free(perf.cells);
    for (int i = 0; i < 2; i++)
        free(perf.samples[i]);
    perf_limits_end(perf.twin);
    free(rows.rows);
    shmem_finalize();
    return 0;
}
