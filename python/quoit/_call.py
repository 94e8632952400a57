# SPDX-License-Identifier: BSD-3-Clause
"""One collective call: what all have in common. Apart from _collective.py, whose names hide Python's own sum, max and all."""
from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from . import _core
from ._array import is_symmetric
from ._check import as_array
from ._job import Team, agree, job, team_of
from ._remote import address_of

REDUCED = {"b1": "uint8", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16",
           "u4": "uint32", "u8": "uint64", "f4": "float", "f8": "double", "f16": "longdouble", "c8": "complexf",
           "c16": "complexd"}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ORDERED = (*INTEGERS, "float", "double", "longdouble")


class Call:
    """One collective call: its team, its source as a contiguous array, and where the result goes."""

    def __init__(self, name: str, values: Any, team: Optional[Team], extra: str = "") -> None:
        job.need()
        self.team = team_of(team)
        self.name = name
        found = as_array(values, f"the argument of {name}")
        self.source = found if found.flags.c_contiguous else np.ascontiguousarray(found)
        self.is_symmetric = is_symmetric(values) and found.flags.c_contiguous
        self.extra = extra

    def agree(self, shape: Any = None) -> None:
        shape = self.source.shape if shape is None else shape
        agree(self.team, f"{self.name}: {self.source.dtype} {shape}{self.extra}")

    def result(self, out: Optional[np.ndarray], shape: tuple, may_be_source: bool = False) -> np.ndarray:
        """`out`, or a new array. It may be the source itself only where each element depends on the same one of the source."""
        if out is None:
            return np.empty(shape, self.source.dtype)
        is_source = may_be_source and isinstance(out, np.ndarray) and address_of(out) == address_of(self.source)
        self.check(out, shape, None if is_source else self.source)
        if not out.flags.c_contiguous:
            raise ValueError("out must be contiguous")
        return out

    def check(self, out: Any, shape: tuple, read: Optional[np.ndarray]) -> None:
        """Refuses an `out` that is not writable, has not this shape and the source's dtype, or overlaps the array `read`."""
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out is of type {type(out).__name__}, but must be an array")
        if out.shape != shape or out.dtype != self.source.dtype:
            raise ValueError(f"out is {out.dtype} {out.shape}, but the result of {self.name} is {self.source.dtype} {shape}")
        if not out.flags.writeable:
            raise ValueError("out must be writable")
        if read is not None and np.shares_memory(out, read):
            raise ValueError(f"out overlaps the array that {self.name} reads")

    def pieces(self, count: int, item_bytes: int, most: int, is_direct: bool) -> Any:
        """(first, number) of each piece; everything at once where no workspace is needed. PEs join before each further piece, as
        what the last one left in the workspace must have been read."""
        step = count if is_direct else max(most // max(item_bytes, 1), 1)
        for first in range(0, count, max(step, 1)):
            if first:
                self.team.sync()
            yield first, min(step, count - first)

    def is_direct(self, *outs: np.ndarray) -> bool:
        """Whether this call needs no workspace. PEs must find the same, as they take the same steps: they compare it."""
        return self.is_symmetric and all(is_symmetric(out) for out in outs)

    def place(self, flat: np.ndarray, first: int, count: int) -> int:
        """The address of this part of the source, copied into the workspace unless it is symmetric."""
        part = flat[first:first + count]
        if self.is_symmetric:
            return address_of(part)
        job.work.source[:part.nbytes] = part.view(np.uint8)
        return job.work.source_at


def given(result: np.ndarray, out: Optional[np.ndarray]) -> Any:
    return result[()] if out is None and result.ndim == 0 else result


def reduce(name: str, op: str, values: Any, out: Optional[np.ndarray], team: Optional[Team], only: Any = None) -> Any:
    call = Call(name, values, team)
    source = call.source
    kind = REDUCED.get(source.dtype.str[1:]) if source.dtype.isnative else None
    if kind is None or only is not None and kind not in only:
        allowed = "bool and integers" if only is INTEGERS else "bool, integers and floats of 4, 8 and 16 bytes" + \
            ("" if only is not None else ", and complex numbers")
        raise TypeError(f"{name} takes {allowed}, but the array has dtype {source.dtype}")
    result = call.result(out, source.shape, True)
    is_direct = call.is_direct(result)
    call.extra = " in place" if is_direct else ""
    call.agree()
    flat, to, item = source.reshape(-1), result.reshape(-1), source.itemsize
    for first, count in call.pieces(source.size, item, job.work.size, is_direct):
        at = call.place(flat, first, count)
        if is_direct:
            _core.reduce(op, kind, call.team._handle, address_of(to), at, count)
        else:
            _core.reduce(op, kind, call.team._handle, job.work.dest_at, at, count)
            to[first:first + count] = job.work.dest[:count * item].view(source.dtype)
    return given(result, out)


def bytes_of(array: np.ndarray) -> np.ndarray:
    """A contiguous array as bytes, without a copy."""
    return array.reshape(-1).view(np.uint8) if array.itemsize else np.empty(0, np.uint8)


def exchange(call: Call, result: np.ndarray, routine: Callable, block: int, has_blocks: bool) -> None:
    """Routines whose dest has a block of `block` bytes from each PE; so has the source, if has_blocks."""
    pes = call.team.n_pes
    is_direct = call.is_direct(result)
    call.extra = " in place" if is_direct else ""
    call.agree()
    source, to = bytes_of(call.source), bytes_of(result).reshape(pes, block)
    if is_direct:
        routine(call.team._handle, address_of(result), address_of(call.source), block)
        return
    call.is_symmetric = call.is_symmetric and not has_blocks  # pieces of several blocks are copied together
    for first, count in call.pieces(block, 1, job.work.size // pes, False):
        if has_blocks:
            job.work.source[:pes * count].reshape(pes, count)[...] = source.reshape(pes, block)[:, first:first + count]
            at = job.work.source_at
        else:
            at = call.place(source, first, count)
        routine(call.team._handle, job.work.dest_at, at, count)
        to[:, first:first + count] = job.work.dest[:pes * count].reshape(pes, count)


def strides_of(source: np.ndarray, out: np.ndarray) -> Optional[tuple[int, int]]:
    """The strides of `out` and `source` in elements, if both are what shmem_alltoalls takes."""
    if source.ndim != 1 or source.itemsize not in (1, 2, 4, 8) or not (is_symmetric(source) and is_symmetric(out)):
        return None
    strides = out.strides[0], source.strides[0]
    if any(stride <= 0 or stride % source.itemsize for stride in strides):
        return None
    return strides[0] // source.itemsize, strides[1] // source.itemsize
