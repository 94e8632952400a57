/* SPDX-License-Identifier: BSD-3-Clause */
/* elf_file.h - what a program or library says of itself, read from its file: names in its dynamic section, and the
 * version of Quoit that it is of.
 *
 * What it is: the program headers of an ELF file of this machine's class, which stripped files have too. The file is
 * the user's: every offset and size is checked, and what does not fit is taken as absent.
 *
 * Threads: any, each with a file of its own. Errors: a file that cannot be read has nothing in it.
 */
#ifndef QUOIT_ENV_ELF_FILE_H
#define QUOIT_ENV_ELF_FILE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/version.h"

#define QUOIT_ELF_HEADERS_MAX 64
#define QUOIT_ELF_ENTRIES_MAX 512

struct quoit_elf {
    int fd; /* -1: nothing could be read */
    ElfW(Phdr) headers[QUOIT_ELF_HEADERS_MAX];
    size_t header_count;
    ElfW(Dyn) entries[QUOIT_ELF_ENTRIES_MAX]; /* of the dynamic section, up to DT_NULL */
    size_t entry_count;                       /* 0: linked statically */
    uint64_t names;                           /* where the file has the strings of the dynamic section */
};

/* The file at `path`, relative to the folder (openat). False: it is no ELF file of this class. */
bool quoit_elf_open(struct quoit_elf *elf_out, int folder_fd, const char *path);
void quoit_elf_close(struct quoit_elf *elf);
/* The next string that an entry of this tag names, such as DT_NEEDED, cut to `bytes`; *at is 0 at first. False: there
 * are no more. */
bool quoit_elf_next_name(const struct quoit_elf *elf, long tag, size_t *at, char *name_out, size_t bytes);
/* The version of Quoit in its note (base/version.h). False: it has none. */
bool quoit_elf_version(const struct quoit_elf *elf, struct quoit_version *version_out);
/* The same of a file that is opened for that alone. */
bool quoit_elf_version_of(const char *path, struct quoit_version *version_out);

#endif
