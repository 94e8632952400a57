/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: values at the limits of each type survive every kind of transfer bit for bit, and are compared, added and
 * reduced as C does: minimum, maximum, minus one, infinities, NaNs with a payload, minus zero, denormals. Method:
 * values are made from bit patterns; transfers are compared bitwise, the rest with C's result for the same values. */
#include "check.h"

#include <math.h>

#define VALUES 8
#define PES    64
/* 10 of the 16 bytes of a long double hold its value. */
#define VALUE_BYTES(T) (sizeof(T) > 8 ? 10 : sizeof(T))

/* Value i of any type of `bytes` bytes. The last byte is the most significant. */
static void make(void *value, size_t bytes, int i)
{
    static const unsigned char high[VALUES] = {0x00, 0x80, 0x7f, 0xff, 0x7f, 0x7f, 0xff, 0x01};
    static const unsigned char next[VALUES] = {0x00, 0x00, 0xff, 0xff, 0x80, 0xf8, 0xf0, 0x00};
    static const unsigned char rest[VALUES] = {0x00, 0x00, 0xff, 0xff, 0x00, 0x21, 0x01, 0x00};
    unsigned char *to = value;
    memset(to, 0, bytes);
    size_t count = bytes > 8 ? 10 : bytes;
    memset(to, rest[i], count);
    to[count - 1] = high[i];
    if (count > 1)
        to[count - 2] = next[i];
    if (count == 10)
        to[7] |= 0x80; /* the first bit of a long double's significand is explicit */
}

#define X(N, T)                                                                                                        \
    static T there_##N[PES * VALUES];                                                                                  \
    static void look_##N(const T *got, int shift, const char *what)                                                    \
    {                                                                                                                  \
        T expected;                                                                                                    \
        for (int i = 0; i < VALUES; i++) {                                                                             \
            make(&expected, sizeof expected, (i + shift) % VALUES);                                                    \
            CHECK(memcmp(&got[i], &expected, VALUE_BYTES(T)) == 0, #N " value %d by %s", i, what);                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void move_##N(int to, int from)                                                                             \
    {                                                                                                                  \
        T values[VALUES], got[VALUES];                                                                                 \
        T *mine = there_##N + me * VALUES;                                                                             \
        for (int i = 0; i < VALUES; i++)                                                                               \
            make(&values[i], sizeof(T), (i + me) % VALUES);                                                            \
        shmem_##N##_put(mine, values, VALUES, to);                                                                     \
        shmem_barrier_all();                                                                                           \
        look_##N(there_##N + from * VALUES, from, "put");                                                              \
        shmem_##N##_get(got, mine, VALUES, to);                                                                        \
        look_##N(got, me, "get");                                                                                      \
        shmem_barrier_all();                                                                                           \
        memset(there_##N, 0x55, sizeof there_##N);                                                                     \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < VALUES; i++)                                                                               \
            shmem_##N##_p(&mine[i], values[i], to);                                                                    \
        shmem_barrier_all();                                                                                           \
        look_##N(there_##N + from * VALUES, from, "p");                                                                \
        for (int i = 0; i < VALUES; i++)                                                                               \
            got[i] = shmem_##N##_g(&mine[i], to);                                                                      \
        look_##N(got, me, "g");                                                                                        \
        shmem_barrier_all();                                                                                           \
        memset(there_##N, 0x55, sizeof there_##N);                                                                     \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_iput(mine, values, 1, 1, VALUES, to);                                                              \
        shmem_barrier_all();                                                                                           \
        look_##N(there_##N + from * VALUES, from, "iput");                                                             \
        shmem_##N##_iget(got, mine, 1, 1, VALUES, to);                                                                 \
        look_##N(got, me, "iget");                                                                                     \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_RMA_TYPES(X)
#undef X

/* One value at a time through a word of another PE. */
#define X(N, T)                                                                                                        \
    static void swap_##N(int to)                                                                                       \
    {                                                                                                                  \
        T value, old, later;                                                                                           \
        T *word = &there_##N[me * VALUES];                                                                             \
        make(&old, sizeof old, 0);                                                                                     \
        shmem_##N##_atomic_set(word, old, to);                                                                         \
        for (int i = 0; i < VALUES; i++) {                                                                             \
            make(&value, sizeof value, i);                                                                             \
            T got = shmem_##N##_atomic_swap(word, value, to);                                                          \
            CHECK(memcmp(&got, &old, sizeof got) == 0, #N " swap before value %d", i);                                 \
            got = shmem_##N##_atomic_fetch(word, to);                                                                  \
            CHECK(memcmp(&got, &value, sizeof got) == 0, #N " fetch of value %d", i);                                  \
            shmem_##N##_atomic_fetch_nbi(&later, word, to);                                                            \
            shmem_quiet();                                                                                             \
            CHECK(memcmp(&later, &value, sizeof later) == 0, #N " fetch_nbi of value %d", i);                          \
            old = value;                                                                                               \
        }                                                                                                              \
    }
QUOIT_AMO_EXTENDED_TYPES(X)
#undef X

/* Integers wrap around, and comparisons are of all bits. */
#define X(N, T)                                                                                                        \
    static void add_##N(int to)                                                                                        \
    {                                                                                                                  \
        T *word = &there_##N[me * VALUES];                                                                             \
        for (int i = 0; i < VALUES; i++)                                                                               \
            for (int j = 0; j < VALUES; j++) {                                                                         \
                T a, b;                                                                                                \
                make(&a, sizeof a, i);                                                                                 \
                make(&b, sizeof b, j);                                                                                 \
                shmem_##N##_atomic_set(word, a, to);                                                                   \
                CHECK(shmem_##N##_atomic_fetch_add(word, b, to) == a, #N " fetch_add %d %d", i, j);                    \
                T sum = (T)((unsigned long long)a + (unsigned long long)b);                                            \
                CHECK(shmem_##N##_atomic_fetch(word, to) == sum, #N " add %d %d", i, j);                               \
                shmem_##N##_atomic_set(word, a, to);                                                                   \
                CHECK(shmem_##N##_atomic_compare_swap(word, b, (T)1, to) == a, #N " compare_swap %d %d", i, j);        \
                CHECK(shmem_##N##_atomic_fetch(word, to) == (a == b ? (T)1 : a), #N " compared %d %d", i, j);          \
            }                                                                                                          \
    }
QUOIT_AMO_TYPES(X)
#undef X

/* Each test, and each wait that returns immediately, compared with C's operator. */
#define X(N, T)                                                                                                        \
    static void compare_##N(void)                                                                                      \
    {                                                                                                                  \
        T *word = &there_##N[0];                                                                                       \
        for (int i = 0; i < VALUES; i++)                                                                               \
            for (int j = 0; j < VALUES; j++) {                                                                         \
                T a, b;                                                                                                \
                make(&a, sizeof a, i);                                                                                 \
                make(&b, sizeof b, j);                                                                                 \
                *word = a;                                                                                             \
                const int says[6] = {a == b, a != b, a > b, a >= b, a < b, a <= b};                                    \
                for (int cmp = SHMEM_CMP_EQ; cmp <= SHMEM_CMP_LE; cmp++) {                                             \
                    int is = shmem_##N##_test(word, cmp, b);                                                           \
                    CHECK(is == says[cmp], #N " test %d %d %d", cmp, i, j);                                            \
                    if (is)                                                                                            \
                        shmem_##N##_wait_until(word, cmp, b);                                                          \
                }                                                                                                      \
            }                                                                                                          \
    }
QUOIT_P2P_TYPES(X)
#undef X

/* Minimum and maximum over all PEs; NaNs, which the specification does not define here, are left out. */
#define X(N, T)                                                                                                        \
    static void reduce_##N(void)                                                                                       \
    {                                                                                                                  \
        static T source[VALUES], least[VALUES], most[VALUES];                                                          \
        for (int i = 0; i < VALUES; i++) {                                                                             \
            make(&source[i], sizeof(T), (i + me) % VALUES);                                                            \
            if (source[i] != source[i])                                                                                \
                source[i] = 0;                                                                                         \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        CHECK(shmem_##N##_min_reduce(SHMEM_TEAM_WORLD, least, source, VALUES) == 0, #N " min");                        \
        CHECK(shmem_##N##_max_reduce(SHMEM_TEAM_WORLD, most, source, VALUES) == 0, #N " max");                         \
        for (int i = 0; i < VALUES; i++) {                                                                             \
            T low = source[i], high = source[i];                                                                       \
            for (int pe = 0; pe < npes; pe++) {                                                                        \
                T value;                                                                                               \
                make(&value, sizeof value, (i + pe) % VALUES);                                                         \
                if (value != value)                                                                                    \
                    value = 0;                                                                                         \
                low = value < low ? value : low;                                                                       \
                high = value > high ? value : high;                                                                    \
            }                                                                                                          \
            CHECK(least[i] == low && most[i] == high, #N " extremes of value %d", i);                                  \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X

static void sum_of_infinities(void)
{
    static double source[4], sum[4];
    source[0] = INFINITY;
    source[1] = me == 0 ? INFINITY : -INFINITY;
    source[2] = me == npes - 1 ? NAN : 1;
    source[3] = -0.0;
    shmem_barrier_all();
    CHECK(shmem_double_sum_reduce(SHMEM_TEAM_WORLD, sum, source, 4) == 0, "sum");
    CHECK(isinf(sum[0]) && sum[0] > 0, "infinities add up to %g", sum[0]);
    CHECK(npes == 1 ? isinf(sum[1]) : isnan(sum[1]), "infinities of both signs add up to %g", sum[1]);
    CHECK(isnan(sum[2]), "a NaN and numbers add up to %g", sum[2]);
    CHECK(sum[3] == 0 && signbit(sum[3]), "minus zeros add up to %g", sum[3]);
    shmem_barrier_all();
}

int main(void)
{
    check_begin();
    for (int distance = 0; distance < npes && distance < 3; distance++) {
        int to = (me + distance) % npes, from = (me + npes - distance) % npes;
#define X(N, T) move_##N(to, from);
        QUOIT_RMA_TYPES(X)
#undef X
#define X(N, T) swap_##N(to);
        QUOIT_AMO_EXTENDED_TYPES(X)
#undef X
#define X(N, T) add_##N(to);
        QUOIT_AMO_TYPES(X)
#undef X
        shmem_barrier_all();
    }
#define X(N, T) compare_##N();
    QUOIT_P2P_TYPES(X)
#undef X
#define X(N, T) reduce_##N();
    QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
    sum_of_infinities();
    return check_end("values");
}
