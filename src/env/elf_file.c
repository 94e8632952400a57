/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define NOTES_MAX 64

static bool read_exactly(int fd, void *bytes_out, size_t byte_count, uint64_t offset)
{
    return pread(fd, bytes_out, byte_count, (off_t)offset) == (ssize_t)byte_count;
}

static bool read_headers(struct quoit_elf *elf)
{
    ElfW(Ehdr) head;
    if (!read_exactly(elf->fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof elf->headers[0] || head.e_phnum > QUOIT_ELF_HEADERS_MAX)
        return false;
    elf->header_count = head.e_phnum;
    return read_exactly(elf->fd, elf->headers, head.e_phnum * sizeof elf->headers[0], head.e_phoff);
}

/* Where the file has what is loaded at an address; 0: nowhere. */
static uint64_t file_offset(const struct quoit_elf *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->header_count; i++) {
        const ElfW(Phdr) *header = &elf->headers[i];
        if (header->p_type == PT_LOAD && address - header->p_vaddr < header->p_filesz)
            return header->p_offset + (address - header->p_vaddr);
    }
    return 0;
}

static void read_dynamic(struct quoit_elf *elf, const ElfW(Phdr) * header)
{
    size_t bytes = header->p_filesz < sizeof elf->entries ? header->p_filesz : sizeof elf->entries;
    size_t count = bytes / sizeof elf->entries[0];
    if (!read_exactly(elf->fd, elf->entries, count * sizeof elf->entries[0], header->p_offset))
        return;
    while (elf->entry_count < count && elf->entries[elf->entry_count].d_tag != DT_NULL) {
        const ElfW(Dyn) *entry = &elf->entries[elf->entry_count++];
        if (entry->d_tag == DT_STRTAB)
            elf->names = file_offset(elf, entry->d_un.d_ptr);
    }
}

bool quoit_elf_open(struct quoit_elf *elf_out, int folder_fd, const char *path)
{
    *elf_out = (struct quoit_elf){.fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (elf_out->fd >= 0 && !read_headers(elf_out))
        quoit_elf_close(elf_out);
    for (size_t i = 0; elf_out->fd >= 0 && i < elf_out->header_count && elf_out->entry_count == 0; i++)
        if (elf_out->headers[i].p_type == PT_DYNAMIC)
            read_dynamic(elf_out, &elf_out->headers[i]);
    return elf_out->fd >= 0;
}

void quoit_elf_close(struct quoit_elf *elf)
{
    if (elf->fd >= 0)
        close(elf->fd);
    *elf = (struct quoit_elf){.fd = -1};
}

bool quoit_elf_next_name(const struct quoit_elf *elf, long tag, size_t *at, char *name_out, size_t bytes)
{
    while (*at < elf->entry_count && elf->names) {
        const ElfW(Dyn) *entry = &elf->entries[(*at)++];
        if (entry->d_tag != tag)
            continue;
        ssize_t read_bytes = pread(elf->fd, name_out, bytes - 1, (off_t)(elf->names + entry->d_un.d_val));
        name_out[read_bytes > 0 ? read_bytes : 0] = '\0';
        return true;
    }
    return false;
}

/* Of one segment of notes. */
static bool find_version(const struct quoit_elf *elf, const ElfW(Phdr) * segment, struct quoit_version *version_out)
{
    const uint64_t mask = segment->p_align == 8 ? 7 : 3;
    uint64_t at = segment->p_offset, end = at + segment->p_filesz;
    for (int i = 0; i < NOTES_MAX && at < end; i++) {
        ElfW(Nhdr) note;
        char owner[sizeof QUOIT_VERSION_NOTE_OWNER];
        if (!read_exactly(elf->fd, &note, sizeof note, at))
            return false;
        uint64_t contents = (at + sizeof note + note.n_namesz + mask) & ~mask;
        if (note.n_type == QUOIT_VERSION_NOTE_TYPE && note.n_namesz == sizeof owner &&
            note.n_descsz == sizeof *version_out && read_exactly(elf->fd, owner, sizeof owner, at + sizeof note) &&
            memcmp(owner, QUOIT_VERSION_NOTE_OWNER, sizeof owner) == 0)
            return read_exactly(elf->fd, version_out, sizeof *version_out, contents) &&
                   quoit_version_is_valid(version_out);
        at = (contents + note.n_descsz + mask) & ~mask;
    }
    return false;
}

bool quoit_elf_version(const struct quoit_elf *elf, struct quoit_version *version_out)
{
    for (size_t i = 0; i < elf->header_count; i++)
        if (elf->headers[i].p_type == PT_NOTE && find_version(elf, &elf->headers[i], version_out))
            return true;
    return false;
}

bool quoit_elf_version_of(const char *path, struct quoit_version *version_out)
{
    struct quoit_elf elf;
    bool is_found = quoit_elf_open(&elf, AT_FDCWD, path) && quoit_elf_version(&elf, version_out);
    quoit_elf_close(&elf);
    return is_found;
}
