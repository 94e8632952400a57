/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiles without a warning: the public headers, under both names, each included twice. */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <shmem.h>
#include <shmemx.h>

int header_version(void);
int header_version(void)
{
    return SHMEM_MAJOR_VERSION + _SHMEM_MINOR_VERSION;
}
