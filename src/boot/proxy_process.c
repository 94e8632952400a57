/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/proxy_process.h"
#include "boot/protocol.h"
#include "base/log.h"
#include "env/descriptors.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* oshrun of the installation that this library is of; else the shell's. */
static void find_oshrun(char path_out[PATH_MAX])
{
    static const char *const places[] = {"../bin/oshrun", "../../bin/oshrun", "oshrun"};
    Dl_info info;
    char folder[PATH_MAX] = "";
    if (dladdr((void *)(uintptr_t)quoit_proxy_process_start, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        snprintf(folder, sizeof folder, "%s", info.dli_fname);
    char *slash = strrchr(folder, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        slash[1] = '\0';
        int bytes = snprintf(path_out, PATH_MAX, "%s%s", folder, places[i]);
        if (bytes < PATH_MAX && access(path_out, X_OK) == 0)
            return;
    }
    snprintf(path_out, PATH_MAX, "oshrun");
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
            made[used++] = environ[i];
    }
    return made;
}

static void make_actions(struct quoit_proxy_spawn *spawn)
{
    sigset_t signals;
    posix_spawn_file_actions_init(&spawn->files);
    posix_spawnattr_init(&spawn->attributes);
    posix_spawn_file_actions_adddup2(&spawn->files, spawn->ends[1], QUOIT_PROXY_FD);
    posix_spawn_file_actions_addclosefrom_np(&spawn->files, QUOIT_PROXY_FD + 1);
    posix_spawn_file_actions_addopen(&spawn->files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&spawn->files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&spawn->attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&spawn->attributes, &signals);
    posix_spawnattr_setpgroup(&spawn->attributes, 0);
    posix_spawnattr_setflags(&spawn->attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* With the socket as QUOIT_PROXY_FD and standard error alone; in a process group of its own, so that what ends the
 * program's group does not end the proxy before it has told the other hosts. posix_spawn runs nothing of this process
 * in the child, neither handlers of fork() nor of a preloaded library. */
int quoit_proxy_process_prepare(const char *path, struct quoit_proxy_spawn *spawn_out)
{
    if (path)
        snprintf(spawn_out->path, sizeof spawn_out->path, "%s", path);
    else
        find_oshrun(spawn_out->path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, spawn_out->ends) != 0)
        return errno;
    spawn_out->environment = make_environment();
    if (!spawn_out->environment) {
        close(spawn_out->ends[0]);
        close(spawn_out->ends[1]);
        return ENOMEM;
    }
    make_actions(spawn_out);
    return 0;
}

static int run_prepared(struct quoit_proxy_spawn *spawn, int *fd_out, pid_t *pid_out)
{
    char *arguments[] = {(char *)(uintptr_t) "oshrun", (char *)(uintptr_t)QUOIT_PROXY_ARGUMENT, NULL};
    int error = posix_spawnp(pid_out, spawn->path, &spawn->files, &spawn->attributes, arguments, spawn->environment);
    close(spawn->ends[1]);
    if (error == 0)
        *fd_out = spawn->ends[0];
    else
        close(spawn->ends[0]);
    return error;
}

int quoit_proxy_process_spawn(const char *path, int *fd_out, pid_t *pid_out)
{
    struct quoit_proxy_spawn spawn;
    int error = quoit_proxy_process_prepare(path, &spawn);
    if (error != 0)
        return error;
    error = run_prepared(&spawn, fd_out, pid_out);
    posix_spawnattr_destroy(&spawn.attributes);
    posix_spawn_file_actions_destroy(&spawn.files);
    free(spawn.environment);
    return error;
}

void quoit_proxy_process_say(int fd, const struct quoit_proxy_message *message)
{
    (void)quoit_send_with_descriptors(fd, message, sizeof *message, NULL, 0, 0);
}

void quoit_proxy_process_tell(int fd, enum quoit_proxy_kind kind)
{
    quoit_proxy_process_say(fd, &(struct quoit_proxy_message){.magic = QUOIT_BOOT_MAGIC, .kind = kind});
}

static void say_start(const struct quoit_boot *host, uint64_t tag, int fd)
{
    const struct quoit_boot_network *network = &host->network;
    struct quoit_proxy_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_PROXY_START};
    message.body.start.job = host->layout.job;
    message.body.start.machine = ((const struct quoit_host_header *)host->memory)->machine;
    message.body.start.host = host->layout.host;
    message.body.start.log_level = network->log_level;
    message.body.start.tag = tag;
    message.body.start.link_timeout_ns = network->link_timeout_ns;
    message.body.start.link_limit_ns = network->link_limit_ns;
    snprintf(message.body.start.driver, QUOIT_PROXY_TEXT_BYTES, "%s",
             strcmp(network->driver, "ring") == 0 ? "auto" : network->driver);
    snprintf(message.body.start.provider, QUOIT_PROXY_TEXT_BYTES, "%s", network->provider);
    snprintf(message.body.start.device, QUOIT_PROXY_TEXT_BYTES, "%s", network->device);
    (void)quoit_send_with_descriptors(fd, &message, sizeof message, &host->memory_fd, 1, 0);
}

enum quoit_status quoit_proxy_process_start(struct quoit_proxy_spawn *spawn, const struct quoit_boot *host,
                                            uint64_t tag, int *fd_out)
{
    pid_t pid;
    int error = run_prepared(spawn, fd_out, &pid);
    if (error != 0) {
        quoit_say("cannot start the proxy of a host, %s " QUOIT_PROXY_ARGUMENT ": %s [Q0314]", spawn->path,
                  strerror(error));
        return QUOIT_SYSTEM;
    }
    say_start(host, tag, *fd_out);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) /* it forks, so that it is not a child of the program */
        ;
    return QUOIT_OK;
}
