/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: no text gives an option a value outside its limits, and a rejected one is named. Method: the lines of the input
 * are an environment, then each a --name=value. */
#include "base/options.h"
#include "fuzz.h"

#define LINES_MAX 64

static void check_values(const struct quoit_options *options)
{
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        const struct quoit_option_value *value = &options->values[i];
        bool is_ranged = option->type == QUOIT_OPTION_UINT || option->type == QUOIT_OPTION_BYTES ||
                         option->type == QUOIT_OPTION_DURATION;
        if (!is_ranged || value->source == QUOIT_FROM_DEFAULT)
            continue;
        must(value->number >= option->smallest);
        must(option->largest == 0 || value->number <= option->largest);
    }
}

static void note(void *arg, const char *text)
{
    must(text[0] != '\0');
    ++*(int *)arg;
}

static void set(struct quoit_options *options, const char *line)
{
    char problem[QUOIT_OPTION_PROBLEM_BYTES] = "", name[64], text[64];
    const char *nearest = NULL, *equals = strchr(line, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - line) : 0, line);
    enum quoit_option_id id = quoit_option_find(name, &nearest);
    if (!equals || id == QUOIT_OPT_COUNT)
        return;
    if (!quoit_options_set(options, id, equals + 1, QUOIT_FROM_COMMAND_LINE, name, problem))
        must(problem[0] != '\0' && memchr(problem, '\0', sizeof problem) != NULL);
    else
        quoit_option_format(options, id, text, sizeof text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_text(data, bytes), *rest = text, *line;
    char *environment[LINES_MAX + 1] = {NULL};
    char problem[QUOIT_OPTION_PROBLEM_BYTES] = "";
    struct quoit_options options;
    int unknown_count = 0;
    for (size_t count = 0; count < LINES_MAX && (line = strsep(&rest, "\n")); count++)
        environment[count] = line;
    quoit_options_default(&options);
    if (!quoit_options_from_environment(&options, environment, problem))
        must(problem[0] != '\0' && memchr(problem, '\0', sizeof problem) != NULL);
    check_values(&options);
    quoit_options_unknown(environment, note, &unknown_count);
    quoit_options_default(&options);
    for (size_t i = 0; environment[i]; i++)
        set(&options, environment[i]);
    check_values(&options);
    free(text);
    return 0;
}
