/* SPDX-License-Identifier: BSD-3-Clause */
/* buffer.h - bytes that wait to be written or parsed: appended at the end, taken from the beginning. All zero is an
 * empty buffer; free() its data. */
#ifndef OSHRUN_BUFFER_H
#define OSHRUN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *data;
    size_t begin;
    size_t end;
    size_t capacity;
};

static inline size_t buffer_used(const struct buffer *buffer)
{
    return buffer->end - buffer->begin;
}

/* Makes room for `bytes` more at the end, and may move the others. False: no memory; the buffer is as it was. */
bool buffer_reserve(struct buffer *buffer, size_t bytes);
bool buffer_append(struct buffer *buffer, const void *data, size_t bytes);

#endif
