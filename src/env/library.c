/* SPDX-License-Identifier: BSD-3-Clause */
#include "env/library.h"

#include <dlfcn.h>
#include <stddef.h>

static __typeof__(&dlopen) find_dlopen(void)
{
    return (__typeof__(&dlopen))dlsym(RTLD_DEFAULT, "dlopen");
}

bool quoit_library_can_open(void)
{
    return find_dlopen() != NULL;
}

void *quoit_library_open(const char *path, int flags)
{
    __typeof__(&dlopen) open_library = find_dlopen();
    return open_library ? open_library(path, flags) : NULL;
}

const char *quoit_library_problem(void)
{
    const char *problem = dlerror();
    return quoit_library_can_open() && problem ? problem : "the program is linked statically";
}
