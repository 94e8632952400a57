/* SPDX-License-Identifier: BSD-3-Clause */
/* level.c - the cost of a thread level and of a context created by the program: an 8-byte put, and a ping-pong.
 *
 * Use: level single|multiple WHERE [TARGET]      WHERE is a word for the output; TARGET is a PE, 1 by default
 * put: consecutive 8-byte puts, then one quiet. pingpong: PE 0 puts a word, TARGET waits for it and puts one back. Each
 * with the default context and with one created by the program, alternating. bench/run --levels runs both levels
 * alternately, several times.
 */
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#include "samples.h"

/* Symmetric, in separate cache lines: TARGET checks its turn while PE 0 puts words. */
static _Alignas(64) long word;
static _Alignas(64) long turn;

struct run {
    int target;
    shmem_ctx_t own;
    long turn;
};

static void put_default(void *arg, size_t bytes, size_t count)
{
    const struct run *run = arg;
    (void)bytes;
    for (size_t i = 0; i < count; i++)
        shmem_long_p(&word, (long)i, run->target);
    shmem_quiet();
}

static void put_own(void *arg, size_t bytes, size_t count)
{
    const struct run *run = arg;
    (void)bytes;
    for (size_t i = 0; i < count; i++)
        shmem_ctx_long_p(run->own, &word, (long)i, run->target);
    shmem_ctx_quiet(run->own);
}

static void play(struct run *run, shmem_ctx_t ctx, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run->turn++;
        shmem_ctx_long_p(ctx, &turn, run->turn, run->target);
        shmem_long_wait_until(&turn, SHMEM_CMP_GE, run->turn);
    }
}

static void pingpong_default(void *arg, size_t bytes, size_t count)
{
    (void)bytes;
    play(arg, SHMEM_CTX_DEFAULT, count);
}

static void pingpong_own(void *arg, size_t bytes, size_t count)
{
    struct run *run = arg;
    (void)bytes;
    play(run, run->own, count);
}

/* Returns each word until it is -1. */
static void answer(void)
{
    for (long last = 0; last >= 0;) {
        shmem_long_wait_until(&turn, SHMEM_CMP_NE, last);
        last = turn;
        if (last >= 0)
            shmem_long_p(&turn, last, 0);
    }
}

int main(int argc, char **argv)
{
    static const struct subject subjects[] = {
        {"put", put_default},
        {"put, own context", put_own},
        {"ping-pong", pingpong_default},
        {"ping-pong, own context", pingpong_own},
    };
    struct run run = {.target = argc > 3 ? atoi(argv[3]) : 1};
    int level = argc > 1 && strcmp(argv[1], "multiple") == 0 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE;
    int provided;
    shmem_init_thread(level, &provided);
    if (argc < 3 || run.target < 1 || run.target >= shmem_n_pes()) {
        fprintf(stderr, "level: use: level single|multiple WHERE [TARGET], with PE TARGET in the job\n");
        shmem_global_exit(2);
    }
    shmem_ctx_create(0, &run.own);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        bench_measure(subjects, sizeof subjects / sizeof subjects[0], &run, sizeof word, argv[2]);
        shmem_long_p(&turn, -1, run.target);
    } else if (shmem_my_pe() == run.target) {
        answer();
    }
    shmem_barrier_all();
    shmem_ctx_destroy(run.own);
    shmem_finalize();
    return 0;
}
