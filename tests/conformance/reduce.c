/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: all reductions and scans of every type, in place and not, and those of active sets (9.10). Method: compared with
 * the same operator applied in PE order. Values are small, so that no order of evaluation rounds. */
#include "check.h"

#define COUNT 7

static long psync[2][SHMEM_REDUCE_SYNC_SIZE];

/* Small enough for products, with bits for and, or, xor. */
#define PART(T, PE, I) ((T)(((PE) + (int)(I)) % 3 + 1))

#define APPLY_sum(A, B)  ((A) + (B))
#define APPLY_prod(A, B) ((A) * (B))
#define APPLY_min(A, B)  ((A) < (B) ? (A) : (B))
#define APPLY_max(A, B)  ((A) > (B) ? (A) : (B))
#define APPLY_and(A, B)  ((A) & (B))
#define APPLY_or(A, B)   ((A) | (B))
#define APPLY_xor(A, B)  ((A) ^ (B))

#define CONFORM(N, T, OP)                                                                                              \
    static T source_##OP##_##N[COUNT], dest_##OP##_##N[COUNT + 1];                                                     \
    static void fill_##OP##_##N(T *source, int rank)                                                                   \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++)                                                                                \
            source[i] = PART(T, rank, i);                                                                              \
        dest_##OP##_##N[COUNT] = (T)55;                                                                                \
    }                                                                                                                  \
    static void look_##OP##_##N(const T *dest, int size, const char *what)                                             \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            T want = PART(T, 0, i);                                                                                    \
            for (int pe = 1; pe < size; pe++)                                                                          \
                want = (T)APPLY_##OP(want, PART(T, pe, i));                                                            \
            CHECK(dest[i] == want, #OP " of " #N " %s, element %d", what, i);                                          \
        }                                                                                                              \
        CHECK(dest_##OP##_##N[COUNT] == (T)55, #OP " of " #N " past its end");                                         \
    }                                                                                                                  \
    static void reduce_##OP##_##N(shmem_team_t team)                                                                   \
    {                                                                                                                  \
        int size = shmem_team_n_pes(team);                                                                             \
        fill_##OP##_##N(source_##OP##_##N, shmem_team_my_pe(team));                                                    \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##N##_##OP##_reduce(team, dest_##OP##_##N, source_##OP##_##N, COUNT) == 0, "status");              \
        look_##OP##_##N(dest_##OP##_##N, size, "reduced");                                                             \
        shmem_team_sync(team);                                                                                         \
        fill_##OP##_##N(dest_##OP##_##N, shmem_team_my_pe(team));                                                      \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##N##_##OP##_reduce(team, dest_##OP##_##N, dest_##OP##_##N, COUNT) == 0, "status");                \
        look_##OP##_##N(dest_##OP##_##N, size, "reduced in place");                                                    \
        shmem_team_sync(team);                                                                                         \
    }
#define X(N, T) CONFORM(N, T, and) CONFORM(N, T, or) CONFORM(N, T, xor)
QUOIT_REDUCE_BITWISE_TYPES(X)
#undef X
#define X(N, T) CONFORM(N, T, min) CONFORM(N, T, max)
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(N, T) CONFORM(N, T, sum) CONFORM(N, T, prod)
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static void scan_##N(shmem_team_t team)                                                                            \
    {                                                                                                                  \
        int rank = shmem_team_my_pe(team);                                                                             \
        T *source = source_sum_##N, *dest = dest_sum_##N, before[COUNT];                                               \
        fill_sum_##N(source, rank);                                                                                    \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            before[i] = 0;                                                                                             \
            for (int pe = 0; pe < rank; pe++)                                                                          \
                before[i] = (T)(before[i] + PART(T, pe, i));                                                           \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        CHECK(shmem_##N##_sum_inscan(team, dest, source, COUNT) == 0, "status");                                       \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(dest[i] == (T)(before[i] + PART(T, rank, i)), "inscan of " #N);                                      \
        CHECK(shmem_##N##_sum_exscan(team, source, source, COUNT) == 0, "status");                                     \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(source[i] == before[i], "exscan of " #N);                                                            \
        shmem_team_sync(team);                                                                                         \
    }
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X

/* Over all PEs, then over the even ones. */
#define TO_ALL(N, T, OP)                                                                                               \
    static void to_all_##OP##_##N(void)                                                                                \
    {                                                                                                                  \
        static T work[COUNT + SHMEM_REDUCE_MIN_WRKDATA_SIZE];                                                          \
        fill_##OP##_##N(source_##OP##_##N, me);                                                                        \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_##OP##_to_all(dest_##OP##_##N, source_##OP##_##N, COUNT, 0, 0, npes, work, psync[0]);              \
        look_##OP##_##N(dest_##OP##_##N, npes, "to all");                                                              \
        shmem_barrier_all();                                                                                           \
        if (me % 2 == 0) {                                                                                             \
            fill_##OP##_##N(dest_##OP##_##N, me / 2);                                                                  \
            shmem_##N##_##OP##_to_all(dest_##OP##_##N, dest_##OP##_##N, COUNT, 0, 1, (npes + 1) / 2, work, psync[1]);  \
            look_##OP##_##N(dest_##OP##_##N, (npes + 1) / 2, "to all even, in place");                                 \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }
#define X(N, T)               TO_ALL(N, T, and) TO_ALL(N, T, or) TO_ALL(N, T, xor)
#define BITWISE_OLD_UNIQUE(X) X(short, short) X(int, int) X(long, long) X(longlong, long long)
/* and, or, xor of signed types exist for active sets only. */
#define Y(N, T) CONFORM_OLD(N, T, and) CONFORM_OLD(N, T, or) CONFORM_OLD(N, T, xor)
#define CONFORM_OLD(N, T, OP)                                                                                          \
    static T source_##OP##_##N[COUNT], dest_##OP##_##N[COUNT + 1];                                                     \
    static void fill_##OP##_##N(T *source, int rank)                                                                   \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++)                                                                                \
            source[i] = PART(T, rank, i);                                                                              \
    }                                                                                                                  \
    static void look_##OP##_##N(const T *dest, int size, const char *what)                                             \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            T want = PART(T, 0, i);                                                                                    \
            for (int pe = 1; pe < size; pe++)                                                                          \
                want = (T)APPLY_##OP(want, PART(T, pe, i));                                                            \
            CHECK(dest[i] == want, #OP " of " #N " %s, element %d", what, i);                                          \
        }                                                                                                              \
    }
BITWISE_OLD_UNIQUE(Y)
QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#undef Y
#define X(N, T) TO_ALL(N, T, min) TO_ALL(N, T, max)
QUOIT_TO_ALL_ORDERED_TYPES(X)
#undef X
#define X(N, T) TO_ALL(N, T, sum) TO_ALL(N, T, prod)
QUOIT_TO_ALL_ARITHMETIC_TYPES(X)
#undef X

static void run_large(void)
{
    const size_t count = 50000;
    double *data = shmem_malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = (double)(me + 1) * (double)i;
    shmem_barrier_all();
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, data, data, count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += data[i] != (double)(npes * (npes + 1) / 2) * (double)i;
    CHECK(wrong == 0, "a large sum differs in %zu", wrong);
    shmem_barrier_all();
    shmem_free(data);
}

int main(void)
{
    check_begin();
    shmem_team_t teams[2] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED};
    for (int t = 0; t < 2; t++) {
#define X(N, T) reduce_and_##N(teams[t]), reduce_or_##N(teams[t]), reduce_xor_##N(teams[t]);
        QUOIT_REDUCE_BITWISE_TYPES(X)
#undef X
#define X(N, T) reduce_min_##N(teams[t]), reduce_max_##N(teams[t]);
        QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(N, T) reduce_sum_##N(teams[t]), reduce_prod_##N(teams[t]), scan_##N(teams[t]);
        QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X
    }
#define X(N, T) to_all_and_##N(), to_all_or_##N(), to_all_xor_##N();
    QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#define X(N, T) to_all_min_##N(), to_all_max_##N();
    QUOIT_TO_ALL_ORDERED_TYPES(X)
#undef X
#define X(N, T) to_all_sum_##N(), to_all_prod_##N();
    QUOIT_TO_ALL_ARITHMETIC_TYPES(X)
#undef X
    run_large();
    return check_end("reduce");
}
