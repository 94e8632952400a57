/* SPDX-License-Identifier: BSD-3-Clause */
#include "foreign.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/version.h"

#define HEADERS_MAX 64
#define ENTRIES_MAX 512
#define PATH_SHOWN  "%.300s"

/* By the start of the name. Quoit's own is libshmem.so.1, which libsma.so leads to as well. */
static const struct {
    const char *start, *owner;
} libraries[] = {
    {"liboshmem.so", "Open MPI"},
    {"libsma.so", "Sandia OpenSHMEM or Cray OpenSHMEMX"},
    {"libshmem.so", "another OpenSHMEM project, such as OSSS-UCX"},
};
#define OWN_LIBRARY "libshmem.so.1"

/* The dynamic section of a program, by its program headers. */
struct dynamic {
    ElfW(Phdr) headers[HEADERS_MAX];
    size_t header_count;
    ElfW(Dyn) entries[ENTRIES_MAX];
    size_t entry_count;
};

static bool read_exactly(int fd, void *bytes_out, size_t byte_count, uint64_t offset)
{
    return pread(fd, bytes_out, byte_count, (off_t)offset) == (ssize_t)byte_count;
}

/* False: no dynamically linked program of this machine's kind. */
static bool read_dynamic(int fd, struct dynamic *dynamic_out)
{
    ElfW(Ehdr) head;
    if (!read_exactly(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof dynamic_out->headers[0] || head.e_phnum > HEADERS_MAX)
        return false;
    dynamic_out->header_count = head.e_phnum;
    if (!read_exactly(fd, dynamic_out->headers, head.e_phnum * sizeof dynamic_out->headers[0], head.e_phoff))
        return false;
    for (size_t i = 0; i < dynamic_out->header_count; i++) {
        const ElfW(Phdr) *header = &dynamic_out->headers[i];
        size_t bytes = header->p_filesz < sizeof dynamic_out->entries ? header->p_filesz : sizeof dynamic_out->entries;
        dynamic_out->entry_count = bytes / sizeof dynamic_out->entries[0];
        if (header->p_type == PT_DYNAMIC)
            return read_exactly(fd, dynamic_out->entries, dynamic_out->entry_count * sizeof dynamic_out->entries[0],
                                header->p_offset);
    }
    return false;
}

/* Where the file has what is loaded at an address; 0: nowhere. */
static uint64_t file_offset(const struct dynamic *dynamic, uint64_t address)
{
    for (size_t i = 0; i < dynamic->header_count; i++) {
        const ElfW(Phdr) *header = &dynamic->headers[i];
        if (header->p_type == PT_LOAD && address - header->p_vaddr < header->p_filesz)
            return header->p_offset + (address - header->p_vaddr);
    }
    return 0;
}

static bool is_foreign(const char *name, const char **owner_out)
{
    if (strcmp(name, OWN_LIBRARY) == 0)
        return false;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        size_t length = strlen(libraries[i].start);
        *owner_out = libraries[i].owner;
        if (strncmp(name, libraries[i].start, length) == 0 && (name[length] == '.' || name[length] == '\0'))
            return true;
    }
    return false;
}

static bool look_at_names(int fd, const struct dynamic *dynamic, struct foreign_library *library_out)
{
    uint64_t names = 0;
    for (size_t i = 0; i < dynamic->entry_count && dynamic->entries[i].d_tag != DT_NULL; i++)
        if (dynamic->entries[i].d_tag == DT_STRTAB)
            names = file_offset(dynamic, dynamic->entries[i].d_un.d_ptr);
    for (size_t i = 0; i < dynamic->entry_count && names && dynamic->entries[i].d_tag != DT_NULL; i++) {
        if (dynamic->entries[i].d_tag != DT_NEEDED)
            continue;
        ssize_t bytes =
            pread(fd, library_out->name, FOREIGN_NAME_BYTES - 1, (off_t)(names + dynamic->entries[i].d_un.d_val));
        library_out->name[bytes > 0 ? bytes : 0] = '\0';
        if (is_foreign(library_out->name, &library_out->owner))
            return true;
    }
    return false;
}

bool foreign_find(int folder_fd, const char *path, struct foreign_library *library_out)
{
    struct dynamic dynamic;
    int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_found = read_dynamic(fd, &dynamic) && look_at_names(fd, &dynamic, library_out);
    close(fd);
    return is_found;
}

void foreign_own_folder(char path_out[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path_out, PATH_MAX - 1);
    path_out[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path_out, '/');
    if (slash)
        *slash = '\0';
}

/* The file with a process's libshmem; "" if it has none mapped, as a program that is linked statically. */
static void find_library(pid_t pid, char path_out[PATH_MAX])
{
    char name[64], *line = NULL;
    size_t bytes = 0;
    path_out[0] = '\0';
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *maps = fopen(name, "re");
    while (maps && !path_out[0] && getline(&line, &bytes, maps) > 0) {
        const char *path = strchr(line, '/');
        if (path && strstr(path, "/libshmem.so"))
            snprintf(path_out, PATH_MAX, "%.*s", (int)strcspn(path, "\n"), path);
    }
    free(line);
    if (maps)
        fclose(maps);
}

void foreign_describe_version(const struct quoit_boot_message *hello, size_t byte_count, pid_t sender,
                              char text_out[QUOIT_BOOT_TEXT_BYTES])
{
    char version[QUOIT_VERSION_TEXT_BYTES], library[PATH_MAX], folder[PATH_MAX];
    quoit_version_get(hello, byte_count, version);
    find_library(sender, library);
    foreign_own_folder(folder);
    snprintf(text_out, QUOIT_BOOT_TEXT_BYTES,
             "the program's library is Quoit of %s (" PATH_SHOWN "), which this oshrun of version %.24s (" PATH_SHOWN
             "/oshrun) does not understand [Q0214]\n"
             "  start it with the oshrun that was installed with that library, or build it again with the oshcc beside "
             "this oshrun",
             version, library[0] ? library : "linked statically", quoit_version(), folder);
}
