/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/data_segment.h"
#include "base/log.h"

#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* fork handlers take no argument, so the segment that is shared now stands here; the mappings it names are the
 * process's own. */
static struct quoit_data_segment shared;
static void *fork_copy;
static bool has_handlers;

static int find_in_program(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    (void)info_bytes;
    struct quoit_data_segment *segment = arg;
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
    segment->load_base = info->dlpi_addr;
    if (start >= end)
        return 1;
    if (relro_end > start)
        start = relro_end;
    start = start / page * page; /* the loader protects whole pages below the end of relro, so does this */
    end = (end + page - 1) / page * page;
    if (start < end) {
        segment->base = (char *)start;
        segment->bytes = end - start;
    }
    return 1; /* the first object is the program itself; no other is wanted */
}

void quoit_data_segment_find(struct quoit_data_segment *segment_out)
{
    memset(segment_out, 0, sizeof *segment_out);
    dl_iterate_phdr(find_in_program, segment_out);
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
    fork_copy = mmap(NULL, shared.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fork_copy == MAP_FAILED) {
        quoit_say("fork: no memory for a copy of %llu bytes of global variables; the child is ended",
                  (unsigned long long)shared.bytes);
        return;
    }
    copy_variables(fork_copy, shared.base, shared.bytes);
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
    /* Moves the copy over the shared pages in one step. */
    if (mremap(fork_copy, shared.bytes, shared.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, shared.base) == MAP_FAILED)
        _exit(1);
    shared.bytes = 0;
}

enum quoit_status quoit_data_segment_share(const struct quoit_data_segment *segment, int fd, uint64_t file_offset,
                                           char *view)
{
    if (!segment->bytes)
        return QUOIT_OK;
    copy_variables(view, segment->base, segment->bytes);
    void *at =
        mmap(segment->base, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)file_offset);
    if (at == MAP_FAILED) {
        quoit_log(QUOIT_LOG_ERROR, "cannot share the program's variables: mmap: %s", strerror(errno));
        return QUOIT_SYSTEM;
    }
    if (!has_handlers && pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return QUOIT_NO_MEMORY;
    has_handlers = true;
    shared = *segment;
    return QUOIT_OK;
}
