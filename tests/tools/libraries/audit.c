/* SPDX-License-Identifier: BSD-3-Clause */
/* audit.c - a tool for LD_AUDIT: sees each binding of a symbol, and reports that of shmem_init. */
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned la_version(unsigned version)
{
    return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
    (void)map, (void)space, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags,
                       const char *name)
{
    (void)index, (void)from, (void)to, (void)flags;
    if (strcmp(name, "shmem_init") == 0)
        dprintf(STDERR_FILENO, "audit: shmem_init is bound\n");
    return symbol->st_value;
}
