/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that opens libraries: `load many FOLDER COUNT`, `load WRONG-USE LIBRARY`; or makes a mistake with its own
 * variables: `load mistake NAME`. See objects.py. */
#include <dlfcn.h>
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(4);
    }
    return library;
}

static long *variable(void *library, const char *function)
{
    long *(*find)(void) = (long *(*)(void))dlsym(library, function);
    return find();
}

/* All but the first are closed before they are used. */
static int many(const char *folder, int count)
{
    long **values = calloc((size_t)count, sizeof *values), **ends = calloc((size_t)count, sizeof *ends);
    void **libraries = calloc((size_t)count, sizeof *libraries);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/lib%d.so", folder, i);
        libraries[i] = open_library(path);
        values[i] = variable(libraries[i], "loaded_value");
        ends[i] = variable(libraries[i], "loaded_zeroed");
        *values[i] += i;
    }
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes, left = (me + pes - 1) % pes, wrong = 0;
    for (int i = 1; i < count; i++)
        dlclose(libraries[i]);
    for (int i = 0; i < count; i++) {
        wrong += *values[i] != 5 + i || *ends[i] != 0;
        wrong += !shmem_addr_accessible(values[i], right) || !shmem_addr_accessible(ends[i], right);
    }
    shmem_barrier_all();
    for (int i = 0; i < count && !wrong; i++) {
        shmem_long_p(values[i], me * 1000 + i, right);
        shmem_long_put(ends[i], &(long){me * 1000 + i + 500}, 1, right);
    }
    shmem_barrier_all();
    for (int i = 0; i < count && !wrong; i++) {
        wrong += *values[i] != left * 1000 + i || *ends[i] != left * 1000 + i + 500;
        wrong += shmem_long_g(values[i], right) != me * 1000 + i;
    }
    shmem_finalize();
    free(values);
    free(ends);
    free(libraries);
    if (me == 0)
        printf("%d libraries\n", count);
    return wrong ? 3 : 0;
}

static void *sleep_on(void *arg)
{
    char byte;
    return read(*(int *)arg, &byte, 1) == 0 ? arg : NULL;
}

/* Each use ends the job. */
static int misuse(const char *use, const char *path)
{
    void *library = strcmp(use, "late") == 0 ? NULL : open_library(path);
    int ends[2];
    pthread_t thread;
    if (strcmp(use, "threads") == 0 && (pipe(ends) != 0 || pthread_create(&thread, NULL, sleep_on, &ends[0]) != 0))
        return 4;
    shmem_init();
    if (!library)
        library = open_library(path);
    if (strcmp(use, "end") == 0)
        shmem_putmem(variable(library, "loaded_value"), path, 1 << 20, 0);
    else if (strcmp(use, "late") == 0)
        shmem_long_p(variable(library, "loaded_zeroed"), 1, 0);
    else if (strcmp(use, "threads") == 0)
        shmem_long_p(variable(library, "loaded_value"), 1, 0);
    else if (strcmp(use, "constant") == 0)
        shmem_long_p(variable(library, "loaded_constant"), 1, 0);
    else if (strcmp(use, "own") == 0)
        shmem_long_p(variable(library, "loaded_own"), 1, 0);
    return 0;
}

/* On all PEs at once, or PE 0 waits for ever. */
static int mistake(const char *name)
{
    static long flag[4], sum;
    long on_stack = 1;
    shmem_init();
    int me = shmem_my_pe();
    if (strcmp(name, "stack") == 0)
        shmem_long_p(&on_stack, 1, 0);
    else if (strcmp(name, "different") == 0)
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, me == 0 ? &flag[1] : &flag[2], &sum, 1);
    else if (me == 0)
        shmem_long_wait_until(&flag[3], SHMEM_CMP_EQ, 7);
    shmem_barrier_all();
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "mistake") == 0)
        return mistake(argv[2]);
    if (argc == 4 && strcmp(argv[1], "many") == 0)
        return many(argv[2], atoi(argv[3]));
    return argc == 3 ? misuse(argv[1], argv[2]) : 2;
}
