/* SPDX-License-Identifier: BSD-3-Clause */
#include "machines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

#define LINE_BYTES 1024

/* Remote shells and terminals take bytes below a blank for commands. */
static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == '\x7f')
            return false;
    return length > 0 && length < MACHINE_NAME_BYTES && name[0] != '-';
}

/* The name is the first `length` bytes of `name`. slots: 0: not given. */
static bool add(struct machines *machines, const char *name, size_t length, uint32_t slots,
                char problem_out[MACHINES_PROBLEM_BYTES])
{
    if (!is_name(name, length)) {
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "\"%.*s\" is no name of a host", (int)(length > 99 ? 99 : length),
                 name);
        return false;
    }
    for (uint32_t i = 0; i < machines->count; i++) {
        struct machine *known = &machines->list[i];
        if (strlen(known->name) == length && memcmp(known->name, name, length) == 0) {
            known->slot_count += slots ? slots : 1;
            known->has_slots = true;
            return true;
        }
    }
    if (machines->count == MACHINES_MAX) {
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "a job runs on %d hosts at most", MACHINES_MAX);
        return false;
    }
    struct machine *machine = &machines->list[machines->count++];
    *machine = (struct machine){.slot_count = slots ? slots : 1, .has_slots = slots != 0};
    memcpy(machine->name, name, length);
    return true;
}

static bool read_slots(const char *text, size_t length, uint32_t *slots_out, char problem_out[MACHINES_PROBLEM_BYTES])
{
    char copy[32];
    uint64_t number;
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), text);
    if (length < sizeof copy && quoit_parse_uint(copy, &number) && number >= 1 && number <= QUOIT_LOCAL_PES_MAX) {
        *slots_out = (uint32_t)number;
        return true;
    }
    snprintf(problem_out, MACHINES_PROBLEM_BYTES, "slots must be 1..%d, not \"%s\"", QUOIT_LOCAL_PES_MAX, copy);
    return false;
}

/* An address in brackets, [fd00::14], of which remote shells want what is within, also behind "user@". Returns the
 * length of the word's name with its brackets; 0: it has none. name_out: without them. */
static size_t unwrap(const char *word, size_t length, char name_out[MACHINE_NAME_BYTES])
{
    const char *open = memchr(word, '[', length);
    const char *close = open ? memchr(open, ']', length - (size_t)(open - word)) : NULL;
    bool is_first = open == word || (open && open[-1] == '@');
    if (!close || !is_first || (size_t)(close - word) >= MACHINE_NAME_BYTES)
        return 0;
    snprintf(name_out, MACHINE_NAME_BYTES, "%.*s%.*s", (int)(open - word), word, (int)(close - open - 1), open + 1);
    return (size_t)(close + 1 - word);
}

/* "name" or "name:SLOTS"; a name with several colons is an address, which brackets divide from the slots. */
static bool add_word(struct machines *machines, const char *word, size_t length, uint32_t slots,
                     char problem_out[MACHINES_PROBLEM_BYTES])
{
    char unwrapped[MACHINE_NAME_BYTES];
    size_t wrapped_length = unwrap(word, length, unwrapped);
    const char *name = wrapped_length ? unwrapped : word;
    const char *colon = memchr(word + wrapped_length, ':', length - wrapped_length);
    bool is_number = colon && !memchr(colon + 1, ':', length - (size_t)(colon + 1 - word));
    size_t before_length = is_number ? (size_t)(colon - word) : length;
    uint32_t own_slots = 0;
    if (wrapped_length && before_length != wrapped_length) {
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "\"%.*s\": behind ] there may be :SLOTS, and no more",
                 (int)(length < 99 ? length : 99), word);
        return false;
    }
    if (is_number && !read_slots(colon + 1, length - before_length - 1, &own_slots, problem_out))
        return false;
    return add(machines, name, wrapped_length ? strlen(unwrapped) : before_length, slots ? slots : own_slots,
               problem_out);
}

bool machines_add_list(struct machines *machines, const char *text, char problem_out[MACHINES_PROBLEM_BYTES])
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (!add_word(machines, text, length, 0, problem_out))
            return false;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

/* A line of a hostfile, without its comment. */
static bool add_line(struct machines *machines, const char *line, char problem_out[MACHINES_PROBLEM_BYTES])
{
    static const char blanks[] = " \t\r\n";
    const char *name = line + strspn(line, blanks);
    size_t name_length = strcspn(name, blanks), length;
    uint32_t slots = 0;
    if (name_length == 0)
        return true;
    for (const char *word = name + name_length + strspn(name + name_length, blanks); *word;
         word += length + strspn(word + length, blanks)) {
        length = strcspn(word, blanks);
        if (length > 6 && strncmp(word, "slots=", 6) == 0) {
            if (!read_slots(word + 6, length - 6, &slots, problem_out))
                return false;
        } else if (!memchr(word, '=', length) || *word == '=') {
            snprintf(problem_out, MACHINES_PROBLEM_BYTES, "\"%.*s\" is not understood; a line is: name slots=N",
                     (int)(length < 99 ? length : 99), word);
            return false;
        }
    }
    return add_word(machines, name, name_length, slots, problem_out);
}

/* A line of PE_HOSTFILE: name, slots, then the queue and its processors. */
static bool add_grid_line(struct machines *machines, const char *line, char problem_out[MACHINES_PROBLEM_BYTES])
{
    char name[MACHINE_NAME_BYTES], number[32];
    uint32_t slots;
    int found = sscanf(line, "%127s %31s", name, number);
    if (found <= 0)
        return true;
    if (found == 1) {
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "there are no slots behind \"%.99s\"", name);
        return false;
    }
    return read_slots(number, strlen(number), &slots, problem_out) &&
           add(machines, name, strlen(name), slots, problem_out);
}

typedef bool line_reader(struct machines *machines, const char *line, char problem_out[MACHINES_PROBLEM_BYTES]);

static bool add_lines(struct machines *machines, const char *path, line_reader *read_line,
                      char problem_out[MACHINES_PROBLEM_BYTES])
{
    char line[LINE_BYTES], problem[MACHINES_PROBLEM_BYTES];
    uint32_t number = 0, before = machines->count;
    FILE *file = fopen(path, "re");
    bool is_good = file != NULL;
    if (!file)
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "%.200s: %s", path, strerror(errno));
    while (is_good && fgets(line, sizeof line, file)) {
        number++;
        if (!strchr(line, '\n') && !feof(file)) {
            if (strlen(line) == sizeof line - 1)
                snprintf(problem, sizeof problem, "the line is longer than %d bytes", LINE_BYTES - 2);
            else
                snprintf(problem, sizeof problem, "the line has a zero byte, as no text has");
            is_good = false;
        } else {
            line[strcspn(line, "#")] = '\0';
            is_good = read_line(machines, line, problem);
        }
        if (!is_good)
            snprintf(problem_out, MACHINES_PROBLEM_BYTES, "%.200s:%u: %.150s", path, number, problem);
    }
    if (is_good && ferror(file)) { /* the hosts behind it would be missing */
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "%.200s: %s", path, strerror(errno));
        is_good = false;
    }
    if (is_good && machines->count == before) {
        snprintf(problem_out, MACHINES_PROBLEM_BYTES, "%.200s names no host", path);
        is_good = false;
    }
    if (file)
        fclose(file);
    return is_good;
}

bool machines_add_file(struct machines *machines, const char *path, char problem_out[MACHINES_PROBLEM_BYTES])
{
    return add_lines(machines, path, add_line, problem_out);
}

bool machines_add_grid(struct machines *machines, const char *path, char problem_out[MACHINES_PROBLEM_BYTES])
{
    return add_lines(machines, path, add_grid_line, problem_out);
}

/* The next number of "4(x2),3", which stands for 4, 4, 3; 0 at its end. */
static uint32_t next_tasks(const char **at, uint32_t *repeat)
{
    char *end;
    unsigned long tasks = strtoul(*at, &end, 10), times = 1;
    if (end == *at || tasks == 0 || tasks > QUOIT_LOCAL_PES_MAX)
        return 0;
    if (strncmp(end, "(x", 2) == 0)
        times = strtoul(end + 2, &end, 10);
    if (++*repeat >= times) {
        *repeat = 0;
        *at = end + strcspn(end, ",");
        *at += **at == ',';
    }
    return (uint32_t)tasks;
}

/* Where machines get their tasks from. */
struct tasks {
    const char *at; /* NULL: not given */
    uint32_t repeat;
};

static bool add_named(struct machines *machines, const char *name, struct tasks *tasks,
                      char problem_out[MACHINES_PROBLEM_BYTES])
{
    uint32_t slots = tasks->at ? next_tasks(&tasks->at, &tasks->repeat) : 0;
    return add(machines, name, strlen(name), slots, problem_out);
}

/* The numbers of "[01-03,7]", each between what is before and behind the brackets; numbers keep their width. False:
 * problem_out has been set, or still says that the list is not understood. */
static bool add_range(struct machines *machines, const char *word, size_t length, struct tasks *tasks,
                      char problem_out[MACHINES_PROBLEM_BYTES])
{
    const char *open = memchr(word, '[', length), *close = memchr(word, ']', length), *at = open + 1;
    snprintf(problem_out, MACHINES_PROBLEM_BYTES, "\"%.*s\" is not understood", (int)(length < 99 ? length : 99), word);
    while (close && at < close) {
        char name[MACHINE_NAME_BYTES], *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        int width = (int)(end - at);
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (*at < '0' || *at > '9' || (*end != ',' && end != close) || last < first || last - first > MACHINES_MAX)
            break;
        for (unsigned long number = first; number <= last; number++) {
            int used = snprintf(name, sizeof name, "%.*s%0*lu%.*s", (int)(open - word), word, width, number,
                                (int)(word + length - close - 1), close + 1);
            if (used >= (int)sizeof name || strchr(name, '[') || !add_named(machines, name, tasks, problem_out))
                return false;
        }
        at = *end == ',' ? end + 1 : close;
        if (at == close)
            return true;
    }
    return false;
}

bool machines_add_slurm(struct machines *machines, const char *names, const char *tasks,
                        char problem_out[MACHINES_PROBLEM_BYTES])
{
    struct tasks own_tasks = {.at = tasks};
    while (*names) {
        char name[MACHINE_NAME_BYTES];
        size_t length = strcspn(names, "[,");
        bool has_range = names[length] == '[';
        if (has_range) {
            length += strcspn(names + length, "]");
            length += strcspn(names + length, ",");
        }
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), names);
        if (!(has_range ? add_range(machines, names, length, &own_tasks, problem_out)
                        : add_named(machines, name, &own_tasks, problem_out)))
            return false;
        names += length + (names[length] == ',');
    }
    return true;
}

uint32_t machines_slots(const struct machines *machines)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < machines->count; i++)
        sum += machines->list[i].slot_count;
    return sum;
}

static bool have_slots(const struct machines *machines)
{
    for (uint32_t i = 0; i < machines->count; i++)
        if (machines->list[i].has_slots)
            return true;
    return false;
}

void machines_place(struct machines *machines, uint32_t pe_count)
{
    uint32_t left = pe_count, kept_count = 0;
    if (!have_slots(machines)) {
        for (uint32_t i = 0; i < machines->count; i++)
            machines->list[i].pe_count = pe_count / machines->count + (i < pe_count % machines->count ? 1 : 0);
    } else {
        while (left > 0)
            for (uint32_t i = 0; i < machines->count && left > 0; i++) {
                uint32_t share = machines->list[i].slot_count < left ? machines->list[i].slot_count : left;
                machines->list[i].pe_count += share;
                left -= share;
            }
    }
    for (uint32_t i = 0; i < machines->count; i++)
        if (machines->list[i].pe_count > 0)
            machines->list[kept_count++] = machines->list[i];
    machines->count = kept_count;
}

/* By levels: a level has fan_out times the machines of the one above, which are given theirs in turns, so that a last
 * level that is not full is spread evenly. */
void machines_arrange(struct machines *machines, uint32_t fan_out, bool (*stays_flat)(void *arg, const char *name),
                      void *arg)
{
    uint32_t list[MACHINES_MAX]; /* in the order of the tree */
    uint32_t count = 0, above_first = 0, above_size = 0, first = 0, size = fan_out;
    for (uint32_t i = 0; i < machines->count; i++) {
        machines->list[i].parent = MACHINE_HEAD;
        if (fan_out == 0 || stays_flat(arg, machines->list[i].name))
            continue;
        if (count == first + size) {
            above_first = first;
            above_size = size;
            first += size;
            size = size < MACHINES_MAX ? size * fan_out : size;
        }
        if (above_size)
            machines->list[i].parent = list[above_first + (count - first) % above_size];
        list[count++] = i;
    }
}
