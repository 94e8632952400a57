/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that starts a program, which must not take itself for the PE. */
#include <shmem.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    shmem_init();
    int status = argc > 1 ? system(argv[1]) : 2;
    shmem_finalize();
    return status ? 1 : 0;
}
