/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/program.h"
#include "env/elf_file.h"

#define NAME_BYTES 64

/* The library in one of the folders of a list, as the loader searches it; $ORIGIN is the program's folder. */
static bool find_in(const char *list, const char *origin, struct quoit_version *version_out, char path_out[PATH_MAX])
{
    while (*list) {
        size_t length = strcspn(list, ":;");
        const char *rest = list;
        bool is_relative = false;
        for (size_t i = 0; i < 2 && !is_relative; i++) {
            const char *word = i ? "${ORIGIN}" : "$ORIGIN";
            is_relative = strncmp(list, word, strlen(word)) == 0;
            rest = is_relative ? list + strlen(word) : list;
        }
        int bytes = snprintf(path_out, PATH_MAX, "%s%.*s/libshmem.so.1", is_relative ? origin : "",
                             (int)(list + length - rest), rest);
        if (length > 0 && bytes < PATH_MAX && quoit_elf_version_of(path_out, version_out))
            return true;
        list += length + (list[length] != '\0');
    }
    return false;
}

/* The folder of a program, for $ORIGIN. */
static bool find_origin(int folder_fd, const char *path, char origin_out[PATH_MAX])
{
    char link[64];
    int fd = openat(folder_fd, path, O_PATH | O_CLOEXEC);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = fd >= 0 ? readlink(link, origin_out, PATH_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    origin_out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(origin_out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

static bool needs_libshmem(const struct quoit_elf *elf)
{
    char name[NAME_BYTES];
    size_t at = 0;
    while (quoit_elf_next_name(elf, DT_NEEDED, &at, name, sizeof name))
        if (strcmp(name, "libshmem.so.1") == 0 || strcmp(name, "libqdsm.so.1") == 0) /* which stands beside the other */
            return true;
    return false;
}

/* By the paths in the program and LD_LIBRARY_PATH. What the system's folders hold is not looked for: it is installed
 * with the system's oshrun. */
static bool find_library(const struct quoit_elf *elf, const char *origin, struct quoit_version *version_out,
                         char path_out[PATH_MAX])
{
    char old_list[PATH_MAX] = "", list[PATH_MAX] = "";
    const char *user_list = getenv("LD_LIBRARY_PATH");
    size_t at = 0;
    (void)quoit_elf_next_name(elf, DT_RUNPATH, &at, list, sizeof list);
    at = 0;
    if (!list[0]) /* the older entry is ignored beside the newer */
        (void)quoit_elf_next_name(elf, DT_RPATH, &at, old_list, sizeof old_list);
    return find_in(old_list, origin, version_out, path_out) ||
           (user_list && find_in(user_list, origin, version_out, path_out)) ||
           find_in(list, origin, version_out, path_out);
}

/* Of the library of a program; false: it cannot be known. */
static bool find_version(const struct plan_program *program, struct quoit_version *version_out, char path_out[PATH_MAX])
{
    struct quoit_elf elf;
    char origin[PATH_MAX];
    int wdir_fd = program->wdir ? open(program->wdir, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
    bool is_found =
        program->path && find_origin(wdir_fd, program->path, origin) && quoit_elf_open(&elf, wdir_fd, program->path);
    if (is_found) {
        is_found = needs_libshmem(&elf) && find_library(&elf, origin, version_out, path_out);
        quoit_elf_close(&elf);
    }
    if (program->wdir && wdir_fd >= 0)
        close(wdir_fd);
    return is_found;
}

/* That this one understands none and the other one all means that the other one goes on: it never comes back here. */
static bool understands_all(const struct quoit_version *other, const struct plan *plan)
{
    struct quoit_version version;
    char library[PATH_MAX];
    for (uint32_t i = 0; i < plan->program_count; i++)
        if (find_version(&plan->programs[i], &version, library) && !quoit_versions_fit(other, &version))
            return false;
    return true;
}

void beside_continue(const struct plan *plan, char **argv)
{
    struct quoit_version version, other;
    char library[PATH_MAX], oshrun[PATH_MAX];
    for (uint32_t i = 0; i < plan->program_count; i++) {
        if (!find_version(&plan->programs[i], &version, library) || quoit_versions_fit(quoit_version(), &version))
            continue;
        if (quoit_program_find_beside(library, oshrun) && quoit_elf_version_of(oshrun, &other) &&
            understands_all(&other, plan))
            execv(oshrun, argv);
        return;
    }
}
