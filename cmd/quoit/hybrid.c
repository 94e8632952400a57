/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit figures hybrid - the figures of HYBRID, measured on this machine by quoit perf; hybrid.py draws them. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "figures.h"
#include "prefix.h"
#include "report.h"

#define SECONDS       "30"
#define SECONDS_QUICK "2"

static int print_help(void)
{
    printf("usage: quoit figures hybrid [--out DIR] [--quick]\n\n"
           "Measures the figures of HYBRID on this machine: latency of a put by its way, message rate, barrier and\n"
           "collectives against PEs, each beside the limit of the machine.\n\n"
           "  --out DIR      where hybrid.html and hybrid.json go (figures)\n"
           "  --quick        in seconds, with few samples\n"
           "  --help         print this\n");
    return 0;
}

static int refuse(const char *what, const char *value)
{
    fprintf(stderr, "quoit figures hybrid: %s: %s\n", what, value);
    return 2;
}

static int make(const char *folder, const char *seconds)
{
    char quoit[PATH_MAX], data_path[PATH_MAX], page_path[PATH_MAX];
    if (!prefix_find("bin/quoit", quoit))
        return 1;
    snprintf(data_path, sizeof data_path, "%s/hybrid.json", folder);
    snprintf(page_path, sizeof page_path, "%s/hybrid.html", folder);
    FILE *data = mkdir(folder, 0777) == 0 || errno == EEXIST ? fopen(data_path, "w+e") : NULL;
    if (!data) {
        fprintf(stderr, "quoit figures hybrid: %s: %s\n", data_path, strerror(errno));
        return 1;
    }
    bool is_made = prefix_run_python("hybrid.py", (const char *const[3]){quoit, seconds, NULL}, NULL, data) == 0 &&
                   report_make(data, page_path);
    fclose(data);
    if (is_made)
        printf("the page: %s, its data: %s\n", page_path, data_path);
    return is_made ? 0 : 1;
}

int figures_hybrid(int argc, char **argv)
{
    const char *folder = "figures", *seconds = SECONDS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_help();
        if (strcmp(argv[i], "--quick") == 0)
            seconds = SECONDS_QUICK;
        else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            folder = argv[++i];
        else
            return refuse("there is no such option, or its value is missing (see --help)", argv[i]);
    }
    return make(folder, seconds);
}
