/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of Python that calls, for a row of `oshrun --profile`: of the innermost function of the program. Frames of
 * this package, of other packages and of Python's library are passed over, as in reports of a job that hangs. */
#include "core.h"

#include <shmemx.h>
#include <stddef.h>

#include "boot/interpreter.h"

#define CODES_KNOWN 1024 /* a power of two */
#define FRAMES_MOST 64

enum kind { OWN, PACKAGED, PROGRAM };

/* A function's code, to which a reference is kept, so that no other code gets its address. */
struct known {
    PyObject *code;
    enum kind kind;
    int file; /* shmemx_profile_file(); -1: not asked for */
};

int core_is_profiled;
static struct known known[CODES_KNOWN];

/* The path of its file, as bytes; NULL: it is no text. */
static PyObject *path_of(PyObject *code)
{
    PyObject *name = PyObject_GetAttrString(code, "co_filename");
    PyObject *bytes = name ? PyUnicode_EncodeFSDefault(name) : NULL;
    Py_XDECREF(name);
    return bytes;
}

static struct known *know(PyObject *code)
{
    struct known *place = &known[((uintptr_t)code >> 5) & (CODES_KNOWN - 1)];
    PyObject *path = place->code == code ? NULL : path_of(code);
    if (path) {
        const char *text = PyBytes_AsString(path);
        Py_XDECREF(place->code);
        Py_INCREF(code);
        place->code = code;
        place->kind = quoit_interpreter_is_own(text) ? OWN : quoit_interpreter_is_packaged(text) ? PACKAGED : PROGRAM;
        place->file = -1;
        Py_DECREF(path);
    }
    return place->code == code ? place : NULL;
}

static int file_of(struct known *place)
{
    PyObject *path = place->file < 0 ? path_of(place->code) : NULL;
    if (path)
        place->file = shmemx_profile_file(PyBytes_AsString(path));
    Py_XDECREF(path);
    return place->file;
}

/* A new reference; NULL: it has none. */
static PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == Py_None)
        Py_CLEAR(value);
    return value;
}

int core_line_enter(void)
{
    struct known *place = NULL;
    int line = 0, is_found = 0;
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    Py_XINCREF(frame);
    for (int i = 0; i < FRAMES_MOST && frame && !is_found; i++) {
        PyObject *code = attribute(frame, "f_code"), *back;
        struct known *here = code ? know(code) : NULL;
        is_found = here && here->kind == PROGRAM;
        if (is_found || (here && here->kind == PACKAGED && line == 0)) {
            place = here;
            line = PyFrame_GetLineNumber((PyFrameObject *)frame);
        }
        Py_XDECREF(code);
        back = attribute(frame, "f_back");
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    if (line > 0)
        shmemx_profile_line(file_of(place), line);
    PyErr_Clear();
    return line > 0;
}

void core_line_end(const int *is_set)
{
    if (*is_set)
        shmemx_profile_line(0, 0);
}

PyObject *core_profiled(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(core_is_profiled);
}

PyObject *core_call(PyObject *module, PyObject *arguments)
{
    (void)module;
    CORE_AT_LINE;
    PyObject *rest = PyTuple_GetSlice(arguments, 1, PyTuple_Size(arguments));
    PyObject *result =
        rest && PyTuple_Size(arguments) > 0 ? PyObject_CallObject(PyTuple_GetItem(arguments, 0), rest) : NULL;
    Py_XDECREF(rest);
    if (!result && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "call needs a function");
    return result;
}
