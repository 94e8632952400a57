/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/objects.h"
#include "env/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Libraries whose variables stay private to the process. A name matches up to its length. */
static const char *const runtime_names[] = {"ld-",      "ld.so",       "libc.",    "libc-",    "libpthread",
                                            "libasan.", "libclang_rt", "liblsan.", "libtsan.", "libubsan."};

/* The PT_LOAD that contains an address, or NULL. */
static const ElfW(Phdr) * find_load(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz)
            return &info->dlpi_phdr[i];
    return NULL;
}

static bool is_of_process(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof runtime_names / sizeof runtime_names[0]; i++)
        if (strncmp(name, runtime_names[i], strlen(runtime_names[i])) == 0)
            return true;
    void *(*allocator)(size_t) = malloc;
    return !slash /* the kernel's own */ || find_load(info, runtime_names) || find_load(info, (void *)allocator);
}

/* Variables stay shared for as long as the library is loaded, and those of other PEs do not know when it is not. */
static void keep_loaded(const struct quoit_data_segments *segments)
{
    for (uint32_t i = segments->program_count; i < segments->count; i++)
        (void)quoit_library_open(segments->list[i].path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static enum quoit_library_use library_use(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (tasks && readdir(tasks))
        count++;
    if (tasks)
        closedir(tasks);
    if (count == 0)
        return QUOIT_LIBRARIES_UNKNOWN;
    return count == 3 /* ".", ".." and this one */ ? QUOIT_LIBRARIES_SHARED : QUOIT_LIBRARIES_HAVE_THREADS;
}

struct search {
    struct quoit_data_segments *segments;
    uint32_t limit;
    bool is_past_program;
    bool is_short; /* of memory */
};

static void add_segment(struct search *search, const struct dl_phdr_info *info, uintptr_t from, uintptr_t to,
                        uintptr_t zero, int protection)
{
    struct quoit_data_segments *segments = search->segments;
    if (from >= to)
        return;
    if (segments->count == search->limit) {
        uint32_t limit = search->limit ? 2 * search->limit : 16;
        void *list = realloc(segments->list, limit * sizeof *segments->list);
        search->is_short |= !list;
        if (!list)
            return;
        segments->list = list;
        search->limit = limit;
    }
    zero = zero < from ? from : zero > to ? to : zero;
    segments->list[segments->count++] =
        (struct quoit_data_segment){.base = (char *)from,
                                    .bytes = to - from,
                                    .zero_at = zero - from,
                                    .load_base = info->dlpi_addr,
                                    .protection = protection,
                                    .path = search->is_past_program ? info->dlpi_name : ""};
    segments->bytes += to - from;
}

/* The whole pages that the loader makes read-only: it rounds both ends down. */
static void find_relro(const struct dl_phdr_info *info, uintptr_t page, uintptr_t *start_out, uintptr_t *end_out)
{
    *start_out = *end_out = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_GNU_RELRO)
            continue;
        *start_out = at / page * page;
        *end_out = (at + info->dlpi_phdr[i].p_memsz) / page * page;
    }
}

/* The program headers are in order of address, as the ELF specification demands. */
static void add_segments(struct search *search, const struct dl_phdr_info *info)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t relro_start, relro_end;
    find_relro(info, page, &relro_start, &relro_end);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        if (load->p_type != PT_LOAD || !(load->p_flags & PF_W) || load->p_memsz == 0)
            continue;
        uintptr_t at = info->dlpi_addr + load->p_vaddr, from = at / page * page;
        uintptr_t to = (at + load->p_memsz + page - 1) / page * page;
        /* The kernel clears, and so touches, the rest of the page before. */
        uintptr_t zero = (at + load->p_filesz + page - 1) / page * page;
        int protection = PROT_READ | PROT_WRITE | (load->p_flags & PF_X ? PROT_EXEC : 0);
        if (relro_start < relro_end && relro_start < to && from < relro_end) {
            add_segment(search, info, from, relro_start, zero, protection);
            from = relro_end;
        }
        add_segment(search, info, from, to, zero, protection);
    }
}

static int add_object(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    (void)info_bytes;
    struct search *search = arg;
    struct quoit_data_segments *segments = search->segments;
    if (!search->is_past_program) { /* the first object */
        segments->load_base = info->dlpi_addr;
        add_segments(search, info);
        segments->program_count = segments->count;
        search->is_past_program = true;
        return segments->libraries != QUOIT_LIBRARIES_SHARED || search->is_short;
    }
    if (!is_of_process(info))
        add_segments(search, info);
    return search->is_short;
}

enum quoit_status quoit_data_segments_find(struct quoit_data_segments *segments_out)
{
    *segments_out = (struct quoit_data_segments){.libraries = library_use()};
    struct search search = {.segments = segments_out};
    dl_iterate_phdr(add_object, &search);
    if (search.is_short)
        return QUOIT_NO_MEMORY;
    keep_loaded(segments_out);
    return QUOIT_OK;
}

const struct quoit_data_segment *quoit_data_segments_main(const struct quoit_data_segments *segments)
{
    const struct quoit_data_segment *largest = NULL;
    for (uint32_t i = 0; i < segments->program_count; i++)
        if (!largest || segments->list[i].bytes > largest->bytes)
            largest = &segments->list[i];
    return largest;
}

const struct quoit_data_segment *quoit_data_segments_at(const struct quoit_data_segments *segments, const void *address)
{
    for (uint32_t i = 0; i < segments->count; i++)
        if ((uintptr_t)address - (uintptr_t)segments->list[i].base < segments->list[i].bytes)
            return &segments->list[i];
    return NULL;
}

struct question {
    const struct quoit_data_segments *segments;
    const void *address;
    bool is_past_program;
    struct quoit_object answer;
};

static bool is_thread_local(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data &&
            (uintptr_t)address - (uintptr_t)info->dlpi_tls_data < info->dlpi_phdr[i].p_memsz)
            return true;
    return false;
}

static enum quoit_object_kind kind_of_variable(const struct question *question, const struct dl_phdr_info *info)
{
    uintptr_t relro_start, relro_end, at = (uintptr_t)question->address;
    find_relro(info, (uintptr_t)sysconf(_SC_PAGESIZE), &relro_start, &relro_end);
    if (at >= relro_start && at < relro_end)
        return QUOIT_OBJECT_READ_ONLY;
    if (quoit_data_segments_at(question->segments, question->address))
        return QUOIT_OBJECT_SHARED;
    if (is_of_process(info))
        return QUOIT_OBJECT_RUNTIME;
    return question->segments->libraries == QUOIT_LIBRARIES_SHARED ? QUOIT_OBJECT_LATE : QUOIT_OBJECT_LEFT_OUT;
}

static int ask_object(struct dl_phdr_info *info, size_t info_bytes, void *arg)
{
    (void)info_bytes;
    struct question *question = arg;
    const ElfW(Phdr) *load = find_load(info, question->address);
    enum quoit_object_kind kind = QUOIT_OBJECT_NONE;
    if (is_thread_local(info, question->address))
        kind = QUOIT_OBJECT_THREAD_LOCAL;
    else if (load)
        kind = load->p_flags & PF_W ? kind_of_variable(question, info) : QUOIT_OBJECT_READ_ONLY;
    if (kind != QUOIT_OBJECT_NONE)
        question->answer = (struct quoit_object){
            .kind = kind, .path = question->is_past_program ? info->dlpi_name : "", .load_base = info->dlpi_addr};
    question->is_past_program = true;
    return kind != QUOIT_OBJECT_NONE;
}

struct quoit_object quoit_data_segments_explain(const struct quoit_data_segments *segments, const void *address)
{
    struct question question = {.segments = segments, .address = address, .answer = {.path = ""}};
    dl_iterate_phdr(ask_object, &question);
    return question.answer;
}
