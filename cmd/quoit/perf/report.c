/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const char *const machine_names[] = {"timer", "call", "add", "line", "switch"};
static const char *const machine_sentences[] = {
    "reading the clock", "an empty call", "an atomic addition of the processor",
    "a cache line transfer between two processors", "a switch between two processes of a processor"};
static const char *const rate_names[] = {"", "MB/s", "M/s", "% hidden"};

static void size_text(size_t bytes, char text[24])
{
    if (bytes >= 1u << 20 && bytes % (1u << 20) == 0)
        snprintf(text, 24, "%zu MiB", bytes >> 20);
    else if (bytes >= 1u << 10 && bytes % (1u << 10) == 0)
        snprintf(text, 24, "%zu KiB", bytes >> 10);
    else if (bytes)
        snprintf(text, 24, "%zu B", bytes);
    else
        text[0] = '\0';
}

static void time_text(double ns, char text[24])
{
    snprintf(text, 24,
             ns < 1e3   ? "%.1f ns"
             : ns < 1e6 ? "%.2f us"
                        : "%.2f ms",
             ns < 1e3   ? ns
             : ns < 1e6 ? ns / 1e3
                        : ns / 1e6);
}

static void library_name(const struct perf *perf, char name[SHMEM_MAX_NAME_LEN + 32])
{
    char own[SHMEM_MAX_NAME_LEN + 1] = "";
    int major = 0, minor = 0;
    shmem_info_get_name(own);
    shmem_info_get_version(&major, &minor);
    snprintf(name, SHMEM_MAX_NAME_LEN + 32, "%.*s (OpenSHMEM %d.%d)", SHMEM_MAX_NAME_LEN,
             perf->options.name ? perf->options.name : own, major, minor);
}

static FILE *table_of(const struct perf *perf)
{
    return perf->options.json && strcmp(perf->options.json, "-") == 0 ? NULL : stdout;
}

static long cache_bytes(int level)
{
    return sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
}

void perf_report_machine(const struct perf *perf)
{
    FILE *out = table_of(perf);
    if (!out)
        return;
    char name[SHMEM_MAX_NAME_LEN + 32], text[24], middle[24];
    library_name(perf, name);
    fprintf(out, "%s, %d PEs, %d processors; PE 0 works with PE %d\n\nThis machine, min and median:\n", name,
            perf->npes, perf_processor_count(), perf->peer);
    for (int i = 0; i < PERF_MACHINE_COUNT; i++) {
        time_text(perf->machine[i].min, text);
        time_text(perf->machine[i].median, middle);
        fprintf(out, "  %-48s %10s %10s\n", machine_sentences[i], text, middle);
    }
    long second = cache_bytes(2), third = cache_bytes(3), cold = (long)perf->options.cold_bytes;
    fprintf(out, "Cold calls go round %ld MiB in each buffer: %s.\n", cold >> 20,
            2 * cold > 3 * third    ? "in no cache"
            : 2 * cold > 3 * second ? "in a cache that the processors share, and in none of their own"
                                    : "in a processor's own cache");
    fprintf(out, "Times are of one call; ratio is the median over the median of the limit, 1.00 being the limit.\n");
}

static void head(FILE *out, const struct perf_row *row)
{
    const struct perf_test *test = row->test;
    fprintf(out, "\n%s: %s", test->name, test->sentence);
    if (test->can_vary)
        fprintf(out, "; %s buffers, %s", perf_buffers_name(row->buffers), row->is_cold ? "cold" : "warm");
    fprintf(out, "\n%9s %10s %10s %10s %8s %10s %-9s%10s %6s  %s\n", "", "min", "median", "p99", "samples",
            test->rate == PERF_NO_RATE ? "" : "rate", "", "limit", "ratio", test->limit_name);
}

static bool is_other(const struct perf_row *a, const struct perf_row *b)
{
    return a->test != b->test || a->buffers != b->buffers || a->is_cold != b->is_cold;
}

void perf_report_row(const struct perf *perf, const struct perf_result *result)
{
    FILE *out = table_of(perf);
    const struct perf_row *row = result->row;
    if (!out)
        return;
    if (row->number == 0 || is_other(row, row - 1))
        head(out, row);
    char size[24], min[24], median[24], p99[24], limit[24], rate[24] = "";
    size_text(row->bytes, size);
    time_text(result->ns.min, min);
    time_text(result->ns.median, median);
    time_text(result->ns.p99, p99);
    time_text(result->limit.median, limit);
    if (row->test->rate != PERF_NO_RATE)
        snprintf(rate, sizeof rate, result->rate < 100 ? "%.2f" : "%.0f", result->rate);
    fprintf(out, "%9s %10s %10s %10s %8d %10s %-9s%10s %6.2f\n", size, min, median, p99, result->ns.samples, rate,
            rate_names[row->test->rate], limit, result->ratio);
    fflush(out);
}

/* JSON. */

static void put_text(FILE *out, const char *key, const char *text)
{
    fprintf(out, "\"%s\": \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void put_stat(FILE *out, const char *key, const struct perf_stat *stat)
{
    fprintf(out,
            "\"%s\": {\"min\": %.3f, \"p25\": %.3f, \"median\": %.3f, \"p75\": %.3f, \"p99\": %.3f, \"samples\": %d}",
            key, stat->min, stat->p25, stat->median, stat->p75, stat->p99, stat->samples);
}

static void put_row(FILE *out, const struct perf_result *result)
{
    const struct perf_row *row = result->row;
    fprintf(out, "    {");
    put_text(out, "test", row->test->name);
    fprintf(out, ", \"bytes\": %zu, \"buffers\": \"%s\", \"cache\": \"%s\", \"calls\": %ld, ", row->bytes,
            perf_buffers_name(row->buffers), row->is_cold ? "cold" : "warm", row->count);
    put_stat(out, "ns", &result->ns);
    fprintf(out, ", ");
    put_text(out, "limit", row->test->limit_name);
    fprintf(out, ", ");
    put_stat(out, "limit_ns", &result->limit);
    fprintf(out, ", \"ratio\": %.4f", result->ratio);
    if (row->test->rate != PERF_NO_RATE) {
        fprintf(out, ", \"rate\": %.3f, ", result->rate);
        put_text(out, "rate_unit", rate_names[row->test->rate]);
    }
    fprintf(out, "}");
}

static void processor_name(char name[128])
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, 128, "unknown");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %127[^\n]", name) == 1)
            break;
    if (file)
        fclose(file);
}

static void put_head(const struct perf *perf, FILE *out)
{
    char name[SHMEM_MAX_NAME_LEN + 32], processor[128], date[40];
    struct utsname system;
    time_t now = time(NULL);
    library_name(perf, name);
    processor_name(processor);
    uname(&system);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    fprintf(out, "{\n  \"form\": \"quoit perf 1\",\n  ");
    put_text(out, "library", name);
    fprintf(out, ",\n  \"pes\": %d, \"peer\": %d, \"processors\": %d,\n  ", perf->npes, perf->peer,
            perf_processor_count());
    put_text(out, "processor", processor);
    fprintf(out, ", ");
    put_text(out, "system", system.release);
    fprintf(out, ", \"cache_bytes\": [%ld, %ld], \"cold_bytes\": %zu,\n  ", cache_bytes(2), cache_bytes(3),
            perf->options.cold_bytes);
    put_text(out, "date", date);
    fprintf(out, ", ");
    put_text(out, "note", perf->options.note);
    fprintf(out, ",\n  \"machine\": {");
    for (int i = 0; i < PERF_MACHINE_COUNT; i++) {
        fprintf(out, i ? ",\n    " : "\n    ");
        put_stat(out, machine_names[i], &perf->machine[i]);
    }
    fprintf(out, "},\n  \"rows\": [\n");
}

bool perf_report_json(const struct perf *perf, const struct perf_result *results, int count)
{
    bool is_standard = strcmp(perf->options.json, "-") == 0;
    FILE *out = is_standard ? stdout : fopen(perf->options.json, "w");
    if (!out) {
        fprintf(stderr, "quoit perf: cannot write %s: %s\n", perf->options.json, strerror(errno));
        return false;
    }
    put_head(perf, out);
    for (int i = 0; i < count; i++) {
        put_row(out, &results[i]);
        fprintf(out, i + 1 < count ? ",\n" : "\n");
    }
    fprintf(out, "  ]\n}\n");
    bool is_written = fflush(out) == 0 && !ferror(out);
    if (!is_standard)
        is_written = fclose(out) == 0 && is_written;
    if (!is_written)
        fprintf(stderr, "quoit perf: cannot write %s: %s\n", perf->options.json, strerror(errno));
    return is_written;
}
