/* SPDX-License-Identifier: BSD-3-Clause */
/* The subcommands that are Python programs, which run this program to measure and to plot: figures/ is quoit figures,
 * quoit predict and quoit report; tune.py is quoit tune. */
#include <limits.h>
#include <stdlib.h>

#include "command.h"
#include "prefix.h"

static int run(const char *program, int argc, char **argv)
{
    char quoit[PATH_MAX];
    char **words = calloc((size_t)argc + 2, sizeof *words);
    if (!words || !prefix_find("bin/quoit", quoit))
        return 1;
    words[0] = argv[0];
    words[1] = quoit;
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
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

int command_tune(int argc, char **argv)
{
    return run("tune.py", argc, argv);
}
