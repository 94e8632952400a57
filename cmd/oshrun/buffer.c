/* SPDX-License-Identifier: BSD-3-Clause */
#include "buffer.h"

#include <stdlib.h>
#include <string.h>

bool buffer_reserve(struct buffer *buffer, size_t bytes)
{
    size_t used = buffer_used(buffer);
    if (used == 0)
        buffer->begin = buffer->end = 0;
    if (buffer->end + bytes <= buffer->capacity)
        return true;
    if (buffer->begin > 0 && used > 0)
        memmove(buffer->data, buffer->data + buffer->begin, used);
    buffer->begin = 0;
    buffer->end = used;
    if (used + bytes <= buffer->capacity)
        return true;
    size_t capacity = (used + bytes) * 2;
    char *data = realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

bool buffer_append(struct buffer *buffer, const void *data, size_t bytes)
{
    if (bytes == 0)
        return true;
    if (!buffer_reserve(buffer, bytes))
        return false;
    memcpy(buffer->data + buffer->end, data, bytes);
    buffer->end += bytes;
    return true;
}
