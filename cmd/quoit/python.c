/* SPDX-License-Identifier: BSD-3-Clause */
/* The subcommands that are Python programs, which run this program to measure and to plot: figures/ is quoit figures,
 * quoit predict and quoit report; profile.py is quoit profile, tune.py quoit tune. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "prefix.h"

#define FIGURES_PROGRAMS QUOIT_PROGRAM_FOLDER "/quoit/examples"

static int run(const char *program, int argc, char **argv)
{
    char quoit[PATH_MAX], programs[PATH_MAX];
    const char *kind = argc > 1 && strcmp(argv[0], "figures") == 0 ? argv[1] : "";
    bool is_needed = strcmp(kind, "dsm") == 0, runs_examples = is_needed || strcmp(kind, "summary") == 0;
    char **words = calloc((size_t)argc + 4, sizeof *words);
    if (!words || !prefix_find("bin/quoit", quoit) || (is_needed && !prefix_find(FIGURES_PROGRAMS, programs)))
        return 1;
    runs_examples = runs_examples && prefix_has(FIGURES_PROGRAMS, programs);
    int count = 0;
    words[count++] = argv[0];
    words[count++] = quoit;
    for (int i = 1; i < argc; i++) {
        words[count++] = argv[i];
        if (i == 1 && runs_examples) { /* a --programs of the user comes later, and counts */
            words[count++] = "--programs";
            words[count++] = programs;
        }
    }
    int status = prefix_run_python(program, words, NULL, NULL);
    free(words);
    return status;
}

int command_figures(int argc, char **argv)
{
    return run("figures", argc, argv);
}

int command_predict(int argc, char **argv)
{
    return run("figures", argc, argv);
}

int command_report(int argc, char **argv)
{
    return run("figures", argc, argv);
}

int command_profile(int argc, char **argv)
{
    return run("profile.py", argc, argv);
}

int command_tune(int argc, char **argv)
{
    return run("tune.py", argc, argv);
}
