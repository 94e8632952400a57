# SPDX-License-Identifier: BSD-3-Clause
"""Symmetric arrays: numpy arrays in memory that exists, at the same place, on every PE."""
from __future__ import annotations

import functools
from typing import Any, Optional

import numpy as np

from . import _core
from ._check import Shape, as_array, checked_dtype, choice, convert, fit, lengths_of, pe_of
from ._job import Block, Context, Team, job, team_of
from ._remote import Remote, address_of

COMPARISONS = {"==": _core.CMP_EQ, "!=": _core.CMP_NE, ">": _core.CMP_GT, ">=": _core.CMP_GE, "<": _core.CMP_LT,
               "<=": _core.CMP_LE}
WAITS = {"i2": "short", "u2": "ushort", "i4": "int32", "i8": "int64", "u4": "uint32", "u8": "uint64"}
_byte_bounds = np.lib.array_utils.byte_bounds if hasattr(np.lib, "array_utils") else np.byte_bounds


def bounds(array: np.ndarray) -> tuple[int, int]:
    """The address of its first byte, and that after its last."""
    return _byte_bounds(array) if array.size else (address_of(array),) * 2


class Placed(_core.guarded(np.ndarray)):  # type: ignore[misc]
    """An array whose memory has a place that matters, so that copies, and what numpy's functions make, are ordinary arrays."""

    def _is_placed(self) -> bool:
        raise NotImplementedError

    def _check(self, value: Any) -> None:
        """Raises what is wrong with a value that numpy refused to assign."""
        convert(value, self.dtype)

    def free(self) -> None:
        """Gives the memory back. Collective."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:  # other PEs may not have the error, and would not free
            self.free()

    def __array_wrap__(self, result: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        if self is result:  # of an operation in place
            return result
        plain = _plain(result)
        return plain[()] if type(plain) is np.ndarray and plain.ndim == 0 else plain

    def __array_function__(self, function: Any, types: Any, arguments: Any, named: Any) -> Any:
        result = super().__array_function__(function, types, arguments, named)
        if isinstance(result, (list, tuple)):
            made = [_plain(each) for each in result]
            return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
        return _plain(result)

    def copy(self, order: str = "C") -> np.ndarray:
        """An ordinary numpy array with the same elements."""
        return np.array(self, order=order, subok=False)


def _plain(result: Any) -> Any:
    """What lies elsewhere as an ordinary array; views of the memory stay what they are."""
    return result.view(np.ndarray) if isinstance(result, Placed) and not result._is_placed() else result


class ndarray(Placed):
    """A numpy array in symmetric memory, made by zeros, empty, full, array or asarray; or a view of one.

    Everything that numpy does with arrays works on this PE's part; results of arithmetic are ordinary numpy arrays.
    a.on(pe) is the same array on another PE. A context manager: freed at the end of the with statement, on all PEs."""

    def on(self, pe: int) -> Remote:
        """This array on PE `pe`: read and written by indexing, and more (class Remote). TypeError, ValueError: `pe` is no PE
        of the job, or the memory is not symmetric any more."""
        layout = self.view(np.ndarray)
        block = self._block()
        made: list[Optional[Remote]] = [None] * job.world.n_pes
        remotes = _core.Remotes(made, functools.partial(_make, made, layout, block))
        self.on = remotes.on  # the next call of a.on(pe) runs no Python
        return remotes.on(pe)

    def _block(self) -> Block:
        job.need()
        low, high = bounds(self)
        block = job.blocks.at(low, high - low)
        if block is None:
            raise ValueError("this array is not in symmetric memory: it was freed, or it is a copy; zeros, empty, full, array "
                             "and asarray make symmetric ones")
        return block

    def _remote(self, pe: int, context: Context) -> Remote:
        context._alive()
        number = pe_of(pe, context.team.n_pes, "the context's team")
        return Remote(self._block(), self.view(np.ndarray), number, context)

    def local(self, pe: int, team: Optional[Team] = None) -> Optional[np.ndarray]:
        """The memory of this array on PE `pe` of the team (of all PEs, unless given) as a numpy array, for plain loads and stores;
        None if that PE is on another host. shmem_ptr, shmem_team_ptr."""
        base = address_of(self)
        low = self._block()
        of = team_of(team)
        found = _core.ptr(low.address, pe_of(pe, of.n_pes, "the job" if team is None else "the team"), of._handle)
        if not found:
            return None
        whole = np.frombuffer(_core.memory(found, max(low.bytes, 1)), np.uint8)
        return np.ndarray(self.shape, self.dtype, whole.data, base - low.address, self.strides)

    def free(self) -> None:
        """Frees the memory of this array and of all its views. Collective, in the same order on all PEs. shmem_free."""
        block = self._block()
        if address_of(self) != block.address or self.nbytes != block.bytes:
            raise ValueError("this is a view of a part of a symmetric array: free the whole")
        job.free(block)

    def _is_placed(self) -> bool:
        return job.state == "running" and _is_symmetric(self)

    def _wait(self, how: str, comparison: str, value: Any, skip: Any) -> Any:
        self._block()
        choice(comparison, "comparison", COMPARISONS)
        name = WAITS.get(self.dtype.str[1:]) if self.dtype.isnative else None
        if name is None:
            raise TypeError(f"waits for integers of 2, 4 and 8 bytes, but the array has dtype {self.dtype}; "
                            "make it with dtype=\"int64\", say")
        if not self.flags.c_contiguous:
            raise ValueError("waits for contiguous elements, but this view has gaps")
        wanted = np.array(fit(convert(value, self.dtype), self.shape), order="C")
        status = 0
        if skip is not None:
            found = as_array(skip, "skip")
            if found.dtype != bool or found.shape != self.shape:
                raise ValueError(f"skip is {found.dtype} {found.shape}, but must be bool {self.shape}, as the array has elements")
            skipped = np.ascontiguousarray(found, np.intc)
            status = address_of(skipped)
        if how in ("wait_any", "wait_some") and (self.size == 0 or skip is not None and found.all()):
            raise ValueError("there is no element to wait for: the array has none, or all are skipped")
        return _core.wait(how, name, address_of(self), self.size, COMPARISONS[comparison], address_of(wanted), status)

    def wait(self, comparison: str, value: Any, skip: Any = None) -> None:
        """Returns when `element COMPARISON value` holds for all elements of this PE's array: a.wait(">=", 1), or one of them:
        a[i:i+1].wait("==", 0). Integers of 2, 4 and 8 bytes. value: one for all, or an array of one for each element; skip: a
        boolean array, True for the elements that do not count. Errors: TypeError, ValueError, OverflowError for what is not
        allowed. shmem_wait_until, shmem_wait_until_all, shmem_wait_until_all_vector, shmem_signal_wait_until."""
        self._wait("wait_all", comparison, value, skip)

    def wait_any(self, comparison: str, value: Any, skip: Any = None) -> int:
        """Returns the index, in the flattened array, of an element for which it holds, when there is one. value and skip as for
        wait; ValueError if no element counts. shmem_wait_until_any, shmem_wait_until_any_vector."""
        return self._wait("wait_any", comparison, value, skip)

    def wait_some(self, comparison: str, value: Any, skip: Any = None) -> list[int]:
        """As wait_any, but all such indices that it finds, at least one. shmem_wait_until_some, shmem_wait_until_some_vector."""
        return self._wait("wait_some", comparison, value, skip)

    def test(self, comparison: str, value: Any, skip: Any = None) -> bool:
        """Whether it holds for all elements now. shmem_test, shmem_test_all, shmem_test_all_vector."""
        return self._wait("test_all", comparison, value, skip)

    def test_any(self, comparison: str, value: Any, skip: Any = None) -> Optional[int]:
        """The index of an element for which it holds now; None if there is none. shmem_test_any, shmem_test_any_vector."""
        return self._wait("test_any", comparison, value, skip)

    def test_some(self, comparison: str, value: Any, skip: Any = None) -> list[int]:
        """The indices of the elements for which it holds now. shmem_test_some, shmem_test_some_vector."""
        return self._wait("test_some", comparison, value, skip)

    def signal_fetch(self) -> int:
        """The value of this PE's signal, which is an array of one uint64, read atomically. TypeError for other arrays.
        shmem_signal_fetch."""
        return _core.signal_fetch(signal_word(self))


def signal_word(signal: Any) -> int:
    """The address of a signal."""
    if not isinstance(signal, ndarray) or signal.dtype != np.uint64 or signal.size != 1:
        raise TypeError("a signal is one element of a symmetric array of uint64: quoit.signal(), or s[i:i+1]")
    signal._block()
    return address_of(signal)


def _make(made: list, layout: np.ndarray, block: Block, pe: Any) -> Remote:
    job.need()
    number = pe_of(pe, len(made), "the job")
    block.need()
    if made[number] is None:
        made[number] = Remote(block, layout, number, job.default)
    return made[number]


def _is_symmetric(array: np.ndarray) -> bool:
    return job.blocks.at(address_of(array), array.nbytes if array.flags.c_contiguous else 1) is not None


def _new(shape: Shape, dtype: Any, name: str, is_zero: bool) -> ndarray:
    kind = checked_dtype(dtype)
    lengths, size = lengths_of(shape, kind)
    block = job.need().allocate(size, is_zero, f"{name}: {kind} {lengths}")
    memory = _core.memory(block.address, max(size, 1))
    return np.ndarray(lengths, kind, memory).view(ndarray)


def values_of(values: Any, dtype: Any) -> np.ndarray:
    """The values of an array that is to be made: of this dtype, or of their own for None."""
    return as_array(values, "value") if dtype is None else convert(values, checked_dtype(dtype))


def empty(shape: Shape, dtype: Any = float) -> ndarray:
    """A symmetric array whose elements are not set. shape: a length or a tuple of them; dtype: any without Python objects.

    Collective over all PEs, with the same arguments; a barrier. MemoryError: the symmetric heap has no room. ValueError, on all
    PEs: they gave different arguments. Specification 9.3, shmem_malloc."""
    return _new(shape, dtype, "empty", False)


def zeros(shape: Shape, dtype: Any = float) -> ndarray:
    """As empty, with all elements 0. shmem_calloc."""
    return _new(shape, dtype, "zeros", True)


def full(shape: Shape, value: Any, dtype: Any = None) -> ndarray:
    """As empty, with all elements `value` on this PE, which may differ from PE to PE; the dtype is the value's unless given.
    TypeError, OverflowError: a dtype that would lose something of it; full(3, 2.5, int) does."""
    source = values_of(value, dtype)
    filled = fit(source, lengths_of(shape, source.dtype)[0])
    made = _new(shape, source.dtype, "full", False)
    made[...] = filled
    _core.barrier_all()
    return made


def array(values: Any, dtype: Any = None) -> ndarray:
    """As empty, with this PE's `values`, of one shape and dtype on all PEs. Ends with a barrier, so that any PE may read it."""
    source = values_of(values, dtype)
    made = _new(source.shape, source.dtype, "array", False)
    made[...] = source
    _core.barrier_all()
    return made


def asarray(values: Any, dtype: Any = None) -> ndarray:
    """`values` itself if it is symmetric, has this dtype and is contiguous; else array(values, dtype). Collective, and the same
    case must hold on all PEs."""
    if isinstance(values, ndarray) and values.flags.c_contiguous and (dtype is None or values.dtype == checked_dtype(dtype)):
        if job.need() and _is_symmetric(values):
            return values
    return array(values, dtype)


def is_symmetric(values: Any) -> bool:
    """Whether an array lies in symmetric memory that was not freed."""
    return isinstance(values, np.ndarray) and job.state == "running" and values.size > 0 and _is_symmetric(values)
