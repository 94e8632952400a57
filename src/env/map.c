/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/map.h"
#include "base/assert.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Debian 12's headers may lack these. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define PAGE_BYTES 4096u
/* MADV_COLLAPSE ends for no signal before it is through: a killed process with 5 GiB to take lived for 70 s on a busy
 * machine. So as much is collapsed at once, which takes some milliseconds. */
#define STEP_BYTES (32ull * QUOIT_HUGE_PAGE_BYTES)

/* Reserves more than is needed, maps the file at the first aligned address and unmaps the rest. */
void *quoit_map_file(int fd, uint64_t bytes, int protection)
{
    uint64_t reserved = bytes + QUOIT_HUGE_PAGE_BYTES;
    char *reserve = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserve == MAP_FAILED)
        return NULL;
    uint64_t before = -(uintptr_t)reserve % QUOIT_HUGE_PAGE_BYTES;
    char *base = reserve + before;
    void *at = mmap(base, bytes, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) {
        munmap(reserve, reserved);
        return NULL;
    }
    uint64_t end = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES; /* mmap maps whole pages */
    if (before > 0)
        munmap(reserve, before);
    if (before + end < reserved)
        munmap(base + end, reserved - before - end);
    quoit_map_leave_out(base, end);
    return base;
}

void quoit_map_leave_out(void *base, uint64_t bytes)
{
    madvise(base, bytes, MADV_DONTDUMP);
}

void quoit_map_put_in(void *base, uint64_t bytes)
{
    madvise(base, bytes, MADV_DODUMP);
}

/* The fallback before Linux 5.14, and where seccomp refuses madvise: a write fault on each page allocates it. */
__attribute__((no_sanitize("address", "thread"))) static void touch(char *base, uint64_t from, uint64_t to)
{
    for (uint64_t at = from / PAGE_BYTES * PAGE_BYTES; at < to; at += PAGE_BYTES)
        __atomic_fetch_or(base + at, 0, __ATOMIC_RELAXED);
}

/* Works on the mapping, never on the descriptor: the program may have closed it and opened a file under the same
 * number. */
static int take(char *base, uint64_t from, uint64_t to)
{
    uint64_t first = from / PAGE_BYTES * PAGE_BYTES;
    for (;;) {
        if (madvise(base + first, to - first, MADV_POPULATE_WRITE) == 0)
            return 0;
        if (errno == ENOMEM || errno == EFAULT)
            return errno;
        if (errno != EINTR && errno != EAGAIN) {
            touch(base, from, to);
            return 0;
        }
    }
}

int quoit_map_take_small(void *start, uint64_t bytes)
{
    uint64_t before = (uintptr_t)start % PAGE_BYTES;
    return bytes == 0 ? 0 : take((char *)start - before, 0, before + bytes);
}

uint64_t quoit_map_missing_bytes(void *start, uint64_t bytes)
{
    unsigned char is_here[4096];
    uint64_t before = (uintptr_t)start % PAGE_BYTES, missing = 0;
    char *at = (char *)start - before, *end = (char *)start + bytes;
    while (at < end) {
        uint64_t count = ((uint64_t)(end - at) + PAGE_BYTES - 1) / PAGE_BYTES;
        if (count > sizeof is_here)
            count = sizeof is_here;
        bool is_known = mincore(at, count * PAGE_BYTES, is_here) == 0;
        for (uint64_t i = 0; i < count; i++)
            missing += !is_known || (is_here[i] & 1) == 0 ? PAGE_BYTES : 0;
        at += count * PAGE_BYTES;
    }
    return missing;
}

/* One small page suffices for MADV_COLLAPSE to make a huge page, and is faster than 512: those would be cleared one by
 * one and then copied. One call covers the whole step, since each call synchronises all processors. What the kernel
 * does not collapse, which is everything on old kernels, is populated with small pages. */
static int take_step(char *base, uint64_t from, uint64_t to)
{
    uint64_t first = from / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    uint64_t end = to / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    for (uint64_t at = first; at < end; at += QUOIT_HUGE_PAGE_BYTES) {
        int error = take(base, at, at + 1);
        if (error)
            return error;
    }
    if (first < end)
        madvise(base + first, end - first, MADV_COLLAPSE);
    return take(base, from, to);
}

int quoit_map_take(void *base, uint64_t from, uint64_t to)
{
    quoit_assert((uintptr_t)base % QUOIT_HUGE_PAGE_BYTES == 0);
    quoit_assert(from <= to);
    while (from < to) {
        uint64_t step = (from / STEP_BYTES + 1) * STEP_BYTES;
        uint64_t until = step < to ? step : to;
        int error = take_step(base, from, until);
        if (error)
            return error;
        from = until;
    }
    return 0;
}
