/* SPDX-License-Identifier: BSD-3-Clause */
/* One wrong call, selected by its name. Each must end the job with its message, listed in misuse.txt; misuse.sh checks
 * it. Runs with any number of PEs. */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long global, globals[8], many_globals[64];
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
    shmem_putmem(stdout, &global, 8, 0); /* it points into the C library */
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
static void stride_past_all(void) /* on one PE the last element lies at SIZE_MAX */
{
    shmem_long_alltoalls(SHMEM_TEAM_WORLD, heap, globals, (ptrdiff_t)(SIZE_MAX / 3), 1, 4);
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
static void ctx_of_dead_team(void)
{
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_team_destroy(team);
    shmem_ctx_long_p(ctx, heap, 1, 0);
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
    int is_last = shmem_my_pe() == shmem_n_pes() - 1; /* the others contribute nothing, but receive as many elements */
    shmem_long_collect(SHMEM_TEAM_WORLD, NULL, globals, is_last ? 1 : 0);
}
static void free_wild(void)
{
    shmem_free(&global);
}
static void check_free_inside(void)
{
    shmem_free(block + 1);
}
static void free_twice(void)
{
    shmem_free(block);
    shmem_free(block);
}
static void check_align_three(void)
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
static void lock_not_zero(void)
{
    global = 0x77;
    shmem_barrier_all();
    shmem_set_lock(&global);
}
static void lock_junk(void)
{
    global = 0x7777777777777777;
    shmem_barrier_all();
    shmem_test_lock(&global);
}
static void active_set(void)
{
    shmem_barrier(0, 3, shmem_n_pes() + 1, globals);
}
static void different_sizes(void)
{
    shmem_malloc(100 + (size_t)shmem_my_pe());
}
static void team_ctx_bad_pe(void)
{
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
    if (team == SHMEM_TEAM_INVALID)
        sleep(20);
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_ctx_long_p(ctx, heap, 1, 1);
}
static void pe_quiet_bad_pe(void)
{
    const int pes[2] = {0, shmem_n_pes()};
    shmem_pe_quiet(pes, 2);
}
static void pe_quiet_null(void)
{
    shmem_pe_quiet(NULL, 3);
}
static void signal_unaligned(void)
{
    shmem_signal_add((uint64_t *)(void *)((char *)heap + 4), 1, 0);
}
static void some_null(void)
{
    shmem_long_wait_until_some(globals, 4, NULL, NULL, SHMEM_CMP_EQ, 1);
}
static void vector_null(void)
{
    shmem_long_test_all_vector(globals, 4, NULL, SHMEM_CMP_EQ, NULL);
}
static void destroy_world(void)
{
    shmem_team_destroy(SHMEM_TEAM_WORLD);
}
static void destroy_default_ctx(void)
{
    shmem_ctx_destroy(SHMEM_CTX_DEFAULT);
}
static void ctx_options(void)
{
    shmem_ctx_t ctx;
    shmem_ctx_create(64, &ctx);
}
static void new_team_null(void)
{
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, NULL);
}
static void outside_set(void)
{
    shmem_barrier(shmem_n_pes() - 1 - shmem_my_pe(), 0, 1, globals);
}
static void set_negative_count(void)
{
    shmem_long_sum_to_all(heap, globals, -1, 0, 0, shmem_n_pes(), NULL, globals);
}
static void realloc_inside(void)
{
    shmem_realloc(block + 1, 200);
}
static void clear_lock_of_other(void)
{
    if (shmem_my_pe() == 0)
        shmem_set_lock(&global);
    shmem_barrier_all();
    if (shmem_my_pe() == 1)
        shmem_clear_lock(&global);
}
static void after_finalize(void)
{
    shmem_finalize();
    shmem_long_p(&global, 1, 0);
}

/* Detected by --check only. */
static long psync[SHMEM_SYNC_SIZE], wrong_psync[SHMEM_SYNC_SIZE] = {9};
static void check_put_past_block(void)
{
    static char zeros[800];
    shmem_putmem(heap, zeros, sizeof zeros, 0);
}
static void check_get_past_variable(void)
{
    long got[16];
    shmem_long_get(got, globals, 9, 0);
}
static void check_amo_past_block(void)
{
    shmem_long_atomic_inc(heap + 8, 0);
}
static void check_strided_past_block(void)
{
    shmem_long_iput(heap, globals, 3, 1, 4, 0);
}
static void check_sum_past_block(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, globals, 9);
}
static void check_after_free(void)
{
    shmem_free(block);
    shmem_long_p(block + 2, 1, 0);
}
static void check_free_twice(void)
{
    shmem_free(block);
    shmem_free(block);
}
static void check_store_after_free(void)
{
    shmem_free(block);
    ((volatile char *)block)[3] = 1;
    shmem_finalize();
}
/* Only the ends of a large block are looked at. */
static void check_store_after_large_free(void)
{
    const size_t bytes = 5 << 20;
    char *large = shmem_malloc(bytes);
    shmem_free(large);
    ((volatile char *)large)[bytes - 2] = 1;
    shmem_finalize();
}
static void check_store_past_block(void)
{
    ((volatile char *)block)[104] = 1;
    shmem_free(block);
}
static void check_overlap(void)
{
    shmem_long_put(heap + 1, heap, 4, shmem_my_pe());
}
static void check_collect_overlap(void)
{
    shmem_long_fcollect(SHMEM_TEAM_WORLD, heap, heap, 1);
}
static void check_collect_past_block(void)
{
    shmem_long_collect(SHMEM_TEAM_WORLD, heap, globals, 6);
}
static void check_set_collect_past_block(void)
{
    shmem_collect64(heap, globals, 6, 0, 0, shmem_n_pes(), psync);
}
static void check_source_past_block(void)
{
    shmem_long_put(many_globals, heap, 9, 0);
}
static void check_target_past_variable(void)
{
    shmem_long_get(globals, many_globals, 16, 0);
}
static void check_source_freed(void)
{
    shmem_free(block);
    shmem_long_put_nbi(many_globals, block, 4, 0);
}
static void check_strided_source(void)
{
    shmem_long_iput(many_globals, globals, 1, 3, 4, 0);
}
static void check_fetch_freed(void)
{
    shmem_free(block);
    shmem_long_atomic_fetch_nbi(block, &global, 0);
}
static void check_psync_unset(void)
{
    shmem_sync(0, 0, shmem_n_pes(), wrong_psync);
}
static void *call_in_thread(void *arg)
{
    shmem_long_p(&global, 1, 0);
    return arg;
}
static void check_second_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, call_in_thread, NULL);
    pthread_join(thread, NULL);
}
static shmem_ctx_t private_ctx;
static void *use_private_ctx(void *arg)
{
    shmem_ctx_quiet(private_ctx);
    return arg;
}
static void check_private_ctx(void)
{
    pthread_t thread;
    shmem_ctx_create(SHMEM_CTX_PRIVATE, &private_ctx);
    pthread_create(&thread, NULL, use_private_ctx, NULL);
    pthread_join(thread, NULL);
}
static void *wait_in_thread(void *arg)
{
    shmem_long_wait_until(&global, SHMEM_CMP_NE, 0);
    return arg;
}
static void check_two_at_once(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_in_thread, NULL);
    for (;;) { /* it may not be in its call at first */
        usleep(300000);
        shmem_quiet();
    }
}
/* One thread is in a long get on the context when the other calls. */
static shmem_ctx_t shared_ctx;
static char *many;
static void *read_by_shared_ctx(void *arg)
{
    for (;;)
        shmem_ctx_getmem(shared_ctx, arg, many, 32 << 20, 0);
    return arg;
}
static void check_serialized_ctx(void)
{
    pthread_t thread;
    many = shmem_malloc(32 << 20);
    shmem_ctx_create(SHMEM_CTX_SERIALIZED, &shared_ctx);
    pthread_create(&thread, NULL, read_by_shared_ctx, malloc(32 << 20));
    for (;;)
        shmem_ctx_quiet(shared_ctx);
}
static void check_funneled(void)
{
    check_second_thread();
}
static void check_team_dead(void)
{
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
}
static void check_alltoalls_overlap(void)
{
    shmem_long_alltoalls(SHMEM_TEAM_WORLD, &many_globals[2], many_globals, 2, 2, 2);
}
static void check_set_sum_overlap(void)
{
    shmem_long_sum_to_all(&many_globals[2], many_globals, 4, 0, 0, shmem_n_pes(), &many_globals[16], psync);
}
static void check_short_work(void)
{
    shmem_long_sum_to_all(heap, many_globals, 4, 0, 0, shmem_n_pes(), globals + 4, psync);
}
static void check_set_alltoall_overlap(void)
{
    shmem_alltoall64(many_globals + 1, many_globals, 1, 0, 0, shmem_n_pes(), psync);
}
static void sum_overlap(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &many_globals[1], many_globals, 2);
}
static void alltoall_overlap(void)
{
    shmem_long_alltoall(SHMEM_TEAM_WORLD, many_globals, many_globals, 1);
}
static void set_fcollect_overlap(void)
{
    shmem_fcollect64(many_globals, many_globals, 1, 0, 0, shmem_n_pes(), psync);
}
/* As MPI_IN_PLACE: the source is this PE's block of dest. */
static void fcollect_inside(void)
{
    shmem_long_fcollect(SHMEM_TEAM_WORLD, many_globals, &many_globals[shmem_my_pe()], 1);
}
static void check_fcollect_inside(void)
{
    shmem_long_fcollect(SHMEM_TEAM_WORLD, many_globals, &many_globals[shmem_my_pe()], 1);
}
/* Two teams of the same members; the PEs call with different ones. */
static void check_wrong_team(void)
{
    shmem_team_t teams[2];
    for (int i = 0; i < 2; i++)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &teams[i]);
    for (int i = 0; i < 3; i++) {
        shmem_team_sync(teams[0]);
        shmem_team_sync(teams[1]);
    }
    shmem_team_sync(teams[shmem_my_pe() == 1]);
}
static void check_world_for_team(void)
{
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, shmem_n_pes() - 1, -1, shmem_n_pes(), NULL, 0, &team);
    shmem_long_sum_reduce(shmem_my_pe() == 2 ? SHMEM_TEAM_WORLD : team, heap, globals, 2);
}
static void check_nelems(void)
{
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, globals, shmem_my_pe() == 1 ? 3 : 4);
}
static void check_root(void)
{
    shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, globals, 1, shmem_my_pe() % 2);
}
static void check_dest(void)
{
    shmem_long_max_reduce(SHMEM_TEAM_WORLD, shmem_my_pe() == 1 ? globals + 2 : globals + 1, heap, 1);
}
static void check_routine(void)
{
    if (shmem_my_pe() == 1)
        shmem_barrier_all();
    else
        shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, globals, 1, 0);
}
static void check_set_root(void)
{
    shmem_broadcast64(heap, globals, 1, shmem_my_pe() % 2, 0, 0, shmem_n_pes(), psync);
}
static void check_malloc_size(void)
{
    shmem_malloc(100 + (size_t)shmem_my_pe());
}
/* PE 1 is delayed in the first collective while PE 0, the root, enters the second. */
static void check_psync_in_use(void)
{
    static char large[32 << 20];
    for (int i = 0; i < 1000; i++)
        shmem_broadcast64(large, large, sizeof large / 8, i % 2, 0, 0, shmem_n_pes(), psync);
}
static void check_leak(void)
{
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_ctx_t ctx;
    shmem_team_create_ctx(team, 0, &ctx);
    shmem_finalize();
    exit(0);
}
static void check_leak_of_some(void)
{
    shmem_ctx_t ctx;
    if (shmem_my_pe() % 2)
        shmem_ctx_create(0, &ctx);
    shmem_finalize();
    exit(0);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(NAME)                                                                                                     \
    {                                                                                                                  \
#NAME, NAME                                                                                                    \
    }
    CASE(put_bad_pe),
    CASE(p_negative_pe),
    CASE(put_stack),
    CASE(put_malloc),
    CASE(put_library),
    CASE(put_constant),
    CASE(put_wild),
    CASE(put_null),
    CASE(put_null_source),
    CASE(get_past_heap),
    CASE(get_beyond_heap),
    CASE(put_past_globals),
    CASE(too_many),
    CASE(stride_zero),
    CASE(stride_past_all),
    CASE(block_stride),
    CASE(amo_unaligned),
    CASE(bad_cmp),
    CASE(bad_signal_op),
    CASE(wait_stack),
    CASE(ctx_null),
    CASE(ctx_dead),
    CASE(ctx_of_dead_team),
    CASE(team_invalid),
    CASE(team_wild),
    CASE(bad_root),
    CASE(free_wild),
    CASE(check_free_inside),
    CASE(free_twice),
    CASE(clear_free_lock),
    CASE(lock_twice),
    CASE(collect_null),
    CASE(lock_not_zero),
    CASE(lock_junk),
    CASE(active_set),
    CASE(different_sizes),
    CASE(team_ctx_bad_pe),
    CASE(pe_quiet_bad_pe),
    CASE(pe_quiet_null),
    CASE(signal_unaligned),
    CASE(some_null),
    CASE(vector_null),
    CASE(destroy_world),
    CASE(destroy_default_ctx),
    CASE(ctx_options),
    CASE(new_team_null),
    CASE(outside_set),
    CASE(set_negative_count),
    CASE(realloc_inside),
    CASE(clear_lock_of_other),
    CASE(after_finalize),

    CASE(check_align_three),
    CASE(check_source_past_block),
    CASE(check_target_past_variable),
    CASE(check_source_freed),
    CASE(check_strided_source),
    CASE(check_fetch_freed),
    CASE(check_put_past_block),
    CASE(check_get_past_variable),
    CASE(check_amo_past_block),
    CASE(check_strided_past_block),
    CASE(check_sum_past_block),
    CASE(check_after_free),
    CASE(check_free_twice),
    CASE(check_store_after_free),
    CASE(check_store_after_large_free),
    CASE(check_store_past_block),
    CASE(check_overlap),
    CASE(check_collect_overlap),
    CASE(check_collect_past_block),
    CASE(check_set_collect_past_block),
    CASE(check_psync_unset),
    CASE(check_second_thread),
    CASE(check_private_ctx),
    CASE(check_two_at_once),
    CASE(check_serialized_ctx),
    CASE(check_funneled),
    CASE(check_team_dead),
    CASE(check_alltoalls_overlap),
    CASE(check_set_sum_overlap),
    CASE(check_short_work),
    CASE(check_set_alltoall_overlap),
    CASE(sum_overlap),
    CASE(alltoall_overlap),
    CASE(set_fcollect_overlap),
    CASE(fcollect_inside),
    CASE(check_fcollect_inside),
    CASE(check_wrong_team),
    CASE(check_world_for_team),
    CASE(check_nelems),
    CASE(check_root),
    CASE(check_dest),
    CASE(check_routine),
    CASE(check_set_root),
    CASE(check_malloc_size),
    CASE(check_psync_in_use),
    CASE(check_leak),
    CASE(check_leak_of_some),
};

/* What a case requires. */
static int level_of(const char *name)
{
    if (strcmp(name, "check_two_at_once") == 0)
        return SHMEM_THREAD_SERIALIZED;
    if (strcmp(name, "check_private_ctx") == 0 || strcmp(name, "check_serialized_ctx") == 0)
        return SHMEM_THREAD_MULTIPLE;
    return strcmp(name, "check_funneled") == 0 ? SHMEM_THREAD_FUNNELED : SHMEM_THREAD_SINGLE;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "before_init") == 0)
        shmem_long_put(globals, &global, 1, 0);
    if (argc > 1 && strcmp(argv[1], "finalize_before_init") == 0)
        shmem_finalize();
    if (argc > 1 && strcmp(argv[1], "provided_null") == 0)
        shmem_init_thread(SHMEM_THREAD_SINGLE, NULL);
    int provided;
    shmem_init_thread(level_of(argc > 1 ? argv[1] : ""), &provided);
    heap = shmem_malloc(64);
    block = shmem_malloc(100);
    shmem_ctx_create(0, &dead_ctx);
    shmem_ctx_destroy(dead_ctx);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    sleep(20); /* ended by the message of another PE */
    return 0;
}
