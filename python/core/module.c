/* SPDX-License-Identifier: BSD-3-Clause */
/* The module: the job, symmetric memory, teams, contexts, order and locks. */
#include "core.h"

#include <dlfcn.h>
#include <shmemx.h>
#include <stdlib.h>
#include <unistd.h>

/* The flag of PyMemoryView_FromMemory, which the headers of the stable ABI leave out before Python 3.11. */
#define WRITABLE 0x200

PyMODINIT_FUNC PyInit__core(void);

static PyObject *init(PyObject *module, PyObject *unused)
{
    int provided;
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided); /* other Python threads run while one waits */
    Py_END_ALLOW_THREADS;
    core_is_profiled = shmemx_profiled();
    return PyLong_FromLong(provided);
}

static PyObject *finalize(PyObject *module, PyObject *unused)
{
    CORE_AT_LINE;
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    shmem_finalize();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* shmem_global_exit does not return; it runs the exit handlers of C, not those of Python. */
static PyObject *global_exit(PyObject *module, PyObject *arguments)
{
    int status;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "i", &status))
        return NULL;
    shmem_global_exit(status);
}

static PyObject *library(PyObject *module, PyObject *unused)
{
    Dl_info info;
    (void)module, (void)unused;
    if (!dladdr((void *)(uintptr_t)shmem_init, &info) || !info.dli_fname)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

static PyObject *allocate(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    Py_ssize_t bytes;
    int is_zero;
    void *block;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "np", &bytes, &is_zero))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    block = is_zero ? shmem_calloc(1, (size_t)bytes) : shmem_malloc((size_t)bytes);
    Py_END_ALLOW_THREADS;
    return PyLong_FromVoidPtr(block);
}

static PyObject *deallocate(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long block;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &block))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_free(at(block));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* A block that nobody frees, and that --check is not to report. */
struct last {
    pid_t pid; /* a forked child is not a PE */
    void *block;
};

static void free_last(int status, void *argument)
{
    const struct last *last = argument;
    int is_initialized;
    shmem_query_initialized(&is_initialized);
    if (status == 0 && is_initialized && last->pid == getpid())
        shmem_free(last->block);
}

/* free_at_exit(address): at an exit with status 0, just before the library finalizes; other exits are failures, in
 * which PEs do not wait for each other. */
static PyObject *free_at_exit(PyObject *module, PyObject *arguments)
{
    unsigned long long block;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &block))
        return NULL;
    struct last *last = malloc(sizeof *last);
    if (!last)
        return PyErr_NoMemory();
    *last = (struct last){getpid(), at(block)};
    on_exit(free_last, last);
    Py_RETURN_NONE;
}

/* memory(address, bytes): a memoryview of symmetric memory, which it does not own. */
static PyObject *memory(PyObject *module, PyObject *arguments)
{
    unsigned long long address;
    Py_ssize_t bytes;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Kn", &address, &bytes))
        return NULL;
    return PyMemoryView_FromMemory(at(address), bytes, WRITABLE);
}

/* ptr(address, pe, team) */
static PyObject *ptr(PyObject *module, PyObject *arguments)
{
    unsigned long long address, team;
    int pe;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KiK", &address, &pe, &team))
        return NULL;
    return PyLong_FromVoidPtr(shmem_team_ptr(to_team(team), at(address), pe));
}

static PyObject *team_my_pe(PyObject *module, PyObject *arguments)
{
    unsigned long long team;
    (void)module;
    return PyArg_ParseTuple(arguments, "K", &team) ? PyLong_FromLong(shmem_team_my_pe(to_team(team))) : NULL;
}

static PyObject *team_n_pes(PyObject *module, PyObject *arguments)
{
    unsigned long long team;
    (void)module;
    return PyArg_ParseTuple(arguments, "K", &team) ? PyLong_FromLong(shmem_team_n_pes(to_team(team))) : NULL;
}

static PyObject *team_translate(PyObject *module, PyObject *arguments)
{
    unsigned long long from, to;
    int pe;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KiK", &from, &pe, &to))
        return NULL;
    return PyLong_FromLong(shmem_team_translate_pe(to_team(from), pe, to_team(to)));
}

static PyObject *team_split(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long parent;
    int start, stride, size, status;
    shmem_team_t team = SHMEM_TEAM_INVALID;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Kiii", &parent, &start, &stride, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = shmem_team_split_strided(to_team(parent), start, stride, size, NULL, 0, &team);
    Py_END_ALLOW_THREADS;
    (void)status; /* a PE outside gets the invalid team and a status that is not 0 */
    return PyLong_FromUnsignedLongLong((uintptr_t)team);
}

/* team_split_2d(parent, xrange): (team along x, team along y). */
static PyObject *team_split_2d(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long parent;
    int xrange, status;
    shmem_team_t x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Ki", &parent, &xrange))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = shmem_team_split_2d(to_team(parent), xrange, NULL, 0, &x, NULL, 0, &y);
    Py_END_ALLOW_THREADS;
    if (status != 0)
        return PyErr_Format(PyExc_RuntimeError, "shmem_team_split_2d returned %d", status);
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)x, (unsigned long long)(uintptr_t)y);
}

static PyObject *team_destroy(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long team;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &team))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_team_destroy(to_team(team));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *team_sync(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long team;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &team))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_team_sync(to_team(team));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *ctx_create(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long team;
    long options;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Kl", &team, &options))
        return NULL;
    return PyLong_FromUnsignedLongLong(shmem_team_create_ctx(to_team(team), options, &ctx) == 0 ? (uintptr_t)ctx : 0);
}

static PyObject *ctx_destroy(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &ctx))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_ctx_destroy(to_ctx(ctx));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *ctx_quiet(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &ctx))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_ctx_quiet(to_ctx(ctx));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

/* ctx_pe_quiet(ctx, address of ints, count) */
static PyObject *ctx_pe_quiet(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx, pes;
    Py_ssize_t count;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KKn", &ctx, &pes, &count))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_ctx_pe_quiet(to_ctx(ctx), at(pes), (size_t)count);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *ctx_fence(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long ctx;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &ctx))
        return NULL;
    shmem_ctx_fence(to_ctx(ctx));
    Py_RETURN_NONE;
}

static PyObject *barrier_all(PyObject *module, PyObject *unused)
{
    CORE_AT_LINE;
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    shmem_barrier_all();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *set_lock(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long lock;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &lock))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_set_lock(at(lock));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *test_lock(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long lock;
    (void)module;
    return PyArg_ParseTuple(arguments, "K", &lock) ? PyBool_FromLong(shmem_test_lock(at(lock)) == 0) : NULL;
}

static PyObject *clear_lock(PyObject *module, PyObject *arguments)
{
    CORE_AT_LINE;
    unsigned long long lock;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "K", &lock))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    shmem_clear_lock(at(lock));
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        long value;
    } constants[] = {
        {"CMP_EQ", SHMEM_CMP_EQ},
        {"CMP_NE", SHMEM_CMP_NE},
        {"CMP_GT", SHMEM_CMP_GT},
        {"CMP_GE", SHMEM_CMP_GE},
        {"CMP_LT", SHMEM_CMP_LT},
        {"CMP_LE", SHMEM_CMP_LE},
        {"MAJOR_VERSION", SHMEM_MAJOR_VERSION},
        {"MINOR_VERSION", SHMEM_MINOR_VERSION},
        {"SIGNAL_SET", SHMEM_SIGNAL_SET},
        {"SIGNAL_ADD", SHMEM_SIGNAL_ADD},
        {"PRIVATE", SHMEM_CTX_PRIVATE},
        {"SERIALIZED", SHMEM_CTX_SERIALIZED},
        {"NOSTORE", SHMEM_CTX_NOSTORE},
        {"WORLD", (long)(uintptr_t)SHMEM_TEAM_WORLD},
        {"CTX_DEFAULT", (long)(uintptr_t)SHMEM_CTX_DEFAULT},
        {"SHARED", (long)(uintptr_t)SHMEM_TEAM_SHARED},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (PyModule_AddIntConstant(module, constants[i].name, constants[i].value) != 0)
            return -1;
    return PyModule_AddStringConstant(module, "VENDOR", SHMEM_VENDOR_STRING);
}

PyMODINIT_FUNC PyInit__core(void)
{
    static PyMethodDef methods[] = {
        {"init", init, METH_NOARGS, NULL},
        {"finalize", finalize, METH_NOARGS, NULL},
        {"global_exit", global_exit, METH_VARARGS, NULL},
        {"library", library, METH_NOARGS, NULL},
        {"profiled", core_profiled, METH_NOARGS, NULL},
        {"call", core_call, METH_VARARGS, NULL},
        {"allocate", allocate, METH_VARARGS, NULL},
        {"deallocate", deallocate, METH_VARARGS, NULL},
        {"free_at_exit", free_at_exit, METH_VARARGS, NULL},
        {"memory", memory, METH_VARARGS, NULL},
        {"ptr", ptr, METH_VARARGS, NULL},
        {"team_my_pe", team_my_pe, METH_VARARGS, NULL},
        {"team_n_pes", team_n_pes, METH_VARARGS, NULL},
        {"team_translate", team_translate, METH_VARARGS, NULL},
        {"team_split", team_split, METH_VARARGS, NULL},
        {"team_split_2d", team_split_2d, METH_VARARGS, NULL},
        {"team_destroy", team_destroy, METH_VARARGS, NULL},
        {"team_sync", team_sync, METH_VARARGS, NULL},
        {"ctx_create", ctx_create, METH_VARARGS, NULL},
        {"ctx_destroy", ctx_destroy, METH_VARARGS, NULL},
        {"ctx_quiet", ctx_quiet, METH_VARARGS, NULL},
        {"ctx_pe_quiet", ctx_pe_quiet, METH_VARARGS, NULL},
        {"ctx_fence", ctx_fence, METH_VARARGS, NULL},
        {"barrier_all", barrier_all, METH_NOARGS, NULL},
        {"set_lock", set_lock, METH_VARARGS, NULL},
        {"test_lock", test_lock, METH_VARARGS, NULL},
        {"clear_lock", clear_lock, METH_VARARGS, NULL},
        {"guarded", core_guarded, METH_O, NULL},
        {"transfer", core_transfer, METH_VARARGS, NULL},
        {"scatter", core_scatter, METH_VARARGS, NULL},
        {"put_signal", core_put_signal, METH_VARARGS, NULL},
        {"signal", core_signal, METH_VARARGS, NULL},
        {"signal_fetch", core_signal_fetch, METH_VARARGS, NULL},
        {"atomic", core_atomic, METH_VARARGS, NULL},
        {"wait", core_wait, METH_VARARGS, NULL},
        {"reduce", core_reduce, METH_VARARGS, NULL},
        {"fcollect", core_fcollect, METH_VARARGS, NULL},
        {"collect", core_collect, METH_VARARGS, NULL},
        {"alltoall", core_alltoall, METH_VARARGS, NULL},
        {"alltoalls", core_alltoalls, METH_VARARGS, NULL},
        {"broadcast", core_broadcast, METH_VARARGS, NULL},
        {NULL, NULL, 0, NULL},
    };
    static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                            "quoit._core",
                                            "The library, for the Python modules of quoit.",
                                            -1,
                                            methods,
                                            NULL,
                                            NULL,
                                            NULL,
                                            NULL};
    PyObject *module = PyModule_Create(&definition);
    if (module && (core_add_remote(module) != 0 || add_constants(module) != 0))
        Py_CLEAR(module);
    return module;
}
