/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"

/* Reads everything that arrives before end of file or the deadline. */
static void read_answer(int fd, uint64_t deadline_ns, char *text, size_t bytes)
{
    size_t used = 0;
    while (used + 1 < bytes) {
        uint64_t now_ns = quoit_clock_now_ns();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (now_ns >= deadline_ns || poll(&wait, 1, (int)((deadline_ns - now_ns) / 1000000) + 1) <= 0)
            break;
        ssize_t n = read(fd, text + used, bytes - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    text[used] = '\0';
}

bool quoit_ask_child(void (*answer)(void *arg, int fd), void *arg, uint64_t deadline_ns, char *text_out, size_t bytes)
{
    int ends[2];
    text_out[0] = '\0';
    if (quoit_clock_now_ns() >= deadline_ns || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        answer(arg, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (pid > 0) {
        read_answer(ends[0], deadline_ns, text_out, bytes);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    return pid > 0;
}
