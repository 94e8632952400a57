/* SPDX-License-Identifier: BSD-3-Clause */
/* core.h - quoit._core, the part of the Python package that calls the library.
 *
 * What it is: an extension of Python's stable ABI (3.9), so that one file serves every later Python. It does not use
 * numpy's headers, so it serves every numpy too: memory is passed as addresses, which are Python integers.
 *
 * Promises: nothing here validates what could be wrong in a user's program, except the element access of Remote; the
 * Python modules above do, and give this module what is right. Arguments that Python's own parser refuses are a
 * TypeError.
 * Threads: the interpreter's lock is released around everything that may wait for another PE or copy much; an access to
 * one element keeps it.
 */
#ifndef QUOIT_PYTHON_CORE_H
#define QUOIT_PYTHON_CORE_H

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <shmem.h>

/* Most dimensions of an array, as numpy 2 has it. */
#define DIMENSIONS_MAX 64

static inline void *at(unsigned long long address)
{
    return (void *)(uintptr_t)address;
}

static inline shmem_ctx_t to_ctx(unsigned long long handle)
{
    return (shmem_ctx_t)(uintptr_t)handle;
}

static inline shmem_team_t to_team(unsigned long long handle)
{
    return (shmem_team_t)(uintptr_t)handle;
}

/* Whether a profile is recorded (`oshrun --profile`). Writer: init(). */
extern int core_is_profiled;
/* Tells the profile the line of Python that called; returns whether there is one. With the interpreter's lock. */
int core_line_enter(void);
void core_line_end(const int *is_set);
/* From here to the end of the function, which has the interpreter's lock here, the library is called from that line. */
#define CORE_AT_LINE                                                                                                   \
    __attribute__((cleanup(core_line_end), unused)) const int is_at_line =                                             \
        __builtin_expect(core_is_profiled, 0) ? core_line_enter() : 0

/* profiled(): whether there is a profile. call(function, argument...): calls it from the line of Python that called. */
PyObject *core_profiled(PyObject *module, PyObject *unused);
PyObject *core_call(PyObject *module, PyObject *arguments);

/* Adds the types Block, Remotes and Remote to the module. 0, or -1 with an exception. */
int core_add_remote(PyObject *module);

/* guarded(type of arrays): a subclass, which puts the exceptions of a[key] = value into the words of
 * self._check(value), if that raises one. */
PyObject *core_guarded(PyObject *module, PyObject *base);

/* transfer(is_put, is_nbi, ctx, pe, remote, private, itemsize, shape, strides): an array at `remote` on `pe` with these
 * strides in bytes, none negative, to or from contiguous private memory. One operation for a contiguous array, and one
 * for each innermost strided dimension. */
PyObject *core_transfer(PyObject *module, PyObject *arguments);
/* scatter(is_put, ctx, pe, base, offsets, count, itemsize, private): `count` items at base + offsets[i] (int64, bytes).
 * Neighbouring items travel together. A get returns when all have arrived. */
PyObject *core_scatter(PyObject *module, PyObject *arguments);
/* put_signal(is_nbi, ctx, pe, dest, source, bytes, signal, value, sig_op); signal(ctx, pe, signal, value, sig_op). */
PyObject *core_put_signal(PyObject *module, PyObject *arguments);
PyObject *core_signal(PyObject *module, PyObject *arguments);
/* signal_fetch(signal) of this PE. */
PyObject *core_signal_fetch(PyObject *module, PyObject *arguments);

/* atomic(op, type, ctx, pe, base, offsets, count, values, conds, fetched): one atomic on each of `count` elements.
 * The old values of several elements travel at once, and a quiet completes them.
 * wait(how, type, address, count, cmp, values, status): how is "wait_all" or "test_all" (a bool), "wait_any" or
 * "test_any" (an index, None if no element holds), "wait_some" or "test_some" (a list of indices). values: one an
 * element; status: ints, the elements where it is not 0 do not count, or NULL. The types are names of the
 * specification: "int64". */
PyObject *core_atomic(PyObject *module, PyObject *arguments);
PyObject *core_wait(PyObject *module, PyObject *arguments);

/* reduce(op, type, team, dest, source, count); fcollect, collect, alltoall(team, dest, source, bytes); alltoalls(team,
 * dest, source, dst, sst, count, itemsize), in items of 1, 2, 4 or 8 bytes; broadcast(team, dest, source, bytes, root).
 * RuntimeError if the library returns that it failed. */
PyObject *core_reduce(PyObject *module, PyObject *arguments);
PyObject *core_fcollect(PyObject *module, PyObject *arguments);
PyObject *core_collect(PyObject *module, PyObject *arguments);
PyObject *core_alltoall(PyObject *module, PyObject *arguments);
PyObject *core_alltoalls(PyObject *module, PyObject *arguments);
PyObject *core_broadcast(PyObject *module, PyObject *arguments);

#endif
