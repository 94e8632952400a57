/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit info - what there is to know before a job is started: the environment and the options given here, applied. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "boot/info.h"
#include "command.h"

static void print_help(void)
{
    printf("usage: quoit info [--json] [OPTION]...\n\n"
           "Tells version, build, machine, every option with its value and where it comes from, the ways from PE 0 to\n"
           "the others, and limits. Options are those of oshrun (oshrun --help), such as --hosts 5 -n 10.\n\n"
           "  --json                   print JSON\n"
           "  --help                   print this\n");
}

static int refuse(const char *text)
{
    fprintf(stderr, "quoit info: %s\n", text);
    return 2;
}

/* Takes one option of oshrun that says something about a job: "--name value", "--name=value", or a flag. */
static bool take(struct quoit_options *options, int argc, char **argv, int *at, char *problem)
{
    char name[64], shown[80];
    const char *text = argv[*at] + 1 + (argv[*at][1] == '-'), *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    snprintf(shown, sizeof shown, "--%s", name);
    enum quoit_option_id id = quoit_option_find(name, NULL);
    snprintf(problem, QUOIT_OPTION_PROBLEM_BYTES, "there is no option %s (see --help)", argv[*at]);
    if (argv[*at][0] != '-' || id == QUOIT_OPT_COUNT || quoit_options_table[id].type == QUOIT_OPTION_FLAG)
        return false;
    const char *value = equals ? equals + 1 : "1";
    if (!equals && quoit_options_table[id].type != QUOIT_OPTION_BOOL) {
        snprintf(problem, QUOIT_OPTION_PROBLEM_BYTES, "%s needs a value", argv[*at]);
        if (*at + 1 == argc)
            return false;
        value = argv[++*at];
    }
    return quoit_options_set(options, id, value, QUOIT_FROM_COMMAND_LINE, shown, problem);
}

static void say(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "quoit info: %s\n", text);
}

int command_info(int argc, char **argv)
{
    struct quoit_options options;
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    bool is_json = false;
    quoit_options_default(&options);
    quoit_options_unknown(environ, say, NULL);
    if (!quoit_options_from_environment(&options, environ, problem))
        return refuse(problem);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0)
            is_json = true;
        else if (!take(&options, argc, argv, &i, problem))
            return refuse(problem);
    }
    struct quoit_info info = {.version = QUOIT_VERSION, .options = &options};
    info.host_count = (uint32_t)options.values[QUOIT_OPT_HOSTS].number;
    info.pe_count = (uint32_t)options.values[QUOIT_OPT_PES].number;
    if (info.pe_count == 0)
        info.pe_count = info.host_count;
    if (info.pe_count < info.host_count)
        return refuse("there must be a PE on each host");
    quoit_info_print(&info, is_json, stdout);
    return 0;
}
