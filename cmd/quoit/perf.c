/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit perf - starts the benchmark program (cmd/quoit/perf) on this library or on another one, and shows what it
 * found.
 *
 * Three kinds of options stand side by side: those below, those of oshrun, and those of the benchmark program, which
 * checks its own before any PE is started. */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "command.h"
#include "folder.h"
#include "prefix.h"

#define WORDS_MAX   256
#define PES_DEFAULT 2

struct words {
    char *words[WORDS_MAX + 1];
    size_t count;
};

struct session {
    struct words launch;  /* for oshrun */
    struct words program; /* for the benchmark */
    const char *cc, *launch_text, *html, *json, *loggp;
    const char *compare[2];
    unsigned long pe_count, host_count;
    char pes[24];       /* pe_count as a word */
    char launcher[512]; /* the other library's, split into words */
    struct folder folder;
    bool is_list;
};

static void add(struct words *words, const char *word)
{
    if (words->count == WORDS_MAX) {
        fprintf(stderr, "quoit perf: more than %d words\n", WORDS_MAX);
        exit(2);
    }
    words->words[words->count++] = (char *)word;
    words->words[words->count] = NULL;
}

static int refuse(const char *what, const char *why)
{
    fprintf(stderr, "quoit perf: %s %s\n", what, why);
    return 2;
}

static bool find_program(char path_out[PATH_MAX])
{
    return prefix_find(QUOIT_PROGRAM_FOLDER "/quoit/perf", path_out);
}

static int print_help(void)
{
    char program[PATH_MAX];
    printf(
        "usage: quoit perf [OPTION]... [OPTION OF OSHRUN]...\n"
        "       quoit perf --compare A.json B.json [--html FILE]\n"
        "       quoit perf --loggp RESULT.json\n\n"
        "Measures an OpenSHMEM library: puts, gets, rates, atomics, signals, barriers, collectives, locks and the\n"
        "heap, each beside what the machine needs for the same. Every byte is verified. Without options: 2 PEs, under\n"
        "a minute. Options of oshrun say on what: quoit perf -n 8 --hosts 4.\n\n"
        "  --html FILE            write a page with plots that opens offline\n"
        "  --compare A B          compare two results of --json, each one file or several with commas\n"
        "  --loggp FILE           the network's constants of LogGP, fitted to a result of --json with the tests "
        "put-signal,\n"
        "                         put-quiet and fan, one PE a host on three hosts or more\n"
        "  --cc CC                measure another library: its compiler wrapper, which builds the program anew\n"
        "  --launch TEXT          the other library's launcher, with {pes} for the number of PEs\n");
    fflush(stdout);
    return find_program(program) ? prefix_run((char *[]){program, "--help", NULL}, NULL, NULL) : 1;
}

/* Whether the argument is an option of oshrun; takes it, with its value. */
static bool take_launch(struct session *session, int argc, char **argv, int *at)
{
    char name[64];
    const char *text = argv[*at] + 1 + (argv[*at][1] == '-'), *equals = strchr(text, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - text) : (int)strlen(text), text);
    enum quoit_option_id id = strcmp(name, "np") == 0 ? QUOIT_OPT_PES : quoit_option_find(name, NULL);
    if (id == QUOIT_OPT_COUNT || quoit_options_table[id].type == QUOIT_OPTION_FLAG)
        return false;
    const char *value = equals ? equals + 1 : NULL;
    add(&session->launch, argv[*at]);
    if (!equals && quoit_options_table[id].type != QUOIT_OPTION_BOOL && *at + 1 < argc)
        add(&session->launch, value = argv[++*at]);
    if (id == QUOIT_OPT_PES && value)
        session->pe_count = strtoul(value, NULL, 10);
    if (id == QUOIT_OPT_HOSTS && value)
        session->host_count = strtoul(value, NULL, 10);
    return true;
}

/* One of this command's own options; `*status_out` is 2 if its value is missing. */
static bool take_own(struct session *session, int argc, char **argv, int *at, int *status_out)
{
    const struct {
        const char *name;
        const char **first, **second;
    } own[] = {{"--html", &session->html, NULL},
               {"--cc", &session->cc, NULL},
               {"--launch", &session->launch_text, NULL},
               {"--loggp", &session->loggp, NULL},
               {"--compare", &session->compare[0], &session->compare[1]}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        size_t length = strlen(own[i].name);
        if (strncmp(argv[*at], own[i].name, length) != 0 || (argv[*at][length] && argv[*at][length] != '='))
            continue;
        bool has_value = argv[*at][length] == '=' && !own[i].second;
        if (has_value)
            *own[i].first = argv[*at] + length + 1;
        else if (*at + (own[i].second ? 2 : 1) >= argc)
            *status_out = refuse(own[i].name, own[i].second ? "needs two files" : "needs a value");
        else
            *own[i].first = argv[++*at];
        if (own[i].second && *status_out == 0)
            *own[i].second = argv[++*at];
        return true;
    }
    return false;
}

static int parse(struct session *session, int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc && status == 0; i++) {
        if (take_own(session, argc, argv, &i, &status) || take_launch(session, argc, argv, &i))
            continue;
        add(&session->program, argv[i]);
        if (strcmp(argv[i], "--list") == 0)
            session->is_list = true;
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            add(&session->program, session->json = argv[++i]);
        else if (strncmp(argv[i], "--json=", 7) == 0)
            session->json = argv[i] + 7;
    }
    if (status == 0 && session->launch_text && !session->cc)
        status = refuse("--launch", "needs --cc, the other library's compiler wrapper");
    if (status == 0 && session->cc && session->host_count)
        status = refuse("--hosts", "is for this library; say to --launch where the other one runs");
    if (status == 0 && session->html && session->json && strcmp(session->json, "-") == 0)
        status = refuse("--html", "needs the result in a file, and --json names standard output");
    return status;
}

/* Builds the installed source with the other library's wrapper. */
static bool build(struct session *session, char program_out[PATH_MAX])
{
    char source[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    struct words words = {0};
    if (!prefix_find(QUOIT_DATA_FOLDER "/quoit/perf", source) || !folder_make(&session->folder))
        return false;
    snprintf(program_out, PATH_MAX, "%s/perf", session->folder.path);
    add(&words, session->cc);
    add(&words, "-O2");
    add(&words, "-o");
    add(&words, program_out);
    DIR *folder = opendir(source);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".c") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", source, entry->d_name);
        add(&words, strdup(path));
    }
    if (folder)
        closedir(folder);
    bool is_built = prefix_run(words.words, NULL, NULL) == 0;
    for (size_t i = 4; i < words.count; i++)
        free(words.words[i]);
    if (!is_built)
        fprintf(stderr, "quoit perf: %s did not build the program\n", session->cc);
    return is_built;
}

/* The words of the other library's launcher, {pes} replaced. */
static void add_launcher(struct session *session, struct words *words)
{
    char *rest = session->launcher, *word;
    snprintf(session->launcher, sizeof session->launcher, "%s",
             session->launch_text ? session->launch_text : "oshrun -np {pes}");
    while ((word = strsep(&rest, " ")))
        if (word[0])
            add(words, strcmp(word, "{pes}") == 0 ? session->pes : word);
}

static void add_job(struct session *session, struct words *words, const char *oshrun)
{
    bool is_given = session->pe_count > 0;
    if (!is_given)
        session->pe_count = session->host_count > PES_DEFAULT ? session->host_count : PES_DEFAULT;
    snprintf(session->pes, sizeof session->pes, "%lu", session->pe_count);
    if (session->cc) {
        add_launcher(session, words);
        return;
    }
    add(words, oshrun);
    for (size_t i = 0; i < session->launch.count; i++)
        add(words, session->launch.words[i]);
    if (!is_given) {
        add(words, "-n");
        add(words, session->pes);
    }
}

static void note_of(const struct words *words, size_t count, char *note, size_t bytes)
{
    size_t length = 0;
    for (size_t i = 0; i < count && length < bytes; i++)
        length += (size_t)snprintf(note + length, bytes - length, "%s%s", i ? " " : "", words->words[i]);
}

/* Lets the program check its arguments, once, before any PE is started; prints its list if one was requested. */
static int check(const struct session *session, char *program)
{
    struct words words = {0};
    add(&words, program);
    add(&words, "--list");
    for (size_t i = 0; i < session->program.count; i++)
        add(&words, session->program.words[i]);
    FILE *nowhere = session->is_list ? NULL : fopen("/dev/null", "w");
    int status = prefix_run(words.words, NULL, nowhere);
    if (nowhere)
        fclose(nowhere);
    return status;
}

/* A page from what perf.py makes of these words. */
static int make_page(char *const *words, const char *page)
{
    FILE *data = tmpfile();
    if (!data) {
        perror("quoit perf: cannot make a temporary file");
        return 1;
    }
    bool is_made = prefix_run_python("perf.py", words, NULL, data) == 0 && prefix_make_page(data, page);
    fclose(data);
    return is_made ? 0 : 1;
}

static int run(struct session *session, char *program)
{
    char oshrun[PATH_MAX], note[1024], result[PATH_MAX];
    const char *json = session->json;
    struct words words = {0};
    if (!prefix_has_program("oshrun", oshrun) && !prefix_find("bin/oshrun", oshrun))
        return 1;
    add_job(session, &words, oshrun);
    note_of(&words, words.count, note, sizeof note);
    add(&words, program);
    add(&words, "--note");
    add(&words, note);
    if (isatty(STDERR_FILENO) && (!isatty(STDOUT_FILENO) || (json && strcmp(json, "-") == 0)))
        add(&words, "--progress");
    for (size_t i = 0; i < session->program.count; i++)
        add(&words, session->program.words[i]);
    if (session->html && !json) {
        if (!session->folder.path[0] && !folder_make(&session->folder))
            return 1;
        snprintf(result, sizeof result, "%s/result.json", session->folder.path);
        json = result;
        add(&words, "--json");
        add(&words, json);
    }
    int status = prefix_run(words.words, NULL, NULL);
    return status == 0 && session->html ? make_page((char *[]){"page", (char *)json, NULL}, session->html) : status;
}

static int measure(struct session *session)
{
    char program[PATH_MAX];
    if (!(session->cc ? build(session, program) : find_program(program)))
        return 1;
    int status = check(session, program);
    return status != 0 || session->is_list ? status : run(session, program);
}

int command_perf(int argc, char **argv)
{
    struct session session = {.pe_count = 0};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_help();
    int status = parse(&session, argc, argv);
    if (status != 0)
        return status;
    if (session.compare[0]) {
        char *words[] = {"compare", (char *)session.compare[0], (char *)session.compare[1], NULL};
        status = prefix_run_python("perf.py", words, NULL, NULL);
        words[0] = "compare-page";
        return status == 0 && session.html ? make_page(words, session.html) : status;
    }
    if (session.loggp)
        return prefix_run_python("perf.py", (char *[]){"loggp", (char *)session.loggp, NULL}, NULL, NULL);
    status = measure(&session);
    folder_remove(&session.folder);
    return status;
}
