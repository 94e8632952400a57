/* SPDX-License-Identifier: BSD-3-Clause */
/* oshcc, oshc++ - the C or C++ compiler with the flags of an OpenSHMEM program.
 *
 * Finds the headers and the library beside its own binary (PREFIX/bin -> PREFIX/include, PREFIX/lib...), so an
 * installed or a build tree can be moved. The compiler is OSHCC or CC (OSHCXX or CXX) if set, else the one of the
 * build. All other options are passed on unchanged.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/version.h"

#define COMPILER_WORDS_MAX 32

enum show { SHOW_NOT, SHOW_ALL, SHOW_COMPILE, SHOW_LINK, SHOW_VERSION };

struct command {
    char **words;
    size_t count;
};

struct places {
    char prefix[PATH_MAX];
    char library[PATH_MAX + 64]; /* the folder of libshmem.so */
};

static void add(struct command *command, const char *word)
{
    command->words[command->count++] = (char *)word;
    command->words[command->count] = NULL;
}

static void add_format(struct command *command, const char *format, const char *value)
{
    char *word = NULL;
    if (asprintf(&word, format, value) < 0)
        exit(1);
    add(command, word);
}

/* PREFIX is two levels above the binary. */
static bool find_places(struct places *places)
{
    static const char *const folders[] = {QUOIT_LIBRARY_FOLDER, "lib", "lib64"};
    ssize_t length = readlink("/proc/self/exe", places->prefix, sizeof places->prefix - 1);
    if (length <= 0)
        return false;
    places->prefix[length] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(places->prefix, '/');
        if (slash)
            *slash = '\0';
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char library[sizeof places->library + 16];
        snprintf(places->library, sizeof places->library, "%s/%s", places->prefix, folders[i]);
        snprintf(library, sizeof library, "%s/libshmem.so", places->library);
        if (access(library, R_OK) == 0)
            return true;
    }
    return false;
}

/* Of the words of a compiler command, the first: "ccache" of "ccache gcc", but the whole of a path with a blank in it,
 * as CMake sets CC. */
static size_t first_word_bytes(const char *compiler)
{
    return strchr(compiler, '/') && access(compiler, X_OK) == 0 ? strlen(compiler) : strcspn(compiler, " ");
}

/* CC may be set to this wrapper, as for a configure script: then it is not used as the compiler. */
static bool is_wrapper(const char *compiler)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%.*s", (int)first_word_bytes(compiler), compiler);
    const char *name = basename(copy);
    size_t length = strcspn(name, "."); /* Debian's has a suffix: oshcc.quoit */
    static const char *const names[] = {"oshcc", "oshc++", "oshcxx"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0)
            return true;
    return false;
}

/* The words of the compiler command, such as "ccache gcc". */
static void add_compiler(struct command *command, bool is_cxx)
{
    const char *const variables[2][2] = {{"OSHCC", "CC"}, {"OSHCXX", "CXX"}};
    const char *compiler = is_cxx ? QUOIT_CXX : QUOIT_CC;
    for (int i = 1; i >= 0; i--) {
        const char *value = getenv(variables[is_cxx][i]);
        if (value && value[0] && !is_wrapper(value))
            compiler = value;
    }
    size_t first_bytes = first_word_bytes(compiler);
    char *words = strdup(compiler), *rest = words, *word;
    if (words && first_bytes) {
        rest = words[first_bytes] ? words + first_bytes + 1 : NULL;
        words[first_bytes] = '\0';
        add(command, words);
    }
    while (rest && (word = strsep(&rest, " ")) && command->count < COMPILER_WORDS_MAX)
        if (word[0])
            add(command, word);
}

static enum show show_of(const char *argument)
{
    static const struct {
        const char *name;
        enum show show;
    } names[] = {
        {"-show", SHOW_ALL},
        {"--show", SHOW_ALL},
        {"-showme", SHOW_ALL},
        {"--showme", SHOW_ALL},
        {"--showme:command", SHOW_ALL},
        {"--showme:compile", SHOW_COMPILE},
        {"-showme:compile", SHOW_COMPILE},
        {"--showme:link", SHOW_LINK},
        {"-showme:link", SHOW_LINK},
        {"--showme:version", SHOW_VERSION},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(argument, names[i].name) == 0)
            return names[i].show;
    return SHOW_NOT;
}

/* Options after which the compiler does not link. */
static bool stops_before_link(const char *argument)
{
    static const char *const names[] = {"-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(argument, names[i]) == 0)
            return true;
    return false;
}

/* Options after which the program uses no shared library. */
static bool is_static(const char *argument)
{
    argument += strncmp(argument, "--", 2) == 0;
    return strcmp(argument, "-static") == 0 || strcmp(argument, "-static-pie") == 0;
}

static void add_compile_flags(struct command *command, const struct places *places)
{
    if (strcmp(places->prefix, "/usr") != 0) /* the compiler searches it anyway, and in the right order */
        add_format(command, "-I%s/include", places->prefix);
    if (QUOIT_WRAPPER_FLAGS[0])
        add(command, QUOIT_WRAPPER_FLAGS);
}

/* A path for shared libraries ends a static-pie program before main: glibc asserts that there is none. */
static void add_link_flags(struct command *command, const struct places *places, bool links_statically)
{
    add_format(command, "-L%s", places->library);
    if (!links_statically)
        add_format(command, "-Wl,-rpath,%s", places->library);
    add(command, "-lshmem");
    add(command, "-lm"); /* assumed by the specification's example Makefile */
}

static void print_words(const struct command *command, size_t first)
{
    for (size_t i = first; i < command->count; i++) {
        const char *word = command->words[i];
        bool is_plain = word[0] && !strpbrk(word, " \t\n\"'\\$`*?[]()<>|&;#~{}");
        printf("%s", i > first ? " " : "");
        if (is_plain) {
            printf("%s", word);
            continue;
        }
        putchar('\'');
        for (; *word; word++) /* a quote inside quotes: close, escape, open */
            *word == '\'' ? fputs("'\\''", stdout) : putchar(*word);
        putchar('\'');
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    bool is_cxx = strncmp(name, "oshcc", 5) != 0, has_input = false, links = true, links_statically = false;
    enum show show = SHOW_NOT;
    struct places places;
    quoit_log_setup(QUOIT_LOG_WARN, name);
    if (!find_places(&places)) {
        quoit_say("no libshmem.so below %s: was this binary copied alone? Its folders bin, lib and include go together",
                  places.prefix);
        return 1;
    }
    static struct command command;
    command.words = calloc((size_t)argc + COMPILER_WORDS_MAX + 16, sizeof(char *));
    if (!command.words)
        return 1;
    add_compiler(&command, is_cxx);
    size_t compiler_count = command.count;
    for (int i = 1; i < argc; i++) {
        if (show_of(argv[i]) != SHOW_NOT)
            show = show_of(argv[i]);
        else if (stops_before_link(argv[i]))
            links = false;
        links_statically |= is_static(argv[i]);
        has_input |= argv[i][0] != '-';
    }
    bool asks_flags = show == SHOW_COMPILE || show == SHOW_LINK;
    if (show != SHOW_LINK)
        add_compile_flags(&command, &places);
    for (int i = 1; i < argc && !asks_flags; i++)
        if (show_of(argv[i]) == SHOW_NOT)
            add(&command, argv[i]);
    if (show == SHOW_LINK || (links && !asks_flags && (has_input || show == SHOW_ALL)))
        add_link_flags(&command, &places, links_statically);
    if (show == SHOW_VERSION) {
        printf("%s (Quoit) %s, OpenSHMEM 1.6\n", name, quoit_version()->text);
        return 0;
    }
    if (show != SHOW_NOT) {
        print_words(&command, asks_flags ? compiler_count : 0);
        return 0;
    }
    execvp(command.words[0], command.words);
    quoit_say("cannot run the compiler %s: %s (OSHCC or CC chooses another)", command.words[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}
