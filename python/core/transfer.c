/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of slices. */
#include "core.h"

struct level {
    Py_ssize_t count, stride; /* in bytes */
};

/* A strided array on one PE, and the private memory that it is copied to or from in order. */
struct transfer {
    shmem_ctx_t ctx;
    int is_put, is_nbi, pe;
    char *remote, *here;
    size_t block; /* bytes that are contiguous */
    Py_ssize_t level_count;
    struct level levels[DIMENSIONS_MAX];
};

static void copy_block(const struct transfer *t, char *remote, char *here, size_t bytes)
{
    if (t->is_put && t->is_nbi)
        shmem_ctx_putmem_nbi(t->ctx, remote, here, bytes, t->pe);
    else if (t->is_put)
        shmem_ctx_putmem(t->ctx, remote, here, bytes, t->pe);
    else if (t->is_nbi)
        shmem_ctx_getmem_nbi(t->ctx, here, remote, bytes, t->pe);
    else
        shmem_ctx_getmem(t->ctx, here, remote, bytes, t->pe);
}

/* One strided operation, in the largest elements that all its distances are multiples of. */
#define X(BITS, BYTES)                                                                                                 \
    static void copy_strided##BITS(const struct transfer *t, char *remote, char *here, const struct level *level)      \
    {                                                                                                                  \
        ptrdiff_t apart = level->stride / BYTES, block = (ptrdiff_t)t->block / BYTES;                                  \
        if (t->is_put)                                                                                                 \
            shmem_ctx_ibput##BITS(t->ctx, remote, here, apart, block, (size_t)block, (size_t)level->count, t->pe);     \
        else                                                                                                           \
            shmem_ctx_ibget##BITS(t->ctx, here, remote, block, apart, (size_t)block, (size_t)level->count, t->pe);     \
    }
QUOIT_RMA_SIZES(X)
#undef X

static void copy_level(const struct transfer *t, char *remote, char *here, const struct level *level)
{
    uintptr_t all = (uintptr_t)remote | (uintptr_t)here | t->block | (uintptr_t)level->stride;
    if (t->is_nbi) { /* the library has no strided operation that does not block */
        for (Py_ssize_t i = 0; i < level->count; i++)
            copy_block(t, remote + i * level->stride, here + (size_t)i * t->block, t->block);
    } else if (all % 16 == 0) {
        copy_strided128(t, remote, here, level);
    } else if (all % 8 == 0) {
        copy_strided64(t, remote, here, level);
    } else if (all % 4 == 0) {
        copy_strided32(t, remote, here, level);
    } else if (all % 2 == 0) {
        copy_strided16(t, remote, here, level);
    } else {
        copy_strided8(t, remote, here, level);
    }
}

/* The outer dimensions are counted like digits; the innermost is one operation. */
static void copy(const struct transfer *t)
{
    Py_ssize_t digits[DIMENSIONS_MAX] = {0}, inner = t->level_count - 1;
    char *remote = t->remote, *here = t->here;
    if (t->level_count == 0) {
        copy_block(t, remote, here, t->block);
        return;
    }
    for (;;) {
        copy_level(t, remote, here, &t->levels[inner]);
        here += (size_t)t->levels[inner].count * t->block;
        Py_ssize_t i = inner - 1;
        for (; i >= 0; i--) {
            remote += t->levels[i].stride;
            if (++digits[i] < t->levels[i].count)
                break;
            remote -= t->levels[i].count * t->levels[i].stride;
            digits[i] = 0;
        }
        if (i < 0)
            return;
    }
}

/* The dimensions, without those of one element; what is contiguous at the end becomes the block. False: no element. */
static int take_dimensions(struct transfer *t, PyObject *shape, PyObject *strides)
{
    Py_ssize_t dimensions = PyTuple_Size(shape);
    t->level_count = 0;
    for (Py_ssize_t i = 0; i < dimensions; i++) {
        Py_ssize_t count = PyLong_AsSsize_t(PyTuple_GetItem(shape, i));
        if (count == 0)
            return 0;
        if (count > 1)
            t->levels[t->level_count++] = (struct level){count, PyLong_AsSsize_t(PyTuple_GetItem(strides, i))};
    }
    while (t->level_count > 0 && t->levels[t->level_count - 1].stride == (Py_ssize_t)t->block)
        t->block *= (size_t)t->levels[--t->level_count].count;
    return 1;
}

PyObject *core_transfer(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    struct transfer t;
    unsigned long long ctx, remote, here;
    Py_ssize_t itemsize;
    PyObject *shape, *strides;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "ppKiKKnOO", &t.is_put, &t.is_nbi, &ctx, &t.pe, &remote, &here, &itemsize, &shape,
                          &strides))
        return NULL;
    if (PyTuple_Size(shape) < 0 || PyTuple_Size(shape) > DIMENSIONS_MAX || PyTuple_Size(strides) != PyTuple_Size(shape))
        return PyErr_Format(PyExc_ValueError, "shape and strides are tuples of up to %d numbers", DIMENSIONS_MAX);
    t.ctx = to_ctx(ctx);
    t.remote = at(remote);
    t.here = at(here);
    t.block = (size_t)itemsize;
    int has_elements = take_dimensions(&t, shape, strides);
    if (PyErr_Occurred())
        return NULL;
    if (has_elements && itemsize > 0) {
        Py_BEGIN_ALLOW_THREADS;
        copy(&t);
        Py_END_ALLOW_THREADS;
    }
    Py_RETURN_NONE;
}

PyObject *core_scatter(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    struct transfer t = {0};
    unsigned long long ctx, base, offsets_at, here;
    Py_ssize_t count, itemsize;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "pKiKKnnK", &t.is_put, &ctx, &t.pe, &base, &offsets_at, &count, &itemsize, &here))
        return NULL;
    t.ctx = to_ctx(ctx);
    t.is_nbi = !t.is_put;
    const int64_t *offsets = at(offsets_at);
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && offsets[next] - offsets[next - 1] == itemsize; next++)
            continue;
        copy_block(&t, (char *)at(base) + offsets[i], (char *)at(here) + i * itemsize, (size_t)((next - i) * itemsize));
    }
    if (!t.is_put)
        shmem_ctx_quiet(t.ctx);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject *core_put_signal(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx, dest, source, signal, value;
    Py_ssize_t bytes;
    int is_nbi, pe, sig_op;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "pKiKKnKKi", &is_nbi, &ctx, &pe, &dest, &source, &bytes, &signal, &value, &sig_op))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    if (is_nbi)
        shmem_ctx_putmem_signal_nbi(to_ctx(ctx), at(dest), at(source), (size_t)bytes, at(signal), value, sig_op, pe);
    else
        shmem_ctx_putmem_signal(to_ctx(ctx), at(dest), at(source), (size_t)bytes, at(signal), value, sig_op, pe);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyObject *core_signal(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx, signal, value;
    int pe, sig_op;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KiKKi", &ctx, &pe, &signal, &value, &sig_op))
        return NULL;
    if (sig_op == SHMEM_SIGNAL_ADD)
        shmem_ctx_signal_add(to_ctx(ctx), at(signal), value, pe);
    else
        shmem_ctx_signal_set(to_ctx(ctx), at(signal), value, pe);
    Py_RETURN_NONE;
}

PyObject *core_signal_fetch(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long signal;
    (void)module;
    return PyArg_ParseTuple(arguments, "K", &signal) ? PyLong_FromUnsignedLongLong(shmem_signal_fetch(at(signal)))
                                                     : NULL;
}
