/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "foreign.h"

/* Checks one candidate path; 0 if it can be executed, else errno. */
static int try_path(int wdir_fd, const char *path)
{
    struct stat facts;
    if (fstatat(wdir_fd, path, &facts, 0) != 0)
        return errno;
    if (S_ISDIR(facts.st_mode))
        return EISDIR;
    return faccessat(wdir_fd, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* As the shell does: a name with a slash is a path, any other is searched for in PATH. 0, or the most informative
 * errno. */
static int find_program(struct plan_program *program, int wdir_fd)
{
    const char *name = program->argv[0];
    if (strchr(name, '/')) {
        program->path = strdup(name);
        return program->path ? try_path(wdir_fd, name) : ENOMEM;
    }
    const char *paths = getenv("PATH");
    int worst = ENOENT;
    for (const char *part = paths ? paths : "/usr/local/bin:/usr/bin:/bin"; part;) {
        size_t length = strcspn(part, ":");
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.*s%s%s", (int)length, part, length ? "/" : "./", name);
        int error = try_path(wdir_fd, path);
        if (error == 0) {
            program->path = strdup(path);
            return program->path ? 0 : ENOMEM;
        }
        if (error == EACCES)
            worst = EACCES;
        part = part[length] ? part + length + 1 : NULL;
    }
    return worst;
}

static int refuse_foreign(const char *name, const struct foreign_library *foreign)
{
    char wrapper[PATH_MAX];
    foreign_own_wrapper(wrapper);
    quoit_say(
        "%s is linked with %s, the OpenSHMEM library of %s: under this oshrun each of its PEs would be a job of its "
        "own [Q0230]\n  start it with that library's launcher, or build it with %s",
        name, foreign->name, foreign->owner, wrapper);
    return STATUS_NOT_RUNNABLE;
}

/* Of a path that begins in a folder of other machines their agents look for it. */
static bool take_unseen(struct plan_program *program)
{
    const char *name = program->argv[0];
    program->path = name[0] != '/' && strchr(name, '/') ? strdup(name) : NULL;
    return program->path;
}

int program_check(struct plan_program *program, bool is_elsewhere)
{
    int wdir_fd = AT_FDCWD;
    if (program->wdir) {
        wdir_fd = open(program->wdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (wdir_fd < 0 && !is_elsewhere) {
            quoit_say("--wdir %s: %s [Q0210]", program->wdir, strerror(errno));
            return STATUS_BAD_USAGE;
        }
        if (wdir_fd < 0 && take_unseen(program))
            return PLAN_GO_ON;
    }
    int error = find_program(program, wdir_fd);
    const char *name = program->argv[0];
    struct stat facts;
    bool is_here = !strchr(name, '/') && fstatat(wdir_fd, name, &facts, 0) == 0 && S_ISREG(facts.st_mode);
    struct foreign_library foreign;
    bool is_foreign = error == 0 && foreign_find(wdir_fd, program->path, &foreign);
    if (wdir_fd >= 0)
        close(wdir_fd);
    if (is_foreign)
        return refuse_foreign(name, &foreign);
    if (error == 0)
        return PLAN_GO_ON;
    if (error == ENOENT || error == ENOTDIR) {
        if (is_here)
            quoit_say("program not found in PATH: %s (did you mean ./%s?) [Q0211]", name, name);
        else
            quoit_say("program not found: %s [Q0211]", name);
        return STATUS_NOT_FOUND;
    }
    quoit_say("cannot run %s: %s [Q0212]", name, error == EACCES ? "it is not executable" : strerror(error));
    return STATUS_NOT_RUNNABLE;
}
