/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/own_file.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool quoit_own_file(char path_out[PATH_MAX])
{
    Dl_info info;
    ssize_t bytes = -1;
    if (dladdr((void *)(uintptr_t)quoit_own_file, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        bytes = snprintf(path_out, PATH_MAX, "%s", info.dli_fname);
    else
        bytes = readlink("/proc/self/exe", path_out, PATH_MAX - 1);
    bool is_found = bytes > 0 && bytes < PATH_MAX;
    path_out[is_found ? bytes : 0] = '\0';
    return is_found;
}

/* The program comes first. */
static int look_at_program(struct dl_phdr_info *info, size_t bytes, void *is_own_out)
{
    (void)bytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + header->p_vaddr, at = (uintptr_t)look_at_program;
        *(bool *)is_own_out |= header->p_type == PT_LOAD && at - begin < header->p_memsz;
    }
    return 1;
}

bool quoit_own_is_program(void)
{
    bool is_own = false;
    dl_iterate_phdr(look_at_program, &is_own);
    return is_own;
}
