/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit predict - what rings of many hosts are worth, simulated with the cost model, and where they stop paying. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/options.h"
#include "command.h"
#include "report.h"
#include "sim/run.h"

#define RINGS_MAX     64
#define HOSTS_MOST    256
#define BYTES_DEFAULT (256u << 10)
#define SWITCH_SHARE  0.75 /* of what a switch would carry; less is clearly less, whatever starting up costs */
#define GROWTH_LEAST  1.05 /* a larger ring that carries less than 5 % more carries no more */

/* Figures of workload_predict.c, in the order of the table. */
static const char *const figures[] = {
    "put 8 B, neighbour",
    "put 8 B, farthest",
    "barrier",
    "allreduce 8 B",
    "allreduce, large",
    "one stream",
    "neighbours",
    "all-to-all",
    "bisection",
    "put 8 B, round a dead link",
    "barrier, one link dead",
    "all-to-all, one link dead",
};
#define FIGURE_COUNT (sizeof figures / sizeof figures[0])
enum {
    PUT_NEAR,
    PUT_FAR,
    BARRIER,
    REDUCE_SMALL,
    REDUCE_LARGE,
    STREAM,
    NEIGHBOURS,
    ALL,
    BISECTION,
    DEAD_PUT,
    DEAD_BARRIER,
    DEAD_ALL
};

struct prediction {
    uint32_t hosts[RINGS_MAX];
    uint32_t count;
    struct sim_plan plan;
    double values[RINGS_MAX][FIGURE_COUNT];
    bool is_json;
    const char *html_path;
};

static int refuse(const char *what, const char *value)
{
    fprintf(stderr, "quoit predict: %s: %s\n", what, value);
    return 2;
}

/* "2,3,8": growing, each 2 to 256. */
static bool read_hosts(struct prediction *prediction, const char *text)
{
    prediction->count = 0;
    for (const char *at = text;; at++) {
        char *end;
        unsigned long host_count = strtoul(at, &end, 10);
        uint32_t before = prediction->count ? prediction->hosts[prediction->count - 1] : 1;
        if (end == at || host_count <= before || host_count > HOSTS_MOST || prediction->count == RINGS_MAX)
            return false;
        prediction->hosts[prediction->count++] = (uint32_t)host_count;
        at = end;
        if (*at == '\0')
            return true;
        if (*at != ',')
            return false;
    }
}

static void print_help(void)
{
    printf("usage: quoit predict [OPTION]...\n\n"
           "Simulates rings with one PE a host and the cost model of quoit sim, and says where a ring stops paying.\n\n"
           "  --hosts LIST        rings to look at, growing, 2 to 256 hosts (2,3,4,5,6,8,12,16,32,64,128,256:\n"
           "                      some minutes in all)\n"
           "  --bytes SIZE        what a PE puts to each neighbour, or in all to others; size of the large\n"
           "                      allreduce (256K)\n"
           "  --model NAME=VALUE  a constant of the cost model; many times (quoit sim --show-model)\n"
           "  --json              print the report as JSON\n"
           "  --html FILE         write it as a page with plots\n"
           "  --help              print this\n");
}

/* 0: go on; else the exit status + 1. */
static int read_options(struct prediction *prediction, int argc, char **argv)
{
    const char *problem;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool takes_value = strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--help") != 0;
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
            return 1;
        }
        if (takes_value && !value)
            return 1 + refuse("a value is missing, or there is no such option (see --help)", argv[i]);
        if (strcmp(argv[i], "--json") == 0)
            prediction->is_json = true;
        else if (strcmp(argv[i], "--html") == 0)
            prediction->html_path = value;
        else if (strcmp(argv[i], "--hosts") == 0 && !read_hosts(prediction, value))
            return 1 + refuse("not a growing list of 2 to 256 hosts, such as 2,5,16", value);
        else if (strcmp(argv[i], "--bytes") == 0 &&
                 (!quoit_parse_bytes(value, &prediction->plan.bytes) || prediction->plan.bytes < 4096 ||
                  prediction->plan.bytes % 64 != 0 || prediction->plan.bytes > 1u << 26))
            return 1 + refuse("not a multiple of 64 from 4K to 64M", value);
        else if (strcmp(argv[i], "--model") == 0 && !sim_model_set(&prediction->plan.model, value, &problem))
            return 1 + refuse(problem, value);
        else if (strcmp(argv[i], "--hosts") && strcmp(argv[i], "--bytes") && strcmp(argv[i], "--model"))
            return 1 + refuse("there is no such option (see --help)", argv[i]);
        i += takes_value;
    }
    return 0;
}

static bool simulate(struct prediction *prediction, uint32_t ring)
{
    struct sim_config config;
    struct sim_result result;
    prediction->plan.host_count = prediction->hosts[ring];
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%u hosts ... ", prediction->hosts[ring]);
    sim_config_choose(&prediction->plan, 1, &config);
    sim_run(&config, &result);
    if (!result.is_ok)
        fprintf(stderr, "quoit predict: %u hosts: %s\n", prediction->hosts[ring], result.failure);
    for (uint32_t i = 0; i < result.metric_count; i++)
        for (size_t figure = 0; figure < FIGURE_COUNT; figure++)
            if (strcmp(result.metrics[i].name, figures[figure]) == 0)
                prediction->values[ring][figure] = result.metrics[i].sum / (double)result.metrics[i].count;
    return result.is_ok;
}

static const char *unit_of(size_t figure)
{
    return figure == DEAD_ALL || (figure >= STREAM && figure <= BISECTION) ? "MB/s" : "us";
}

/* What follows, in sentences; the points are those among the rings looked at. */
static void conclude(const struct prediction *prediction, char *growth, char *switched, size_t bytes)
{
    uint32_t most = 0, worse = prediction->count;
    for (uint32_t i = 1; i < prediction->count; i++)
        if (prediction->values[i][ALL] > GROWTH_LEAST * prediction->values[most][ALL])
            most = i;
    while (worse > 0 && prediction->values[worse - 1][ALL] <
                            SWITCH_SHARE * prediction->hosts[worse - 1] * prediction->values[worse - 1][STREAM])
        worse--;
    snprintf(growth, bytes,
             "All-to-all: %.0f MB/s of all hosts together with %u hosts; no larger ring looked at carries 5 %% more.",
             prediction->values[most][ALL], prediction->hosts[most]);
    if (worse < prediction->count)
        snprintf(
            switched, bytes,
            "From %u hosts on the ring carries less than 75 %% of the all-to-all of a switch that gives each host one "
            "stream of %.0f MB/s: there it stops paying for such programs.",
            prediction->hosts[worse], prediction->values[worse][STREAM]);
    else
        snprintf(
            switched, bytes,
            "The largest of these rings carries at least 75 %% of the all-to-all of a switch with one stream a host.");
}

static void print_table(const struct prediction *prediction, const char *growth, const char *switched)
{
    printf("%-28s", "hosts");
    for (uint32_t i = 0; i < prediction->count; i++)
        printf(" %9u", prediction->hosts[i]);
    for (size_t figure = 0; figure < FIGURE_COUNT; figure++) {
        char name[64];
        snprintf(name, sizeof name, "%s, %s", figures[figure], unit_of(figure));
        printf("\n%-32s", name);
        for (uint32_t i = 0; i < prediction->count; i++)
            printf(i ? " %9.1f" : " %5.1f", prediction->values[i][figure]);
    }
    printf("\n\n%s\n%s\n", growth, switched);
}

static void write_lines(struct quoit_json *json, const struct prediction *prediction, const char *title,
                        const char *unit, const size_t *shown, size_t count)
{
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "kind", "lines");
    quoit_json_text(json, "title", title);
    quoit_json_text(json, "x_label", "hosts");
    quoit_json_text(json, "y_label", unit);
    quoit_json_bool(json, "x_is_log2", true);
    quoit_json_bool(json, "y_is_log", true);
    quoit_json_open_array(json, "series");
    for (size_t k = 0; k < count; k++) {
        quoit_json_open_object(json, NULL);
        quoit_json_text(json, "name", figures[shown[k]]);
        quoit_json_open_array(json, "points");
        for (uint32_t i = 0; i < prediction->count; i++) {
            quoit_json_open_array(json, NULL);
            quoit_json_count(json, NULL, prediction->hosts[i]);
            quoit_json_number(json, NULL, prediction->values[i][shown[k]]);
            quoit_json_close(json);
        }
        quoit_json_close(json);
        quoit_json_close(json);
    }
    quoit_json_close(json);
    quoit_json_close(json);
}

/* The form of docs/report.md. */
static void write_report(const struct prediction *prediction, FILE *out, const char *growth, const char *switched)
{
    static const size_t times[] = {PUT_NEAR, PUT_FAR, BARRIER, REDUCE_SMALL, REDUCE_LARGE};
    static const size_t rates[] = {STREAM, NEIGHBOURS, ALL, BISECTION};
    static const size_t dead[] = {DEAD_PUT, BARRIER, DEAD_BARRIER};
    static const size_t dead_rates[] = {ALL, DEAD_ALL};
    struct quoit_json json;
    quoit_json_start(&json, out);
    quoit_json_open_object(&json, NULL);
    quoit_json_text(&json, "title", "Rings of many hosts, predicted");
    quoit_json_open_array(&json, "text");
    quoit_json_text(&json, NULL, growth);
    quoit_json_text(&json, NULL, switched);
    quoit_json_close(&json);
    quoit_json_open_array(&json, "sections");
    quoit_json_open_object(&json, NULL);
    quoit_json_text(&json, "title", "One PE a host, simulated with the cost model");
    quoit_json_open_array(&json, "items");
    write_lines(&json, prediction, "Times", "us", times, sizeof times / sizeof times[0]);
    write_lines(&json, prediction, "Rates of all hosts together", "MB/s", rates, sizeof rates / sizeof rates[0]);
    write_lines(&json, prediction, "Times with one dead link", "us", dead, sizeof dead / sizeof dead[0]);
    write_lines(&json, prediction, "All-to-all with one dead link", "MB/s", dead_rates,
                sizeof dead_rates / sizeof dead_rates[0]);
    while (json.depth > 0)
        quoit_json_close(&json);
}

static bool write_page(const struct prediction *prediction, const char *growth, const char *switched)
{
    FILE *data = tmpfile();
    if (!data) {
        perror("quoit predict: a file for the page");
        return false;
    }
    write_report(prediction, data, growth, switched);
    bool is_made = report_make(data, prediction->html_path);
    fclose(data);
    return is_made;
}

int command_predict(int argc, char **argv)
{
    struct prediction prediction = {0};
    char growth[240], switched[240];
    sim_plan_default(&prediction.plan);
    prediction.plan.workload = sim_workload_find("predict");
    prediction.plan.bytes = BYTES_DEFAULT;
    read_hosts(&prediction, "2,3,4,5,6,8,12,16,32,64,128,256");
    int status = read_options(&prediction, argc, argv);
    if (status)
        return status - 1;
    for (uint32_t i = 0; i < prediction.count; i++)
        if (!simulate(&prediction, i))
            return 1;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r                \r");
    conclude(&prediction, growth, switched, sizeof growth);
    if (prediction.is_json)
        write_report(&prediction, stdout, growth, switched);
    else
        print_table(&prediction, growth, switched);
    return prediction.html_path && !write_page(&prediction, growth, switched) ? 1 : 0;
}
