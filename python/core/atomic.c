/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and waits, by the name of a type. */
#include "core.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum op {
    OP_FETCH,
    OP_SET,
    OP_SWAP,
    OP_COMPARE_SWAP,
    OP_ADD,
    OP_FETCH_ADD,
    OP_AND,
    OP_FETCH_AND,
    OP_OR,
    OP_FETCH_OR,
    OP_XOR,
    OP_FETCH_XOR,
    OP_COUNT,
};

static const char *const op_names[OP_COUNT] = {
    [OP_FETCH] = "fetch",     [OP_SET] = "set",
    [OP_SWAP] = "swap",       [OP_COMPARE_SWAP] = "compare_swap",
    [OP_ADD] = "add",         [OP_FETCH_ADD] = "fetch_add",
    [OP_AND] = "bitwise_and", [OP_FETCH_AND] = "fetch_bitwise_and",
    [OP_OR] = "bitwise_or",   [OP_FETCH_OR] = "fetch_bitwise_or",
    [OP_XOR] = "bitwise_xor", [OP_FETCH_XOR] = "fetch_bitwise_xor",
};

/* Where one atomic finds its operands and leaves the old value; fetched may be unused. is_nbi: the old value is there
 * after the next quiet. */
struct operands {
    void *dest, *fetched;
    const void *value, *cond;
    bool is_nbi;
};

typedef void atomic_function(enum op op, shmem_ctx_t ctx, const struct operands *operands, int pe);

#define FETCH(NAME, ROUTINE, ...)                                                                                      \
    (o->is_nbi ? shmem_ctx_##NAME##_atomic_##ROUTINE##_nbi(ctx, old, __VA_ARGS__)                                      \
               : (void)(*old = shmem_ctx_##NAME##_atomic_##ROUTINE(ctx, __VA_ARGS__)))

#define X(NAME, TYPE)                                                                                                  \
    static void atomic_##NAME(enum op op, shmem_ctx_t ctx, const struct operands *o, int pe)                           \
    {                                                                                                                  \
        TYPE *dest = o->dest, *old = o->fetched, value = 0;                                                            \
        if (o->value)                                                                                                  \
            value = *(const TYPE *)o->value;                                                                           \
        if (op == OP_FETCH)                                                                                            \
            FETCH(NAME, fetch, dest, pe);                                                                              \
        else if (op == OP_SET)                                                                                         \
            shmem_ctx_##NAME##_atomic_set(ctx, dest, value, pe);                                                       \
        else if (op == OP_SWAP)                                                                                        \
            FETCH(NAME, swap, dest, value, pe);                                                                        \
        else if (op == OP_COMPARE_SWAP)                                                                                \
            FETCH(NAME, compare_swap, dest, *(const TYPE *)o->cond, value, pe);                                        \
        else if (op == OP_ADD)                                                                                         \
            shmem_ctx_##NAME##_atomic_add(ctx, dest, value, pe);                                                       \
        else if (op == OP_FETCH_ADD)                                                                                   \
            FETCH(NAME, fetch_add, dest, value, pe);                                                                   \
        else if (op == OP_AND)                                                                                         \
            shmem_ctx_##NAME##_atomic_and(ctx, dest, value, pe);                                                       \
        else if (op == OP_FETCH_AND)                                                                                   \
            FETCH(NAME, fetch_and, dest, value, pe);                                                                   \
        else if (op == OP_OR)                                                                                          \
            shmem_ctx_##NAME##_atomic_or(ctx, dest, value, pe);                                                        \
        else if (op == OP_FETCH_OR)                                                                                    \
            FETCH(NAME, fetch_or, dest, value, pe);                                                                    \
        else if (op == OP_XOR)                                                                                         \
            shmem_ctx_##NAME##_atomic_xor(ctx, dest, value, pe);                                                       \
        else                                                                                                           \
            FETCH(NAME, fetch_xor, dest, value, pe);                                                                   \
    }
X(int32, int32_t)
X(int64, int64_t)
X(uint32, uint32_t)
X(uint64, uint64_t)
#undef X

/* The specification has fetch, set and swap of floating-point numbers. A sum is a compare-swap of their bits, which the
 * library makes atomic with respect to every atomic on the word, repeated until no other PE was faster. */
#define X(NAME, TYPE, BITS_NAME, BITS_TYPE)                                                                            \
    static void atomic_##NAME(enum op op, shmem_ctx_t ctx, const struct operands *o, int pe)                           \
    {                                                                                                                  \
        TYPE *old = o->fetched, now, sum, value = o->value ? *(const TYPE *)o->value : 0;                              \
        BITS_TYPE seen, wanted, before;                                                                                \
        if (op == OP_SET)                                                                                              \
            shmem_ctx_##NAME##_atomic_set(ctx, o->dest, value, pe);                                                    \
        else if (op == OP_SWAP)                                                                                        \
            FETCH(NAME, swap, o->dest, value, pe);                                                                     \
        else if (op == OP_FETCH)                                                                                       \
            FETCH(NAME, fetch, o->dest, pe);                                                                           \
        if (op == OP_SET || op == OP_SWAP || op == OP_FETCH)                                                           \
            return;                                                                                                    \
        now = shmem_ctx_##NAME##_atomic_fetch(ctx, o->dest, pe);                                                       \
        memcpy(&before, &now, sizeof before);                                                                          \
        for (seen = ~before; seen != before;) {                                                                        \
            seen = before;                                                                                             \
            memcpy(&now, &seen, sizeof now);                                                                           \
            sum = now + value;                                                                                         \
            memcpy(&wanted, &sum, sizeof wanted);                                                                      \
            before = shmem_ctx_##BITS_NAME##_atomic_compare_swap(ctx, o->dest, seen, wanted, pe);                      \
        }                                                                                                              \
        if (old)                                                                                                       \
            *old = now;                                                                                                \
    }
X(float, float, uint32, uint32_t)
X(double, double, uint64, uint64_t)
#undef X
#undef FETCH

struct atomic_type {
    const char *name;
    atomic_function *function;
    size_t bytes;
};

static const struct atomic_type atomic_types[] = {
    {"int32", atomic_int32, 4},   {"int64", atomic_int64, 8}, {"uint32", atomic_uint32, 4},
    {"uint64", atomic_uint64, 8}, {"float", atomic_float, 4}, {"double", atomic_double, 8},
};

static const struct atomic_type *find_atomic_type(const char *name)
{
    for (size_t i = 0; i < sizeof atomic_types / sizeof *atomic_types; i++)
        if (strcmp(atomic_types[i].name, name) == 0)
            return &atomic_types[i];
    PyErr_Format(PyExc_TypeError, "there are no atomics of %s", name);
    return NULL;
}

static int find_op(const char *name)
{
    for (int op = 0; op < OP_COUNT; op++)
        if (strcmp(op_names[op], name) == 0)
            return op;
    PyErr_Format(PyExc_ValueError, "there is no atomic %s", name);
    return -1;
}

static void *at_or_null(unsigned long long base, size_t offset)
{
    return base ? (char *)at(base) + offset : NULL;
}

PyObject *core_atomic(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    const char *op_name, *type_name;
    unsigned long long ctx, base, offsets_at, values, conds, fetched;
    Py_ssize_t count;
    int pe;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ssKiKKnKKK", &op_name, &type_name, &ctx, &pe, &base, &offsets_at, &count, &values,
                          &conds, &fetched))
        return NULL;
    const struct atomic_type *type = find_atomic_type(type_name);
    int op = type ? find_op(op_name) : -1;
    if (op < 0)
        return NULL;
    const int64_t *offsets = at(offsets_at);
    const bool is_nbi = fetched && count > 1; /* several old values travel at once */
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t here = (size_t)i * type->bytes;
        const struct operands operands = {.dest = (char *)at(base) + offsets[i],
                                          .fetched = at_or_null(fetched, here),
                                          .value = at_or_null(values, here),
                                          .cond = at_or_null(conds, here),
                                          .is_nbi = is_nbi};
        type->function((enum op)op, to_ctx(ctx), &operands, pe);
    }
    if (is_nbi)
        shmem_ctx_quiet(to_ctx(ctx));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

enum how {
    HOW_WAIT_ALL,
    HOW_WAIT_ANY,
    HOW_WAIT_SOME,
    HOW_TEST_ALL,
    HOW_TEST_ANY,
    HOW_TEST_SOME,
    HOW_COUNT,
};

static const char *const how_names[HOW_COUNT] = {
    [HOW_WAIT_ALL] = "wait_all", [HOW_WAIT_ANY] = "wait_any", [HOW_WAIT_SOME] = "wait_some",
    [HOW_TEST_ALL] = "test_all", [HOW_TEST_ANY] = "test_any", [HOW_TEST_SOME] = "test_some",
};

/* What is waited for: object i with values[i], unless status[i] is not 0. */
struct awaited {
    void *objects;
    const void *values;
    const int *status;
    size_t *indices;
    size_t count;
    int cmp;
};

/* Returns the index, the number of indices, or whether all hold. */
typedef size_t wait_function(enum how how, const struct awaited *awaited);

#define X(NAME, TYPE)                                                                                                  \
    static size_t wait_##NAME(enum how how, const struct awaited *a)                                                   \
    {                                                                                                                  \
        TYPE *objects = a->objects;                                                                                    \
        const TYPE *values = a->values;                                                                                \
        if (how == HOW_WAIT_ANY)                                                                                       \
            return shmem_##NAME##_wait_until_any_vector(objects, a->count, a->status, a->cmp, values);                 \
        if (how == HOW_WAIT_SOME)                                                                                      \
            return shmem_##NAME##_wait_until_some_vector(objects, a->count, a->indices, a->status, a->cmp, values);    \
        if (how == HOW_TEST_ALL)                                                                                       \
            return (size_t)shmem_##NAME##_test_all_vector(objects, a->count, a->status, a->cmp, values);               \
        if (how == HOW_TEST_ANY)                                                                                       \
            return shmem_##NAME##_test_any_vector(objects, a->count, a->status, a->cmp, values);                       \
        if (how == HOW_TEST_SOME)                                                                                      \
            return shmem_##NAME##_test_some_vector(objects, a->count, a->indices, a->status, a->cmp, values);          \
        shmem_##NAME##_wait_until_all_vector(objects, a->count, a->status, a->cmp, values);                            \
        return 1;                                                                                                      \
    }
X(short, int16_t)
X(ushort, uint16_t)
X(int32, int32_t)
X(int64, int64_t)
X(uint32, uint32_t)
X(uint64, uint64_t)
#undef X

static wait_function *find_wait(const char *name)
{
    static const struct {
        const char *name;
        wait_function *function;
    } types[] = {{"short", wait_short}, {"ushort", wait_ushort}, {"int32", wait_int32},
                 {"int64", wait_int64}, {"uint32", wait_uint32}, {"uint64", wait_uint64}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].function;
    PyErr_Format(PyExc_TypeError, "nothing waits for %s", name);
    return NULL;
}

static PyObject *list_of(const size_t *indices, size_t count)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *index = PyLong_FromSize_t(indices[i]);
        if (!index || PyList_Append(list, index) != 0)
            Py_CLEAR(list);
        Py_XDECREF(index);
    }
    return list;
}

static int find_how(const char *name)
{
    for (int how = 0; how < HOW_COUNT; how++)
        if (strcmp(how_names[how], name) == 0)
            return how;
    PyErr_Format(PyExc_ValueError, "there is no way to wait named %s", name);
    return -1;
}

static PyObject *waited(enum how how, const struct awaited *awaited, size_t found)
{
    if (how == HOW_WAIT_SOME || how == HOW_TEST_SOME)
        return list_of(awaited->indices, found);
    if (how == HOW_WAIT_ALL || how == HOW_TEST_ALL)
        return PyBool_FromLong((long)found);
    if (found == SIZE_MAX)
        Py_RETURN_NONE;
    return PyLong_FromSize_t(found);
}

PyObject *core_wait(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    const char *how_name, *type;
    unsigned long long objects, values, status;
    Py_ssize_t count;
    struct awaited awaited;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ssKniKK", &how_name, &type, &objects, &count, &awaited.cmp, &values, &status))
        return NULL;
    wait_function *wait = find_wait(type);
    int how = wait ? find_how(how_name) : -1;
    if (how < 0)
        return NULL;
    awaited.objects = at(objects);
    awaited.values = at(values);
    awaited.status = at(status);
    awaited.count = (size_t)count;
    awaited.indices = calloc((size_t)count + 1, sizeof *awaited.indices);
    if (!awaited.indices)
        return PyErr_NoMemory();
    size_t found;
    Py_BEGIN_ALLOW_THREADS;
    found = wait((enum how)how, &awaited);
    Py_END_ALLOW_THREADS;
    PyObject *result = waited((enum how)how, &awaited, found);
    free(awaited.indices);
    return result;
}
