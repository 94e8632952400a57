/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: wait_until and test in all forms, types and comparisons (9.11). Method: comparisons are tried on known values,
 * including the limits of each type's range; then PEs wake each other around the ring of PE numbers. */
#include "check.h"

#define COUNT 6

static const int cmps[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};

#define MODEL(A, CMP, B)                                                                                               \
    ((CMP) == SHMEM_CMP_EQ   ? (A) == (B)                                                                              \
     : (CMP) == SHMEM_CMP_NE ? (A) != (B)                                                                              \
     : (CMP) == SHMEM_CMP_GT ? (A) > (B)                                                                               \
     : (CMP) == SHMEM_CMP_GE ? (A) >= (B)                                                                              \
     : (CMP) == SHMEM_CMP_LT ? (A) < (B)                                                                               \
                             : (A) <= (B))

#define X(N, T)                                                                                                        \
    static T flag_##N;                                                                                                 \
    static void run_scalar_##N(void)                                                                                   \
    {                                                                                                                  \
        const T values[] = {0, 1, (T)-1, 2, (T)((T)1 << (8 * sizeof(T) - 2)), (T)-2};                                  \
        for (int a = 0; a < COUNT; a++)                                                                                \
            for (int b = 0; b < COUNT; b++)                                                                            \
                for (int c = 0; c < 6; c++) {                                                                          \
                    flag_##N = values[a];                                                                              \
                    int want = MODEL(values[a], cmps[c], values[b]);                                                   \
                    CHECK(shmem_##N##_test(&flag_##N, cmps[c], values[b]) == want, "test of " #N);                     \
                    if (want)                                                                                          \
                        shmem_##N##_wait_until(&flag_##N, cmps[c], values[b]);                                         \
                }                                                                                                      \
        flag_##N = 0;                                                                                                  \
        shmem_barrier_all();                                                                                           \
        /* a message travels once around all PEs */                                                                    \
        if (me == 0)                                                                                                   \
            shmem_##N##_p(&flag_##N, (T)5, (me + 1) % npes);                                                           \
        shmem_##N##_wait_until(&flag_##N, SHMEM_CMP_EQ, (T)5);                                                         \
        if (me != 0)                                                                                                   \
            shmem_##N##_p(&flag_##N, (T)5, (me + 1) % npes);                                                           \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_P2P_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static void run_wait_##N(void)                                                                                     \
    {                                                                                                                  \
        flag_##N = 0;                                                                                                  \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_p(&flag_##N, (T)3, (me + 1) % npes);                                                               \
        shmem_##N##_wait(&flag_##N, (T)0);                                                                             \
        CHECK(flag_##N == 3, "wait of " #N);                                                                           \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_WAIT_TYPES(X)
#undef X

/* Element i becomes i + 1, in an order chosen by the sender; element 1 is excluded and never changes. */
#define X(N, T)                                                                                                        \
    static T many_##N[COUNT];                                                                                          \
    static void send_##N(void)                                                                                         \
    {                                                                                                                  \
        for (int i = 0; i < COUNT; i++)                                                                                \
            if (i != 1)                                                                                                \
                shmem_##N##_p(&many_##N[(i + 3) % COUNT == 1 ? 4 : (i + 3) % COUNT],                                   \
                              (T)(((i + 3) % COUNT == 1 ? 4 : (i + 3) % COUNT) + 1), (me + 1) % npes);                 \
    }                                                                                                                  \
    static void reset_##N(void)                                                                                        \
    {                                                                                                                  \
        shmem_barrier_all();                                                                                           \
        memset(many_##N, 0, sizeof many_##N);                                                                          \
        shmem_barrier_all();                                                                                           \
    }                                                                                                                  \
    static void run_many_##N(void)                                                                                     \
    {                                                                                                                  \
        int status[COUNT] = {0, 1, 0, 0, 0, 0}, all_out[COUNT] = {1, 1, 1, 1, 1, 1};                                   \
        size_t indices[COUNT], got, seen_count;                                                                        \
        T values[COUNT] = {1, 77, 3, 4, 5, 6};                                                                         \
        reset_##N();                                                                                                   \
        CHECK(shmem_##N##_test_all(many_##N, COUNT, status, SHMEM_CMP_NE, (T)0) == 0, "test_all of " #N);              \
        CHECK(shmem_##N##_test_any(many_##N, COUNT, NULL, SHMEM_CMP_GT, (T)0) == SIZE_MAX, "test_any of " #N);         \
        CHECK(shmem_##N##_test_some(many_##N, COUNT, indices, NULL, SHMEM_CMP_GT, (T)0) == 0, "test_some of " #N);     \
        CHECK(shmem_##N##_test_all(many_##N, COUNT, all_out, SHMEM_CMP_NE, (T)0) == 1, "empty test_all of " #N);       \
        CHECK(shmem_##N##_test_all(many_##N, 0, NULL, SHMEM_CMP_NE, (T)0) == 1, "empty test_all of " #N);              \
        CHECK(shmem_##N##_wait_until_any(many_##N, COUNT, all_out, SHMEM_CMP_NE, (T)0) == SIZE_MAX, "empty " #N);      \
        CHECK(shmem_##N##_wait_until_some(many_##N, COUNT, indices, all_out, SHMEM_CMP_NE, (T)0) == 0, "empty " #N);   \
        CHECK(shmem_##N##_wait_until_any(many_##N, 0, NULL, SHMEM_CMP_NE, (T)0) == SIZE_MAX, "empty " #N);             \
        shmem_##N##_wait_until_all(many_##N, COUNT, all_out, SHMEM_CMP_NE, (T)0);                                      \
        shmem_barrier_all();                                                                                           \
        send_##N();                                                                                                    \
        for (int left = COUNT - 1; left > 0; left--) {                                                                 \
            got = shmem_##N##_wait_until_any(many_##N, COUNT, status, SHMEM_CMP_NE, (T)0);                             \
            CHECK(got < COUNT && got != 1 && status[got % COUNT] == 0 && many_##N[got % COUNT] == (T)(got + 1),        \
                  "any of " #N " gives %zu", got);                                                                     \
            status[got % COUNT] = 1;                                                                                   \
        }                                                                                                              \
        memset(status, 0, sizeof status);                                                                              \
        status[1] = 1;                                                                                                 \
        shmem_##N##_wait_until_all(many_##N, COUNT, status, SHMEM_CMP_GE, (T)1);                                       \
        CHECK(shmem_##N##_test_all(many_##N, COUNT, status, SHMEM_CMP_GE, (T)1) == 1, "test_all of " #N);              \
        CHECK(shmem_##N##_test_all(many_##N, COUNT, NULL, SHMEM_CMP_GE, (T)1) == 0, "test_all of " #N);                \
        CHECK(shmem_##N##_test_any(many_##N, COUNT, NULL, SHMEM_CMP_EQ, (T)4) == 3, "test_any of " #N);                \
        CHECK(shmem_##N##_test_some(many_##N, COUNT, indices, NULL, SHMEM_CMP_LE, (T)3) == 3, "test_some of " #N);     \
        reset_##N();                                                                                                   \
        send_##N();                                                                                                    \
        for (seen_count = 0; seen_count < COUNT - 1; seen_count += got) {                                              \
            got = shmem_##N##_wait_until_some(many_##N, COUNT, indices, status, SHMEM_CMP_GT, (T)0);                   \
            CHECK(got > 0, "some of " #N);                                                                             \
            for (size_t i = 0; i < got; i++)                                                                           \
                status[indices[i]] = 1;                                                                                \
        }                                                                                                              \
        reset_##N();                                                                                                   \
        memset(status, 0, sizeof status);                                                                              \
        status[1] = 1;                                                                                                 \
        send_##N();                                                                                                    \
        shmem_##N##_wait_until_all_vector(many_##N, COUNT, status, SHMEM_CMP_EQ, values);                              \
        CHECK(shmem_##N##_test_all_vector(many_##N, COUNT, status, SHMEM_CMP_EQ, values) == 1, "vector of " #N);       \
        CHECK(shmem_##N##_test_all_vector(many_##N, COUNT, NULL, SHMEM_CMP_EQ, values) == 0, "vector of " #N);         \
        values[2] = 50;                                                                                                \
        CHECK(shmem_##N##_test_any_vector(many_##N, 3, NULL, SHMEM_CMP_EQ, values) == 0, "any_vector of " #N);         \
        CHECK(shmem_##N##_wait_until_any_vector(many_##N, 3, NULL, SHMEM_CMP_EQ, values) == 0, "any_vector of " #N);   \
        CHECK(shmem_##N##_test_some_vector(many_##N, COUNT, indices, NULL, SHMEM_CMP_EQ, values) == COUNT - 2,         \
              "some_vector of " #N);                                                                                   \
        CHECK(shmem_##N##_wait_until_some_vector(many_##N, COUNT, indices, NULL, SHMEM_CMP_NE, values) == 2,           \
              "some_vector of " #N);                                                                                   \
        CHECK(indices[0] + indices[1] == 3, "some_vector of " #N " names others");                                     \
    }
QUOIT_P2P_TYPES(X)
#undef X

/* An element whose condition always holds must not starve another. */
static void run_fair(void)
{
    memset(many_long, 0, sizeof many_long);
    many_long[0] = many_long[4] = 1;
    int seen = 0;
    for (int i = 0; i < 100; i++)
        seen |= 1 << shmem_long_wait_until_any(many_long, COUNT, NULL, SHMEM_CMP_EQ, 1);
    CHECK(seen == (1 << 0 | 1 << 4), "of two that hold, seen %x", (unsigned)seen);
}

int main(void)
{
    check_begin();
#define X(N, T) run_scalar_##N();
    QUOIT_P2P_TYPES(X)
#undef X
#define X(N, T) run_wait_##N();
    QUOIT_WAIT_TYPES(X)
#undef X
#define X(N, T) run_many_##N();
    QUOIT_P2P_TYPES(X)
#undef X
    run_fair();
    return check_end("p2p");
}
