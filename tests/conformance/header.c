/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles without a warning: the headers of the user, under both names, twice. */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <shmem.h>
#include <shmemx.h>

int header_version(void);
int header_version(void)
{
    return SHMEM_MAJOR_VERSION + _SHMEM_MINOR_VERSION;
}
