/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: broadcast, collect, fcollect, alltoall, alltoalls of every type, over the world team, the PEs of one host and
 * split teams; barrier and sync (9.10). Method: each result is compared with that of a sequential program; calls follow
 * each other without barriers, and each round has other roots and sizes. */
#include "check.h"

#define COUNT 5
#define PES   64

static shmem_team_t teams[4];
static int team_count;

#define CONFORM(NAME, T, SCALE, PREFIX, SUFFIX)                                                                        \
    static T source_##NAME[PES * COUNT * 3], dest_##NAME[PES * COUNT * 3];                                             \
    static void run_##NAME(shmem_team_t team)                                                                          \
    {                                                                                                                  \
        int size = shmem_team_n_pes(team), rank = shmem_team_my_pe(team), all = size * COUNT;                          \
        T *source = source_##NAME, *dest = dest_##NAME;                                                                \
        for (int root = 0; root < size; root++) {                                                                      \
            shmem_team_sync(team);                                                                                     \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                source[i] = VALUE(T, rank, i, root);                                                                   \
                dest[i] = 0;                                                                                           \
            }                                                                                                          \
            dest[COUNT] = (T)77;                                                                                       \
            shmem_team_sync(team);                                                                                     \
            CHECK(shmem_##PREFIX##broadcast##SUFFIX(team, dest, source, COUNT *SCALE, root) == 0, "status");           \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest[i] == VALUE(T, root, i, root), "broadcast of " #NAME " from %d", root);                     \
            CHECK(dest[COUNT] == (T)77, "broadcast of " #NAME " past its end");                                        \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        for (int i = 0; i < all; i++)                                                                                  \
            source[i] = VALUE(T, rank, i, 1);                                                                          \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##PREFIX##fcollect##SUFFIX(team, dest, source, COUNT *SCALE) == 0, "status");                      \
        for (int pe = 0; pe < size; pe++)                                                                              \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest[pe * COUNT + i] == VALUE(T, pe, i, 1), "fcollect of " #NAME " from %d", pe);                \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##PREFIX##collect##SUFFIX(team, dest, source, (size_t)(rank % COUNT) * SCALE) == 0, "status");     \
        for (int pe = 0, at = 0; pe < size; at += pe % COUNT, pe++)                                                    \
            for (int i = 0; i < pe % COUNT; i++)                                                                       \
                CHECK(dest[at + i] == VALUE(T, pe, i, 1), "collect of " #NAME " from %d", pe);                         \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##PREFIX##alltoall##SUFFIX(team, dest, source, COUNT *SCALE) == 0, "status");                      \
        for (int pe = 0; pe < size; pe++)                                                                              \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(dest[pe * COUNT + i] == VALUE(T, pe, rank * COUNT + i, 1), "alltoall of " #NAME " from %d", pe); \
        shmem_team_sync(team);                                                                                         \
    }
#define X(N, T) CONFORM(N, T, 1, N##_, )
QUOIT_RMA_TYPES(X)
#undef X
CONFORM(mem, int, sizeof(int), , mem)

#define X(N, T)                                                                                                        \
    static void run_strided_##N(shmem_team_t team)                                                                     \
    {                                                                                                                  \
        int size = shmem_team_n_pes(team), rank = shmem_team_my_pe(team), all = size * COUNT;                          \
        for (int i = 0; i < all * 3; i++) {                                                                            \
            source_##N[i] = VALUE(T, rank, i, 2);                                                                      \
            dest_##N[i] = (T)66;                                                                                       \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##N##_alltoalls(team, dest_##N, source_##N, 3, 2, COUNT) == 0, "status");                          \
        for (int pe = 0; pe < size; pe++)                                                                              \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                const T *at = &dest_##N[(pe * COUNT + i) * 3];                                                         \
                CHECK(at[0] == VALUE(T, pe, (rank * COUNT + i) * 2, 2), "alltoalls of " #N " from %d", pe);            \
                CHECK(at[1] == (T)66 && at[2] == (T)66, "alltoalls of " #N " between its elements");                   \
            }                                                                                                          \
        shmem_team_sync(team);                                                                                         \
    }
QUOIT_RMA_TYPES(X)
#undef X

static void run_strided_mem(shmem_team_t team)
{
    int size = shmem_team_n_pes(team), rank = shmem_team_my_pe(team), all = size * COUNT;
    unsigned char *source = (unsigned char *)source_mem, *dest = (unsigned char *)dest_mem;
    for (int i = 0; i < all * 2; i++)
        source[i] = VALUE(unsigned char, rank, i, 9);
    shmem_team_sync(team);
    CHECK(shmem_alltoallsmem(team, dest, source, 1, 2, COUNT) == 0, "status");
    for (int pe = 0; pe < size; pe++)
        for (int i = 0; i < COUNT; i++)
            CHECK(dest[pe * COUNT + i] == VALUE(unsigned char, pe, (rank * COUNT + i) * 2, 9), "alltoallsmem");
    shmem_team_sync(team);
}

/* No PE leaves a barrier before all have entered it, and puts issued before it have landed after it. */
static void run_barriers(void)
{
    static long came[PES];
    for (long round = 1; round <= 30; round++) {
        for (int pe = 0; pe < npes; pe++)
            shmem_long_p(&came[me], round, pe);
        shmem_barrier_all();
        for (int pe = 0; pe < npes; pe++)
            CHECK(came[pe] == round, "after barrier %ld, PE %d had only come to %ld", round, pe, came[pe]);
        shmem_sync_all();
    }
}

/* Without elements the addresses are not used. */
static void run_nothing(shmem_team_t team)
{
    int size = shmem_team_n_pes(team), rank = shmem_team_my_pe(team);
    for (int round = 0; round < 3; round++) {
        CHECK(shmem_int_collect(team, NULL, NULL, 0) == 0, "collect");
        CHECK(shmem_int_fcollect(team, NULL, NULL, 0) == 0, "fcollect");
        CHECK(shmem_int_broadcast(team, NULL, NULL, 0, size - 1) == 0, "broadcast");
        CHECK(shmem_int_alltoall(team, NULL, NULL, 0) == 0, "alltoall");
        CHECK(shmem_int_alltoalls(team, NULL, NULL, 1, 1, 0) == 0, "alltoalls");
        CHECK(shmem_int_sum_reduce(team, NULL, NULL, 0) == 0, "reduce");
        CHECK(shmem_int_sum_inscan(team, NULL, NULL, 0) == 0, "inscan");
        CHECK(shmem_int_sum_exscan(team, NULL, NULL, 0) == 0, "exscan");
    }
    source_int[0] = 7; /* only the last PE contributes; the others have no source */
    int is_last = rank == size - 1;
    shmem_int_collect(team, dest_int, is_last ? source_int : NULL, is_last ? 1 : 0);
    CHECK(dest_int[0] == 7, "collect of one");
    shmem_team_sync(team);
}

static void run_large(void)
{
    const size_t count = 40000;
    long *source = shmem_malloc(count * sizeof(long)), *dest = shmem_malloc(count * sizeof(long) * (size_t)npes);
    for (size_t i = 0; i < count; i++)
        source[i] = me * 1000003 + (long)i;
    shmem_barrier_all();
    shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, count, npes - 1);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += dest[i] != (npes - 1) * 1000003 + (long)i;
    CHECK(wrong == 0, "a large broadcast differs in %zu", wrong);
    shmem_sync_all();
    shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, count);
    wrong = 0;
    for (int pe = 0; pe < npes; pe++)
        for (size_t i = 0; i < count; i++)
            wrong += dest[(size_t)pe * count + i] != pe * 1000003 + (long)i;
    CHECK(wrong == 0, "a large fcollect differs in %zu", wrong);
    shmem_free(source);
    shmem_free(dest);
}

int main(void)
{
    check_begin();
    teams[team_count++] = SHMEM_TEAM_WORLD;
    teams[team_count++] = SHMEM_TEAM_SHARED;
    shmem_team_t half;
    int start = me % 2;
    for (int part = 0; part < 2 && part < npes; part++) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, part, 2, (npes - part + 1) / 2, NULL, 0, &half) == 0, "split");
        if (part == start)
            teams[team_count++] = half;
    }
    for (int t = 0; t < team_count; t++) {
#define X(N, T)                                                                                                        \
    run_##N(teams[t]);                                                                                                 \
    run_strided_##N(teams[t]);
        QUOIT_RMA_TYPES(X)
#undef X
        run_mem(teams[t]);
        run_strided_mem(teams[t]);
        run_nothing(teams[t]);
    }
    run_barriers();
    run_large();
    return check_end("coll");
}
