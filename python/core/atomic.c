/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics and waits, by the name of a type. */
#include "core.h"

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

/* Where one atomic finds its operands and leaves the old value; fetched may be unused. */
struct operands {
    void *dest, *fetched;
    const void *value, *cond;
};

typedef void atomic_function(enum op op, shmem_ctx_t ctx, const struct operands *operands, int pe);

#define X(NAME, TYPE)                                                                                                  \
    static void atomic_##NAME(enum op op, shmem_ctx_t ctx, const struct operands *o, int pe)                           \
    {                                                                                                                  \
        TYPE *dest = o->dest, *old = o->fetched, value = 0;                                                            \
        if (o->value)                                                                                                  \
            value = *(const TYPE *)o->value;                                                                           \
        if (op == OP_FETCH)                                                                                            \
            *old = shmem_ctx_##NAME##_atomic_fetch(ctx, dest, pe);                                                     \
        else if (op == OP_SET)                                                                                         \
            shmem_ctx_##NAME##_atomic_set(ctx, dest, value, pe);                                                       \
        else if (op == OP_SWAP)                                                                                        \
            *old = shmem_ctx_##NAME##_atomic_swap(ctx, dest, value, pe);                                               \
        else if (op == OP_COMPARE_SWAP)                                                                                \
            *old = shmem_ctx_##NAME##_atomic_compare_swap(ctx, dest, *(const TYPE *)o->cond, value, pe);               \
        else if (op == OP_ADD)                                                                                         \
            shmem_ctx_##NAME##_atomic_add(ctx, dest, value, pe);                                                       \
        else if (op == OP_FETCH_ADD)                                                                                   \
            *old = shmem_ctx_##NAME##_atomic_fetch_add(ctx, dest, value, pe);                                          \
        else if (op == OP_AND)                                                                                         \
            shmem_ctx_##NAME##_atomic_and(ctx, dest, value, pe);                                                       \
        else if (op == OP_FETCH_AND)                                                                                   \
            *old = shmem_ctx_##NAME##_atomic_fetch_and(ctx, dest, value, pe);                                          \
        else if (op == OP_OR)                                                                                          \
            shmem_ctx_##NAME##_atomic_or(ctx, dest, value, pe);                                                        \
        else if (op == OP_FETCH_OR)                                                                                    \
            *old = shmem_ctx_##NAME##_atomic_fetch_or(ctx, dest, value, pe);                                           \
        else if (op == OP_XOR)                                                                                         \
            shmem_ctx_##NAME##_atomic_xor(ctx, dest, value, pe);                                                       \
        else                                                                                                           \
            *old = shmem_ctx_##NAME##_atomic_fetch_xor(ctx, dest, value, pe);                                          \
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
        TYPE old, sum, value = o->value ? *(const TYPE *)o->value : 0;                                                 \
        BITS_TYPE seen, wanted, before;                                                                                \
        if (op == OP_SET) {                                                                                            \
            shmem_ctx_##NAME##_atomic_set(ctx, o->dest, value, pe);                                                    \
            return;                                                                                                    \
        }                                                                                                              \
        if (op == OP_SWAP) {                                                                                           \
            *(TYPE *)o->fetched = shmem_ctx_##NAME##_atomic_swap(ctx, o->dest, value, pe);                             \
            return;                                                                                                    \
        }                                                                                                              \
        old = shmem_ctx_##NAME##_atomic_fetch(ctx, o->dest, pe);                                                       \
        memcpy(&before, &old, sizeof before);                                                                          \
        for (seen = ~before; op != OP_FETCH && seen != before;) {                                                      \
            seen = before;                                                                                             \
            memcpy(&old, &seen, sizeof old);                                                                           \
            sum = old + value;                                                                                         \
            memcpy(&wanted, &sum, sizeof wanted);                                                                      \
            before = shmem_ctx_##BITS_NAME##_atomic_compare_swap(ctx, o->dest, seen, wanted, pe);                      \
        }                                                                                                              \
        if (o->fetched)                                                                                                \
            *(TYPE *)o->fetched = old;                                                                                 \
    }
X(float, float, uint32, uint32_t)
X(double, double, uint64, uint64_t)
#undef X

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
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0; i < count; i++) {
        size_t here = (size_t)i * type->bytes;
        const struct operands operands = {.dest = (char *)at(base) + offsets[i],
                                          .fetched = at_or_null(fetched, here),
                                          .value = at_or_null(values, here),
                                          .cond = at_or_null(conds, here)};
        type->function((enum op)op, to_ctx(ctx), &operands, pe);
    }
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

enum how {
    HOW_ALL,
    HOW_ANY,
    HOW_SOME,
    HOW_TEST,
};

/* Returns the index, the number of indices, or whether all hold. */
typedef size_t wait_function(enum how how, void *objects, size_t count, size_t *indices, int cmp, const void *value);

#define X(NAME, TYPE)                                                                                                  \
    static size_t wait_##NAME(enum how how, void *objects, size_t count, size_t *indices, int cmp, const void *value)  \
    {                                                                                                                  \
        TYPE wanted = *(const TYPE *)value;                                                                            \
        if (how == HOW_ANY)                                                                                            \
            return shmem_##NAME##_wait_until_any(objects, count, NULL, cmp, wanted);                                   \
        if (how == HOW_SOME)                                                                                           \
            return shmem_##NAME##_wait_until_some(objects, count, indices, NULL, cmp, wanted);                         \
        if (how == HOW_TEST)                                                                                           \
            return (size_t)shmem_##NAME##_test_all(objects, count, NULL, cmp, wanted);                                 \
        shmem_##NAME##_wait_until_all(objects, count, NULL, cmp, wanted);                                              \
        return 0;                                                                                                      \
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

PyObject *core_wait(PyObject *module, PyObject *arguments)
{
    const char *how_name, *type;
    unsigned long long objects, value;
    Py_ssize_t count;
    int cmp;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ssKniK", &how_name, &type, &objects, &count, &cmp, &value))
        return NULL;
    wait_function *wait = find_wait(type);
    if (!wait)
        return NULL;
    enum how how = strcmp(how_name, "any") == 0    ? HOW_ANY
                   : strcmp(how_name, "some") == 0 ? HOW_SOME
                   : strcmp(how_name, "test") == 0 ? HOW_TEST
                                                   : HOW_ALL;
    size_t *indices = how == HOW_SOME ? calloc((size_t)count + 1, sizeof *indices) : NULL, found;
    if (how == HOW_SOME && !indices)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    found = wait(how, at(objects), (size_t)count, indices, cmp, at(value));
    Py_END_ALLOW_THREADS;
    PyObject *result = how == HOW_SOME   ? list_of(indices, found)
                       : how == HOW_ANY  ? PyLong_FromSize_t(found)
                       : how == HOW_TEST ? PyBool_FromLong((long)found)
                                         : Py_BuildValue("");
    free(indices);
    return result;
}
