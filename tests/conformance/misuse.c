/* SPDX-License-Identifier: BSD-3-Clause */
/* One wrong call, chosen by its name. Every one must end the job with its message; misuse.sh and CMakeLists.txt say
 * with which. Runs with any number of PEs. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long global, globals[8];
static uint64_t sig;
static long *heap, *block;
static shmem_ctx_t dead_ctx;

static void put_bad_pe(void)
{
    shmem_long_put(heap, &global, 1, shmem_n_pes() + 1);
}
static void p_negative_pe(void)
{
    shmem_int_p((int *)heap, 1, -1);
}
static void put_stack(void)
{
    long stack = 0;
    shmem_putmem(&stack, &global, 8, 0);
}
static void put_malloc(void)
{
    void *memory = malloc(100);
    shmem_putmem(memory, &global, 8, 0);
}
static void put_library(void)
{
    shmem_putmem(stdout, &global, 8, 0); /* what it points to is the C library's */
}
static void put_constant(void)
{
    static const long constant = 1;
    shmem_long_p((long *)(uintptr_t)&constant, 2, 0);
}
static void put_wild(void)
{
    shmem_long_p((long *)16, 2, 0);
}
static void put_null(void)
{
    shmem_long_p(NULL, 2, 0);
}
static void put_null_source(void)
{
    shmem_long_put(heap, NULL, 3, 0);
}
static void get_past_heap(void)
{
    static char buffer[1 << 22];
    shmem_getmem(buffer, block, sizeof buffer, 0);
}
static void get_beyond_heap(void)
{
    shmem_long_g(heap + (1 << 20), 0);
}
static void put_past_globals(void)
{
    shmem_putmem(&global, heap, 1 << 26, 0);
}
static void too_many(void)
{
    shmem_long_put(heap, &global, SIZE_MAX / 2, 0);
}
static void stride_zero(void)
{
    shmem_long_iput(heap, globals, 0, 1, 4, 0);
}
static void block_stride(void)
{
    shmem_long_ibget(globals, heap, 4, 1, 2, 3, 0);
}
static void amo_unaligned(void)
{
    shmem_long_atomic_inc((long *)(void *)((char *)heap + 4), 0);
}
static void bad_cmp(void)
{
    shmem_long_wait_until(&global, 17, 0);
}
static void bad_signal_op(void)
{
    shmem_long_put_signal(heap, &global, 1, &sig, 1, 5, 0);
}
static void wait_stack(void)
{
    int stack = 0;
    shmem_int_wait_until(&stack, SHMEM_CMP_EQ, 1);
}
static void ctx_null(void)
{
    shmem_ctx_long_p(SHMEM_CTX_INVALID, heap, 1, 0);
}
static void ctx_dead(void)
{
    shmem_ctx_quiet(dead_ctx);
}
static void team_invalid(void)
{
    shmem_team_sync(SHMEM_TEAM_INVALID);
}
static void team_wild(void)
{
    shmem_long_sum_reduce((shmem_team_t)(uintptr_t)0x1234, heap, globals, 1);
}
static void bad_root(void)
{
    shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, globals, 1, shmem_n_pes());
}
static void collect_null(void)
{
    int is_last = shmem_my_pe() == shmem_n_pes() - 1; /* the others have nothing, but get what it has */
    shmem_long_collect(SHMEM_TEAM_WORLD, NULL, globals, is_last ? 1 : 0);
}
static void free_wild(void)
{
    shmem_free(&global);
}
static void free_inside(void)
{
    shmem_free(block + 1);
}
static void free_twice(void)
{
    shmem_free(block);
    shmem_free(block);
}
static void align_three(void)
{
    shmem_align(24, 8);
}
static void clear_free_lock(void)
{
    shmem_clear_lock(&global);
}
static void lock_twice(void)
{
    shmem_set_lock(&global);
    shmem_set_lock(&global);
}
static void active_set(void)
{
    shmem_barrier(0, 3, shmem_n_pes() + 1, globals);
}
static void different_sizes(void)
{
    shmem_malloc(100 + (size_t)shmem_my_pe());
}
static void after_finalize(void)
{
    shmem_finalize();
    shmem_long_p(&global, 1, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(NAME)                                                                                                     \
    {                                                                                                                  \
#NAME, NAME                                                                                                    \
    }
    CASE(put_bad_pe),      CASE(p_negative_pe),    CASE(put_stack),       CASE(put_malloc),      CASE(put_library),
    CASE(put_constant),    CASE(put_wild),         CASE(put_null),        CASE(put_null_source), CASE(get_past_heap),
    CASE(get_beyond_heap), CASE(put_past_globals), CASE(too_many),        CASE(stride_zero),     CASE(block_stride),
    CASE(amo_unaligned),   CASE(bad_cmp),          CASE(bad_signal_op),   CASE(wait_stack),      CASE(ctx_null),
    CASE(ctx_dead),        CASE(team_invalid),     CASE(team_wild),       CASE(bad_root),        CASE(free_wild),
    CASE(free_inside),     CASE(free_twice),       CASE(align_three),     CASE(clear_free_lock), CASE(lock_twice),
    CASE(collect_null),    CASE(active_set),       CASE(different_sizes), CASE(after_finalize),
};

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "before_init") == 0)
        shmem_long_put(globals, &global, 1, 0);
    shmem_init();
    heap = shmem_malloc(64);
    block = shmem_malloc(100);
    shmem_ctx_create(0, &dead_ctx);
    shmem_ctx_destroy(dead_ctx);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    sleep(20); /* the message of another PE ends this one */
    return 0;
}
