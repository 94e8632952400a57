/* SPDX-License-Identifier: BSD-3-Clause */
#include "parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "env/elf_file.h"
#include "prefix.h"

#define PLUGIN_FOLDER QUOIT_LIBRARY_FOLDER "/quoit"
#define PLUGIN_START  "libquoit-net-"

static void add(struct parts *parts, const char *name, const char *path)
{
    struct quoit_version version = {.text = "unknown"};
    if (parts->count == PARTS_MAX)
        return;
    (void)quoit_elf_version_of(path, &version);
    uint32_t i = parts->count++;
    snprintf(parts->names[i], sizeof parts->names[i], "%s", name);
    snprintf(parts->paths[i], sizeof parts->paths[i], "%s", path);
    parts->rows[i] = (struct quoit_info_part){.name = parts->names[i], .path = parts->paths[i], .version = version};
}

static void add_if_there(struct parts *parts, const char *name, const char *below)
{
    char path[PATH_MAX];
    if (prefix_has(below, path))
        add(parts, name, path);
}

static void add_program(struct parts *parts, const char *name)
{
    char path[PATH_MAX];
    if (prefix_has_program(name, path))
        add(parts, name, path);
}

static int is_plugin(const struct dirent *entry)
{
    return strncmp(entry->d_name, PLUGIN_START, strlen(PLUGIN_START)) == 0 && strstr(entry->d_name, ".so");
}

static void add_plugins(struct parts *parts)
{
    char folder[PATH_MAX], path[PARTS_PATH_BYTES], name[PARTS_NAME_BYTES];
    struct dirent **found = NULL;
    int count = prefix_has(PLUGIN_FOLDER, folder) ? scandir(folder, &found, is_plugin, alphasort) : 0;
    for (int i = 0; i < count; i++) {
        const char *driver = found[i]->d_name + strlen(PLUGIN_START);
        snprintf(name, sizeof name, "network %.*s", (int)strcspn(driver, "."), driver);
        snprintf(path, sizeof path, "%s/%s", folder, found[i]->d_name);
        add(parts, name, path);
        free(found[i]);
    }
    free(found);
}

/* The program that a shell finds by this name, if it is another file than the one here. */
static void add_other_in_path(struct parts *parts, const char *program)
{
    char own[PATH_MAX], path[PATH_MAX], name[64];
    struct stat own_facts, facts;
    snprintf(name, sizeof name, "%s in PATH", program);
    if (!prefix_has_program(program, own) || stat(own, &own_facts) != 0)
        return;
    if (prefix_search(program, path) && stat(path, &facts) == 0 &&
        (facts.st_ino != own_facts.st_ino || facts.st_dev != own_facts.st_dev))
        add(parts, name, path);
}

void parts_find(struct parts *parts_out)
{
    parts_out->count = 0;
    add_program(parts_out, "oshrun");
    add_program(parts_out, "oshcc");
    add_if_there(parts_out, "libshmem", QUOIT_LIBRARY_FOLDER "/libshmem.so.1");
    add_if_there(parts_out, "libqdsm", QUOIT_LIBRARY_FOLDER "/libqdsm.so.1");
    add_plugins(parts_out);
    add_if_there(parts_out, "python", PLUGIN_FOLDER "/python/quoit/_core.abi3.so");
    add_other_in_path(parts_out, "oshrun");
    add_other_in_path(parts_out, "oshcc");
}
