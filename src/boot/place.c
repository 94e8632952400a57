/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/place.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "boot/ask.h"

#define ADDRESSES_MAX 32
#define ANSWER_BYTES  16384

struct question {
    const char *executable;
    const uint64_t *addresses;
    size_t count;
};

static void become_addr2line(void *question_arg, int answer_fd)
{
    const struct question *question = question_arg;
    char texts[ADDRESSES_MAX][24];
    char *argv[ADDRESSES_MAX + 6] = {"addr2line", "-fC", "-e", (char *)question->executable};
    for (size_t i = 0; i < question->count; i++) {
        snprintf(texts[i], sizeof texts[i], "0x%llx", (unsigned long long)question->addresses[i]);
        argv[4 + i] = texts[i];
    }
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    dup2(answer_fd, STDOUT_FILENO);
    execvp(argv[0], argv);
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
    memset(places_out, 0, count * sizeof *places_out);
    if (count > ADDRESSES_MAX)
        count = ADDRESSES_MAX;
    struct question question = {executable, addresses, count};
    if (!executable || count == 0 || !quoit_ask_child(become_addr2line, &question, deadline_ns, answer, sizeof answer))
        return;
    char *rest = answer;
    for (size_t i = 0; i < count; i++) {
        char *function = strsep(&rest, "\n"), *line = rest ? strsep(&rest, "\n") : NULL;
        if (!function || !line)
            break;
        take_lines(function, line, &places_out[i]);
    }
}
