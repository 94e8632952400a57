/* SPDX-License-Identifier: BSD-3-Clause */
/* Assignment to elements of a numpy array by numpy itself; its exception is put into this package's words. */
#include "core.h"

static objobjargproc slot_of(PyTypeObject *type)
{
    union {
        void *slot;
        objobjargproc assign;
    } found = {PyType_GetSlot(type, Py_mp_ass_subscript)};
    return found.assign;
}

static int local_put(PyObject *self, PyObject *key, PyObject *value)
{
    PyTypeObject *type = Py_TYPE(self);
    while (slot_of(type) == local_put)
        type = PyType_GetSlot(type, Py_tp_base);
    if (slot_of(type)(self, key, value) == 0)
        return 0;
    if (!value || !(PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        return -1;
    PyObject *kind, *error, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyObject *checked = PyObject_CallMethod(self, "_check", "(O)", value);
    if (checked) { /* the value is right, so something else is wrong */
        Py_DECREF(checked);
        PyErr_Restore(kind, error, trace);
        return -1;
    }
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return -1;
}

PyObject *core_guarded(PyObject *module, PyObject *base)
{
    PyType_Slot slots[] = {{Py_mp_ass_subscript, (void *)local_put}, {0, NULL}};
    PyType_Spec spec = {"quoit._core.Guarded", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    (void)module;
    if (!PyType_Check(base) || !slot_of((PyTypeObject *)base)) { /* Python 3.9 does not show the slots of such types */
        PyErr_Clear();
        Py_INCREF(base);
        return base;
    }
    PyObject *bases = PyTuple_Pack(1, base);
    PyObject *type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
    Py_XDECREF(bases);
    return type;
}
