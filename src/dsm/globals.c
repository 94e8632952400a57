/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/globals.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dsm/barrier.h"

#define SECTION      "dsm_shared"
#define SECTIONS_MAX 256
#define NAMES_MAX    16384

/* The sections of the program's file, which strip(1) leaves there. */
struct sections {
    ElfW(Ehdr) header;
    ElfW(Shdr) all[SECTIONS_MAX];
    char names[NAMES_MAX + 1];
};

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool read_sections(struct sections *sections)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ElfW(Ehdr) *header = &sections->header;
    bool is_read = read_at(fd, &sections->header, sizeof sections->header, 0) && header->e_shnum > 0 &&
                   header->e_shnum <= SECTIONS_MAX && header->e_shentsize == sizeof sections->all[0] &&
                   header->e_shstrndx < header->e_shnum &&
                   read_at(fd, sections->all, header->e_shnum * sizeof sections->all[0], header->e_shoff);
    if (is_read) {
        const ElfW(Shdr) *names = &sections->all[header->e_shstrndx];
        is_read = names->sh_size <= NAMES_MAX && read_at(fd, sections->names, names->sh_size, names->sh_offset);
    }
    close(fd);
    return is_read;
}

static int take_base(struct dl_phdr_info *info, size_t bytes, void *base)
{
    (void)bytes;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1; /* the first is the program */
}

/* Whether nothing else lies in the pages of a section. */
static bool is_alone(const struct sections *sections, const ElfW(Shdr) * section, uint64_t end)
{
    for (int i = 0; i < sections->header.e_shnum; i++) {
        const ElfW(Shdr) *other = &sections->all[i];
        if (other != section && (other->sh_flags & SHF_ALLOC) && !(other->sh_flags & SHF_TLS) && other->sh_size > 0 &&
            other->sh_addr < end && other->sh_addr + other->sh_size > section->sh_addr)
            return false;
    }
    return section->sh_addr % 4096 == 0;
}

void quoit_dsm_globals_find(struct quoit_dsm *dsm)
{
    dsm->heap_bytes = dsm->space_bytes;
    struct sections *sections = calloc(1, sizeof *sections);
    const ElfW(Shdr) *found = NULL;
    if (sections && read_sections(sections)) {
        for (int i = 0; i < sections->header.e_shnum && !found; i++) {
            const ElfW(Shdr) *section = &sections->all[i];
            if (section->sh_name < NAMES_MAX && strcmp(sections->names + section->sh_name, SECTION) == 0 &&
                section->sh_size > 0)
                found = section;
        }
    }
    if (found) {
        uint64_t end = (found->sh_addr + found->sh_size + 4095) / 4096 * 4096;
        uintptr_t base = 0;
        if (!is_alone(sections, found, end))
            quoit_dsm_wrong("the section " SECTION
                            " shares a page with other variables; the linker must keep the order "
                            "of sections, as that of binutils does");
        if (dsm->page_bytes != 4096)
            quoit_dsm_wrong("variables marked DSM_SHARED need DSM_PAGE=4096");
        dl_iterate_phdr(take_base, &base);
        dsm->globals = (char *)(base + found->sh_addr);
        dsm->globals_bytes = end - found->sh_addr;
        uint64_t chunks = (dsm->globals_bytes + dsm->chunk_bytes - 1) >> dsm->chunk_shift;
        if (chunks >= dsm->chunk_count)
            quoit_dsm_wrong("variables marked DSM_SHARED take %llu MiB; a larger DSM_SPACE helps",
                            (unsigned long long)(dsm->globals_bytes >> 20));
        dsm->heap_bytes -= chunks << dsm->chunk_shift;
    }
    free(sections);
}

static void map_over(struct quoit_dsm *dsm, int access)
{
    if (mmap(dsm->globals, dsm->globals_bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        quoit_dsm_wrong("the variables marked DSM_SHARED cannot be mapped: %s", strerror(errno));
}

void quoit_dsm_globals_save(struct quoit_dsm *dsm)
{
    if (dsm->globals_bytes == 0)
        return;
    dsm->globals_held = malloc(dsm->globals_bytes);
    if (!dsm->globals_held)
        quoit_dsm_wrong("no memory for the values of variables marked DSM_SHARED");
    memcpy(dsm->globals_held, dsm->globals, dsm->globals_bytes);
}

void quoit_dsm_globals_cover(struct quoit_dsm *dsm)
{
    quoit_dsm_globals_save(dsm);
    if (dsm->globals_bytes != 0)
        map_over(dsm, PROT_NONE);
}

static void put_back(struct quoit_dsm *dsm)
{
    memcpy(dsm->globals, dsm->globals_held, dsm->globals_bytes);
}

static void forget(struct quoit_dsm *dsm)
{
    free(dsm->globals_held);
    dsm->globals_held = NULL;
}

void quoit_dsm_globals_fill(struct quoit_dsm *dsm)
{
    if (dsm->globals_bytes == 0)
        return;
    if (dsm->me == 0)
        put_back(dsm);
    forget(dsm);
    quoit_dsm_barrier(dsm);
}

void quoit_dsm_globals_restore(struct quoit_dsm *dsm)
{
    if (dsm->globals_bytes == 0)
        return;
    map_over(dsm, PROT_READ | PROT_WRITE);
    put_back(dsm);
    forget(dsm);
}
