/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/data_segment.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* fork handlers take no argument, so what is shared now stands here; the mappings it names are the process's own. */
static struct quoit_data_segments shared;
static void *fork_copy;
static bool has_handlers;

/* The variables of these belong to the process. A name matches up to its length. */
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
    uintptr_t start = UINTPTR_MAX, end = 0, relro_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && (header->p_flags & PF_W)) {
            start = from < start ? from : start;
            end = from + header->p_memsz > end ? from + header->p_memsz : end;
        }
        if (header->p_type == PT_GNU_RELRO)
            relro_end = from + header->p_memsz;
    }
    if (start >= end)
        return (struct quoit_data_segment){0};
    if (relro_end > start)
        start = relro_end;
    start = start / page * page; /* the loader protects whole pages below the end of relro, so does this */
    end = (end + page - 1) / page * page;
    return (struct quoit_data_segment){.base = (char *)start, .bytes = end > start ? end - start : 0};
}

/* True also where /proc is not there to tell. */
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

/* Copies all variables, and what an address sanitizer put between them, which memcpy would complain about. */
__attribute__((no_sanitize("address", "thread"))) static void copy_variables(void *to, const void *from, uint64_t bytes)
{
    volatile uint64_t *words_to = to;
    const volatile uint64_t *words_from = from;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t); i++) /* whole pages, so whole words */
        words_to[i] = words_from[i];
}

/* The child of a fork would write into the parent's variables: it gets the copy that was made just before the fork. */
static void before_fork(void)
{
    if (!shared.bytes)
        return;
    char *copy = fork_copy = mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fork_copy == MAP_FAILED) {
        quoit_say("fork: no memory for a copy of %llu bytes of global variables; the child is ended",
                  (unsigned long long)shared.bytes);
        return;
    }
    for (uint32_t i = 0; i < shared.count; i++) {
        copy_variables(copy, shared.segment[i].base, shared.segment[i].bytes);
        copy += shared.segment[i].bytes;
    }
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
    /* Moves the copies over the shared pages, each in one step. */
    char *copy = fork_copy;
    for (uint32_t i = 0; i < shared.count; i++) {
        uint64_t bytes = shared.segment[i].bytes;
        if (bytes && mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, shared.segment[i].base) == MAP_FAILED)
            _exit(1);
        copy += bytes;
    }
    shared.bytes = 0;
}

enum quoit_status quoit_data_segments_share(const struct quoit_data_segments *segments, int fd, uint64_t file_offset,
                                            char *view)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        const struct quoit_data_segment *segment = &segments->segment[i];
        if (!segment->bytes)
            continue;
        copy_variables(view, segment->base, segment->bytes);
        void *at =
            mmap(segment->base, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)file_offset);
        if (at == MAP_FAILED) {
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
