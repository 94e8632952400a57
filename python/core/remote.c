/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to one element of another PE's array, quoit's shortest path: no Python code runs between a.on(pe)[i] = v and
 * the library. Every other key or value goes to the methods of the subclass in _remote.py. */
#include "core.h"

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
    PyObject *block, *context, *scalar;
    int kind;
    (void)keywords;
    if (!PyArg_ParseTuple(arguments, "OOOKnniCiK", &block, &context, &scalar, &base, &remote->count, &remote->stride,
                          &remote->bytes, &kind, &remote->pe, &ctx))
        return -1;
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
    release(self);
}

/* The element that `key` names: its address, or NULL with an exception or, without one, where the subclass decides. */
static char *element(struct remote *remote, PyObject *key)
{
    if (remote->count < 0 || !PyLong_CheckExact(key) || remote->block->address == 0 || remote->context->address == 0)
        return NULL;
    Py_ssize_t index = PyLong_AsSsize_t(key);
    if (index == -1 && PyErr_Occurred())
        PyErr_Clear(); /* far outside; the subclass has the message */
    else if (index < 0)
        index += remote->count;
    return index >= 0 && index < remote->count ? remote->base + index * remote->stride : NULL;
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

static int remote_put(PyObject *self, PyObject *key, PyObject *value)
{
    struct remote *remote = (struct remote *)self;
    uint64_t bits;
    char *dest = value ? element(remote, key) : NULL;
    if (!dest || !bits_of(remote, value, &bits)) {
        PyObject *done = value ? PyObject_CallMethod(self, "_put", "OO", key, value) : NULL;
        if (!value)
            PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
        Py_XDECREF(done);
        return done ? 0 : -1;
    }
    if (remote->bytes == 8)
        shmem_ctx_uint64_p(remote->ctx, (uint64_t *)dest, bits, remote->pe);
    else if (remote->bytes == 4)
        shmem_ctx_uint32_p(remote->ctx, (uint32_t *)dest, (uint32_t)bits, remote->pe);
    else if (remote->bytes == 2)
        shmem_ctx_uint16_p(remote->ctx, (uint16_t *)dest, (uint16_t)bits, remote->pe);
    else
        shmem_ctx_uint8_p(remote->ctx, (uint8_t *)dest, (uint8_t)bits, remote->pe);
    return 0;
}

static uint64_t fetch_bits(const struct remote *remote, const char *source)
{
    if (remote->bytes == 8)
        return shmem_ctx_uint64_g(remote->ctx, (const uint64_t *)source, remote->pe);
    if (remote->bytes == 4)
        return shmem_ctx_uint32_g(remote->ctx, (const uint32_t *)source, remote->pe);
    if (remote->bytes == 2)
        return shmem_ctx_uint16_g(remote->ctx, (const uint16_t *)source, remote->pe);
    return shmem_ctx_uint8_g(remote->ctx, (const uint8_t *)source, remote->pe);
}

static PyObject *remote_get(PyObject *self, PyObject *key)
{
    struct remote *remote = (struct remote *)self;
    const char *source = element(remote, key);
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
