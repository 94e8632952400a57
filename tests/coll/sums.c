/* SPDX-License-Identifier: BSD-3-Clause */
/* Reductions of each operator and type, and scans. Integers are any, and wrap round. Floating-point values are such
 * that every order of adding or multiplying them is exact and gives the same bits: small whole numbers, powers of two,
 * and for products of complex numbers 1 and, of few members, 2 + i, of which no power has a zero part. */
#include "collectives.h"

#include <complex.h>
#include <shmem/types.h>
#include <stdlib.h>
#include <string.h>

enum operator_ { AND, OR, XOR, MIN, MAX, SUM, PROD };

#define COMPLEX_FACTORS 12 /* so many members may have 2 + i: float holds the parts of its 12th power */

/* Independent of the library: what one member gives, and what becomes of it. */
struct type {
    const char *name;
    size_t bytes;
    size_t value_bytes;
    void (*make)(void *to, size_t count, uint64_t key, int rank, enum operator_ operator_);
    void (*apply)(void *into, const void *from, size_t count, enum operator_ operator_);
};

static uint64_t word_of(uint64_t key, int rank, size_t at)
{
    return collective_mix(key + (uint64_t)rank * 0x9e3779b97f4a7c15u + at * 0xd6e8feb86659fd93u);
}
static double small(uint64_t word)
{
    return (double)(int64_t)(word % 2001) - 1000;
}
static double factor(uint64_t word)
{
    return (word & 1 ? 0.5 : 2) * (word & 2 ? -1 : 1);
}
static uint64_t apply_bits(uint64_t a, uint64_t b, enum operator_ operator_)
{
    switch (operator_) {
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case SUM:
        return a + b;
    case PROD:
        return a * b;
    default:
        abort();
    }
}

/* Both for one type: VALUE is what a member gives, of `word`, and AFTER what becomes of `a` and `b`. */
#define FUNCTIONS(N, T, VALUE, AFTER)                                                                                  \
    static void make_##N(void *to, size_t count, uint64_t key, int rank, enum operator_ operator_)                     \
    {                                                                                                                  \
        T *values = to;                                                                                                \
        for (size_t i = 0; i < count; i++) {                                                                           \
            uint64_t word = word_of(key, rank, i);                                                                     \
            values[i] = (T)(VALUE);                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void apply_##N(void *into, const void *from, size_t count, enum operator_ operator_)                        \
    {                                                                                                                  \
        T *values = into;                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                                           \
            T a = values[i], b = ((const T *)from)[i];                                                                 \
            values[i] = (T)(AFTER);                                                                                    \
        }                                                                                                              \
    }

#define FLOATING_VALUE   operator_ == PROD ? factor(word) : small(word)
#define INTEGER_AFTER(T) (T) apply_bits((uint64_t)a, (uint64_t)b, operator_)
#define FLOATING_AFTER   operator_ == SUM ? a + b : a *b
#define IS_FLOATING(T)   ((T)0.5 != 0)
#define X(N, T)                                                                                                        \
    FUNCTIONS(N, T, !IS_FLOATING(T) ? (T)word : (T)(FLOATING_VALUE),                                                   \
              operator_ == MIN   ? (a < b ? a : b)                                                                     \
              : operator_ == MAX ? (a < b ? b : a)                                                                     \
              : !IS_FLOATING(T)  ? INTEGER_AFTER(T)                                                                    \
                                 : (T)(FLOATING_AFTER))
QUOIT_RMA_TYPES(X)
#undef X
#define X(N, T)                                                                                                        \
    FUNCTIONS(N, T,                                                                                                    \
              operator_ == SUM                            ? small(word) + small(word >> 32) * I                        \
              : rank < COMPLEX_FACTORS && (word & 1) != 0 ? 2 + I                                                      \
                                                          : 1,                                                         \
              FLOATING_AFTER)
QUOIT_REDUCE_COMPLEX_TYPES(X)
#undef X

/* Of the 16 bytes of a long double 10 are its value. */
#define X(N, T)                                                                                                        \
    static const struct type type_##N = {#N, sizeof(T), sizeof(T) == 16 ? 10 : sizeof(T), make_##N, apply_##N};
QUOIT_RMA_TYPES(X)
#undef X
#define X(N, T) static const struct type type_##N = {#N, sizeof(T), sizeof(T), make_##N, apply_##N};
QUOIT_REDUCE_COMPLEX_TYPES(X)
#undef X

/* A routine, in one form for all types. */
struct reduction {
    const char *name;
    const struct type *type;
    enum operator_ operator_;
    bool is_scan, is_inclusive;
    int (*call)(const struct group *group, void *dest, const void *source, size_t count);
};

#define FORM(N, WORD)                                                                                                  \
    static int N##_##WORD(const struct group *group, void *dest, const void *source, size_t count)                     \
    {                                                                                                                  \
        return shmem_##N##_##WORD(group->team, dest, source, count);                                                   \
    }
#define SET_FORM(N, WORD)                                                                                              \
    static int set_##N##_##WORD(const struct group *group, void *dest, const void *source, size_t count)               \
    {                                                                                                                  \
        shmem_##N##_##WORD##_to_all(dest, source, (int)count, group->start, group->log_stride, group->size,            \
                                    group->work, group->sync);                                                         \
        return 0;                                                                                                      \
    }
#define ROW(N, WORD, OPERATOR)     {#WORD, &type_##N, OPERATOR, false, false, N##_##WORD##_reduce},
#define SET_ROW(N, WORD, OPERATOR) {#WORD " (to all)", &type_##N, OPERATOR, false, false, set_##N##_##WORD},
#define SCAN_ROWS(N, T)                                                                                                \
    {"inclusive scan", &type_##N, SUM, true, true, N##_sum_inscan},                                                    \
        {"exclusive scan", &type_##N, SUM, true, false, N##_sum_exscan},

#define BITWISE_FORMS(N, T)    FORM(N, and_reduce) FORM(N, or_reduce) FORM(N, xor_reduce)
#define ORDERED_FORMS(N, T)    FORM(N, min_reduce) FORM(N, max_reduce)
#define ARITHMETIC_FORMS(N, T) FORM(N, sum_reduce) FORM(N, prod_reduce) FORM(N, sum_inscan) FORM(N, sum_exscan)
QUOIT_REDUCE_BITWISE_TYPES(BITWISE_FORMS)
QUOIT_REDUCE_ORDERED_TYPES(ORDERED_FORMS)
QUOIT_REDUCE_ARITHMETIC_TYPES(ARITHMETIC_FORMS)

#define SET_BITWISE_FORMS(N, T)    SET_FORM(N, and) SET_FORM(N, or) SET_FORM(N, xor)
#define SET_ORDERED_FORMS(N, T)    SET_FORM(N, min) SET_FORM(N, max)
#define SET_ARITHMETIC_FORMS(N, T) SET_FORM(N, sum) SET_FORM(N, prod)
QUOIT_TO_ALL_BITWISE_TYPES(SET_BITWISE_FORMS)
QUOIT_TO_ALL_ORDERED_TYPES(SET_ORDERED_FORMS)
QUOIT_TO_ALL_ARITHMETIC_TYPES(SET_ARITHMETIC_FORMS)

#define BITWISE_ROWS(N, T)        ROW(N, and, AND) ROW(N, or, OR) ROW(N, xor, XOR)
#define ORDERED_ROWS(N, T)        ROW(N, min, MIN) ROW(N, max, MAX)
#define ARITHMETIC_ROWS(N, T)     ROW(N, sum, SUM) ROW(N, prod, PROD)
#define SET_BITWISE_ROWS(N, T)    SET_ROW(N, and, AND) SET_ROW(N, or, OR) SET_ROW(N, xor, XOR)
#define SET_ORDERED_ROWS(N, T)    SET_ROW(N, min, MIN) SET_ROW(N, max, MAX)
#define SET_ARITHMETIC_ROWS(N, T) SET_ROW(N, sum, SUM) SET_ROW(N, prod, PROD)
static const struct reduction reductions[] = {QUOIT_REDUCE_BITWISE_TYPES(BITWISE_ROWS) QUOIT_REDUCE_ORDERED_TYPES(
    ORDERED_ROWS) QUOIT_REDUCE_ARITHMETIC_TYPES(ARITHMETIC_ROWS)};
static const struct reduction set_reductions[] = {QUOIT_TO_ALL_BITWISE_TYPES(
    SET_BITWISE_ROWS) QUOIT_TO_ALL_ORDERED_TYPES(SET_ORDERED_ROWS) QUOIT_TO_ALL_ARITHMETIC_TYPES(SET_ARITHMETIC_ROWS)};
static const struct reduction scans[] = {QUOIT_REDUCE_ARITHMETIC_TYPES(SCAN_ROWS)};

static void run(struct group *group, const struct reduction *reduction)
{
    struct operation operation;
    const struct type *type = reduction->type;
    size_t count = collective_count(group, type->bytes, BYTES_MAX), bytes = count * type->bytes;
    bool is_in_place = quoit_prng_choose(&group->prng, 3) == 0;
    int last = !reduction->is_scan ? group->size - 1 : reduction->is_inclusive ? group->rank : group->rank - 1;
    collective_begin(&operation, group, type->bytes, bytes, bytes, is_in_place);
    operation.value_bytes = type->value_bytes;
    type->make(operation.source, count, operation.key, group->rank, reduction->operator_);
    memset(operation.model, 0, last < 0 ? bytes : 0);
    for (int rank = 0; rank <= last; rank++) {
        type->make(rank == 0 ? operation.model : operation.scratch, count, operation.key, rank, reduction->operator_);
        if (rank != 0)
            type->apply(operation.model, operation.scratch, count, reduction->operator_);
    }
    int status = reduction->call(group, operation.dest, operation.source, count);
    collective_end(&operation, reduction->name, type->name, status);
}

void collective_reduce(struct group *group)
{
    bool is_set = group->team == SHMEM_TEAM_INVALID;
    const struct reduction *rows = is_set ? set_reductions : reductions;
    size_t row_count = is_set ? sizeof set_reductions / sizeof rows[0] : sizeof reductions / sizeof rows[0];
    run(group, &rows[quoit_prng_choose(&group->prng, row_count)]);
}

void collective_scan(struct group *group)
{
    run(group, &scans[quoit_prng_choose(&group->prng, sizeof scans / sizeof scans[0])]);
}
