/* SPDX-License-Identifier: BSD-3-Clause */
/* forks.c - a tool that follows fork and exec: handlers on both sides of a fork, which allocate, and a function in
 * place of execve and of its relatives that glibc does not route through it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned forks, depth;

static void before(void)
{
    free(malloc(100));
}

static void in_parent(void)
{
    free(malloc(200));
    forks++;
}

static void in_child(void)
{
    free(malloc(300));
    forks = 0;
    depth++;
}

__attribute__((constructor)) static void start(void)
{
    pthread_atfork(before, in_parent, in_child);
}

__attribute__((destructor)) static void report(void)
{
    if (getenv("TOOLS_REPORT"))
        dprintf(STDERR_FILENO, "forks: %u here, %u above\n", forks, depth);
}

/* As tools do that must be in the new program, too: the environment is copied, with one variable more. */
int execve(const char *path, char *const words[], char *const environment[])
{
    int (*next)(const char *, char *const[], char *const[]);
    *(void **)&next = dlsym(RTLD_NEXT, "execve");
    size_t count = 0;
    while (environment && environment[count])
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (!copy)
        return -1;
    if (count)
        memcpy(copy, environment, count * sizeof *copy);
    copy[count] = "TOOLS_FOLLOWED=1";
    int result = next(path, words, copy);
    free(copy);
    return result;
}
