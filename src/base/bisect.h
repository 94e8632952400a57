/* SPDX-License-Identifier: BSD-3-Clause */
/* bisect.h - looks in a table of records that are in order of their first word, a 64-bit address or offset. Any thread.
 */
#ifndef QUOIT_BASE_BISECT_H
#define QUOIT_BASE_BISECT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many of the records have a first word of at most `word`: the last of those is the one that may contain it. */
static inline size_t quoit_bisect(const void *records, size_t count, size_t record_bytes, uint64_t word)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint64_t first;
        memcpy(&first, (const char *)records + middle * record_bytes, sizeof first);
        if (first <= word)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
