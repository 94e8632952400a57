/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit figures - the papers' figures from the simulator: plots, data, and every relation that the papers report. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "figures.h"
#include "report.h"

struct request {
    const char *folder;
    bool is_json;
    bool is_quick;
    bool is_wanted[32]; /* by figure; none: all */
    uint32_t wanted_count;
    struct sim_model model;
};

static void print_help(void)
{
    printf("usage: quoit figures [--out DIR] [--json] [--quick] [--model NAME=VALUE...] [NAME...]\n\n"
           "Makes the figures of the two ring papers from the simulator, with the papers' protocol and with ours, and\n"
           "prints every relation that the papers report beside what the simulation gives.\n\n"
           "  --out DIR      where figures.html and figures.json go (figures)\n"
           "  --json         print the relations as JSON\n"
           "  --quick        few sizes\n"
           "  --model NAME=VALUE\n"
           "                 a constant of the cost model (see quoit sim --show-model); many times\n"
           "  --help         print this\n\n"
           "figures:\n");
    for (uint32_t i = 0; i < figures_entry_count; i++)
        printf("  %-6s %s\n", figures_entries[i].name, figures_entries[i].title);
    printf("  hybrid the figures of HYBRID, not simulated but measured on this machine (see quoit figures hybrid "
           "--help)\n");
}

static int refuse(const char *what, const char *value)
{
    fprintf(stderr, "quoit figures: %s: %s\n", what, value);
    return 2;
}

static bool want(struct request *request, const char *name)
{
    for (uint32_t i = 0; i < figures_entry_count; i++) {
        if (strcmp(figures_entries[i].name, name) == 0) {
            request->wanted_count += !request->is_wanted[i];
            request->is_wanted[i] = true;
            return true;
        }
    }
    return false;
}

/* 0: go on. */
static int read_arguments(struct request *request, int argc, char **argv)
{
    const char *problem;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool has_value = strcmp(argv[i], "--out") == 0 || strcmp(argv[i], "--model") == 0;
        if (has_value && !value)
            return refuse("a value is missing", argv[i]);
        if (strcmp(argv[i], "--json") == 0)
            request->is_json = true;
        else if (strcmp(argv[i], "--quick") == 0)
            request->is_quick = true;
        else if (strcmp(argv[i], "--out") == 0)
            request->folder = value;
        else if (strcmp(argv[i], "--model") == 0 && !sim_model_set(&request->model, value, &problem))
            return refuse(problem, value);
        else if (argv[i][0] == '-' && !has_value)
            return refuse("there is no such option (see --help)", argv[i]);
        else if (!has_value && !want(request, argv[i]))
            return refuse("there is no such figure (see --help)", argv[i]);
        i += has_value;
    }
    return 0;
}

static bool is_wanted(const struct request *request, uint32_t i)
{
    return request->wanted_count == 0 || request->is_wanted[i];
}

static void relate_all(const struct request *request, struct figures_book *book)
{
    book->relation_count = 0;
    for (uint32_t i = 0; i < figures_entry_count; i++)
        if (is_wanted(request, i))
            figures_entries[i].relate(book, figures_entries[i].name);
}

/* A first time for the book to see what is asked for. */
static void collect(const struct request *request, struct figures_book *book)
{
    struct quoit_json json;
    FILE *nowhere = fopen("/dev/null", "we");
    if (!nowhere)
        return;
    quoit_json_start(&json, nowhere);
    quoit_json_open_array(&json, NULL);
    for (uint32_t i = 0; i < figures_entry_count; i++)
        if (is_wanted(request, i))
            figures_entries[i].draw(book, &json);
    quoit_json_close(&json);
    fclose(nowhere);
    relate_all(request, book);
}

/* The page's data */

static void format_range(const struct figures_relation *relation, char *text, size_t bytes)
{
    if (isinf(relation->high))
        snprintf(text, bytes, "at least %.4g", relation->low);
    else if (isinf(relation->low))
        snprintf(text, bytes, "at most %.4g", relation->high);
    else
        snprintf(text, bytes, "%.4g to %.4g", relation->low, relation->high);
}

static void write_marked(struct quoit_json *json, const struct figures_relation *relation)
{
    bool is_good = figures_is_in_range(relation);
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "value", is_good ? "in range" : "out of range");
    quoit_json_text(json, "mark", is_good ? "good" : "bad");
    quoit_json_close(json);
}

static void write_summary(const struct figures_book *book, struct quoit_json *json)
{
    static const char *const columns[] = {"figure", "relation",     "reported", "simulated",
                                          "",       "our protocol", "unit",     "source"};
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "kind", "table");
    quoit_json_text_array(json, "columns", columns, sizeof columns / sizeof columns[0]);
    quoit_json_open_array(json, "rows");
    for (uint32_t i = 0; i < book->relation_count; i++) {
        const struct figures_relation *relation = &book->relations[i];
        char range[64];
        format_range(relation, range, sizeof range);
        quoit_json_open_array(json, NULL);
        quoit_json_text(json, NULL, relation->figure);
        quoit_json_text(json, NULL, relation->name);
        quoit_json_text(json, NULL, range);
        quoit_json_number(json, NULL, relation->value);
        write_marked(json, relation);
        quoit_json_number(json, NULL, relation->other);
        quoit_json_text(json, NULL, relation->unit);
        quoit_json_text(json, NULL, relation->source);
        quoit_json_close(json);
    }
    quoit_json_close(json);
    quoit_json_close(json);
}

static void open_section(struct quoit_json *json, const char *title)
{
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "title", title);
    quoit_json_open_array(json, "items");
}

static void close_section(struct quoit_json *json)
{
    quoit_json_close(json);
    quoit_json_close(json);
}

static void write_report(const struct request *request, struct figures_book *book, FILE *out)
{
    struct quoit_json json;
    char title[160];
    quoit_json_start(&json, out);
    quoit_json_open_object(&json, NULL);
    quoit_json_text(&json, "title", "The figures of the ring papers, simulated");
    quoit_json_open_array(&json, "text");
    quoit_json_text(&json, NULL,
                    "The production code of the papers' protocol and of ours, run in virtual time on one cost model "
                    "of the papers' hosts. 19 is RING-19, 22 is RING-22. Shaded is what the papers report; where they "
                    "report changes, the shade is their range around the simulated value that the change starts from. "
                    "Ranges in words (\"slightly\", \"similar\") are our reading, given as numbers.");
    quoit_json_close(&json);
    quoit_json_open_array(&json, "sections");
    open_section(&json, "What the papers report");
    write_summary(book, &json);
    close_section(&json);
    for (uint32_t i = 0; i < figures_entry_count; i++) {
        if (!is_wanted(request, i))
            continue;
        snprintf(title, sizeof title, "%s: %s", figures_entries[i].name, figures_entries[i].title);
        open_section(&json, title);
        figures_entries[i].draw(book, &json);
        close_section(&json);
    }
    open_section(&json, "The cost model");
    sim_model_write_table(&book->model, &json);
    close_section(&json);
    quoit_json_close(&json);
    quoit_json_close(&json);
}

/* What is printed */

static void print_table(const struct figures_book *book)
{
    uint32_t out_count = 0;
    printf("%-6s %-58s %18s %10s %10s %s\n", "figure", "relation", "reported", "simulated", "ours", "unit");
    for (uint32_t i = 0; i < book->relation_count; i++) {
        const struct figures_relation *relation = &book->relations[i];
        char range[64], ours[32] = "-";
        format_range(relation, range, sizeof range);
        if (!isnan(relation->other))
            snprintf(ours, sizeof ours, "%.4g", relation->other);
        bool is_good = figures_is_in_range(relation);
        out_count += !is_good;
        printf("%-6s %-58s %18s %10.4g %10s %-6s %s\n", relation->figure, relation->name, range, relation->value, ours,
               relation->unit, is_good ? "" : "OUT OF RANGE");
    }
    printf("\n%u of %u relations in range\n", book->relation_count - out_count, book->relation_count);
}

static void print_json(const struct figures_book *book)
{
    struct quoit_json json;
    quoit_json_start(&json, stdout);
    quoit_json_open_array(&json, NULL);
    for (uint32_t i = 0; i < book->relation_count; i++) {
        const struct figures_relation *relation = &book->relations[i];
        quoit_json_open_object(&json, NULL);
        quoit_json_text(&json, "figure", relation->figure);
        quoit_json_text(&json, "relation", relation->name);
        quoit_json_number(&json, "low", relation->low);
        quoit_json_number(&json, "high", relation->high);
        quoit_json_number(&json, "value", relation->value);
        quoit_json_number(&json, "ours", relation->other);
        quoit_json_text(&json, "unit", relation->unit);
        quoit_json_bool(&json, "in_range", figures_is_in_range(relation));
        quoit_json_text(&json, "source", relation->source);
        quoit_json_close(&json);
    }
    quoit_json_close(&json);
}

static FILE *open_in(const char *folder, const char *name, char *path, size_t bytes)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "quoit figures: %s: %s\n", folder, strerror(errno));
        return NULL;
    }
    snprintf(path, bytes, "%s/%s", folder, name);
    FILE *file = fopen(path, "w+e");
    if (!file)
        fprintf(stderr, "quoit figures: %s: %s\n", path, strerror(errno));
    return file;
}

static int make(const struct request *request, struct figures_book *book)
{
    char data_path[4096], page_path[4096];
    book->is_quick = request->is_quick;
    book->model = request->model;
    FILE *data = open_in(request->folder, "figures.json", data_path, sizeof data_path);
    if (!data)
        return 1;
    collect(request, book);
    bool is_good = figures_book_make(book);
    if (is_good) {
        relate_all(request, book);
        write_report(request, book, data);
        snprintf(page_path, sizeof page_path, "%s/figures.html", request->folder);
        is_good = report_make(data, page_path);
        if (request->is_json)
            print_json(book);
        else
            print_table(book);
        if (is_good && !request->is_json)
            printf("the page: %s, its data: %s\n", page_path, data_path);
    }
    fclose(data);
    return is_good ? 0 : 1;
}

int command_figures(int argc, char **argv)
{
    struct request request = {.folder = "figures"};
    struct figures_book book;
    if (argc > 1 && strcmp(argv[1], "hybrid") == 0)
        return figures_hybrid(argc - 1, argv + 1);
    sim_model_default(&request.model);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help();
        return 0;
    }
    int status = read_arguments(&request, argc, argv);
    if (status != 0)
        return status;
    figures_book_open(&book);
    status = make(&request, &book);
    figures_book_close(&book);
    return status;
}
