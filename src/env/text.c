/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/text.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void quoit_text_open(struct quoit_text *text, const char *name)
{
    text->fd = open(name, O_RDONLY | O_CLOEXEC);
    text->next = text->end = 0;
}

/* False: the end, or an error. */
static bool refill(struct quoit_text *text)
{
    ssize_t n = -1;
    do
        n = text->fd < 0 ? 0 : read(text->fd, text->buffer, sizeof text->buffer);
    while (n < 0 && errno == EINTR);
    text->next = 0;
    text->end = n > 0 ? (size_t)n : 0;
    return n > 0;
}

bool quoit_text_line(struct quoit_text *text, char *line_out, size_t bytes)
{
    size_t length = 0;
    bool has_any = false;
    while (text->next < text->end || refill(text)) {
        char letter = text->buffer[text->next++];
        has_any = true;
        if (letter == '\n')
            break;
        if (length + 1 < bytes)
            line_out[length++] = letter;
    }
    line_out[length] = '\0';
    return has_any;
}

void quoit_text_close(struct quoit_text *text)
{
    if (text->fd >= 0)
        close(text->fd);
    text->fd = -1;
}
