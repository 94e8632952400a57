/* SPDX-License-Identifier: BSD-3-Clause */
/* For LD_PRELOAD: fork() of a ring's keeper has trouble while a file stands in the folder SCENARIO_FORKED. `refuse`:
 * the call fails, and the file gets a byte. `stop`: the child stops before it returns. A signal to all processes ends
 * the caller in place of them. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_keeper(void)
{
    char name[16];
    return prctl(PR_GET_NAME, name) == 0 && strcmp(name, "quoit-ring") == 0;
}

/* The file, for appending; -1: it is not there, or this is no keeper. */
static int open_trouble(const char *name)
{
    char path[PATH_MAX];
    const char *folder = getenv("SCENARIO_FORKED");
    if (!folder || !is_keeper())
        return -1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

__attribute__((visibility("default"))) pid_t fork(void)
{
    pid_t (*const real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
    int refuse_fd = open_trouble("refuse"), stop_fd = open_trouble("stop");
    if (refuse_fd >= 0) {
        (void)!write(refuse_fd, "r", 1);
        close(refuse_fd);
        errno = EAGAIN;
        return -1;
    }
    pid_t pid = real();
    if (pid == 0 && stop_fd >= 0)
        raise(SIGSTOP);
    if (stop_fd >= 0)
        close(stop_fd);
    return pid;
}

__attribute__((visibility("default"))) int kill(pid_t pid, int signal_number)
{
    if (pid == -1) {
        fprintf(stderr, "forked: a signal to all processes\n");
        abort();
    }
    return (int)syscall(SYS_kill, pid, signal_number);
}
