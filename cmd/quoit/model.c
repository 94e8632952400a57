/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit model - the machines of oshrun --virtual: the installed ones, what is in one, and whether a file is one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "command.h"
#include "virtual/model.h"

static const char help[] =
    "usage: quoit model list\n"
    "       quoit model show MODEL [--set NAME=VALUE,...]\n"
    "       quoit model check FILE...\n"
    "\n"
    "The models of machines for oshrun --virtual: by name, or by the path of a file, which has a slash.\n"
    "\n"
    "  list    the installed models, each with a line\n"
    "  show    the constants of a model: value, meaning, source\n"
    "  check   whether files are models: each constant once, in its range, with a source\n"
    "\n"
    "  --set NAME=VALUE,...     change constants first; NAME=2x is twice the value\n"
    "  --help                   print this\n";

static bool read_model(const char *name, struct quoit_model_file *file_out)
{
    char problem[QUOIT_MODEL_PROBLEM_BYTES];
    bool is_good = quoit_model_read(name, file_out, problem);
    if (!is_good)
        quoit_say("%s [Q0702]", problem);
    return is_good;
}

static int is_model(const struct dirent *entry)
{
    const char *ending = strrchr(entry->d_name, '.');
    return ending != NULL && strcmp(ending, QUOIT_MODEL_ENDING) == 0;
}

static int list(void)
{
    char folder[PATH_MAX];
    struct dirent **entries = NULL;
    int count = quoit_model_folder(folder) ? scandir(folder, &entries, is_model, alphasort) : -1, status = 0;
    if (count < 0) {
        quoit_say("the installed models are not there: share/quoit/models below this program's prefix");
        return 1;
    }
    for (int i = 0; i < count; i++) {
        struct quoit_model_file file;
        *strrchr(entries[i]->d_name, '.') = '\0';
        if (read_model(entries[i]->d_name, &file))
            printf("%-16s %s\n", entries[i]->d_name, file.about);
        else
            status = 1;
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int show(const char *name, const char *set)
{
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES], text[32];
    if (!read_model(name, &file))
        return 1;
    if (set && !quoit_model_set(&file, set, problem)) {
        quoit_say("--set: %s [Q0703]", problem);
        return 1;
    }
    printf("%s\n%s\n", file.path, file.about);
    for (enum quoit_model_constant i = 0; i < QUOIT_MODEL_CONSTANT_COUNT; i++) {
        quoit_model_format(&file.model, i, text);
        printf("%-16s %10s  %s\n%29s%s\n", quoit_model_name(i), text, quoit_model_meaning(i), "", file.source[i]);
    }
    return 0;
}

/* A name without a slash is a file here. */
static int check(int count, char **names)
{
    int status = 0;
    for (int i = 0; i < count; i++) {
        struct quoit_model_file file;
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s", strchr(names[i], '/') ? "" : "./", names[i]);
        if (read_model(path, &file))
            printf("%s: a model: %s\n", names[i], file.about);
        else
            status = 1;
    }
    return status;
}

int command_model(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool has_set = argc == 5 && strcmp(argv[3], "--set") == 0;
    if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (strcmp(what, "list") == 0 && argc == 2)
        return list();
    if (strcmp(what, "show") == 0 && (argc == 3 || has_set))
        return show(argv[2], has_set ? argv[4] : NULL);
    if (strcmp(what, "check") == 0 && argc > 2)
        return check(argc - 2, argv + 2);
    fputs(help, stderr);
    return 2;
}
