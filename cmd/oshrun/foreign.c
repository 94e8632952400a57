/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign.h"

#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/version.h"
#include "env/elf_file.h"

#define PATH_SHOWN "%.300s"

/* By the start of the name. Quoit's own is libshmem.so.1, which libsma.so leads to as well. */
static const struct {
    const char *start, *owner;
} libraries[] = {
    {"liboshmem.so", "Open MPI"},
    {"libsma.so", "Sandia OpenSHMEM or Cray OpenSHMEMX"},
    {"libshmem.so", "another OpenSHMEM project, such as OSSS-UCX"},
};
#define OWN_LIBRARY "libshmem.so.1"

static bool is_foreign(const char *name, const char **owner_out)
{
    if (strcmp(name, OWN_LIBRARY) == 0)
        return false;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        size_t length = strlen(libraries[i].start);
        *owner_out = libraries[i].owner;
        if (strncmp(name, libraries[i].start, length) == 0 && (name[length] == '.' || name[length] == '\0'))
            return true;
    }
    return false;
}

bool foreign_find(int folder_fd, const char *path, struct foreign_library *library_out)
{
    struct quoit_elf elf;
    bool is_found = false;
    size_t at = 0;
    if (!quoit_elf_open(&elf, folder_fd, path))
        return false;
    while (!is_found && quoit_elf_next_name(&elf, DT_NEEDED, &at, library_out->name, FOREIGN_NAME_BYTES))
        is_found = is_foreign(library_out->name, &library_out->owner);
    quoit_elf_close(&elf);
    return is_found;
}

void foreign_own_file(char path_out[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path_out, PATH_MAX - 1);
    path_out[length > 0 ? length : 0] = '\0';
}

void foreign_own_wrapper(char path_out[PATH_MAX])
{
    char own[PATH_MAX];
    foreign_own_file(own);
    const char *slash = strrchr(own, '/'), *suffix = slash ? strchr(slash, '.') : NULL;
    path_out[0] = '\0';
    if (slash)
        snprintf(path_out, PATH_MAX, "%.*s/oshcc%.16s", (int)(slash - own < PATH_MAX - 32 ? slash - own : 0), own,
                 suffix ? suffix : "");
}

/* The file with a process's libshmem; "" if it has none mapped, as a program that is linked statically. */
static void find_library(pid_t pid, char path_out[PATH_MAX])
{
    char name[64], *line = NULL;
    size_t bytes = 0;
    path_out[0] = '\0';
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "re");
    while (maps && !path_out[0] && getline(&line, &bytes, maps) > 0) {
        const char *path = strchr(line, '/');
        if (path && strstr(path, "/libshmem.so"))
            snprintf(path_out, PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
    }
    free(line);
    if (maps)
        fclose(maps);
}

void foreign_describe_version(const struct quoit_boot_message *hello, size_t byte_count, pid_t sender,
                              char text_out[QUOIT_BOOT_TEXT_BYTES])
{
    char version[QUOIT_VERSION_TEXT_BYTES], library[PATH_MAX], own[PATH_MAX];
    quoit_version_get(hello, byte_count, version);
    find_library(sender, library);
    foreign_own_file(own);
    snprintf(text_out, QUOIT_BOOT_TEXT_BYTES,
             "the program's library is Quoit of %s (" PATH_SHOWN "), which this oshrun of version %.24s (" PATH_SHOWN
             ") does not understand [Q0214]\n"
             "  start it with the oshrun that was installed with that library, or build it again with the oshcc beside "
             "this oshrun",
             version, library[0] ? library : "linked statically", quoit_version()->text, own);
}
