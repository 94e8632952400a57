# SPDX-License-Identifier: BSD-3-Clause
"""Collectives of teams under numpy's names (specification 9.10).

Each takes a numpy array, a symmetric one or a number, of the same shape and dtype on every PE of the team, and returns the
result on every PE: a new numpy array, or a scalar if the argument is one; or `out`, an array of the result's shape and dtype,
symmetric or not. Where array and `out` are both symmetric, nothing is copied, and `out` must be ready on all PEs.

Errors: TypeError for a dtype that the routine does not have; ValueError for a wrong `out` or root and, on every PE, if the PEs
call it with different shapes, dtypes or arguments."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _core
from ._call import INTEGERS, ORDERED, Call, bytes_of, exchange, given, reduce, strides_of
from ._check import as_array, integer, pe_of
from ._job import Team, job, team_of
from ._remote import address_of


def _counted(values: Any) -> Any:
    """Booleans are counted, as numpy does."""
    found = as_array(values, "the argument")
    return found.astype(np.int64) if found.dtype == bool else values


def _truth(values: Any, name: str) -> np.ndarray:
    found = as_array(values, f"the argument of {name}")
    if found.dtype.kind not in "biufc":
        raise TypeError(f"{name} takes numbers and booleans, but the array has dtype {found.dtype}")
    return found.astype(bool)


def sum(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """The sum over the PEs, element by element. The dtype is that of `values`, in which integers wrap round; booleans are counted
    as int64. shmem_sum_reduce."""
    return reduce("sum", "sum_reduce", _counted(values), out, team)


def prod(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """The product over the PEs; as sum. shmem_prod_reduce."""
    return reduce("prod", "prod_reduce", _counted(values), out, team)


def max(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """The largest over the PEs, element by element. shmem_max_reduce."""
    return reduce("max", "max_reduce", values, out, team, ORDERED)


def min(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """The smallest over the PEs, element by element. shmem_min_reduce."""
    return reduce("min", "min_reduce", values, out, team, ORDERED)


def bitwise_and(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """Bit by bit over the PEs, of bool and integers. shmem_and_reduce."""
    return reduce("bitwise_and", "and_reduce", values, out, team, INTEGERS)


def bitwise_or(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """Bit by bit over the PEs, of bool and integers. shmem_or_reduce."""
    return reduce("bitwise_or", "or_reduce", values, out, team, INTEGERS)


def bitwise_xor(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """Bit by bit over the PEs, of bool and integers. shmem_xor_reduce."""
    return reduce("bitwise_xor", "xor_reduce", values, out, team, INTEGERS)


def all(values: Any, team: Optional[Team] = None) -> Any:
    """Whether it is true on all PEs, element by element."""
    return reduce("all", "and_reduce", _truth(values, "all"), None, team, INTEGERS)


def any(values: Any, team: Optional[Team] = None) -> Any:
    """Whether it is true on any PE, element by element."""
    return reduce("any", "or_reduce", _truth(values, "any"), None, team, INTEGERS)


def cumsum(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None, exclusive: bool = False) -> Any:
    """The sum over PEs 0..me of the team, element by element; over 0..me-1 if `exclusive`, which is 0 on PE 0.
    shmem_sum_inscan, shmem_sum_exscan."""
    op = "sum_exscan" if exclusive else "sum_inscan"
    return reduce("cumsum, exclusive" if exclusive else "cumsum", op, _counted(values), out, team)


def broadcast(values: Any, root: int = 0, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> Any:
    """The array of PE `root` of the team. On the other PEs `values` gives shape and dtype alone. shmem_broadcast."""
    call = Call("broadcast", values, team)
    root = pe_of(root, call.team.n_pes, "the team")
    result = call.result(out, call.source.shape, True)
    is_direct = call.is_direct(result)
    call.extra = f" from PE {root}" + (" in place" if is_direct else "")
    call.agree()
    source, to = bytes_of(call.source), bytes_of(result)
    for first, count in call.pieces(source.size, 1, job.work.size, is_direct):
        at = call.place(source, first, count)
        if is_direct:
            _core.broadcast(call.team._handle, address_of(to), at, count, root)
        else:
            _core.broadcast(call.team._handle, job.work.dest_at, at, count, root)
            to[first:first + count] = job.work.dest[:count]
    return given(result, out)


def allgather(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None) -> np.ndarray:
    """The arrays of all PEs, stacked: shape (PEs, *shape); allgather(x)[pe] is the array of PE pe. shmem_fcollect."""
    call = Call("allgather", values, team)
    result = call.result(out, (call.team.n_pes, *call.source.shape))
    exchange(call, result, _core.fcollect, call.source.nbytes, False)
    return result


def alltoall(values: Any, out: Optional[np.ndarray] = None, team: Optional[Team] = None, axis: int = 0) -> np.ndarray:
    """values[k] goes to PE k, and row k of the result came from PE k. The axis has the length of the team, or a multiple: then
    blocks of rows; axis=1: columns, and so on. `out` may have gaps, such as a[::2].

    Arrays of one dimension that are symmetric and strided, out too, with items of 1, 2, 4 or 8 bytes and one stride each, are
    not copied. ValueError: the axis has another length. shmem_alltoall, shmem_alltoalls."""
    found = values if isinstance(values, np.ndarray) else as_array(values, "the argument of alltoall")
    axis = integer(axis, "axis")
    if not found.ndim:
        raise ValueError("alltoall takes arrays of one dimension or more, but this is a number")
    shape, pes = found.shape, team_of(team).n_pes
    axis = range(found.ndim)[axis] if -found.ndim <= axis < found.ndim else axis
    if axis not in range(found.ndim) or shape[axis] % pes:
        raise ValueError(f"alltoall takes an axis of a multiple of {pes}, the PEs of the team, but the array has shape {shape}, "
                         f"and axis is {axis}")
    rows = np.moveaxis(found, axis, 0)
    call = Call("alltoall", rows, team)
    if out is not None:
        call.check(out, shape, found)
        strides = strides_of(found, out)
        if strides and strides != (1, 1):
            call.extra = f" in place, {strides}"
            call.agree()
            _core.alltoalls(call.team._handle, address_of(out), address_of(found), *strides, len(found) // pes, found.itemsize)
            return out
    to = np.moveaxis(out, axis, 0) if out is not None else None
    is_out = to is not None and to.flags.c_contiguous
    result = to if is_out else np.empty(rows.shape, found.dtype)
    exchange(call, result, _core.alltoall, call.source.nbytes // pes, True)
    if out is None:
        return np.moveaxis(result, 0, axis)
    if not is_out:
        to[...] = result
    return out


def concatenate(values: Any, team: Optional[Team] = None) -> np.ndarray:
    """The arrays of all PEs one after the other along the first axis, which may differ in length. shmem_collect."""
    call = Call("concatenate", values, team)
    source, pes = call.source, call.team.n_pes
    if source.ndim == 0:
        raise ValueError("concatenate takes arrays of one dimension or more, but this is a number; allgather takes numbers")
    call.agree(("n", *source.shape[1:]))
    counts = allgather(np.int64(source.nbytes), team=call.team).tolist()
    lengths = allgather(np.int64(len(source)), team=call.team).tolist()
    result = np.empty((int(np.sum(lengths)), *source.shape[1:]), source.dtype)
    rows = np.split(bytes_of(result), np.cumsum(counts)[:-1])
    flat, most = bytes_of(source), job.work.size // pes
    for first in range(0, np.max(counts), most):
        call.team.sync()
        own = np.clip(counts[call.team.my_pe] - first, 0, most)
        _core.collect(call.team._handle, job.work.dest_at, call.place(flat, first, own), int(own))
        start = 0
        for pe in range(pes):
            size = int(np.clip(counts[pe] - first, 0, most))
            rows[pe][first:first + size] = job.work.dest[start:start + size]
            start += size
    return result
