/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: teams and contexts (9.4, 9.5, 9.9). Method: PE numbers of split teams compared with arithmetic, operations on
 * contexts of teams address the team's PEs, many teams and contexts created and destroyed. */
#include "check.h"

static long words[4];

static void run_predefined(void)
{
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == npes, "the world");
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1, "no team");
    int local_count = shmem_team_n_pes(SHMEM_TEAM_SHARED), reached_count = 0;
    for (int pe = 0; pe < npes; pe++) {
        int rank = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
        CHECK((rank >= 0) == (shmem_ptr(words, pe) != NULL), "PE %d in SHARED and shmem_ptr", pe);
        reached_count += rank >= 0;
        if (rank >= 0) {
            CHECK(shmem_team_translate_pe(SHMEM_TEAM_SHARED, rank, SHMEM_TEAM_WORLD) == pe, "PE %d and back", pe);
            CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, words, rank) == shmem_ptr(words, pe), "team_ptr of %d", pe);
        }
    }
    CHECK(reached_count == local_count, "SHARED has %d PEs, %d can be reached", local_count, reached_count);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, npes, SHMEM_TEAM_WORLD) == -1, "a PE too many");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1, "of no team");
    CHECK(shmem_team_sync(SHMEM_TEAM_SHARED) == 0, "sync of SHARED");
}

static void run_strided_team(int start, int stride, int size)
{
    shmem_team_t team;
    shmem_team_config_t config = {.num_contexts = 2}, got = {.num_contexts = 0};
    shmem_ctx_t ctx;
    int status =
        shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, &config, SHMEM_TEAM_NUM_CONTEXTS, &team);
    CHECK(status == 0, "split %d %d %d", start, stride, size);
    int rank = -1;
    for (int i = 0; i < size; i++)
        if (start + i * stride == me)
            rank = i;
    CHECK((team == SHMEM_TEAM_INVALID) == (rank < 0), "membership of %d %d %d", start, stride, size);
    shmem_long_p(&words[0], -1, me);
    shmem_barrier_all();
    if (rank >= 0) {
        CHECK(shmem_team_my_pe(team) == rank && shmem_team_n_pes(team) == size, "numbers of %d %d %d", start, stride,
              size);
        for (int i = 0; i < size; i++) {
            CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == start + i * stride, "translate %d", i);
            CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team) == i, "translate %d back", i);
        }
        CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 2, "config");
        CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0, "context of a team");
        shmem_team_t of;
        CHECK(shmem_ctx_get_team(ctx, &of) == 0 && of == team, "get_team");
        shmem_ctx_long_p(ctx, &words[0], rank, (rank + 1) % size);
        shmem_ctx_quiet(ctx);
        CHECK(shmem_team_sync(team) == 0, "sync");
        CHECK(words[0] == (rank + size - 1) % size, "a put by team number gave %ld", words[0]);
        CHECK(shmem_ctx_long_g(ctx, &words[0], 0) == size - 1, "a get by team number");
        shmem_ctx_long_atomic_add(ctx, &words[1], 1, 0);
        shmem_ctx_destroy(ctx);
        shmem_long_sum_reduce(team, &words[3], &words[2], 1);
        shmem_team_destroy(team);
    }
    shmem_barrier_all();
    CHECK(me != start || words[1] == size, "atomics by team number: %ld", words[1]);
    shmem_barrier_all();
    words[1] = 0;
    shmem_barrier_all();
}

static void run_2d(int xrange)
{
    shmem_team_t x, y;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y) == 0, "split_2d by %d", xrange);
    int width = xrange < npes ? xrange : npes;
    CHECK(shmem_team_my_pe(x) == me % width && shmem_team_my_pe(y) == me / width, "2d place");
    CHECK(shmem_team_translate_pe(y, 0, SHMEM_TEAM_WORLD) == me % width, "2d column");
    CHECK(shmem_team_sync(x) == 0 && shmem_team_sync(y) == 0, "2d sync");
    shmem_team_destroy(x);
    shmem_team_destroy(y);
}

static void run_contexts(void)
{
    shmem_ctx_t ctxs[50], ctx;
    int next = (me + 1) % npes, before = (me + npes - 1) % npes;
    shmem_team_t team;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD, "team of the default context");
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID, "team of no context");
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID, "context of no team");
    for (int i = 0; i < 50; i++)
        CHECK(shmem_ctx_create(i % 8, &ctxs[i]) == 0, "context %d", i);
    for (int i = 0; i < 50; i++) {
        shmem_ctx_session_start(ctxs[i], SHMEM_CTX_SESSION_BATCH, NULL, 0);
        shmem_ctx_long_p(ctxs[i], &words[2], me * 100 + i, next);
        shmem_ctx_fence(ctxs[i]);
        shmem_ctx_session_stop(ctxs[i]);
        shmem_ctx_pe_quiet(ctxs[i], &next, 1);
    }
    shmem_pe_quiet(&next, 1);
    shmem_barrier_all();
    CHECK(words[2] == before * 100 + 49, "the last of 50 contexts wrote %ld", words[2]);
    for (int i = 0; i < 50; i++)
        shmem_ctx_destroy(ctxs[i]);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    for (int i = 0; i < 3000; i++) {
        CHECK(shmem_ctx_create(0, &ctx) == 0, "context %d of many", i);
        shmem_ctx_destroy(ctx);
    }
}

/* As many teams at once as possible; one more fails cleanly on all PEs, and succeeds again after one is destroyed. */
static void many_teams(void)
{
    enum { MOST = 100, LEAST = 60 };
    static shmem_team_t teams[MOST];
    static int one = 1, sum;
    for (int round = 0; round < 2; round++) {
        int count = 0;
        while (count < MOST && shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes, NULL, 0, &teams[count]) == 0)
            count++;
        CHECK(count >= LEAST, "%d teams at once, round %d", count, round);
        CHECK(count == MOST || teams[count] == SHMEM_TEAM_INVALID, "the handle of team %d", count);
        for (int i = 0; i < count; i += 7) {
            shmem_int_sum_reduce(teams[i], &sum, &one, 1);
            CHECK(sum == npes, "sum over team %d is %d", i, sum);
        }
        for (int i = 0; i < count; i++)
            shmem_team_destroy(teams[i]);
    }
}

int main(void)
{
    shmem_team_t team = SHMEM_TEAM_WORLD;
    check_begin();
    run_predefined();
    for (int round = 0; round < 3; round++) {
        run_strided_team(0, 1, npes);
        run_strided_team(0, 2, (npes + 1) / 2);
        run_strided_team(npes / 2, 1, npes - npes / 2);
        run_strided_team(npes - 1, 0, 1);
        run_strided_team(npes - 1, npes > 1 ? -1 : 1, npes);
        run_2d(1 + round);
    }
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, npes + 1, NULL, 0, &team) != 0,
          "a team larger than the job");
    CHECK(team == SHMEM_TEAM_INVALID, "the handle of a failed split");
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0, "a split of no team");
    many_teams();
    run_contexts();
    return check_end("teams");
}
