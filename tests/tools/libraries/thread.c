/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - a tool with a thread in each process from its start, which blocks no signal, so that the kernel may choose
 * it to take any. It counts, allocates, and reports at exit. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_ulong turns;

static void *count(void *unused)
{
    for (;; atomic_fetch_add(&turns, 1)) {
        struct timespec millisecond = {.tv_nsec = 1000000};
        free(malloc(1 + atomic_load(&turns) % 1000));
        nanosleep(&millisecond, NULL);
    }
    return unused;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, count, NULL) == 0)
        pthread_detach(thread);
}

__attribute__((destructor)) static void report(void)
{
    if (getenv("TOOLS_REPORT"))
        dprintf(STDERR_FILENO, "thread: %lu turns\n", atomic_load(&turns));
}
