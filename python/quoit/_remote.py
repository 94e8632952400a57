# SPDX-License-Identifier: BSD-3-Clause
"""A symmetric array on another PE: puts, gets, atomics and signals."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _core
from ._check import choice, convert, fit, is_basic
from ._job import Context, Future

# The library's names of what it has atomics for.
ATOMICS = {"i4": "int32", "i8": "int64", "u4": "uint32", "u8": "uint64", "f4": "float", "f8": "double"}
BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
UPDATES = {"add": _core.SIGNAL_ADD, "set": _core.SIGNAL_SET}
NOTHING: Any = object()  # no operand; None is a wrong one
OF_INTEGERS = ("compare_swap", *BITWISE, *(f"fetch_{name}" for name in BITWISE))


def address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Remote(_core.Remote):
    """A symmetric array on one PE: what a.on(pe) returns.

    r[key] reads: a numpy scalar, or a new array. r[key] = value writes; it returns when `value` may be used again, and the data
    is delivered by the next quiet or barrier. Keys are those of numpy: integers, slices with any step, None, Ellipsis, index and
    boolean arrays. An element is one shmem_p or shmem_g, a contiguous slice one shmem_put or shmem_get, a strided one a
    shmem_ibput or shmem_ibget for each of its innermost dimensions; index arrays are an operation for each run of neighbouring
    elements.

    r[key] += value reads and then writes, and is not atomic: r.add(key, value) is.

    Errors: IndexError for a key outside of the array, TypeError for a value that would lose something (a float for an integer
    array), OverflowError for an integer that the dtype does not hold, ValueError for a shape that does not fit, and for an array
    that was freed. Specification 9.6 to 9.8."""

    def __init__(self, block: Any, layout: np.ndarray, pe: int, context: Context) -> None:
        dtype = layout.dtype
        is_simple = layout.ndim == 1 and dtype.kind in "iuf" and dtype.isnative and dtype.itemsize in (1, 2, 4, 8) and \
            not (dtype.kind == "f" and dtype.itemsize == 2)
        super().__init__(block, context._token, dtype.type, dtype, np.frombuffer, address_of(layout), len(layout) if is_simple else -1,
                         layout.strides[0] if is_simple else 0, dtype.itemsize, dtype.kind, pe, context._alive())
        self._layout, self._context = layout, context

    def __repr__(self) -> str:
        return f"<{self.dtype} {self.shape} on PE {self.pe}>"

    @property
    def shape(self) -> tuple:
        """Of the array, as numpy's."""
        return self._layout.shape

    @property
    def dtype(self) -> np.dtype:
        """Of its elements, as numpy's."""
        return self._layout.dtype

    def __len__(self) -> int:
        if not self._layout.ndim:
            raise TypeError("an array of no dimension has no length")
        return len(self._layout)

    def __iter__(self) -> Any:
        raise TypeError("iterating would be a get for each element: read r[:] once, and iterate over that")

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        found = self[...]
        return found if dtype is None else found.astype(dtype)

    def _alive(self) -> int:
        """The context's handle; ValueError if the array was freed or the context destroyed."""
        self.block.need()
        return self._context._alive()

    def _view(self, key: Any) -> Optional[np.ndarray]:
        """The local memory that stands for what the key selects; None if no view does."""
        parts = key if isinstance(key, tuple) else (key,)
        if not is_basic(parts):
            return None
        return self._layout[parts if Ellipsis in parts else (*parts, ...)]

    def _offsets(self, key: Any) -> np.ndarray:
        """Distance in bytes from the array's start of each element that the key selects, in the selection's shape."""
        layout = self._layout
        total: Any = np.zeros((), np.int64)
        view = self._view(key)
        if view is not None:
            total = total + (address_of(view) - address_of(layout))
            for axis, (length, stride) in enumerate(zip(view.shape, view.strides)):
                total = total + (np.arange(length, dtype=np.int64) * stride).reshape([-1] + [1] * (view.ndim - 1 - axis))
            return np.asarray(total, np.int64)
        if layout.ndim == 1 and not isinstance(key, tuple):
            numbers = np.asarray(key)
            if numbers.dtype.kind in "iu" and numbers.size:  # without a table of the whole axis
                if numbers.min() < -len(layout) or numbers.max() >= len(layout):
                    raise IndexError(f"indices are {numbers.min()}..{numbers.max()}, but the array has {len(layout)} elements")
                numbers = numbers.astype(np.int64)
                return np.where(numbers < 0, numbers + len(layout), numbers) * layout.strides[0]
        for axis, (length, stride) in enumerate(zip(layout.shape, layout.strides)):
            numbers = np.arange(length, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(layout.ndim)])
            total = total + np.broadcast_to(numbers, layout.shape)[key] * stride
        return np.asarray(total, np.int64)

    def _transfer(self, is_put: bool, is_nbi: bool, view: np.ndarray, private: np.ndarray) -> None:
        _core.transfer(is_put, is_nbi, self._alive(), self.pe, address_of(view), address_of(private), view.itemsize, view.shape,
                       view.strides)

    @staticmethod
    def _ordered(view: np.ndarray) -> tuple[tuple, list[int]]:
        """How to turn and order the axes of a view so that its elements lie in the order of memory."""
        turned = tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in view.strides)
        order = sorted(range(view.ndim), key=lambda axis: -abs(view.strides[axis]))
        return turned, order

    def _put(self, key: Any, value: Any, is_nbi: bool = False) -> np.ndarray:
        """The private source that was written from."""
        self._alive()
        view = self._view(key)
        if view is None:
            return self._put_scattered(self._offsets(key), value)
        source = fit(convert(value, view.dtype), view.shape)
        if not view.flags.c_contiguous:
            turned, order = self._ordered(view)
            view, source = view[turned].transpose(order), source[turned].transpose(order)
        source = np.ascontiguousarray(source)
        self._transfer(True, is_nbi, view, source)
        return source

    def _get(self, key: Any, is_nbi: bool = False) -> Any:
        self._alive()
        view = self._view(key)
        if view is None:
            return self._get_scattered(self._offsets(key))
        if view.flags.c_contiguous:
            found = np.empty(view.shape, view.dtype)
            self._transfer(False, is_nbi, view, found)
        else:
            turned, order = self._ordered(view)
            view = view[turned].transpose(order)
            found = np.empty(view.shape, view.dtype)
            self._transfer(False, is_nbi, view, found)
            found = found.transpose(np.argsort(order))[turned]
        return found[()] if found.ndim == 0 and not is_nbi else found

    def _put_scattered(self, offsets: np.ndarray, value: Any) -> np.ndarray:
        source = fit(convert(value, self.dtype), offsets.shape).ravel()
        # In order of addresses, so that runs are found; the last of several values for an element is written, as in numpy.
        places, last = np.unique(offsets.ravel()[::-1], return_index=True)
        source = np.ascontiguousarray(source[::-1][last])
        _core.scatter(True, self._alive(), self.pe, address_of(self._layout), address_of(places), places.size, source.itemsize,
                      address_of(source))
        return source

    def _get_scattered(self, offsets: np.ndarray) -> np.ndarray:
        places = np.asarray(offsets, order="C")
        found = np.empty(offsets.shape, self.dtype)
        _core.scatter(False, self._alive(), self.pe, address_of(self._layout), address_of(places), places.size, found.itemsize,
                      address_of(found))
        self._context._completed()
        return found

    def put_nbi(self, key: Any, value: Any) -> Future:
        """As r[key] = value, but returns at once. `value` must not change until the Future's result(), a quiet or a barrier; an
        array that needs no conversion is not copied. shmem_put_nbi."""
        source = self._put(key, value, True)
        return self._context._keep(source, None)

    def get_nbi(self, key: Any) -> Future:
        """As r[key], but returns at once a Future; its result() is the array. shmem_get_nbi."""
        found = self._get(key, True)
        return self._context._keep(found, found)

    def _atomic(self, op: str, key: Any, value: Any = NOTHING, cond: Any = NOTHING, is_fetching: bool = False) -> Any:
        self._alive()
        dtype = self.dtype
        name = ATOMICS.get(dtype.str[1:]) if dtype.isnative else None
        if name is None or dtype.kind == "f" and op in OF_INTEGERS:
            allowed = "int32, int64, uint32, uint64" + ("" if op in OF_INTEGERS else ", float32, float64")
            raise TypeError(f"{op} is an atomic of {allowed}, but the array has dtype {dtype}")
        offsets = np.asarray(self._offsets(key), order="C")
        operands = [0, 0]
        arrays = []
        for i, operand in enumerate((value, cond)):
            if operand is not NOTHING:
                arrays.append(np.asarray(fit(convert(operand, dtype), offsets.shape), order="C"))
                operands[i] = address_of(arrays[-1])
        found = np.empty(offsets.shape, dtype) if is_fetching else None
        _core.atomic(op, name, self._alive(), self.pe, address_of(self._layout), address_of(offsets), offsets.size, *operands,
                     address_of(found) if found is not None else 0)
        if is_fetching and offsets.size > 1:  # ended by a quiet
            self._context._completed()
        return found[()] if found is not None else None

    def fetch(self, key: Any) -> Any:
        """The element, read atomically. The key of this and of all atomics may select several elements, each an atomic of its
        own; `value` is then broadcast, and old values come in that shape, fetched together and completed by a quiet. Integers and
        floats of 4 and 8 bytes. TypeError for other dtypes, IndexError for a key outside. shmem_atomic_fetch,
        shmem_atomic_fetch_nbi."""
        return self._atomic("fetch", key, is_fetching=True)

    def set(self, key: Any, value: Any) -> None:
        """Writes atomically. shmem_atomic_set."""
        self._atomic("set", key, value)

    def swap(self, key: Any, value: Any) -> Any:
        """Writes, and returns the old value. shmem_atomic_swap, shmem_atomic_swap_nbi."""
        return self._atomic("swap", key, value, is_fetching=True)

    def compare_swap(self, key: Any, cond: Any, value: Any) -> Any:
        """Writes `value` if the element is `cond`; returns the old value. Integers. shmem_atomic_compare_swap,
        shmem_atomic_compare_swap_nbi."""
        return self._atomic("compare_swap", key, value, cond, is_fetching=True)

    def add(self, key: Any, value: Any) -> None:
        """Adds. An element that an index array names twice is added to twice. Of floats: compare-swaps until it succeeds, so
        a few times slower. shmem_atomic_add, which is shmem_atomic_inc for 1."""
        self._atomic("add", key, value)

    def fetch_add(self, key: Any, value: Any) -> Any:
        """Adds, and returns the old value. shmem_atomic_fetch_add, shmem_atomic_fetch_add_nbi."""
        return self._atomic("fetch_add" if self.dtype.kind != "f" else "add", key, value, is_fetching=True)

    def bitwise_and(self, key: Any, value: Any) -> None:
        """Integers, as bitwise_or and bitwise_xor. shmem_atomic_and."""
        self._atomic("bitwise_and", key, value)

    def bitwise_or(self, key: Any, value: Any) -> None:
        """Integers, as bitwise_and. shmem_atomic_or."""
        self._atomic("bitwise_or", key, value)

    def bitwise_xor(self, key: Any, value: Any) -> None:
        """Integers, as bitwise_and. shmem_atomic_xor."""
        self._atomic("bitwise_xor", key, value)

    def fetch_and(self, key: Any, value: Any) -> Any:
        """Returns the old value; integers. shmem_atomic_fetch_and, shmem_atomic_fetch_and_nbi."""
        return self._atomic("fetch_bitwise_and", key, value, is_fetching=True)

    def fetch_or(self, key: Any, value: Any) -> Any:
        """Returns the old value; integers. shmem_atomic_fetch_or, shmem_atomic_fetch_or_nbi."""
        return self._atomic("fetch_bitwise_or", key, value, is_fetching=True)

    def fetch_xor(self, key: Any, value: Any) -> Any:
        """Returns the old value; integers. shmem_atomic_fetch_xor, shmem_atomic_fetch_xor_nbi."""
        return self._atomic("fetch_bitwise_xor", key, value, is_fetching=True)

    def put_signal(self, key: Any, value: Any, signal: Any, amount: int = 1, op: str = "add") -> None:
        """As r[key] = value, then updates the signal on the same PE: op "add" adds `amount`, "set" stores it. A PE that sees the
        update, by signal.wait(), sees the data. `signal`: one element of a symmetric uint64 array. shmem_put_signal."""
        self._put_signal(key, value, signal, amount, op, False)

    def put_signal_nbi(self, key: Any, value: Any, signal: Any, amount: int = 1, op: str = "add") -> Future:
        """As put_signal, but returns at once; `value` must not change until the Future's result(), a quiet or a barrier.
        shmem_put_signal_nbi."""
        return self._context._keep(self._put_signal(key, value, signal, amount, op, True), None)

    def _put_signal(self, key: Any, value: Any, signal: Any, amount: int, op: str, is_nbi: bool) -> np.ndarray:
        """The private source that was written from."""
        from ._array import signal_word  # which needs this module
        word, handle = signal_word(signal), self._alive()
        amount, update = _amount(amount), UPDATES[choice(op, "op", UPDATES)]
        view = self._view(key)
        if view is not None and view.flags.c_contiguous:
            source = np.ascontiguousarray(fit(convert(value, view.dtype), view.shape))
            _core.put_signal(is_nbi, handle, self.pe, address_of(view), address_of(source), source.nbytes, word, amount, update)
            return source
        source = self._put(key, value)
        self._context.fence()
        _core.signal(handle, self.pe, word, amount, update)
        return source

    def signal(self, amount: int = 1, op: str = "add") -> None:
        """Updates this array, which is a signal, on the PE: s.on(pe).signal(). OverflowError: amount is not 0..2**64-1.
        shmem_signal_add, shmem_signal_set."""
        if self.dtype != np.uint64 or self._layout.size != 1:
            raise TypeError("a signal is one element of a symmetric array of uint64: quoit.signal(), or s[i:i+1]")
        update = UPDATES[choice(op, "op", UPDATES)]
        _core.signal(self._alive(), self.pe, address_of(self._layout), _amount(amount), update)


def _amount(value: Any) -> int:
    """What a signal is set to, or what is added, of 0..2**64-1."""
    return int(convert(value, np.dtype(np.uint64)))
