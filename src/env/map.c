/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/map.h"
#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; headers of Debian 12 may be older */
#endif

/* Reserves more than is needed, maps the file at the first good address, and gives the rest back. */
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
    uint64_t end = (bytes + 4095) / 4096 * 4096; /* mmap maps whole pages */
    if (before > 0)
        munmap(reserve, before);
    if (before + end < reserved)
        munmap(base + end, reserved - before - end);
    return base;
}

static int take(int fd, uint64_t offset, uint64_t bytes)
{
    int error;
    do
        error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (error == EINTR);
    return error;
}

/* One small page is enough for the kernel to make a huge one of it, and quicker than many: those would be cleared one
 * by one and then copied. All by one call, since each waits for every processor. What the kernel does not make huge,
 * all of it if it is old, is taken as small pages. */
int quoit_map_take(int fd, uint64_t file_offset, void *base, uint64_t from, uint64_t to)
{
    quoit_assert((uintptr_t)base % QUOIT_HUGE_PAGE_BYTES == 0);
    quoit_assert(from <= to);
    uint64_t first = from / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    uint64_t end = to / QUOIT_HUGE_PAGE_BYTES * QUOIT_HUGE_PAGE_BYTES;
    for (uint64_t at = first; at < end; at += QUOIT_HUGE_PAGE_BYTES) {
        int error = take(fd, file_offset + at, 1);
        if (error)
            return error;
    }
    if (first < end)
        madvise((char *)base + first, end - first, MADV_COLLAPSE);
    return from < to ? take(fd, file_offset + from, to - from) : 0;
}
