/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose MPI has begun the conversation with the launcher, and ends it, on the descriptor that OpenSHMEM uses
 * in between. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int MPI_Init(int *argc, char ***argv);
__attribute__((visibility("default"))) int MPI_Initialized(int *flag);

static void ask(const char *request)
{
    char byte = 0;
    int fd = atoi(getenv("PMI_FD"));
    if (write(fd, request, strlen(request)) != (ssize_t)strlen(request))
        exit(9);
    while (byte != '\n')
        if (read(fd, &byte, 1) != 1)
            exit(9);
}

int MPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    ask("cmd=init pmi_version=1 pmi_subversion=1\n");
    return 0;
}

int MPI_Initialized(int *flag)
{
    *flag = 1;
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    shmem_init();
    printf("hello from PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
    shmem_finalize();
    ask("cmd=finalize\n");
    return 0;
}
