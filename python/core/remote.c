/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to one element, or a short run of them, of another PE's array, quoit's shortest path: no Python code runs
 * between a.on(pe)[i] = v and the library. Every other key or value goes to the methods of the subclass in _remote.py.
 */
#include "core.h"

/* Most of a run: it is copied once more on its way. */
#define RUN_BYTES 4096

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "small integers are the first bytes of a 64-bit one");

/* A block of symmetric memory, or a context with its handle for an address. The address becomes 0 when it is freed; all
 * that uses it holds the object. */
struct block {
    PyObject ob_base;
    unsigned long long address;
    Py_ssize_t bytes;
};

/* The Remote objects of one array, by PE. Does not hold the array, which holds this. */
struct remotes {
    PyObject ob_base;
    PyObject *made;    /* a list: Remote or None of each PE */
    PyObject *factory; /* factory(pe) checks pe, and puts the object into the list */
};

/* An array on one PE. Elements are accessed here where it has one dimension and a kind. */
struct remote {
    PyObject ob_base;
    struct block *block;
    struct block *context; /* its address becomes 0 when the context is destroyed */
    PyObject *scalar;      /* numpy's type of one element */
    PyObject *dtype;
    PyObject *from_buffer; /* numpy's function of that name */
    char *base;
    Py_ssize_t count;  /* of elements; -1: none is accessed here */
    Py_ssize_t stride; /* in bytes */
    int bytes;         /* of an element: 1, 2, 4 or 8 */
    char kind;         /* 'i', 'u' or 'f' */
    int pe;
    shmem_ctx_t ctx;
};

static int block_init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct block *block = (struct block *)self;
    (void)keywords;
    return PyArg_ParseTuple(arguments, "Kn", &block->address, &block->bytes) ? 0 : -1;
}

static PyObject *block_address(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(((struct block *)self)->address);
}

static PyObject *block_bytes(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSsize_t(((struct block *)self)->bytes);
}

static PyObject *block_forget(PyObject *self, PyObject *unused)
{
    (void)unused;
    ((struct block *)self)->address = 0;
    Py_RETURN_NONE;
}

static void release(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(self);
    Py_DECREF(type);
}

static int remotes_init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct remotes *remotes = (struct remotes *)self;
    PyObject *made, *factory;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OO", &made, &factory))
        return -1;
    if (!PyList_Check(made) || remotes->made) {
        PyErr_SetString(PyExc_TypeError, "Remotes is made once, of a list and a function");
        return -1;
    }
    Py_INCREF(made);
    Py_INCREF(factory);
    remotes->made = made;
    remotes->factory = factory;
    return 0;
}

static void remotes_dealloc(PyObject *self)
{
    Py_CLEAR(((struct remotes *)self)->made);
    Py_CLEAR(((struct remotes *)self)->factory);
    release(self);
}

static PyObject *remotes_on(PyObject *self, PyObject *pe)
{
    struct remotes *remotes = (struct remotes *)self;
    if (PyLong_CheckExact(pe)) {
        Py_ssize_t index = PyLong_AsSsize_t(pe);
        if (index == -1)
            PyErr_Clear();
        PyObject *found =
            index >= 0 && index < PyList_Size(remotes->made) ? PyList_GetItem(remotes->made, index) : NULL;
        if (found && found != Py_None && ((struct remote *)found)->block->address != 0) {
            Py_INCREF(found);
            return found;
        }
    }
    return PyObject_CallFunctionObjArgs(remotes->factory, pe, NULL);
}

static int remote_init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    struct remote *remote = (struct remote *)self;
    unsigned long long base, ctx;
    PyObject *block, *context, *scalar, *dtype, *from_buffer;
    int kind;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OOOOOKnniCiK", &block, &context, &scalar, &dtype, &from_buffer, &base,
                          &remote->count, &remote->stride, &remote->bytes, &kind, &remote->pe, &ctx))
        return -1;
    Py_INCREF(dtype);
    Py_INCREF(from_buffer);
    remote->dtype = dtype;
    remote->from_buffer = from_buffer;
    Py_INCREF(block);
    Py_INCREF(context);
    Py_INCREF(scalar);
    remote->block = (struct block *)block;
    remote->context = (struct block *)context;
    remote->scalar = scalar;
    remote->base = at(base);
    remote->kind = (char)kind;
    remote->ctx = to_ctx(ctx);
    return 0;
}

static void remote_dealloc(PyObject *self)
{
    Py_CLEAR(((struct remote *)self)->block);
    Py_CLEAR(((struct remote *)self)->context);
    Py_CLEAR(((struct remote *)self)->scalar);
    Py_CLEAR(((struct remote *)self)->dtype);
    Py_CLEAR(((struct remote *)self)->from_buffer);
    release(self);
}

static int is_alive(const struct remote *remote)
{
    return remote->block->address != 0 && remote->context->address != 0;
}

/* The element that `key` names: its address, or NULL with an exception or, without one, where the subclass decides. */
static char *element(struct remote *remote, PyObject *key)
{
    if (remote->count < 0 || !PyLong_CheckExact(key) || !is_alive(remote))
        return NULL;
    Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index == -1 && PyErr_Occurred())
        PyErr_Clear(); /* far outside; the subclass has the message */
    else if (index < 0)
        index += remote->count;
    return index >= 0 && index < remote->count ? remote->base + index * remote->stride : NULL;
}

/* The `count_out` neighbouring elements that a slice names: the address of the first, or NULL where the subclass
 * decides.
 */
static char *run(const struct remote *remote, PyObject *key, Py_ssize_t *count_out)
{
    Py_ssize_t start, stop, step;
    if (remote->count < 0 || remote->stride != remote->bytes || !PySlice_Check(key))
        return NULL;
    if (PySlice_Unpack(key, &start, &stop, &step) != 0) {
        PyErr_Clear();
        return NULL;
    }
    *count_out = PySlice_AdjustIndices(remote->count, &start, &stop, step);
    int is_short = *count_out > 0 && *count_out <= RUN_BYTES / remote->bytes;
    return step == 1 && is_short && is_alive(remote) ? remote->base + start * remote->stride : NULL;
}

/* The bytes of a Python integer, if the element can hold it. 0: the subclass decides. */
static int integer_bits(const struct remote *remote, PyObject *value, uint64_t *bits)
{
    int shift = 64 - 8 * remote->bytes;
    if (remote->kind == 'u') {
        *bits = PyLong_AsUnsignedLongLong(value);
        if (*bits == UINT64_MAX && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return *bits << shift >> shift == *bits;
    }
    int64_t number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    *bits = (uint64_t)number;
    return (int64_t)(*bits << shift) >> shift == number;
}

static int float_bits(const struct remote *remote, PyObject *value, uint64_t *bits)
{
    double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    float narrow = (float)number;
    *bits = 0;
    memcpy(bits, remote->bytes == 8 ? (void *)&number : (void *)&narrow, (size_t)remote->bytes);
    return 1;
}

static int bits_of(const struct remote *remote, PyObject *value, uint64_t *bits)
{
    if (remote->kind == 'f')
        return (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) && float_bits(remote, value, bits);
    return PyLong_CheckExact(value) && integer_bits(remote, value, bits);
}

/* Whether a shape is that of one value for all, or of one for each of `count` elements. */
static int fits(PyObject *shape, Py_ssize_t count)
{
    Py_ssize_t dimensions = shape && PyTuple_CheckExact(shape) ? PyTuple_Size(shape) : -1;
    return dimensions == 0 || (dimensions == 1 && PyLong_AsSsize_t(PyTuple_GetItem(shape, 0)) == count);
}

/* The bytes of an array or scalar of numpy that has the dtype and fits; NULL: the subclass decides. */
static PyObject *bytes_of(const struct remote *remote, PyObject *value, Py_ssize_t count)
{
    PyObject *dtype = PyObject_GetAttrString(value, "dtype");
    PyObject *shape = dtype == remote->dtype ? PyObject_GetAttrString(value, "shape") : NULL;
    PyObject *bytes = fits(shape, count) ? PyObject_CallMethod(value, "tobytes", NULL) : NULL;
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    PyErr_Clear();
    if (bytes && PyBytes_CheckExact(bytes) &&
        (PyBytes_Size(bytes) == remote->bytes || PyBytes_Size(bytes) == count * remote->bytes))
        return bytes;
    Py_XDECREF(bytes);
    return NULL;
}

static void put_bits(const struct remote *remote, char *dest, uint64_t bits)
{
    CORE_AT_LINE;
    if (remote->bytes == 8)
        shmem_ctx_uint64_p(remote->ctx, (uint64_t *)dest, bits, remote->pe);
    else if (remote->bytes == 4)
        shmem_ctx_uint32_p(remote->ctx, (uint32_t *)dest, (uint32_t)bits, remote->pe);
    else if (remote->bytes == 2)
        shmem_ctx_uint16_p(remote->ctx, (uint16_t *)dest, (uint16_t)bits, remote->pe);
    else
        shmem_ctx_uint8_p(remote->ctx, (uint8_t *)dest, (uint8_t)bits, remote->pe);
}

/* False: the subclass decides. */
static int put_element(const struct remote *remote, char *dest, PyObject *value)
{
    uint64_t bits = 0;
    if (!bits_of(remote, value, &bits)) {
        PyObject *bytes = bytes_of(remote, value, 1);
        if (!bytes)
            return 0;
        memcpy(&bits, PyBytes_AsString(bytes), (size_t)remote->bytes);
        Py_DECREF(bytes);
    }
    put_bits(remote, dest, bits);
    return 1;
}

static int put_run(const struct remote *remote, char *dest, Py_ssize_t count, PyObject *value)
{
    CORE_AT_LINE;
    char repeated[RUN_BYTES];
    const char *source = repeated, *one = NULL;
    uint64_t bits = 0;
    PyObject *bytes = NULL;
    if (bits_of(remote, value, &bits))
        one = (const char *)&bits;
    else if (!(bytes = bytes_of(remote, value, count)))
        return 0;
    else if (PyBytes_Size(bytes) == remote->bytes)
        one = PyBytes_AsString(bytes);
    else
        source = PyBytes_AsString(bytes);
    for (Py_ssize_t i = 0; one && i < count; i++)
        memcpy(repeated + i * remote->bytes, one, (size_t)remote->bytes);
    Py_BEGIN_ALLOW_THREADS;
    shmem_ctx_putmem(remote->ctx, dest, source, (size_t)(count * remote->bytes), remote->pe);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(bytes);
    return 1;
}

static int remote_put(PyObject *self, PyObject *key, PyObject *value)
{
    struct remote *remote = (struct remote *)self;
    Py_ssize_t count = 0;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        return -1;
    }
    char *dest = element(remote, key);
    if (dest && put_element(remote, dest, value))
        return 0;
    dest = dest ? NULL : run(remote, key, &count);
    if (dest && put_run(remote, dest, count, value))
        return 0;
    PyObject *done = PyObject_CallMethod(self, "_put", "OO", key, value);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static uint64_t fetch_bits(const struct remote *remote, const char *source)
{
    CORE_AT_LINE;
    if (remote->bytes == 8)
        return shmem_ctx_uint64_g(remote->ctx, (const uint64_t *)source, remote->pe);
    if (remote->bytes == 4)
        return shmem_ctx_uint32_g(remote->ctx, (const uint32_t *)source, remote->pe);
    if (remote->bytes == 2)
        return shmem_ctx_uint16_g(remote->ctx, (const uint16_t *)source, remote->pe);
    return shmem_ctx_uint8_g(remote->ctx, (const uint8_t *)source, remote->pe);
}

/* A new array of numpy. */
static PyObject *get_run(const struct remote *remote, const char *source, Py_ssize_t count)
{
    CORE_AT_LINE;
    PyObject *memory = PyByteArray_FromStringAndSize(NULL, count * remote->bytes);
    char *dest = memory ? PyByteArray_AsString(memory) : NULL;
    if (!dest)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_ctx_getmem(remote->ctx, dest, source, (size_t)(count * remote->bytes), remote->pe);
    Py_END_ALLOW_THREADS;
    PyObject *found = PyObject_CallFunctionObjArgs(remote->from_buffer, memory, remote->dtype, NULL);
    Py_DECREF(memory);
    return found;
}

static PyObject *remote_get(PyObject *self, PyObject *key)
{
    struct remote *remote = (struct remote *)self;
    Py_ssize_t count = 0;
    const char *source = element(remote, key), *first = source ? NULL : run(remote, key, &count);
    if (first)
        return get_run(remote, first, count);
    if (!source)
        return PyObject_CallMethod(self, "_get", "(O)", key); /* "O" would spread a tuple */
    uint64_t bits = fetch_bits(remote, source);
    PyObject *plain;
    if (remote->kind == 'f') {
        double wide;
        float narrow;
        memcpy(&wide, &bits, sizeof wide);
        memcpy(&narrow, &bits, sizeof narrow);
        plain = PyFloat_FromDouble(remote->bytes == 8 ? wide : (double)narrow);
    } else if (remote->kind == 'u') {
        plain = PyLong_FromUnsignedLongLong(bits);
    } else {
        int shift = 64 - 8 * remote->bytes;
        plain = PyLong_FromLongLong((int64_t)(bits << shift) >> shift);
    }
    if (!plain)
        return NULL;
    PyObject *found = PyObject_CallFunctionObjArgs(remote->scalar, plain, NULL);
    Py_DECREF(plain);
    return found;
}

static PyObject *remote_block(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *block = (PyObject *)((struct remote *)self)->block;
    Py_INCREF(block);
    return block;
}

static PyObject *remote_pe(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(((struct remote *)self)->pe);
}

static int add(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObject(module, name, type) == 0)
        return 0;
    Py_XDECREF(type);
    return -1;
}

/* Made at each call: types keep pointers to their tables of methods and members, so those are static. */
int core_add_remote(PyObject *module)
{
    static PyGetSetDef block_members[] = {{"address", block_address, NULL, "0: it was freed", NULL},
                                          {"bytes", block_bytes, NULL, "what was asked for", NULL},
                                          {NULL, NULL, NULL, NULL, NULL}};
    static PyMethodDef block_methods[] = {{"forget", block_forget, METH_NOARGS, "The memory is no longer there."},
                                          {NULL, NULL, 0, NULL}};
    static PyMethodDef remotes_methods[] = {{"on", remotes_on, METH_O, "on(pe): this array on another PE."},
                                            {NULL, NULL, 0, NULL}};
    static PyGetSetDef remote_members[] = {{"block", remote_block, NULL, "the symmetric memory", NULL},
                                           {"pe", remote_pe, NULL, "the PE that it is on", NULL},
                                           {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot block_slots[] = {{Py_tp_init, (void *)block_init}, {Py_tp_new, (void *)PyType_GenericNew},
                                 {Py_tp_dealloc, (void *)release}, {Py_tp_getset, block_members},
                                 {Py_tp_methods, block_methods},   {0, NULL}};
    PyType_Slot remotes_slots[] = {{Py_tp_init, (void *)remotes_init},
                                   {Py_tp_new, (void *)PyType_GenericNew},
                                   {Py_tp_dealloc, (void *)remotes_dealloc},
                                   {Py_tp_methods, remotes_methods},
                                   {0, NULL}};
    PyType_Slot remote_slots[] = {{Py_tp_init, (void *)remote_init},
                                  {Py_tp_new, (void *)PyType_GenericNew},
                                  {Py_tp_dealloc, (void *)remote_dealloc},
                                  {Py_mp_subscript, (void *)remote_get},
                                  {Py_mp_ass_subscript, (void *)remote_put},
                                  {Py_tp_getset, remote_members},
                                  {0, NULL}};
    const unsigned int flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    PyType_Spec block = {"quoit._core.Block", sizeof(struct block), 0, flags, block_slots};
    PyType_Spec remotes = {"quoit._core.Remotes", sizeof(struct remotes), 0, Py_TPFLAGS_DEFAULT, remotes_slots};
    PyType_Spec remote = {"quoit._core.Remote", sizeof(struct remote), 0, flags, remote_slots};
    return add(module, "Block", &block) || add(module, "Remotes", &remotes) || add(module, "Remote", &remote) ? -1 : 0;
}
