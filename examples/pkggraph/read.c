/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - graphs from files: a list of edges, or the status file of Debian's package manager. */
#include "graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool close_and_check(FILE *file, const char *path)
{
    bool is_read = ferror(file) == 0;
    if (!is_read)
        fprintf(stderr, "pkggraph: %s: cannot be read\n", path);
    fclose(file);
    return is_read;
}

/* Edge lists: two names per line, separated by blanks; the rest of a line after # is a comment. */

static const char blanks[] = " \t\r\n\v\f";

static bool read_edge_list(FILE *file, const char *path, struct names *names, struct edges *edges)
{
    char *line = NULL;
    size_t room = 0, line_number = 0;
    ssize_t bytes;
    while ((bytes = getline(&line, &room, file)) >= 0) {
        line_number++;
        const char *word[3] = {NULL};
        size_t length[3], count = 0;
        size_t end = strcspn(line, "#");
        if (end == strlen(line) && end != (size_t)bytes)
            count = 3; /* a zero byte: not a text file */
        line[end] = '\0';
        for (char *at = line + strspn(line, blanks); count < 3 && *at != '\0'; at += strspn(at, blanks)) {
            word[count] = at;
            length[count] = strcspn(at, blanks);
            at += length[count++];
        }
        if (count == 0)
            continue;
        if (count != 2) {
            fprintf(stderr, "pkggraph: %s:%zu: an edge is two names, but this line has %s\n", path, line_number,
                    count == 1 ? "one" : "more");
            free(line);
            fclose(file);
            return false;
        }
        uint32_t from = names_add(names, word[0], length[0]);
        edges_add(edges, from, names_add(names, word[1], length[1]));
    }
    free(line);
    return close_and_check(file, path);
}

/* Packages: an edge from each installed package to each of its dependencies. Of alternatives ("a | b") the first
 * installed one is used. A virtual package represents every installed package that provides it. Versions are ignored:
 * the package manager has checked them. */

struct package {
    bool is_installed;
    char *name, *provides;
    char *depends[2]; /* Depends and Pre-Depends; NULL if absent */
};

struct machine {
    struct names *packages;
    char *(*depends)[2]; /* [packages->count] */
    struct names virtuals;
    struct edges providers; /* from a virtual name to a package that provides it */
};

/* The next name in a field like "a (>= 1) | b:any, c"; false at its end. separator_out: the separator before it. */
static bool next_name(const char **at, const char **name_out, size_t *length_out, char *separator_out)
{
    const char *text = *at;
    *separator_out = ',';
    for (; *text != '\0' && strchr(" \t\n,|", *text) != NULL; text++)
        if (*text == '|')
            *separator_out = '|';
    *name_out = text;
    *length_out = strcspn(text, " \t\n,|(:[<");
    text += *length_out;
    text += strcspn(text, ",|");
    *at = text;
    return *length_out > 0;
}

static void forget(struct package *package)
{
    free(package->name);
    free(package->provides);
    free(package->depends[0]);
    free(package->depends[1]);
    *package = (struct package){0};
}

/* Adds a package whose paragraph is complete. */
static void keep(struct machine *machine, struct package *package)
{
    struct names *packages = machine->packages;
    if (!package->is_installed || package->name == NULL ||
        names_find(packages, package->name, strlen(package->name)) !=
            NO_NAME) { /* the same package for another architecture */
        forget(package);
        return;
    }
    uint32_t number = names_add(packages, package->name, strlen(package->name));
    machine->depends = realloc(machine->depends, packages->room * sizeof(*machine->depends));
    if (machine->depends == NULL)
        abort();
    memcpy(machine->depends[number], package->depends, sizeof(package->depends));
    package->depends[0] = package->depends[1] = NULL;
    const char *at = package->provides, *name;
    size_t length;
    char separator;
    while (at != NULL && next_name(&at, &name, &length, &separator))
        edges_add(&machine->providers, names_add(&machine->virtuals, name, length), number);
    forget(package);
}

/* Appends the value of a line to a field, which may span several lines. */
static void append(char **field, const char *value)
{
    size_t before = *field == NULL ? 0 : strlen(*field);
    *field = realloc(*field, before + strlen(value) + 2);
    if (*field == NULL)
        abort();
    sprintf(*field + before, "%s ", value);
}

/* Reads all paragraphs of the file; false if it cannot be read. */
static bool read_paragraphs(FILE *file, const char *path, struct machine *machine)
{
    struct package package = {0};
    char *line = NULL, **field = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0') {
            keep(machine, &package);
            field = NULL;
            continue;
        }
        if (line[0] == ' ' || line[0] == '\t') {
            if (field != NULL)
                append(field, line);
            continue;
        }
        size_t key = strcspn(line, ":");
        const char *value = line + key + (line[key] == ':' ? 1 + strspn(line + key + 1, " \t") : 0);
        field = strncasecmp(line, "Package:", key + 1) == 0       ? &package.name
                : strncasecmp(line, "Provides:", key + 1) == 0    ? &package.provides
                : strncasecmp(line, "Depends:", key + 1) == 0     ? &package.depends[0]
                : strncasecmp(line, "Pre-Depends:", key + 1) == 0 ? &package.depends[1]
                                                                  : NULL;
        if (field == &package.name) {
            free(package.name);
            package.name = strndup(value, strcspn(value, " \t"));
            field = NULL;
        } else if (field != NULL) {
            append(field, value);
        } else if (strncasecmp(line, "Status:", key + 1) == 0) {
            package.is_installed = strstr(value, " installed") != NULL;
        }
    }
    keep(machine, &package);
    free(line);
    return close_and_check(file, path);
}

/* Adds the edges of one alternative; false if it is not installed. */
static bool add_alternative(const struct machine *machine, struct edges *edges, uint32_t from, const char *name,
                            size_t length)
{
    uint32_t to = names_find(machine->packages, name, length);
    if (to != NO_NAME) {
        edges_add(edges, from, to);
        return true;
    }
    uint32_t virtual_name = names_find(&machine->virtuals, name, length);
    bool is_there = false;
    for (size_t i = 0; virtual_name != NO_NAME && i < machine->providers.count; i++) {
        if (machine->providers.edge[i].from == virtual_name) {
            edges_add(edges, from, machine->providers.edge[i].to);
            is_there = true;
        }
    }
    return is_there;
}

static void add_dependencies(const struct machine *machine, struct edges *edges, uint32_t from, const char *field)
{
    const char *name;
    size_t length;
    char separator;
    bool is_met = false;
    while (field != NULL && next_name(&field, &name, &length, &separator)) {
        if (separator == ',')
            is_met = false;
        if (!is_met)
            is_met = add_alternative(machine, edges, from, name, length);
    }
}

static bool read_packages(FILE *file, const char *path, struct names *names, struct edges *edges)
{
    struct machine machine = {.packages = names};
    bool is_read = read_paragraphs(file, path, &machine);
    for (uint32_t package = 0; package < names->count; package++) {
        for (int i = 0; i < 2; i++) {
            add_dependencies(&machine, edges, package, machine.depends[package][i]);
            free(machine.depends[package][i]);
        }
    }
    free(machine.depends);
    free(machine.providers.edge);
    names_free(&machine.virtuals);
    return is_read;
}

bool read_graph_file(const char *path, struct names *names, struct edges *edges, bool *is_packages_out)
{
    static const char mark[] = "Package:";
    char start[sizeof(mark)] = "";
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "pkggraph: %s: %s\n", path, strerror(errno));
        return false;
    }
    *is_packages_out = fgets(start, sizeof(start), file) != NULL && strcmp(start, mark) == 0;
    rewind(file);
    return (*is_packages_out ? read_packages : read_edge_list)(file, path, names, edges);
}
