/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/program.h"
#include "base/log.h"
#include "base/step.h"
#include "env/libc.h"
#include "env/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

/* oshrun in the folder of this length. Other projects have one of that name, but no quoit beside it; where both share a
 * folder, as Debian's /usr/bin, ours has a name of its own. */
static bool is_there(const char *folder, size_t length, const char *place, char path_out[PATH_MAX])
{
    static const char *const names[] = {"oshrun.quoit", "oshrun"};
    char quoit[PATH_MAX];
    int bytes = snprintf(quoit, PATH_MAX, "%.*s/%squoit", (int)length, folder, place);
    if (bytes >= PATH_MAX || access(quoit, X_OK) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bytes = snprintf(path_out, PATH_MAX, "%.*s/%s%s", (int)length, folder, place, names[i]);
        if (bytes < PATH_MAX && access(path_out, X_OK) == 0)
            return true;
    }
    return false;
}

bool quoit_program_find_beside(const char *file, char path_out[PATH_MAX])
{
    static const char *const places[] = {"../bin/", "../../bin/", ""};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++)
        if (is_there(file, (size_t)(slash - file), places[i], path_out))
            return true;
    return false;
}

bool quoit_program_find(char path_out[PATH_MAX])
{
    char own[PATH_MAX];
    const char *path = getenv("PATH");
    if (quoit_own_file(own) && quoit_program_find_beside(own, path_out))
        return true;
    while (path && *path) {
        size_t length = strcspn(path, ":");
        if (length > 0 && is_there(path, length, "", path_out))
            return true;
        path += length + (path[length] == ':');
    }
    snprintf(path_out, PATH_MAX, "%s", own);
    return false;
}

/* This process's environment without what has the dynamic linker load a tool of the user's. free() is the caller's.
 * NULL: no memory. */
static char **make_environment(void)
{
    static const char *const left_out[] = {"LD_PRELOAD=", "LD_AUDIT="};
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **made = calloc(count + 1, sizeof *made);
    for (size_t i = 0; i < count && made; i++) {
        bool is_kept = true;
        for (size_t k = 0; k < sizeof left_out / sizeof left_out[0]; k++)
            is_kept &= strncmp(environ[i], left_out[k], strlen(left_out[k])) != 0;
        if (is_kept)
            made[used++] = quoit_step_variable(environ[i]);
    }
    return made;
}

static void make_actions(posix_spawn_file_actions_t *files, posix_spawnattr_t *attributes, int fd)
{
    sigset_t signals;
    posix_spawn_file_actions_init(files);
    posix_spawnattr_init(attributes);
    posix_spawn_file_actions_adddup2(files, fd, QUOIT_PROGRAM_FD);
    quoit_spawn_close_from(files, QUOIT_PROGRAM_FD + 1);
    posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(attributes, &signals);
    posix_spawnattr_setpgroup(attributes, 0);
    posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* In a process group of its own, so that what ends the program's group does not end it before it has done its part of
 * the end. posix_spawn runs nothing of this process in the child, neither handlers of fork() nor of a preloaded
 * library. */
static int spawn_file(const char *path, const char *name, const char *option, int *fd_out, pid_t *pid_out)
{
    char *arguments[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)option, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int ends[2];
    char **environment = make_environment();
    if (!environment)
        return ENOMEM;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        free(environment);
        return errno;
    }
    make_actions(&files, &attributes, ends[1]);
    int error = posix_spawn(pid_out, path, &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(environment);
    close(ends[1]);
    if (error == 0)
        *fd_out = ends[0];
    else
        close(ends[0]);
    return error;
}

/* Itself without /proc: by the name under which it was started. */
int quoit_program_spawn(const char *path, const char *option, int *fd_out, pid_t *pid_out)
{
    const char *started_as = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    const char *own_name = quoit_program_is_carried() ? QUOIT_PROGRAM_CARRIED : started_as;
    const char *name = path ? path : own_name ? own_name : "quoit";
    int error = spawn_file(path ? path : "/proc/self/exe", name, option, fd_out, pid_out);
    return !path && error == ENOENT && started_as ? spawn_file(started_as, name, option, fd_out, pid_out) : error;
}

bool quoit_program_has_starter(const char *option)
{
    struct stat stat;
    if (fstat(QUOIT_PROGRAM_FD, &stat) == 0 && S_ISSOCK(stat.st_mode))
        return true;
    quoit_say("%s is for programs of Quoit, which start each other by it [Q0210]", option);
    return false;
}

bool quoit_program_leave_starter(void (*publish)(pid_t pid))
{
    pid_t pid = fork();
    if (pid < 0)
        return false;
    if (pid > 0) {
        publish(pid);
        _exit(0);
    }
    /* A session, not only a group: the end of the parent would continue a stopped process of a group that it leaves
     * without a parent in the session. */
    setsid();
    return true;
}

void quoit_program_end_with_starter(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void quoit_program_ignore_signals(void)
{
    static const int of_the_job[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};
    for (size_t i = 0; i < sizeof of_the_job / sizeof of_the_job[0]; i++)
        signal(of_the_job[i], SIG_IGN);
}
