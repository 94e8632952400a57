/* SPDX-License-Identifier: BSD-3-Clause */
/* debugged [PE]...: these PEs wait until a debugger sets `is_released`; then all meet in a barrier. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_US 10000u

static volatile int is_released;

static void __attribute__((noinline)) await_debugger(int me)
{
    printf("PE %d waits for its debugger\n", me);
    fflush(stdout);
    while (!is_released)
        usleep(LOOK_US);
}

int main(int argc, char **argv)
{
    shmem_init();
    int me = shmem_my_pe();
    for (int i = 1; i < argc; i++)
        if (atoi(argv[i]) == me)
            await_debugger(me);
    shmem_barrier_all();
    printf("PE %d goes on\n", me);
    shmem_finalize();
    return 0;
}
