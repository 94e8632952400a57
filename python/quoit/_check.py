# SPDX-License-Identifier: BSD-3-Clause
"""What arguments may be: each function returns its argument in the form that is needed, or raises an exception that says what
was given and what is allowed."""
from __future__ import annotations

import math
import operator
import reprlib
import sys
from typing import Any, Union

import numpy as np

Shape = Union[int, tuple]
_DIMENSIONS_MAX = 32  # of every numpy
_KEYS = "integers, slices, ..., None, and arrays or lists of integers or of booleans"


def integer(value: Any, name: str) -> int:
    """A plain integer; TypeError."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {reprlib.repr(value)}, but must be an integer") from None


def pe_of(pe: Any, count: int, whose: str) -> int:
    """A PE number of 0..count-1; TypeError, ValueError."""
    number = integer(pe, "pe")
    if not 0 <= number < count:
        raise ValueError(f"pe is {number}, but {whose} has {f'{count} PEs (0..{count - 1})' if count > 1 else '1 PE (0)'}")
    return number


def choice(value: Any, name: str, allowed: Any) -> str:
    """One of some words; ValueError."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} is {reprlib.repr(value)}, but must be one of {', '.join(map(repr, allowed))}")
    return value


def nanoseconds(seconds: Any, what: str) -> int:
    """A time of at least 0 seconds; TypeError, ValueError."""
    if isinstance(seconds, (bool, str)) or not hasattr(seconds, "__float__") or math.isnan(seconds) or seconds < 0:
        kind = ValueError if isinstance(seconds, (int, float)) else TypeError
        raise kind(f"timeout is {reprlib.repr(seconds)}, but must be a number of seconds of at least 0, or {what} for no limit")
    return round(min(float(seconds), 1e9) * 1e9)  # of thirty years


def as_array(values: Any, what: str) -> np.ndarray:
    """An array without Python objects; TypeError, and ValueError for lists whose lengths differ."""
    try:
        found = np.asarray(values)
    except ValueError:
        raise ValueError(f"{what} is {reprlib.repr(values)}, whose parts differ in length: an array has one shape") from None
    if found.dtype.hasobject:
        raise TypeError(f"{what} is {reprlib.repr(values)}, which would be Python objects in an array: they have no meaning on another "
                        "PE; numbers, booleans, bytes and strings have one")
    return found


def checked_dtype(dtype: Any) -> np.dtype:
    """A dtype without Python objects; TypeError."""
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"dtype is {reprlib.repr(dtype)}, but must be one of numpy's, such as float, int, 'uint8' or np.float32") from None
    if made.hasobject:
        raise TypeError(f"dtype {made} holds Python objects, which have no meaning on another PE")
    return made


def lengths_of(shape: Shape, dtype: np.dtype) -> tuple[tuple, int]:
    """A shape as a tuple, and the bytes of an array of it; TypeError, ValueError, MemoryError."""
    parts = shape if isinstance(shape, (tuple, list)) else tuple(shape) if isinstance(shape, np.ndarray) and shape.ndim else (shape,)
    lengths = []
    for part in parts:
        if isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__"):
            raise TypeError(f"shape is {reprlib.repr(shape)}, but must be an integer or a tuple of integers")
        lengths.append(operator.index(part))
        if lengths[-1] < 0:
            raise ValueError(f"shape is {reprlib.repr(shape)}, but a length must be at least 0")
    if len(lengths) > _DIMENSIONS_MAX:
        raise ValueError(f"shape has {len(lengths)} dimensions, but an array has at most {_DIMENSIONS_MAX}")
    size = dtype.itemsize * math.prod(lengths)
    if max([size, *lengths]) > sys.maxsize:
        raise MemoryError(f"shape is {reprlib.repr(shape)}, of {size} bytes, which no memory has")
    return tuple(lengths), size


def takes(dtype: np.dtype) -> str:
    """What an array of this dtype takes, in words."""
    if dtype.kind in "iu":
        return f"integers {np.iinfo(dtype).min}..{np.iinfo(dtype).max}"
    words = {"b": "True and False", "f": "numbers", "c": "numbers, complex ones too", "S": f"bytes of up to {dtype.itemsize}",
             "U": f"strings of up to {dtype.itemsize // 4} characters"}
    return words.get(dtype.kind, f"values of dtype {dtype}")


def _of_objects(value: Any, found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Python's integers beyond int64 and the like are objects to numpy."""
    numbers = [operator.index(each) for each in found.flat if hasattr(each, "__index__")]
    if dtype.kind not in "iufc" or len(numbers) != found.size:
        raise TypeError(f"value is {reprlib.repr(value)}, but the array takes {takes(dtype)}")
    if dtype.kind in "iu" and numbers and not np.iinfo(dtype).min <= min(numbers) <= max(numbers) <= np.iinfo(dtype).max:
        raise OverflowError(f"value is {reprlib.repr(value)}, but the array's {dtype} holds {np.iinfo(dtype).min}.."
                            f"{np.iinfo(dtype).max}")
    return found.astype(dtype)


def convert(value: Any, dtype: np.dtype) -> np.ndarray:
    """`value` as an array of this dtype, where nothing is lost by it but the precision of floating-point numbers; TypeError,
    OverflowError."""
    try:
        found = np.asarray(value)
    except ValueError:
        raise ValueError(f"value is {reprlib.repr(value)}, whose parts differ in length: an array has one shape") from None
    if found.dtype == dtype:
        return found
    if found.dtype.kind == "O":
        return _of_objects(value, found, dtype)
    if dtype.kind in "iu" and found.dtype.kind in "iub":
        limits = np.iinfo(dtype)
        if found.size and (int(found.min()) < limits.min or int(found.max()) > limits.max):
            has = f"is {found}" if found.ndim == 0 else f"has elements {found.min()}..{found.max()}"
            raise OverflowError(f"value {has}, but {dtype} holds {limits.min}..{limits.max}")
        return found.astype(dtype)
    if (found.dtype.kind in "SU") != (dtype.kind in "SU"):
        raise TypeError(f"value is {reprlib.repr(value)}, but the array takes {takes(dtype)}")
    is_cut = found.dtype.kind == dtype.kind and dtype.kind in "SU" and found.dtype.itemsize > dtype.itemsize
    if is_cut or not np.can_cast(found.dtype, dtype, "same_kind"):
        raise TypeError(f"value has dtype {found.dtype}, which would lose something as the array's {dtype}: it takes {takes(dtype)}; "
                        "convert by astype")
    return found.astype(dtype)


def fit(value: np.ndarray, shape: tuple) -> np.ndarray:
    """`value` broadcast to the shape of a slice."""
    if value.shape == shape:
        return value
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        where = f"the slice has {shape}" if shape else "the key selects one element"
        raise ValueError(f"value has shape {value.shape}, but {where}") from None


def is_basic(key: tuple) -> bool:
    """Whether numpy makes a view of it: integers, slices, None and Ellipsis. IndexError for what is no key at all."""
    is_view = True
    for part in key:
        if isinstance(part, (bool, np.bool_, np.ndarray, list, range, tuple)):
            is_view = False
            if not isinstance(part, (bool, np.bool_)) and np.size(part) and as_array(part, "key").dtype.kind not in "iub":
                raise IndexError(f"key holds {reprlib.repr(part)}, but must be of {_KEYS}")
        elif not (part is None or part is Ellipsis or isinstance(part, slice) or hasattr(part, "__index__")):
            raise IndexError(f"key holds {reprlib.repr(part)}, but must be of {_KEYS}")
    return is_view
