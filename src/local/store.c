/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/store.h"

#include <string.h>

typedef int64_t __attribute__((vector_size(16), may_alias, aligned(1))) block;

/* One to four blocks that may overlap at the ends: all are loaded before one is stored. */
static void copy_line(char *to, const char *from, size_t bytes)
{
    size_t last = bytes - sizeof(block);
    block a = *(const block *)from, d = *(const block *)(from + last);
    if (bytes > 2 * sizeof(block)) {
        block b = *(const block *)(from + sizeof(block)), c = *(const block *)(from + last - sizeof(block));
        *(block *)(to + sizeof(block)) = b;
        *(block *)(to + last - sizeof(block)) = c;
    }
    *(block *)to = a;
    *(block *)(to + last) = d;
}

__attribute__((noinline)) static void put_any(struct quoit_park *park, uint64_t at, char *to, const void *source,
                                              size_t bytes)
{
    memmove(to, source, bytes);
    quoit_park_wake_at(park, at, bytes);
}

void quoit_local_put(struct quoit_park *park, uint64_t at, char *to, const void *source, size_t bytes)
{
    if (bytes < sizeof(block) || bytes > 4 * sizeof(block)) {
        put_any(park, at, to, source, bytes);
        return;
    }
    copy_line(to, source, bytes);
    quoit_park_wake_at(park, at, bytes);
}
