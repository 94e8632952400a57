/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/data_segment.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
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

/* Libraries whose variables stay private to the process. A name matches up to its length. */
static const char *const runtime_names[] = {"ld-",      "ld.so",       "libc.",    "libc-",    "libpthread",
                                            "libasan.", "libclang_rt", "liblsan.", "libtsan.", "libubsan."};

static bool is_within(const void *address, const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

static bool is_of_process(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof runtime_names / sizeof runtime_names[0]; i++)
        if (strncmp(name, runtime_names[i], strlen(runtime_names[i])) == 0)
            return true;
    void *(*allocator)(size_t) = malloc;
    return !slash /* the kernel's own */ || is_within(&shared, info) || is_within((void *)allocator, info);
}

static struct quoit_data_segment writable_part(const struct dl_phdr_info *info)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = UINTPTR_MAX, end = 0, relro_end = 0, zero = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && (header->p_flags & PF_W)) {
            start = from < start ? from : start;
            if (from + header->p_memsz > end) {
                end = from + header->p_memsz;
                zero = from + header->p_filesz;
            }
        }
        if (header->p_type == PT_GNU_RELRO)
            relro_end = from + header->p_memsz;
    }
    if (start >= end)
        return (struct quoit_data_segment){0};
    if (relro_end > start)
        start = relro_end;
    start = start / page * page; /* the loader protects whole pages below the end of relro, so do the same */
    end = (end + page - 1) / page * page;
    zero = (zero + page - 1) / page * page; /* the kernel clears, and so touches, the rest of the page before */
    zero = zero > start ? zero : start;
    return (struct quoit_data_segment){.base = (char *)start,
                                       .bytes = end > start ? end - start : 0,
                                       .zero_at = end > zero ? zero - start : end - start};
}

/* True also if /proc is missing. */
static bool has_threads(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    return count != 3; /* ".", ".." and this one */
}

struct search {
    struct quoit_data_segments *segments;
    bool with_libraries;
};

static int add_object(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    (void)info_bytes;
    struct search *search = arg;
    struct quoit_data_segments *segments = search->segments;
    bool is_program = segments->count == 0; /* the first object */
    if (is_program)
        segments->load_base = info->dlpi_addr;
    else if (!search->with_libraries || is_of_process(info))
        return 0;
    struct quoit_data_segment part = writable_part(info);
    if (!is_program && part.bytes == 0)
        return 0;
    if (segments->count == QUOIT_DATA_SEGMENTS_MAX) {
        quoit_log(QUOIT_LOG_INFO, "variables of %s are not symmetric: more than %u objects", info->dlpi_name,
                  QUOIT_DATA_SEGMENTS_MAX);
        return 0;
    }
    segments->segment[segments->count++] = part;
    segments->bytes += part.bytes;
    return 0;
}

void quoit_data_segments_find(struct quoit_data_segments *segments_out)
{
    memset(segments_out, 0, sizeof *segments_out);
    struct search search = {.segments = segments_out, .with_libraries = !has_threads()};
    dl_iterate_phdr(add_object, &search);
}

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
    for (uint32_t i = 0; i < shared.count; start += shared.segment[i++].bytes) {
        uint64_t end = start + shared.segment[i].bytes;
        uint64_t first = from > start ? from : start, last = to < end ? to : end;
        if (first < last)
            work(shared.segment[i].base + (first - start), last - first, first);
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
        uint64_t bytes = shared.segment[i].bytes;
        if (bytes &&
            syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, shared.segment[i].base) == -1)
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
        const struct quoit_data_segment *segment = &segments->segment[i];
        if (!segment->bytes)
            continue;
        copy_variables(view, segment->base, segment->zero_at);
        copy_touched(view + segment->zero_at, segment->base + segment->zero_at, segment->bytes - segment->zero_at);
        /* By the kernel itself: a library that replaces mmap (UCX) has its lock in what is copied here. */
        long at = syscall(SYS_mmap, segment->base, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
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
