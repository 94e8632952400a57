/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <stdlib.h>
#include <string.h>

#define COLD_BYTES (32u << 20)

/* Powers of eight, and the sizes that others report. */
static const size_t default_sizes[] = {1, 8, 64, 512, 4096, 65536, 1u << 20, 4u << 20};

static bool refuse(const char *option, const char *text, const char *allowed)
{
    fprintf(stderr, "quoit perf: %s: \"%s\" is not allowed; it takes %s\n", option, text, allowed);
    return false;
}

/* A number with K, M or G. False: there is none, or it is 0. `end_out` is behind it. */
static bool parse_bytes(const char *text, const char **end_out, size_t *bytes_out)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' || *end == 'k'   ? 10
                     : *end == 'M' || *end == 'm' ? 20
                     : *end == 'G' || *end == 'g' ? 30
                                                  : 0;
    if (end == text || *text == '-' || *text == '+' || number == 0 || number > (1ull << 40) >> shift)
        return false;
    *end_out = end + (shift != 0);
    *bytes_out = (size_t)number << shift;
    return true;
}

static bool parse_sizes(struct perf_options *options, const char *text)
{
    static const char *const allowed = "sizes with commas, such as 8,1K,1M, or MIN:MAX for every power of two between";
    size_t bytes = 0, most = 0;
    const char *rest = text;
    options->size_count = 0;
    for (;;) {
        if (options->size_count == PERF_SIZES_MAX || !parse_bytes(rest, &rest, &bytes))
            return refuse("--sizes", text, allowed);
        options->sizes[options->size_count++] = bytes;
        if (*rest != ',')
            break;
        rest++;
    }
    if (*rest == ':' && options->size_count == 1) {
        if (!parse_bytes(rest + 1, &rest, &most) || most < bytes)
            return refuse("--sizes", text, allowed);
        while (bytes <= most / 2 && options->size_count < PERF_SIZES_MAX)
            options->sizes[options->size_count++] = bytes *= 2;
    }
    return *rest == '\0' || refuse("--sizes", text, allowed);
}

/* Words of a list as bits. */
static bool parse_words(const char *option, const char *text, const char *const *words, const char *allowed,
                        unsigned *bits_out)
{
    unsigned bits = 0;
    for (const char *rest = text;;) {
        size_t length = strcspn(rest, ",");
        unsigned bit = 0;
        for (unsigned i = 0; words[i]; i++)
            if (strlen(words[i]) == length && memcmp(words[i], rest, length) == 0)
                bit = 1u << i;
        if (bit == 0)
            return refuse(option, text, allowed);
        bits |= bit;
        rest += length;
        if (*rest++ == '\0')
            break;
    }
    *bits_out = bits;
    return true;
}

static bool parse_buffers(struct perf_options *options, const char *text)
{
    static const char *const words[] = {"heap", "global", "private", NULL};
    return parse_words("--buffers", text, words, "heap, global and private, with commas", &options->buffers);
}

static bool parse_cache(struct perf_options *options, const char *text)
{
    static const char *const words[] = {"warm", "cold", NULL};
    return parse_words("--cache", text, words, "warm and cold, with a comma", &options->caches);
}

static bool parse_seconds(struct perf_options *options, const char *text)
{
    char *end;
    options->seconds = strtod(text, &end);
    return (end != text && *end == '\0' && options->seconds > 0 && options->seconds <= 86400) ||
           refuse("--seconds", text, "a time in seconds, at most 86400");
}

static bool parse_cold(struct perf_options *options, const char *text)
{
    const char *end;
    return (parse_bytes(text, &end, &options->cold_bytes) && *end == '\0' && options->cold_bytes >= 1u << 20) ||
           refuse("--cold-bytes", text, "a size from 1M");
}

static bool parse_peer(struct perf_options *options, const char *text)
{
    char *end;
    long peer = strtol(text, &end, 10);
    options->peer = (int)peer;
    return (end != text && *end == '\0' && peer > 0 && peer < 1 << 20) ||
           refuse("--peer", text, "the number of a PE other than 0");
}

static bool parse_tests(struct perf_options *options, const char *text)
{
    options->tests = text;
    return true;
}

static bool parse_json(struct perf_options *options, const char *text)
{
    options->json = text;
    return *text || refuse("--json", text, "the name of a file");
}

static bool parse_name(struct perf_options *options, const char *text)
{
    options->name = text;
    return true;
}

static bool parse_note(struct perf_options *options, const char *text)
{
    options->note = text;
    return true;
}

static bool set_list(struct perf_options *options, const char *text)
{
    (void)text;
    return options->is_list = true;
}

static bool set_progress(struct perf_options *options, const char *text)
{
    (void)text;
    return options->shows_progress = true;
}

static bool set_help(struct perf_options *options, const char *text)
{
    (void)text;
    return options->is_help = true;
}

static const struct option {
    const char *name, *value, *sentence;
    bool (*take)(struct perf_options *options, const char *text);
} table[] = {
    {"--tests", "NAMES", "only these, with commas; * stands for any letters: --tests 'put*,barrier'", parse_tests},
    {"--sizes", "SIZES", "8,1K,1M, or 8:1M for every power of two (1,8,64,512,4K,64K,1M,4M)", parse_sizes},
    {"--buffers", "KINDS", "heap, global, private, with commas: for every test that can (put and get: all)",
     parse_buffers},
    {"--cache", "WHICH", "warm, cold, or both with a comma (put and get: both; others: warm)", parse_cache},
    {"--cold-bytes", "SIZE", "what cold calls go round in each buffer (32M)", parse_cold},
    {"--seconds", "S", "time for all rows together (25)", parse_seconds},
    {"--peer", "PE", "the PE that PE 0 works with (1)", parse_peer},
    {"--json", "FILE", "write every result to FILE; \"-\" for standard output, without the table", parse_json},
    {"--name", "TEXT", "what to call the library (what it calls itself)", parse_name},
    {"--note", "TEXT", "a text for the JSON", parse_note},
    {"--progress", NULL, "say on standard error every two seconds how far it is", set_progress},
    {"--list", NULL, "print the tests that would run, and run none", set_list},
    {"--help", NULL, "print this", set_help},
};

void perf_options_help(FILE *out)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        fprintf(out, "  %-12s %-9s %s\n", table[i].name, table[i].value ? table[i].value : "", table[i].sentence);
}

/* "--name value" or "--name=value". */
static const struct option *find(const char *argument, const char **value_out)
{
    size_t length = strcspn(argument, "=");
    *value_out = argument[length] == '=' ? argument + length + 1 : NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, argument, length) == 0)
            return &table[i];
    return NULL;
}

bool perf_options_parse(struct perf_options *options, int argc, char **argv)
{
    *options = (struct perf_options){.seconds = 25, .cold_bytes = COLD_BYTES, .peer = 1, .note = ""};
    options->size_count = sizeof default_sizes / sizeof default_sizes[0];
    memcpy(options->sizes, default_sizes, sizeof default_sizes);
    for (int i = 1; i < argc; i++) {
        const char *value;
        const struct option *option = find(argv[i], &value);
        if (!option || (value && !option->value)) {
            fprintf(stderr, "quoit perf: there is no option %s (see --help)\n", argv[i]);
            return false;
        }
        if (option->value && !value) {
            if (i + 1 == argc) {
                fprintf(stderr, "quoit perf: %s needs a value\n", option->name);
                return false;
            }
            value = argv[++i];
        }
        if (!option->take(options, value))
            return false;
    }
    return true;
}
