/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/data_segment.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Fork and signal handlers take no argument, so what is shared has file scope; its mappings belong to the process
 * anyway. */
static struct quoit_data_segments shared;
/* The file that holds it. The program may close the descriptor and open its own file under the same number. */
static struct {
    int fd;
    dev_t device;
    ino_t inode;
    uint64_t offset;
} backing;
static void *fork_copy;
static bool has_handlers;

/* Copies variables including an address sanitizer's red zones, which memcpy would report. */
__attribute__((no_sanitize("address", "thread"))) static void copy_variables(void *to, const void *from, uint64_t bytes)
{
    volatile uint64_t *words_to = to;
    const volatile uint64_t *words_from = from;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); i++) /* whole pages, so whole words */
        words_to[i] = words_from[i];
}

/* Copies the pages of .bss that the process has touched, in memory or in swap; the others read as zero in both places
 * and take no memory in either. Copies all if /proc does not tell. */
static void copy_touched(char *to, const char *from, uint64_t bytes)
{
    enum { ENTRIES = 512 };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), is_touched = 3ull << 62; /* present, swapped */
    uint64_t entries[ENTRIES];
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t count = (bytes - at) / page < ENTRIES ? (bytes - at) / page : ENTRIES;
        ssize_t want = (ssize_t)(count * sizeof entries[0]);
        bool is_told = fd >= 0 && pread(fd, entries, (size_t)want,
                                        (off_t)((uintptr_t)(from + at) / page * sizeof entries[0])) == want;
        for (uint64_t i = 0; i < count; i++, at += page)
            if (!is_told || (entries[i] & is_touched))
                copy_variables(to + at, from + at, page);
    }
    if (fd >= 0)
        close(fd);
}

/* The next range of the shared file, from `at` on, that has memory: returns its start, and its end in *end_out; `bytes`
 * if there is none. Everything if the file cannot be queried. Async-signal-safe. */
static uint64_t next_data(uint64_t at, uint64_t *end_out)
{
    struct stat file;
    *end_out = shared.bytes;
    if (fstat(backing.fd, &file) != 0 || file.st_dev != backing.device || file.st_ino != backing.inode)
        return at;
    off_t data = lseek(backing.fd, (off_t)(backing.offset + at), SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? shared.bytes : at;
    if ((uint64_t)data >= backing.offset + shared.bytes)
        return shared.bytes;
    off_t hole = lseek(backing.fd, data, SEEK_HOLE);
    if (hole > 0 && (uint64_t)hole < backing.offset + shared.bytes)
        *end_out = (uint64_t)hole - backing.offset;
    return (uint64_t)data - backing.offset;
}

/* Calls `work` for each part of a segment between two offsets of the shared file. */
static void for_parts(uint64_t from, uint64_t to, void (*work)(char *at, uint64_t bytes, uint64_t offset))
{
    uint64_t start = 0;
    for (uint32_t i = 0; i < shared.count; start += shared.list[i++].bytes) {
        uint64_t end = start + shared.list[i].bytes;
        uint64_t first = from > start ? from : start, last = to < end ? to : end;
        if (first < last)
            work(shared.list[i].base + (first - start), last - first, first);
    }
}

static void copy_for_child(char *at, uint64_t bytes, uint64_t offset)
{
    copy_variables((char *)fork_copy + offset, at, bytes);
}

/* A forked child must not write into the parent's variables: it gets the copy made just before the fork. */
static void before_fork(void)
{
    if (!shared.bytes)
        return;
    fork_copy = mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fork_copy == MAP_FAILED) {
        quoit_say("fork: no memory for a copy of %llu bytes of global variables; the child is ended",
                  (unsigned long long)shared.bytes);
        return;
    }
    for (uint64_t at = 0, end; (at = next_data(at, &end)) < shared.bytes; at = end)
        for_parts(at, end, copy_for_child);
    char *copy = fork_copy;
    for (uint32_t i = 0; i < shared.count; copy += shared.list[i++].bytes)
        if (shared.list[i].protection & PROT_EXEC) /* code beside the variables (ld -N), which runs there */
            mprotect(copy, shared.list[i].bytes, shared.list[i].protection);
}

static void after_fork_in_parent(void)
{
    if (shared.bytes && fork_copy != MAP_FAILED)
        munmap(fork_copy, shared.bytes);
}

static void after_fork_in_child(void)
{
    if (!shared.bytes)
        return;
    if (fork_copy == MAP_FAILED)
        _exit(1);
    /* Moves the copies over the shared pages, one mremap each. */
    char *copy = fork_copy;
    for (uint32_t i = 0; i < shared.count; i++) {
        uint64_t bytes = shared.list[i].bytes;
        if (syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, shared.list[i].base) == -1)
            _exit(1);
        copy += bytes;
    }
    shared.bytes = 0;
}

static void leave_out(char *at, uint64_t bytes, uint64_t offset)
{
    (void)offset;
    madvise(at, bytes, MADV_DONTDUMP);
}

void quoit_data_segments_leave_holes_out(void)
{
    for (uint64_t at = 0, end, data; at < shared.bytes; at = end) {
        data = next_data(at, &end);
        for_parts(at, data, leave_out);
    }
}

enum quoit_status quoit_data_segments_share(const struct quoit_data_segments *segments, int fd, uint64_t file_offset,
                                            char *view)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return QUOIT_SYSTEM;
    backing.fd = fd;
    backing.device = file.st_dev;
    backing.inode = file.st_ino;
    backing.offset = file_offset;
    for (uint32_t i = 0; i < segments->count; i++) {
        const struct quoit_data_segment *segment = &segments->list[i];
        copy_variables(view, segment->base, segment->zero_at);
        copy_touched(view + segment->zero_at, segment->base + segment->zero_at, segment->bytes - segment->zero_at);
        /* By the kernel itself: a library that replaces mmap (UCX) has its lock in what is copied here. */
        long at = syscall(SYS_mmap, segment->base, segment->bytes, segment->protection, MAP_SHARED | MAP_FIXED, fd,
                          (off_t)file_offset);
        if (at == -1) {
            quoit_log(QUOIT_LOG_ERROR, "cannot share the program's variables: mmap: %s", strerror(errno));
            return QUOIT_SYSTEM;
        }
        view += segment->bytes;
        file_offset += segment->bytes;
    }
    if (!has_handlers && pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return QUOIT_NO_MEMORY;
    has_handlers = true;
    shared = *segments;
    return QUOIT_OK;
}
