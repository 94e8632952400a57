# SPDX-License-Identifier: BSD-3-Clause
"""A function travels from a script or notebook to the PEs, with what it uses, and the results travel back.

What can be imported goes by name, as pickle does it. What was defined in __main__, which the PEs do not have, goes by value:
functions as their code, classes as their contents, and of the global variables those whose names occur in the code. On a PE it is
put into its own __main__, so that what comes back is found by name in the caller's."""
from __future__ import annotations

import dis
import importlib
import io
import linecache
import marshal
import os
import pickle
import sys
import types
from typing import Any

# What Python adds to each class by itself.
OF_EVERY_CLASS = ("__dict__", "__weakref__", "__module__", "__doc__", "__slotnames__", "__abstractmethods__", "_abc_impl")


def _names(code: types.CodeType) -> set:
    """Global names that the code and the code within it look up."""
    found = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _is_by_name(value: Any) -> bool:
    """Whether the PEs can import it."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or module.__name__ == "__main__":
        return False
    found: Any = module
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value


def _make_function(code: bytes, name: str, cells: int) -> types.FunctionType:
    closure = tuple(types.CellType() for _ in range(cells))
    return types.FunctionType(marshal.loads(code), sys.modules["__main__"].__dict__, name, None, closure)


def _fill_function(function: types.FunctionType, state: tuple) -> None:
    attributes, cells, variables = state
    for name, value in attributes.items():
        setattr(function, name, value)
    for cell, value in zip(function.__closure__ or (), cells):
        if value:
            cell.cell_contents = value[0]
    for name, value in variables.items():
        sys.modules["__main__"].__dict__.setdefault(name, value)


def _make_class(kind: type, name: str, bases: tuple) -> type:
    made = kind(name, bases, {"__module__": "__main__"})
    sys.modules["__main__"].__dict__.setdefault(name, made)
    return made


def _fill_class(made: type, contents: dict) -> None:
    for name, value in contents.items():
        setattr(made, name, value)


class Pickler(pickle.Pickler):
    """By value what only this process's __main__ has."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, types.FunctionType) and not _is_by_name(value):
            return self._function(value)
        if isinstance(value, type) and value.__module__ == "__main__" and not _is_by_name(value):
            if "__slots__" in value.__dict__:
                raise pickle.PicklingError(f"class {value.__qualname__} of __main__ has __slots__: put it into a module")
            contents = {k: v for k, v in value.__dict__.items() if k not in OF_EVERY_CLASS}
            return _make_class, (type(value), value.__name__, value.__bases__), contents, None, None, _fill_class
        return NotImplemented

    @staticmethod
    def _function(value: types.FunctionType) -> tuple:
        attributes = {"__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__,
                      "__qualname__": value.__qualname__, "__module__": "__main__", "__doc__": value.__doc__}
        attributes.update(value.__dict__)
        cells = []
        for cell in value.__closure__ or ():
            try:
                cells.append((cell.cell_contents,))
            except ValueError:  # not set yet
                cells.append(())
        variables = {name: value.__globals__[name] for name in sorted(_names(value.__code__)) if name in value.__globals__}
        variables.pop("__builtins__", None)
        made = (marshal.dumps(value.__code__), value.__name__, len(cells))
        return _make_function, made, (attributes, cells, variables), None, None, _fill_function


class RemoteError(Exception):
    """Stands for an exception of a PE that cannot be pickled; its text has type and message."""


def dumps(value: Any) -> bytes:
    """As pickle.dumps, for the way to the PEs. TypeError if something cannot travel, such as an open file."""
    made = io.BytesIO()
    try:
        Pickler(made, pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise TypeError(f"what the function uses cannot be sent to the PEs: {error}") from error
    return made.getvalue()


def cell_sources() -> dict:
    """The text of code that is in no file, as a notebook's cells are, so that tracebacks of PEs show its lines."""
    return {name: (entry[0], None, *entry[2:]) for name, entry in linecache.cache.items()  # without a time: not to be looked for
            if len(entry) == 4 and (name.startswith("<") or "ipykernel_" in name) and not os.path.exists(name)}
