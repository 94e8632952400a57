/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of teams; the reductions by the names of an operator and a type. */
#include "core.h"

#include <string.h>

typedef int reduce_function(shmem_team_t team, void *dest, const void *source, size_t count);

/* The types, each width once. */
#define BITWISE(X)                                                                                                     \
    X(int8, int8_t)                                                                                                    \
    X(int16, int16_t)                                                                                                  \
    X(int32, int32_t)                                                                                                  \
    X(int64, int64_t)                                                                                                  \
    X(uint8, uint8_t)                                                                                                  \
    X(uint16, uint16_t)                                                                                                \
    X(uint32, uint32_t)                                                                                                \
    X(uint64, uint64_t)
#define ORDERED(X)                                                                                                     \
    BITWISE(X)                                                                                                         \
    X(float, float)                                                                                                    \
    X(double, double)                                                                                                  \
    X(longdouble, long double)
#define ARITHMETIC(X)                                                                                                  \
    ORDERED(X)                                                                                                         \
    QUOIT_REDUCE_COMPLEX_TYPES(X)

/* Each routine with untyped pointers. */
#define DEFINE(NAME, TYPE, OP)                                                                                         \
    static int NAME##_##OP(shmem_team_t team, void *dest, const void *source, size_t count)                            \
    {                                                                                                                  \
        TYPE *to = dest;                                                                                               \
        return shmem_##NAME##_##OP(team, to, source, count);                                                           \
    }
#define X(NAME, TYPE)                                                                                                  \
    DEFINE(NAME, TYPE, and_reduce)                                                                                     \
    DEFINE(NAME, TYPE, or_reduce)                                                                                      \
    DEFINE(NAME, TYPE, xor_reduce)
BITWISE(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    DEFINE(NAME, TYPE, min_reduce)                                                                                     \
    DEFINE(NAME, TYPE, max_reduce)
ORDERED(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    DEFINE(NAME, TYPE, sum_reduce)                                                                                     \
    DEFINE(NAME, TYPE, prod_reduce)                                                                                    \
    DEFINE(NAME, TYPE, sum_inscan)                                                                                     \
    DEFINE(NAME, TYPE, sum_exscan)
ARITHMETIC(X)
#undef X

static const struct {
    const char *op, *type;
    reduce_function *function;
} reductions[] = {
#define ROW(NAME, OP) {#OP, #NAME, NAME##_##OP},
#define X(NAME, TYPE) ROW(NAME, and_reduce) ROW(NAME, or_reduce) ROW(NAME, xor_reduce)
    BITWISE(X)
#undef X
#define X(NAME, TYPE) ROW(NAME, min_reduce) ROW(NAME, max_reduce)
        ORDERED(X)
#undef X
#define X(NAME, TYPE) ROW(NAME, sum_reduce) ROW(NAME, prod_reduce) ROW(NAME, sum_inscan) ROW(NAME, sum_exscan)
            ARITHMETIC(X)
#undef X
};

static PyObject *result_of(int status, const char *routine)
{
    if (status != 0)
        return PyErr_Format(PyExc_RuntimeError, "%s returned %d", routine, status);
    Py_RETURN_NONE;
}

PyObject *core_reduce(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    const char *op, *type;
    unsigned long long team, dest, source;
    Py_ssize_t count;
    int status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ssKKKn", &op, &type, &team, &dest, &source, &count))
        return NULL;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        if (strcmp(reductions[i].op, op) != 0 || strcmp(reductions[i].type, type) != 0)
            continue;
        Py_BEGIN_ALLOW_THREADS;
        status = reductions[i].function(to_team(team), at(dest), at(source), (size_t)count);
        Py_END_ALLOW_THREADS;
        return result_of(status, op);
    }
    return PyErr_Format(PyExc_TypeError, "there is no %s of %s", op, type);
}

/* Those with the same parameters, in bytes. */
typedef int bytes_function(shmem_team_t team, void *dest, const void *source, size_t bytes);

static PyObject *call(bytes_function *function, PyObject *arguments, const char *routine)
{
    CORE_AT_LINE;
    unsigned long long team, dest, source;
    Py_ssize_t bytes;
    int status;
    if (!PyArg_ParseTuple(arguments, "KKKn", &team, &dest, &source, &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = function(to_team(team), at(dest), at(source), (size_t)bytes);
    Py_END_ALLOW_THREADS;
    return result_of(status, routine);
}

PyObject *core_fcollect(PyObject *module, PyObject *arguments)
{
    (void)module;
    return call(shmem_fcollectmem, arguments, "shmem_fcollectmem");
}

PyObject *core_collect(PyObject *module, PyObject *arguments)
{
    (void)module;
    return call(shmem_collectmem, arguments, "shmem_collectmem");
}

PyObject *core_alltoall(PyObject *module, PyObject *arguments)
{
    (void)module;
    return call(shmem_alltoallmem, arguments, "shmem_alltoallmem");
}

PyObject *core_alltoalls(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long team, dest, source;
    Py_ssize_t to, from, count;
    int itemsize, status = -1;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KKKnnni", &team, &dest, &source, &to, &from, &count, &itemsize))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    if (itemsize == 1)
        status = shmem_uint8_alltoalls(to_team(team), at(dest), at(source), to, from, (size_t)count);
    else if (itemsize == 2)
        status = shmem_uint16_alltoalls(to_team(team), at(dest), at(source), to, from, (size_t)count);
    else if (itemsize == 4)
        status = shmem_uint32_alltoalls(to_team(team), at(dest), at(source), to, from, (size_t)count);
    else if (itemsize == 8)
        status = shmem_uint64_alltoalls(to_team(team), at(dest), at(source), to, from, (size_t)count);
    Py_END_ALLOW_THREADS;
    return result_of(status, "shmem_alltoalls");
}

PyObject *core_broadcast(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long team, dest, source;
    Py_ssize_t bytes;
    int root, status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KKKni", &team, &dest, &source, &bytes, &root))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = shmem_broadcastmem(to_team(team), at(dest), at(source), (size_t)bytes, root);
    Py_END_ALLOW_THREADS;
    return result_of(status, "shmem_broadcastmem");
}
