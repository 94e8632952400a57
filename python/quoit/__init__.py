# SPDX-License-Identifier: BSD-3-Clause
"""Quoit: one Python program on many processing elements (PEs), which access each other's numpy arrays. OpenSHMEM 1.6.

    import quoit
    a = quoit.zeros(4)                               # an array on every PE
    a.on((quoit.my_pe() + 1) % quoit.n_pes())[0] = 1  # an element of my right neighbour's
    quoit.barrier()
    total = quoit.sum(a)                             # over all PEs
    a.free()

Started by `python -m quoit.run -n 4 program.py`, or by quoit.run(function, pes=4) from a script or notebook. docs/python.md
is the tutorial.

Names: my_pe, n_pes, barrier, sync, quiet, fence, init, is_initialized, finalize, global_exit, info, __version__; zeros, empty,
full, array, asarray, is_symmetric; sum, prod, min, max, all, any, bitwise_and, bitwise_or, bitwise_xor, cumsum, broadcast,
allgather, alltoall, concatenate;
world, shared, Team, Context, Future; signal, Lock; run, RunError. quoit.dsm: arrays on shared pages;
quoit.nvshmem: the names of NVSHMEM4Py."""
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._array import array, asarray, empty, full, is_symmetric, ndarray, zeros
    from ._collective import (all, allgather, alltoall, any, bitwise_and, bitwise_or, bitwise_xor, broadcast, concatenate, cumsum,
                              max, min, prod, sum)
    from ._job import (Context, Future, Info, Team, barrier, fence, finalize, global_exit, info, init, is_initialized, my_pe, n_pes,
                       quiet, shared, sync, world)
    from ._launch import RunError, run
    from ._magic import load_ipython_extension
    from ._remote import Remote
    from ._sync import Lock, signal

_MODULES = {
    "_array": "array asarray empty full is_symmetric ndarray zeros",
    "_collective": "all allgather alltoall any bitwise_and bitwise_or bitwise_xor broadcast concatenate cumsum max min prod sum",
    "_job": "Context Future Info Team barrier fence finalize global_exit info init is_initialized my_pe n_pes quiet shared sync "
            "world",
    "_launch": "RunError run",
    "_magic": "load_ipython_extension",
    "_remote": "Remote",
    "_sync": "Lock signal",
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}
_SUBMODULES = ("dsm", "nvshmem")
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    """Names are imported when they are used: a program that only calls run() does not load numpy or the library."""
    if name in _SUBMODULES:
        return importlib.import_module(f"quoit.{name}")
    if name == "__version__":
        return importlib.import_module("quoit._job").info().version
    if name not in _PLACES:
        raise AttributeError(f"module 'quoit' has no attribute {name!r}")
    try:
        value = getattr(importlib.import_module(f"quoit.{_PLACES[name]}"), name)
    except ModuleNotFoundError as problem:
        if problem.name != "numpy":
            raise
        raise ImportError(f"quoit.{name} needs numpy, which {sys.executable} does not have: pip install numpy") from None
    globals()[name] = value
    return value


def __dir__() -> list:
    return [*__all__, *_SUBMODULES]
