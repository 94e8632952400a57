/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with variables. Built with PLUGIN it also uses OpenSHMEM, as a plugin of another program does. */
#include <stddef.h>

static long value = 5;
static long zeroed[1000];
static const long constant = 6;
static _Thread_local long own;

long *loaded_value(void)
{
    return &value;
}

long *loaded_zeroed(void)
{
    return &zeroed[999];
}

const long *loaded_constant(void)
{
    return &constant;
}

long *loaded_own(void)
{
    return &own;
}

#ifdef PLUGIN
#include <shmem.h>

void plugin_init(void)
{
    shmem_init();
}

void plugin_finalize(void)
{
    shmem_finalize();
}

/* Whether every PE receives its left neighbour's number in both variables. */
int plugin_run(void)
{
    int me = shmem_my_pe(), pes = shmem_n_pes(), right = (me + 1) % pes, left = (me + pes - 1) % pes;
    shmem_long_p(&value, 100 + me, right);
    shmem_long_p(&zeroed[999], 200 + me, right);
    shmem_barrier_all();
    return value == 100 + left && zeroed[999] == 200 + left && zeroed[998] == 0;
}
#endif
