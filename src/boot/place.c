/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"

#define ADDRESSES_MAX 32
#define ANSWER_BYTES  16384

static void __attribute__((noreturn))
become_addr2line(const char *executable, const uint64_t *addresses, size_t count, int answer_fd)
{
    char texts[ADDRESSES_MAX][24];
    char *argv[ADDRESSES_MAX + 6] = {"addr2line", "-fC", "-e", (char *)executable};
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "0x%llx", (unsigned long long)addresses[i]);
        argv[4 + i] = texts[i];
    }
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(answer_fd, STDOUT_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

/* Reads everything that arrives before end of file or the deadline. */
static size_t read_answer(int fd, uint64_t deadline_ns, char *text, size_t bytes)
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
    return used;
}

/* Two lines per address: the function or ??, then path:line or ??:0, possibly followed by a discriminator. */
static void take_lines(const char *function, char *line, struct quoit_place *place)
{
    if (function[0] != '?')
        snprintf(place->function, sizeof place->function, "%.80s", function);
    char *discriminator = strstr(line, " (discriminator");
    if (discriminator)
        *discriminator = '\0';
    const char *colon = strrchr(line, ':');
    if (line[0] == '?' || !colon || colon[1] == '?' || colon[1] == '0')
        return;
    const char *slash = strrchr(line, '/');
    snprintf(place->line, sizeof place->line, "%.80s", slash ? slash + 1 : line);
}

void quoit_place_find(const char *executable, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
                      struct quoit_place *places_out)
{
    char answer[ANSWER_BYTES];
    int ends[2];
    memset(places_out, 0, count * sizeof *places_out);
    if (count > ADDRESSES_MAX)
        count = ADDRESSES_MAX;
    if (!executable || count == 0 || quoit_clock_now_ns() >= deadline_ns || pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        become_addr2line(executable, addresses, count, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        read_answer(ends[0], deadline_ns, answer, sizeof answer);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        char *rest = answer;
        for (size_t i = 0; i < count; i++) {
            char *function = strsep(&rest, "\n"), *line = rest ? strsep(&rest, "\n") : NULL;
            if (!function || !line)
                break;
            take_lines(function, line, &places_out[i]);
        }
    }
    close(ends[0]);
}
