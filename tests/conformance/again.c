/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that is a PE several times: in each initialization it puts, adds, splits a team, allocates, and checks the
 * results; the program's variables keep their values; nested initializations count. */
#include "check.h"

#include <unistd.h>

#define LIVES 5

static long counter, mine[64], theirs[64], sum[64];

static void live(int life)
{
    me = shmem_my_pe();
    npes = shmem_n_pes();
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    long *block = shmem_malloc(64 * sizeof *block);
    CHECK(block != NULL, "life %d", life);
    for (int i = 0; i < 64; i++)
        mine[i] = life * 1000 + me * 100 + i;
    shmem_barrier_all();
    shmem_long_put(block, mine, 64, next);
    shmem_long_put(theirs, mine, 64, next);
    shmem_long_atomic_add(&counter, 1, next);
    shmem_barrier_all();
    for (int i = 0; i < 64; i++) {
        CHECK(block[i] == life * 1000 + before * 100 + i, "life %d", life);
        CHECK(theirs[i] == block[i], "life %d", life);
    }
    CHECK(counter == life + 1, "life %d", life);
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sum, mine, 64) == 0, "life %d", life);
    for (int i = 0; i < 64; i++)
        CHECK(sum[i] == (long)npes * (life * 1000 + i) + 100L * npes * (npes - 1) / 2, "life %d", life);
    CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0, "life %d", life);

    shmem_team_t even, row, column;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (npes + 1) / 2, NULL, 0, &even);
    shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column);
    for (int i = 0; i < 10; i++)
        CHECK(shmem_team_sync(row) == 0, "life %d", life);
    if (shmem_team_my_pe(row) == 1) /* the others meet it late, and read what it wrote */
        usleep(20000);
    mine[0] = life * 1000 + me;
    CHECK(shmem_long_sum_reduce(row, sum, mine, 1) == 0, "life %d", life);
    long expected = 0;
    for (int i = 0; i < shmem_team_n_pes(row); i++)
        expected += life * 1000 + shmem_team_translate_pe(row, i, SHMEM_TEAM_WORLD);
    CHECK(sum[0] == expected, "life %d: %ld", life, sum[0]);
    CHECK(shmem_long_max_reduce(column, sum, mine, 1) == 0, "life %d", life);
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(column, 0, &ctx) == 0, "life %d", life);
    shmem_ctx_long_p(ctx, &theirs[5], 77, 0);
    if (life != 1)                  /* shmem_finalize ends what is left */
        shmem_team_destroy(column); /* and the context */
    CHECK(even == SHMEM_TEAM_INVALID || shmem_team_my_pe(even) == me / 2, "life %d", life);
    shmem_free(block);
}

int main(void)
{
    int is_initialized;
    for (int life = 0; life < LIVES; life++) {
        shmem_init();
        shmem_init();
        live(life);
        shmem_finalize();
        shmem_query_initialized(&is_initialized);
        CHECK(is_initialized, "life %d", life);
        shmem_finalize();
        shmem_query_initialized(&is_initialized);
        CHECK(!is_initialized, "life %d", life);
    }
    if (me == 0 && check_failed_count == 0)
        printf("again: ok on %d PEs\n", npes);
    return check_failed_count == 0 ? 0 : 1;
}
