/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/paths.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define FIRST_LINE "quoit paths 2"

static const char *const kind_names[QUOIT_BUFFER_KIND_COUNT] = {"heap", "globals"};

const char *quoit_buffer_kind_name(enum quoit_buffer_kind kind)
{
    return kind_names[kind];
}

bool quoit_paths_use(const struct quoit_paths *paths, enum quoit_copy_method method)
{
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            if (paths->method[kind][i] == method)
                return true;
    return false;
}

void quoit_paths_default(struct quoit_paths *paths)
{
    memset(paths, 0, sizeof *paths);
    paths->plain_bytes = QUOIT_PATHS_PLAIN_BYTES;
}

void quoit_paths_force(struct quoit_paths *paths, enum quoit_copy_method method)
{
    memset(paths->method, (int)method, sizeof paths->method);
    paths->plain_bytes = method == QUOIT_COPY_MEMCPY ? QUOIT_PATHS_PLAIN_BYTES : 0;
    paths->source = QUOIT_PATHS_FORCED;
}

/* What the mapping serves beside it is memcpy's, but not inlined: that would serve puts and gets. */
void quoit_paths_force_network(struct quoit_paths *paths)
{
    quoit_paths_force(paths, QUOIT_COPY_MEMCPY);
    paths->plain_bytes = 0;
    paths->is_network = true;
}

void quoit_paths_drop(struct quoit_paths *paths, enum quoit_copy_method method)
{
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            if (paths->method[kind][i] == method)
                paths->method[kind][i] = QUOIT_COPY_MEMCPY;
}

/* CPUID has the name; reading /proc/cpuinfo would cost more than everything else here. */
static void name_processor(char *name_out, size_t bytes, const char *kind)
{
#if defined(__x86_64__)
    unsigned words[12];
    char text[sizeof words + 1] = "";
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
        memcpy(text, words, sizeof words);
        text[sizeof words] = '\0';
    }
    const char *start = text + strspn(text, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ')
        length--;
    if (length > 0) {
        snprintf(name_out, bytes, "%.*s", (int)length, start);
        return;
    }
#endif
    snprintf(name_out, bytes, "%s", kind);
}

void quoit_paths_machine(struct quoit_paths_machine *machine_out)
{
    struct utsname names;
    memset(machine_out, 0, sizeof *machine_out);
    if (uname(&names) != 0)
        memset(&names, 0, sizeof names);
    snprintf(machine_out->name, sizeof machine_out->name, "%s", names.nodename);
    name_processor(machine_out->processor, sizeof machine_out->processor, names.machine);
}

bool quoit_paths_file(const struct quoit_paths_machine *machine, char name_out[QUOIT_TUNED_NAME_BYTES])
{
    char name[sizeof machine->name + 8];
    snprintf(name, sizeof name, "paths.%s", machine->name);
    return quoit_tuned_file(name, name_out);
}

/* Takes the methods of one kind of buffer. NULL: the line is something else. */
static const char *take_methods(const char *text, uint8_t *methods_out)
{
    for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++) {
        const char *next = NULL;
        for (enum quoit_copy_method method = 0; method < QUOIT_COPY_METHOD_COUNT && !next; method++) {
            next = quoit_tuned_word(text, quoit_copy_method_name(method), i + 1 < QUOIT_PATHS_SIZE_COUNT ? ' ' : '\n');
            next = quoit_copy_is_built(method) ? next : NULL;
            methods_out[i] = (uint8_t)method;
        }
        if (!next)
            return NULL;
        text = next;
    }
    return text;
}

bool quoit_paths_parse(struct quoit_paths *paths, const char *text, const struct quoit_paths_machine *machine,
                       char problem_out[QUOIT_TUNED_PROBLEM_BYTES])
{
    char head[sizeof *machine + 64];
    struct quoit_paths made;
    quoit_paths_default(&made);
    made.source = QUOIT_PATHS_TUNED;
    int length =
        snprintf(head, sizeof head, FIRST_LINE "\nmachine %s\nprocessor %s\n", machine->name, machine->processor);
    if (strncmp(text, FIRST_LINE "\n", sizeof FIRST_LINE) != 0) {
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "does not begin with \"" FIRST_LINE "\"");
        return false;
    }
    if (strncmp(text, head, (size_t)length) != 0) {
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "was not measured on this machine (%s, %s)", machine->name,
                 machine->processor);
        return false;
    }
    const char *at = text + length;
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT && at; kind++) {
        const char *methods = quoit_tuned_word(at, kind_names[kind], ' ');
        at = methods ? take_methods(methods, made.method[kind]) : NULL;
        if (!at)
            snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "line %d is not \"%s\" and %u methods", 4 + (int)kind,
                     kind_names[kind], QUOIT_PATHS_SIZE_COUNT);
    }
    if (at && *at)
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "goes on after its last line");
    if (!at || *at)
        return false;
    *paths = made;
    return true;
}

bool quoit_paths_load(struct quoit_paths *paths, const char *choice, char problem_out[QUOIT_TUNED_PROBLEM_BYTES])
{
    struct quoit_paths_machine machine;
    char name[QUOIT_TUNED_NAME_BYTES], text[QUOIT_TUNED_FILE_BYTES + 2], problem[QUOIT_TUNED_PROBLEM_BYTES];
    quoit_paths_default(paths);
    if (strcmp(choice, QUOIT_PATHS_NETWORK) == 0) {
        quoit_paths_force_network(paths);
        return true;
    }
    enum quoit_copy_method forced = quoit_copy_method_find(choice, strlen(choice));
    if (forced != QUOIT_COPY_METHOD_COUNT) {
        quoit_paths_force(paths, forced);
        return true;
    }
    quoit_paths_machine(&machine);
    if (!quoit_paths_file(&machine, name))
        return true;
    enum quoit_tuned_found found = quoit_tuned_read(name, text, problem);
    if (found == QUOIT_TUNED_MISSING ||
        (found == QUOIT_TUNED_READ && quoit_paths_parse(paths, text, &machine, problem)))
        return true;
    snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES,
             "%.*s %.200s; the built-in paths are used (quoit tune makes it anew) [Q0306]", 400, name, problem);
    return false;
}
