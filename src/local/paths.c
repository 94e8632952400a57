/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define FIRST_LINE "quoit paths 1"

static const char *const kind_names[QUOIT_BUFFER_KIND_COUNT] = {"heap", "globals"};

const char *quoit_buffer_kind_name(enum quoit_buffer_kind kind)
{
    return kind_names[kind];
}

bool quoit_paths_use(const struct quoit_paths *paths, enum quoit_copy_method way)
{
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            if (paths->way[kind][i] == way)
                return true;
    return false;
}

void quoit_paths_default(struct quoit_paths *paths)
{
    memset(paths, 0, sizeof *paths);
    paths->plain_bytes = QUOIT_PATHS_PLAIN_BYTES;
}

void quoit_paths_force(struct quoit_paths *paths, enum quoit_copy_method way)
{
    memset(paths->way, (int)way, sizeof paths->way);
    paths->plain_bytes = way == QUOIT_COPY_MEMCPY ? QUOIT_PATHS_PLAIN_BYTES : 0;
    paths->source = QUOIT_PATHS_FORCED;
}

void quoit_paths_drop(struct quoit_paths *paths, enum quoit_copy_method way)
{
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            if (paths->way[kind][i] == way)
                paths->way[kind][i] = QUOIT_COPY_MEMCPY;
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

bool quoit_paths_file(const struct quoit_paths_machine *machine, char name_out[QUOIT_PATHS_NAME_BYTES])
{
    const char *folder = getenv("XDG_CONFIG_HOME"), *below = "";
    if (!folder || folder[0] != '/') { /* the XDG specification: a relative path counts as unset */
        folder = getenv("HOME");
        below = "/.config";
    }
    if (!folder || folder[0] != '/' || strchr(machine->name, '/'))
        return false;
    int length = snprintf(name_out, QUOIT_PATHS_NAME_BYTES, "%s%s/quoit/paths.%s", folder, below, machine->name);
    return length < (int)QUOIT_PATHS_NAME_BYTES;
}

/* The rest of a text, and the line taken last. */
struct reader {
    const char *at;
    const char *end;
    const char *line;
    size_t line_bytes;
    uint32_t line_number;
};

static bool take_line(struct reader *reader)
{
    reader->line_number++;
    if (reader->at == reader->end)
        return false;
    const char *stop = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
    reader->line = reader->at;
    reader->line_bytes = (size_t)((stop ? stop : reader->end) - reader->at);
    reader->at = stop ? stop + 1 : reader->end;
    return true;
}

/* Takes a line that consists of `first`, a space and `rest`. */
static bool take_words(struct reader *reader, const char *first, const char *rest)
{
    size_t length = strlen(first);
    return take_line(reader) && reader->line_bytes == length + 1 + strlen(rest) &&
           memcmp(reader->line, first, length) == 0 && reader->line[length] == ' ' &&
           memcmp(reader->line + length + 1, rest, strlen(rest)) == 0;
}

void quoit_paths_format_size(size_t bytes, char text_out[32])
{
    if (bytes >= 1u << 20)
        snprintf(text_out, 32, "%zuM", bytes >> 20);
    else
        snprintf(text_out, 32, "%zuK", bytes >> 10);
}

/* Takes the line of one entry. COUNT: the line is something else. */
static enum quoit_copy_method take_entry(struct reader *reader, enum quoit_buffer_kind kind, uint32_t index)
{
    char size[32], start[64];
    quoit_paths_format_size(quoit_paths_size(index), size);
    int length = snprintf(start, sizeof start, "%s %s ", kind_names[kind], size);
    if (!take_line(reader) || reader->line_bytes < (size_t)length || memcmp(reader->line, start, (size_t)length) != 0)
        return QUOIT_COPY_METHOD_COUNT;
    enum quoit_copy_method way = quoit_copy_method_find(reader->line + length, reader->line_bytes - (size_t)length);
    return way < QUOIT_COPY_METHOD_COUNT && quoit_copy_is_built(way) ? way : QUOIT_COPY_METHOD_COUNT;
}

bool quoit_paths_parse(struct quoit_paths *paths, const char *text, size_t bytes,
                       const struct quoit_paths_machine *machine, char problem_out[QUOIT_PATHS_PROBLEM_BYTES])
{
    struct reader reader = {.at = text, .end = text + bytes};
    struct quoit_paths made;
    quoit_paths_default(&made);
    made.source = QUOIT_PATHS_TUNED;
    if (!take_line(&reader) || reader.line_bytes != strlen(FIRST_LINE) ||
        memcmp(reader.line, FIRST_LINE, reader.line_bytes) != 0) {
        snprintf(problem_out, QUOIT_PATHS_PROBLEM_BYTES, "does not begin with \"" FIRST_LINE "\"");
        return false;
    }
    if (!take_words(&reader, "machine", machine->name) || !take_words(&reader, "processor", machine->processor)) {
        snprintf(problem_out, QUOIT_PATHS_PROBLEM_BYTES, "was not measured on this machine (%s, %s)", machine->name,
                 machine->processor);
        return false;
    }
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++) {
            enum quoit_copy_method way = take_entry(&reader, kind, i);
            if (way == QUOIT_COPY_METHOD_COUNT) {
                char size[32];
                quoit_paths_format_size(quoit_paths_size(i), size);
                snprintf(problem_out, QUOIT_PATHS_PROBLEM_BYTES, "line %u is not \"%s %s WAY\"", reader.line_number,
                         kind_names[kind], size);
                return false;
            }
            made.way[kind][i] = (uint8_t)way;
        }
    if (take_line(&reader)) {
        snprintf(problem_out, QUOIT_PATHS_PROBLEM_BYTES, "goes on after its last entry");
        return false;
    }
    *paths = made;
    return true;
}

void quoit_paths_print(const struct quoit_paths *paths, const struct quoit_paths_machine *machine, FILE *out)
{
    fprintf(out, FIRST_LINE "\nmachine %s\nprocessor %s\n", machine->name, machine->processor);
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++) {
            char size[32];
            quoit_paths_format_size(quoit_paths_size(i), size);
            fprintf(out, "%s %s %s\n", kind_names[kind], size,
                    quoit_copy_method_name((enum quoit_copy_method)paths->way[kind][i]));
        }
}

/* The number of bytes read, more than QUOIT_PATHS_FILE_BYTES if the file is larger; -1 with errno if it cannot be read.
 */
static ssize_t read_file(const char *name, char text_out[QUOIT_PATHS_FILE_BYTES + 1])
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a file that blocks, such as a pipe, is no table */
    if (fd < 0)
        return -1;
    ssize_t bytes = read(fd, text_out, QUOIT_PATHS_FILE_BYTES + 1);
    int problem = errno;
    close(fd);
    errno = problem;
    return bytes;
}

/* Whether the file is missing, as far as this user can tell: its home may belong to another user. */
static bool is_missing(const char *name, int error)
{
    char folder[QUOIT_PATHS_NAME_BYTES];
    if (error != EACCES)
        return error == ENOENT || error == ENOTDIR;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(name, '/') - name), name);
    return access(folder, X_OK) != 0;
}

bool quoit_paths_load(struct quoit_paths *paths, const char *choice, char problem_out[QUOIT_PATHS_PROBLEM_BYTES])
{
    struct quoit_paths_machine machine;
    char name[QUOIT_PATHS_NAME_BYTES], text[QUOIT_PATHS_FILE_BYTES + 1], problem[QUOIT_PATHS_PROBLEM_BYTES];
    quoit_paths_default(paths);
    enum quoit_copy_method forced = quoit_copy_method_find(choice, strlen(choice));
    if (forced != QUOIT_COPY_METHOD_COUNT) {
        quoit_paths_force(paths, forced);
        return true;
    }
    quoit_paths_machine(&machine);
    if (!quoit_paths_file(&machine, name))
        return true;
    ssize_t bytes = read_file(name, text);
    if (bytes < 0 && is_missing(name, errno))
        return true;
    if (bytes < 0)
        snprintf(problem, sizeof problem, "cannot be read: %s", strerror(errno));
    else if (bytes > (ssize_t)QUOIT_PATHS_FILE_BYTES)
        snprintf(problem, sizeof problem, "is larger than any table");
    else if (quoit_paths_parse(paths, text, (size_t)bytes, &machine, problem))
        return true;
    snprintf(problem_out, QUOIT_PATHS_PROBLEM_BYTES,
             "%.*s %.200s; the built-in paths are used (quoit tune makes it anew) [Q0306]", 400, name, problem);
    return false;
}
