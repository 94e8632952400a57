/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/own_file.h"

#include <dlfcn.h>
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
