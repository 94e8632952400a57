/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXITING     0x4u /* PF_EXITING of the kernel, which shows its flags */
#define GENERATIONS 256
#define STAT_BYTES  512

/* The text of a file of /proc/PID, truncated; "": there is none. */
static void read_file(pid_t pid, const char *name, char text_out[STAT_BYTES])
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text_out, STAT_BYTES - 1) : 0;
    if (fd >= 0)
        close(fd);
    text_out[bytes > 0 ? bytes : 0] = '\0';
}

bool quoit_process_is_named(pid_t pid, const char *name)
{
    char text[STAT_BYTES];
    read_file(pid, "comm", text);
    size_t bytes = strcspn(text, "\n");
    return bytes == strlen(name) && strncmp(text, name, bytes) == 0;
}

bool quoit_process_look(pid_t pid, struct quoit_process *process_out)
{
    char text[STAT_BYTES], state = 0;
    int parent = 0;
    unsigned flags = 0;
    unsigned long long user = 0, system = 0;
    *process_out = (struct quoit_process){0};
    read_file(pid, "stat", text);
    const char *after_name = strrchr(text, ')'); /* the name may contain anything, including parentheses */
    if (!after_name || sscanf(after_name + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %llu %llu", &state, &parent,
                              &flags, &user, &system) != 5)
        return false;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    *process_out = (struct quoit_process){.state = state,
                                          .is_exiting = (flags & EXITING) || state == 'Z' || state == 'X',
                                          .parent = parent,
                                          .busy_ns = (user + system) * tick_ns};
    return true;
}

bool quoit_process_descends(pid_t pid, pid_t ancestor)
{
    struct quoit_process process;
    for (int i = 0; i < GENERATIONS && pid > 0 && pid != ancestor; i++) {
        if (!quoit_process_look(pid, &process))
            return false;
        pid = process.parent;
    }
    return pid > 0 && pid == ancestor;
}

int quoit_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool quoit_process_has_ended(pid_t pid)
{
    int fd = quoit_process_open(pid);
    if (fd < 0)
        return kill(pid, 0) != 0 && errno == ESRCH;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    bool has_ended = poll(&poll_fd, 1, 0) > 0;
    close(fd);
    return has_ended;
}
