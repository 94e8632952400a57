/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes one mistake with the variable that its argument chooses; in C and in C++, as a program or as a library (see
 * objects.py). The number of the PE is the status if nothing notices. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

static long of_file[4];
long of_program[4];
#ifdef __cplusplus
namespace space
{
long of_space[4];
}
#define OF_SPACE space::of_space
#else
#define OF_SPACE of_program
#endif

static long *of_a_function(void)
{
    static long of_function[4];
    return of_function;
}

static long *of_another_function(void)
{
    static long of_function[4];
    return of_function;
}

static long *choose(const char *name)
{
    return strcmp(name, "file") == 0      ? of_file
           : strcmp(name, "program") == 0 ? of_program
           : strcmp(name, "space") == 0   ? OF_SPACE
           : strcmp(name, "another") == 0 ? of_another_function()
                                          : of_a_function();
}

#ifdef __cplusplus
extern "C" void mistake(const char *name, const char *kind);
#else
void mistake(const char *name, const char *kind);
#endif

/* `kind`: a transfer past all variables, from two sources at once, a free, or a transfer past one variable (--check).
 */
void mistake(const char *name, const char *kind)
{
    long *variable = choose(name);
    if (strcmp(kind, "far") == 0)
        shmem_putmem(variable + 1, variable, 64u << 20, 0);
    else if (strcmp(kind, "overlap") == 0)
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, variable + 1, variable, 2);
    else if (strcmp(kind, "free") == 0)
        shmem_free(variable);
    else
        shmem_long_put(variable, variable, 5, 0);
}

#ifndef LIBRARY
int main(int argc, char **argv)
{
    shmem_init();
    if (argc == 3)
        mistake(argv[1], argv[2]);
    int pe = shmem_my_pe();
    shmem_finalize();
    return pe;
}
#endif
