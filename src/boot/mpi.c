/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that use MPI too. */
#include "boot/launcher.h"
#include "base/log.h"
#include "env/library.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static int find_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const char **path_out = arg, *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    (void)bytes;
    if (strncmp(name, "libmpi", 6) == 0 && strstr(name, ".so"))
        *path_out = info->dlpi_name;
    return *path_out != NULL;
}

/* A function of the MPI of this process; an interpreter opens MPI without showing its functions to others. */
static void *find_function(const char *name)
{
    const char *path = NULL;
    void *function = dlsym(RTLD_DEFAULT, name);
    if (function || dl_iterate_phdr(find_library, &path) == 0)
        return function;
    void *library = quoit_library_open(path, RTLD_LAZY | RTLD_NOLOAD);
    function = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return function;
}

bool quoit_boot_has_mpi(void)
{
    return find_function("MPI_Init") != NULL;
}

bool quoit_boot_mpi_was_used(void)
{
    int (*is_initialized)(int *flag);
    int flag = 0;
    void *function = find_function("MPI_Initialized");
    memcpy(&is_initialized, &function, sizeof is_initialized);
    return function && is_initialized(&flag) == 0 && flag;
}

void quoit_boot_warn_of_mpi(const struct quoit_boot *boot)
{
    if (boot->ops == &quoit_boot_oshrun && boot->pe == 0 && boot->layout.job.pe_count > 1 && quoit_boot_has_mpi())
        quoit_say("this program is linked with MPI, which oshrun does not start: MPI_Init makes an MPI job of one "
                  "process in each of the %u PEs [Q0307]",
                  boot->layout.job.pe_count);
}
