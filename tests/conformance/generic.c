/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every C11 type-generic routine selects the routine of its type, with and without a context. Method: all are
 * called once for each type; results that differ between types (fractions, widths, signs) reveal a wrong selection. */
#include "check.h"

/* Own type tables: those of types.h are being expanded inside the selections, and a macro is not expanded within
 * itself. */
#define OLD_TYPES(X)          X(int, int) X(long, long) X(longlong, long long)
#define STANDARD_TYPES(X)     OLD_TYPES(X) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define P2P_TYPES(X)          X(short, short) X(ushort, unsigned short) STANDARD_TYPES(X)
#define EXTENDED_TYPES(X)     X(float, float) X(double, double) STANDARD_TYPES(X)
#define OLD_EXTENDED_TYPES(X) X(float, float) X(double, double) OLD_TYPES(X)
#define BITWISE_TYPES(X)                                                                                               \
    X(int32, int32_t) X(int64, int64_t) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)
#define BITS_TYPES(X)                                                                                                  \
    X(int8, int8_t) X(int16, int16_t) X(uchar, unsigned char) X(ushort, unsigned short) BITWISE_TYPES(X)
#define RMA_TYPES(X)                                                                                                   \
    X(longdouble, long double)                                                                                         \
    X(char, char)                                                                                                      \
    X(schar, signed char) X(uchar, unsigned char) EXTENDED_TYPES(X) X(short, short) X(ushort, unsigned short)
#define ARITHMETIC_TYPES(X) RMA_TYPES(X) X(complexf, QUOIT_COMPLEX_FLOAT) X(complexd, QUOIT_COMPLEX_DOUBLE)

static shmem_ctx_t ctx;
static uint64_t sig;

#define X(N, T)                                                                                                        \
    static T g_##N[16];                                                                                                \
    static void rma_##N(void)                                                                                          \
    {                                                                                                                  \
        T own[4] = {(T)1.5, (T)2, (T)-3, (T)4}, got[4];                                                                \
        const T *constant = g_##N;                                                                                     \
        shmem_put(g_##N, own, 4, me);                                                                                  \
        shmem_get(got, g_##N, 4, me);                                                                                  \
        CHECK(got[0] == (T)1.5 && got[2] == (T)-3, "put and get of " #N);                                              \
        shmem_put(ctx, g_##N, own + 1, 2, me);                                                                         \
        shmem_get(ctx, got, g_##N, 2, me);                                                                             \
        CHECK(got[0] == (T)2 && got[1] == (T)-3, "put and get with ctx of " #N);                                       \
        shmem_put_nbi(g_##N, own, 1, me);                                                                              \
        shmem_put_nbi(ctx, g_##N + 1, own, 1, me);                                                                     \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_quiet();                                                                                                 \
        shmem_get_nbi(got, g_##N, 1, me);                                                                              \
        shmem_get_nbi(ctx, got + 1, g_##N + 1, 1, me);                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_quiet();                                                                                                 \
        CHECK(got[0] == (T)1.5 && got[1] == (T)1.5, "nbi of " #N);                                                     \
        shmem_p(g_##N, (T)7.25, me);                                                                                   \
        CHECK(shmem_g(constant, me) == (T)7.25 && shmem_g(ctx, g_##N, me) == (T)7.25, "p and g of " #N);               \
        shmem_p(ctx, g_##N, (T)-1, me);                                                                                \
        CHECK(shmem_g(g_##N, me) == (T)-1, "p with ctx of " #N);                                                       \
        shmem_iput(g_##N, own, 2, 1, 4, me);                                                                           \
        shmem_iput(ctx, g_##N + 1, own, 2, 1, 4, me);                                                                  \
        shmem_iget(got, g_##N, 1, 2, 4, me);                                                                           \
        CHECK(got[3] == (T)4, "iget of " #N);                                                                          \
        shmem_iget(ctx, got, g_##N + 1, 1, 2, 4, me);                                                                  \
        CHECK(got[3] == (T)4, "iget with ctx of " #N);                                                                 \
        shmem_ibput(g_##N, own, 4, 2, 2, 2, me);                                                                       \
        shmem_ibput(ctx, g_##N, own, 4, 2, 2, 2, me);                                                                  \
        shmem_ibget(got, g_##N, 2, 4, 2, 2, me);                                                                       \
        shmem_ibget(ctx, got, g_##N, 2, 4, 2, 2, me);                                                                  \
        CHECK(got[3] == (T)4, "ibget of " #N);                                                                         \
        sig = 0;                                                                                                       \
        shmem_put_signal(g_##N, own, 1, &sig, 1, SHMEM_SIGNAL_ADD, me);                                                \
        shmem_put_signal(ctx, g_##N, own, 1, &sig, 1, SHMEM_SIGNAL_ADD, me);                                           \
        shmem_put_signal_nbi(g_##N, own, 1, &sig, 1, SHMEM_SIGNAL_ADD, me);                                            \
        shmem_put_signal_nbi(ctx, g_##N, own, 1, &sig, 1, SHMEM_SIGNAL_ADD, me);                                       \
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 4);                                                                \
        CHECK(g_##N[0] == (T)1.5, "put_signal of " #N);                                                                \
        T *all = (T *)shmem_malloc(sizeof(T) * 4 * (size_t)npes),                                                      \
          *from = (T *)shmem_malloc(sizeof(T) * 4 * (size_t)npes);                                                     \
        for (int i = 0; i < 4 * npes; i++)                                                                             \
            from[i] = (T)(i % 3);                                                                                      \
        shmem_sync_all();                                                                                              \
        int failed = shmem_broadcast(SHMEM_TEAM_WORLD, all, from, 1, 0) || shmem_sync(SHMEM_TEAM_WORLD) ||             \
                     shmem_collect(SHMEM_TEAM_WORLD, all, from, 1) || shmem_sync(SHMEM_TEAM_WORLD) ||                  \
                     shmem_fcollect(SHMEM_TEAM_WORLD, all, from, 1) || shmem_sync(SHMEM_TEAM_WORLD) ||                 \
                     shmem_alltoall(SHMEM_TEAM_WORLD, all, from, 1) || shmem_sync(SHMEM_TEAM_WORLD) ||                 \
                     shmem_alltoalls(SHMEM_TEAM_WORLD, all, from, 1, 2, 2) || shmem_sync(SHMEM_TEAM_WORLD) ||          \
                     shmem_max_reduce(SHMEM_TEAM_WORLD, all, from, 4) || shmem_sync(SHMEM_TEAM_WORLD) ||               \
                     shmem_min_reduce(SHMEM_TEAM_WORLD, all + 1, from + 1, 1);                                         \
        CHECK(!failed && all[2] == (T)2 && all[1] == (T)1, "collectives of " #N);                                      \
        shmem_free(all);                                                                                               \
        shmem_free(from);                                                                                              \
    }
RMA_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T sum_##N[3];                                                                                               \
    static void sums_##N(void)                                                                                         \
    {                                                                                                                  \
        sum_##N[0] = (T)2;                                                                                             \
        shmem_sync_all();                                                                                              \
        int failed = shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum_##N[1], &sum_##N[0], 1);                                  \
        CHECK(!failed && sum_##N[1] == (T)(2 * npes), "sum_reduce of " #N);                                            \
        failed = shmem_sum_inscan(SHMEM_TEAM_WORLD, &sum_##N[1], &sum_##N[0], 1);                                      \
        CHECK(!failed && sum_##N[1] == (T)(2 * me + 2), "sum_inscan of " #N);                                          \
        failed = shmem_sum_exscan(SHMEM_TEAM_WORLD, &sum_##N[1], &sum_##N[0], 1);                                      \
        CHECK(!failed && sum_##N[1] == (T)(2 * me), "sum_exscan of " #N);                                              \
        sum_##N[0] = (T)1;                                                                                             \
        shmem_sync_all();                                                                                              \
        failed = shmem_prod_reduce(SHMEM_TEAM_WORLD, &sum_##N[1], &sum_##N[0], 1);                                     \
        CHECK(!failed && sum_##N[1] == (T)1, "prod_reduce of " #N);                                                    \
        shmem_sync_all();                                                                                              \
    }
ARITHMETIC_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T bits_##N[2];                                                                                              \
    static void bits_of_##N(void)                                                                                      \
    {                                                                                                                  \
        bits_##N[0] = (T)(me % 2 ? 0x6 : 0x3);                                                                         \
        shmem_sync_all();                                                                                              \
        int failed = shmem_and_reduce(SHMEM_TEAM_WORLD, &bits_##N[1], &bits_##N[0], 1);                                \
        CHECK(!failed && bits_##N[1] == (T)(npes > 1 ? 2 : 3), "and_reduce of " #N);                                   \
        failed = shmem_or_reduce(SHMEM_TEAM_WORLD, &bits_##N[1], &bits_##N[0], 1);                                     \
        CHECK(!failed && bits_##N[1] == (T)(npes > 1 ? 7 : 3), "or_reduce of " #N);                                    \
        failed = shmem_xor_reduce(SHMEM_TEAM_WORLD, &bits_##N[1], &bits_##N[0], 1);                                    \
        CHECK(!failed && bits_##N[1] == (T)((npes / 2 % 2 ? 6 : 0) ^ ((npes + 1) / 2 % 2 ? 3 : 0)), "xor of " #N);     \
        shmem_sync_all();                                                                                              \
    }
BITS_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T a_##N;                                                                                                    \
    static void extended_##N(void)                                                                                     \
    {                                                                                                                  \
        T got;                                                                                                         \
        const T *constant = &a_##N;                                                                                    \
        shmem_atomic_set(&a_##N, (T)2.5, me);                                                                          \
        shmem_atomic_set(ctx, &a_##N, (T)2.5, me);                                                                     \
        CHECK(shmem_atomic_fetch(constant, me) == (T)2.5 && shmem_atomic_fetch(ctx, &a_##N, me) == (T)2.5, #N);        \
        CHECK(shmem_atomic_swap(&a_##N, (T)3, me) == (T)2.5 && shmem_atomic_swap(ctx, &a_##N, (T)4, me) == (T)3, #N);  \
        shmem_atomic_fetch_nbi(&got, &a_##N, me);                                                                      \
        shmem_atomic_fetch_nbi(ctx, &got, &a_##N, me);                                                                 \
        shmem_atomic_swap_nbi(&got, &a_##N, (T)5, me);                                                                 \
        shmem_atomic_swap_nbi(ctx, &got, &a_##N, (T)6, me);                                                            \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(a_##N == (T)6, "swap_nbi of " #N);                                                                       \
    }
EXTENDED_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static void standard_##N(void)                                                                                     \
    {                                                                                                                  \
        T got;                                                                                                         \
        a_##N = 0;                                                                                                     \
        shmem_atomic_inc(&a_##N, me);                                                                                  \
        shmem_atomic_inc(ctx, &a_##N, me);                                                                             \
        shmem_atomic_add(&a_##N, 2, me);                                                                               \
        shmem_atomic_add(ctx, &a_##N, 2, me);                                                                          \
        CHECK(shmem_atomic_fetch_inc(&a_##N, me) == 6 && shmem_atomic_fetch_inc(ctx, &a_##N, me) == 7, #N);            \
        CHECK(shmem_atomic_fetch_add(&a_##N, 1, me) == 8 && shmem_atomic_fetch_add(ctx, &a_##N, 1, me) == 9, #N);      \
        CHECK(shmem_atomic_compare_swap(&a_##N, 10, 20, me) == 10, #N);                                                \
        CHECK(shmem_atomic_compare_swap(ctx, &a_##N, 20, 30, me) == 20, #N);                                           \
        shmem_atomic_fetch_inc_nbi(&got, &a_##N, me);                                                                  \
        shmem_atomic_fetch_inc_nbi(ctx, &got, &a_##N, me);                                                             \
        shmem_atomic_fetch_add_nbi(&got, &a_##N, 4, me);                                                               \
        shmem_atomic_fetch_add_nbi(ctx, &got, &a_##N, 4, me);                                                          \
        shmem_atomic_compare_swap_nbi(&got, &a_##N, 40, 41, me);                                                       \
        shmem_atomic_compare_swap_nbi(ctx, &got, &a_##N, 41, 42, me);                                                  \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(a_##N == 42, "standard atomics of " #N);                                                                 \
    }
STANDARD_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T b_##N;                                                                                                    \
    static void bitwise_##N(void)                                                                                      \
    {                                                                                                                  \
        T got;                                                                                                         \
        shmem_atomic_or(&b_##N, 12, me);                                                                               \
        shmem_atomic_or(ctx, &b_##N, 3, me);                                                                           \
        shmem_atomic_and(&b_##N, 14, me);                                                                              \
        shmem_atomic_and(ctx, &b_##N, 7, me);                                                                          \
        shmem_atomic_xor(&b_##N, 1, me);                                                                               \
        shmem_atomic_xor(ctx, &b_##N, 8, me);                                                                          \
        CHECK(shmem_atomic_fetch_or(&b_##N, 0, me) == 15 && shmem_atomic_fetch_or(ctx, &b_##N, 0, me) == 15, #N);      \
        CHECK(shmem_atomic_fetch_and(&b_##N, 7, me) == 15 && shmem_atomic_fetch_and(ctx, &b_##N, 3, me) == 7, #N);     \
        CHECK(shmem_atomic_fetch_xor(&b_##N, 1, me) == 3 && shmem_atomic_fetch_xor(ctx, &b_##N, 2, me) == 2, #N);      \
        shmem_atomic_fetch_or_nbi(&got, &b_##N, 1, me);                                                                \
        shmem_atomic_fetch_or_nbi(ctx, &got, &b_##N, 2, me);                                                           \
        shmem_atomic_fetch_and_nbi(&got, &b_##N, 3, me);                                                               \
        shmem_atomic_fetch_and_nbi(ctx, &got, &b_##N, 3, me);                                                          \
        shmem_atomic_fetch_xor_nbi(&got, &b_##N, 4, me);                                                               \
        shmem_atomic_fetch_xor_nbi(ctx, &got, &b_##N, 8, me);                                                          \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(b_##N == 15, "bitwise atomics of " #N);                                                                  \
    }
BITWISE_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static T w_##N;                                                                                                    \
    static void p2p_##N(void)                                                                                          \
    {                                                                                                                  \
        w_##N = (T)-1;                                                                                                 \
        CHECK(shmem_test(&w_##N, SHMEM_CMP_GT, 0) == ((T)-1 > 0), "test of " #N);                                      \
        shmem_wait_until(&w_##N, SHMEM_CMP_EQ, (T)-1);                                                                 \
        w_##N = 42;                                                                                                    \
        size_t indices[1];                                                                                             \
        T want = 42;                                                                                                   \
        shmem_wait_until_all(&w_##N, 1, NULL, SHMEM_CMP_EQ, 42);                                                       \
        shmem_wait_until_all_vector(&w_##N, 1, NULL, SHMEM_CMP_EQ, &want);                                             \
        int ok = shmem_wait_until_any(&w_##N, 1, NULL, SHMEM_CMP_EQ, 42) == 0 &&                                       \
                 shmem_wait_until_some(&w_##N, 1, indices, NULL, SHMEM_CMP_EQ, 42) == 1 &&                             \
                 shmem_test_all(&w_##N, 1, NULL, SHMEM_CMP_EQ, 42) == 1 &&                                             \
                 shmem_test_any(&w_##N, 1, NULL, SHMEM_CMP_EQ, 42) == 0 &&                                             \
                 shmem_test_some(&w_##N, 1, indices, NULL, SHMEM_CMP_EQ, 42) == 1 &&                                   \
                 shmem_wait_until_any_vector(&w_##N, 1, NULL, SHMEM_CMP_EQ, &want) == 0 &&                             \
                 shmem_wait_until_some_vector(&w_##N, 1, indices, NULL, SHMEM_CMP_EQ, &want) == 1 &&                   \
                 shmem_test_all_vector(&w_##N, 1, NULL, SHMEM_CMP_EQ, &want) == 1 &&                                   \
                 shmem_test_any_vector(&w_##N, 1, NULL, SHMEM_CMP_EQ, &want) == 0 &&                                   \
                 shmem_test_some_vector(&w_##N, 1, indices, NULL, SHMEM_CMP_EQ, &want) == 1;                           \
        CHECK(ok, "waiting for " #N);                                                                                  \
    }
P2P_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    static void old_extended_##N(void)                                                                                 \
    {                                                                                                                  \
        const T *constant = &a_##N;                                                                                    \
        shmem_set(&a_##N, (T)1.5, me);                                                                                 \
        CHECK(shmem_fetch(constant, me) == (T)1.5 && shmem_swap(&a_##N, (T)2, me) == (T)1.5, "old names of " #N);      \
    }
OLD_EXTENDED_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    static void old_##N(void)                                                                                          \
    {                                                                                                                  \
        shmem_inc(&a_##N, me);                                                                                         \
        shmem_add(&a_##N, 2, me);                                                                                      \
        CHECK(shmem_finc(&a_##N, me) == 5 && shmem_fadd(&a_##N, 4, me) == 6, "old names of " #N);                      \
        CHECK(shmem_cswap(&a_##N, 10, 11, me) == 10, "old names of " #N);                                              \
    }
OLD_TYPES(X)
#undef X

int main(void)
{
    static long psync[SHMEM_SYNC_SIZE];
    check_begin();
    CHECK(shmem_ctx_create(0, &ctx) == 0, "no context");
#define X(N, T) rma_##N();
    RMA_TYPES(X)
#undef X
#define X(N, T) sums_##N();
    ARITHMETIC_TYPES(X)
#undef X
#define X(N, T) bits_of_##N();
    BITS_TYPES(X)
#undef X
#define X(N, T) extended_##N();
    EXTENDED_TYPES(X)
#undef X
#define X(N, T) standard_##N();
    STANDARD_TYPES(X)
#undef X
#define X(N, T) bitwise_##N();
    BITWISE_TYPES(X)
#undef X
#define X(N, T) p2p_##N();
    P2P_TYPES(X)
#undef X
#define X(N, T) old_extended_##N();
    OLD_EXTENDED_TYPES(X)
#undef X
#define X(N, T) old_##N();
    OLD_TYPES(X)
#undef X
    shmem_sync(0, 0, npes, psync);
    shmem_signal_set(&sig, 4, me);
    shmem_signal_set(ctx, &sig, 5, me);
    shmem_signal_add(&sig, 1, me);
    shmem_signal_add(ctx, &sig, 1, me);
    CHECK(shmem_signal_fetch(&sig) == 7, "signals");
    shmem_ctx_destroy(ctx);
    return check_end(
#ifdef __cplusplus
        "overloads"
#else
        "generic"
#endif
    );
}
