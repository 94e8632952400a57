/* SPDX-License-Identifier: BSD-3-Clause */
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"
#include "env/libc.h"
#include "env/process.h"

#define SWEEP_ROUNDS_MAX 400 /* of 1 ms */
#define PIDS_A_ROUND     512

void children_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* As listed by the kernel; children that did not fit are handled in the next round. */
static int list(pid_t pids[PIDS_A_ROUND])
{
    char path[64], text[8 * PIDS_A_ROUND];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    int count = 0;
    char *at = text, *end = text;
    while (count < PIDS_A_ROUND) {
        long pid = strtol(at, &end, 10);
        if (end == at || *end != ' ') /* the last number may be truncated */
            break;
        pids[count++] = (pid_t)pid;
        at = end;
    }
    return count;
}

void children_kill(void)
{
    pid_t pids[PIDS_A_ROUND];
    int count = list(pids);
    for (int i = 0; i < count; i++)
        kill(pids[i], SIGKILL);
}

void children_sweep(void)
{
    for (int round = 0; round < SWEEP_ROUNDS_MAX; round++) {
        pid_t pid;
        children_kill();
        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (pid < 0 && errno == ECHILD)
            return;
        quoit_clock_sleep_ns(1000000);
    }
}

void children_end_as(int wait_status)
{
    children_sweep();
    if (WIFEXITED(wait_status))
        _exit(WEXITSTATUS(wait_status));
    const char *name = quoit_signal_name(WTERMSIG(wait_status));
    quoit_say("a process of oshrun was killed by SIG%s%s; the job was ended, status %d [Q0219]", name,
              WTERMSIG(wait_status) == SIGKILL ? " (kill -9, or memory ran out)" : "", 128 + WTERMSIG(wait_status));
    _exit(128 + WTERMSIG(wait_status));
}

bool children_include(pid_t pid)
{
    return pid > 0 && pid != getpid() && quoit_process_descends(pid, getpid());
}
