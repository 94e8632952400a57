# SPDX-License-Identifier: BSD-3-Clause
"""Shared pages: numpy arrays that exist once, and that every PE reads and writes by plain indexing (libqdsm, docs/dsm.md).

    from quoit import dsm
    total, lock = dsm.zeros(1), dsm.Lock()
    with lock:
        total[0] += 1
    dsm.barrier()                # now every PE reads the sum
    total.free(), lock.free()

A PE's writes before it releases a lock, sets a flag or enters dsm.barrier() are visible to the PE that then acquires the lock,
waits for the flag or leaves the barrier. Without one of these between them, two PEs must not write the same element, nor one
write what another reads. Elements are all that is shared: arrays have no a.on(pe), and cannot be arguments `out` that collectives
write without a copy.

The module loads libqdsm when it is imported; the first array or object makes it run on all PEs. It reserves DSM_MEMORY in
the symmetric heap. numpy functions that pass memory to the kernel, such as tofile, may fail with EFAULT: give them a.copy()."""
from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _core
from ._array import Placed, bounds, values_of
from ._check import Shape, checked_dtype, convert, fit, integer, is_basic, lengths_of, nanoseconds, pe_of
from ._collective import broadcast
from ._job import agree, job
from ._remote import address_of

__all__ = ["Condition", "Flag", "Lock", "array", "barrier", "empty", "fetch_add", "full", "home", "ndarray", "prefetch", "zeros"]
_PLACEMENTS = {"block": 1, "cyclic": 2}  # of enum dsm_placement
_ON_PE = 3


def _load() -> ctypes.CDLL:
    """libqdsm that stands beside libshmem; its routines with the types of dsm.h. A call lets other Python threads run."""
    beside = os.path.join(os.path.dirname(os.path.realpath(_core.library() or "")), "libqdsm.so.1")
    library = ctypes.CDLL(beside if os.path.exists(beside) else "libqdsm.so.1")
    address, word = ctypes.c_void_p, ctypes.c_uint64
    for name, result, arguments in (
            ("init", None, []), ("finalize", None, []), ("barrier_all", None, []), ("free", None, [address]),
            ("calloc", address, [ctypes.c_size_t, ctypes.c_size_t]),
            ("malloc_placed", address, [ctypes.c_size_t, ctypes.c_int, ctypes.c_int]),
            ("home", ctypes.c_int, [address]), ("prefetch", None, [address, ctypes.c_size_t]),
            ("fetch_add", word, [address, word]), ("lock", None, [address]), ("trylock", ctypes.c_int, [address]),
            ("timedlock", ctypes.c_int, [address, word]), ("unlock", None, [address]), ("flag_set", None, [address, word]),
            ("flag_get", word, [address]), ("flag_wait", None, [address, word]), ("cond_wait", None, [address, address]),
            ("cond_timedwait", ctypes.c_int, [address, address, word]), ("cond_signal", None, [address]),
            ("cond_broadcast", None, [address])):
        routine = getattr(library, f"dsm_{name}")
        routine.restype, routine.argtypes = result, arguments
    return library


_library = _load()


def _at_lines() -> None:
    """In a job with a profile the routines count as called from the program's lines, not from those of ctypes."""
    def called(routine: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: _core.call(routine, *arguments)
    for name, routine in list(vars(_library).items()):
        if name.startswith("dsm_"):
            setattr(_library, name, called(routine))


def _need() -> ctypes.CDLL:
    """Collective at the first call."""
    job.need()
    if _finish not in job.before_end:
        if _core.profiled():
            _at_lines()
        _library.dsm_init()
        job.before_end.append(_finish)
    return _library


def _finish() -> None:
    _library.dsm_finalize()


def _allocate(size: int, what: str, placement: Union[None, str, int] = None) -> int:
    """The address of a zeroed block that all PEs get. Collective: PE 0 allocates, after all of them meant the same."""
    kind, pe = 0, 0
    if placement is not None:
        if isinstance(placement, str):
            if placement not in _PLACEMENTS:
                raise ValueError(f"home is {placement!r}, but must be 'block', 'cyclic' or the number of a PE")
            kind = _PLACEMENTS[placement]
        else:
            kind, pe = _ON_PE, pe_of(placement, job.need().world.n_pes, "the job")
    library = _need()
    agree(job.world, what)
    address = 0
    if job.world.my_pe == 0:
        bytes_ = max(size, 1)
        address = (library.dsm_malloc_placed(bytes_, kind, pe) if kind else library.dsm_calloc(1, bytes_)) or 0
        if kind and address:  # may be a block that was freed
            ctypes.memset(address, 0, bytes_)
    address = int(broadcast(np.uint64(address)))
    if not address:
        raise MemoryError(f"{what}: the addresses of shared pages are exhausted; their limit is DSM_SPACE")
    library.dsm_barrier_all()  # the zeros are visible
    job.pages.add(address, size, what)
    return address


def _free(address: int) -> None:
    """Collective."""
    block = job.pages.of[address]
    agree(job.need().world, f"free of {block.what}, allocated at {block.where}")
    _library.dsm_barrier_all()  # no PE uses it any more
    job.pages.forget(block)
    if job.world.my_pe == 0:
        _library.dsm_free(address)


class ndarray(Placed):
    """A numpy array on shared pages, made by zeros, empty, full or array of this module; or a view of one. Results of arithmetic
    are ordinary numpy arrays. A context manager: freed at the end of the with statement, on all PEs."""

    def _is_placed(self) -> bool:
        """Whether its elements lie on shared pages that were not freed."""
        low, high = bounds(self)
        return job.pages.at(low, high - low) is not None

    def free(self) -> None:
        """Gives the pages back. Collective, in the same order on all PEs. ValueError: a view of a part, or freed already.
        dsm_free."""
        job.need()
        block = job.pages.of.get(address_of(self))
        if block is None or self.nbytes != block.bytes:
            raise ValueError("this is not the whole of an array on shared pages: it was freed, or is a view or a copy")
        _free(address_of(self))


def _new(shape: Shape, dtype: Any, name: str, placement: Union[None, str, int]) -> ndarray:
    kind = checked_dtype(dtype)
    lengths, size = lengths_of(shape, kind)
    address = _allocate(size, f"dsm.{name}: {kind} {lengths}", placement)
    return np.ndarray(lengths, kind, _core.memory(address, max(size, 1))).view(ndarray)


def zeros(shape: Shape, dtype: Any = float, home: Union[None, str, int] = None) -> ndarray:
    """An array on shared pages, with all elements 0. shape: a length or a tuple of them; dtype: any without Python objects.
    home: where its pages live: "block" (contiguous parts, PE 0's first), "cyclic" (page by page), a PE's number, or None: as
    DSM_HOME says, which is where they are first touched.

    Collective over all PEs, with the same arguments. Errors: ValueError on all PEs if they differ; MemoryError: the addresses
    of DSM_SPACE are exhausted. dsm_calloc, dsm_malloc_placed."""
    return _new(shape, dtype, "zeros", home)


def empty(shape: Shape, dtype: Any = float, home: Union[None, str, int] = None) -> ndarray:
    """As zeros: pages are zero before their first use, so nothing is saved."""
    return _new(shape, dtype, "empty", home)


def full(shape: Shape, value: Any, dtype: Any = None, home: Union[None, str, int] = None) -> ndarray:
    """As zeros, with all elements `value`, of which that of PE 0 counts. Ends with a barrier."""
    source = values_of(value, dtype)
    filled = fit(source, lengths_of(shape, source.dtype)[0])
    made = _new(shape, source.dtype, "full", home)
    if job.world.my_pe == 0:
        made[...] = filled
    barrier()
    return made


def array(values: Any, dtype: Any = None, home: Union[None, str, int] = None) -> ndarray:
    """As zeros, with `values`, which have one shape and dtype on all PEs, and of which those of PE 0 count. Ends with a
    barrier."""
    source = values_of(values, dtype)
    made = _new(source.shape, source.dtype, "array", home)
    if job.world.my_pe == 0:
        made[...] = source
    barrier()
    return made


def barrier() -> None:
    """Returns when all PEs have called it: each then sees what all wrote to shared pages before. It does not complete puts, as
    quoit.barrier does, which does not make writes to shared pages visible. dsm_barrier_all."""
    _need().dsm_barrier_all()


def _shared(values: Any, what: str) -> np.ndarray:
    if not isinstance(values, ndarray) or not values._is_placed():
        raise TypeError(f"{what} takes an array on shared pages: dsm.zeros, empty, full or array, or a view of one, not freed")
    return values


def fetch_add(values: ndarray, key: Any, value: int = 1) -> int:
    """Adds to one element of an array of int64 or uint64, atomically with respect to other fetch_add, and returns what it was.
    Plain reads see it after the next lock or barrier. IndexError, TypeError, OverflowError as a.on(pe).add. dsm_fetch_add."""
    dtype = _shared(values, "fetch_add").dtype
    if dtype.kind not in "iu" or dtype.itemsize != 8 or not dtype.isnative:
        raise TypeError(f"fetch_add is for int64 and uint64, but the array has dtype {dtype}")
    parts = key if isinstance(key, tuple) else (key,)
    element = values.view(np.ndarray)[(*parts, ...)] if is_basic(parts) else None
    if element is None or element.size != 1:
        raise ValueError("fetch_add adds to one element, but the key " +
                         ("is of index arrays" if element is None else f"selects {element.size}"))
    old = _need().dsm_fetch_add(address_of(element), int(convert(value, dtype).view(np.uint64)[()]))
    return int(np.uint64(old).astype(dtype))


def home(values: ndarray) -> int:
    """The PE on which the page of the first element lives; a page that no PE has touched gets its home by the question.
    dsm_home."""
    return _need().dsm_home(address_of(_shared(values, "home")))


def prefetch(values: ndarray) -> None:
    """Fetches the pages of a contiguous array or view, without a fault for each. dsm_prefetch."""
    if not _shared(values, "prefetch").flags.c_contiguous:
        raise ValueError("prefetch takes contiguous elements, but this view has gaps")
    _need().dsm_prefetch(address_of(values), values.nbytes)


class _Object:
    """A synchronisation object: 8 bytes on shared pages. Made and freed collectively."""

    def __init__(self) -> None:
        self._address = _allocate(8, f"dsm.{type(self).__name__}")

    def _at(self) -> int:
        job.need()
        if not self._address:
            raise ValueError(f"this {type(self).__name__} was freed")
        return self._address

    def free(self) -> None:
        """Gives its memory back. Collective; no PE uses it."""
        _free(self._at())
        self._address = 0


class Lock(_Object):
    """A mutex of the whole job, held by one thread of one PE. A context manager: held in the with statement. What was written under
    it is visible to the next holder. Many may be made. Collective, as zeros. dsm_lock_init."""

    def __init__(self) -> None:
        super().__init__()
        self._holder: Optional[int] = None

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Returns True when this thread holds the lock; with blocking=False at once, or after `timeout` seconds, False if it does
        not. RuntimeError: it holds it already. dsm_lock, dsm_trylock, dsm_timedlock."""
        address = self._at()
        if self._holder == threading.get_ident():
            raise RuntimeError("this thread holds the lock already")
        if not blocking and timeout != -1:
            raise ValueError("timeout is for blocking=True")
        limit_ns = nanoseconds(timeout, "-1") if timeout != -1 else 0
        status = 0
        if not blocking:
            status = _library.dsm_trylock(address)
        elif timeout == -1:
            _library.dsm_lock(address)
        else:
            status = _library.dsm_timedlock(address, limit_ns)
        if status == 0:
            self._holder = threading.get_ident()
        return status == 0

    def release(self) -> None:
        """Lets the next one have the lock. RuntimeError: this thread does not hold it. dsm_unlock."""
        address = self._at()
        if self._holder != threading.get_ident():
            raise RuntimeError("this thread does not hold the lock")
        self._holder = None
        _library.dsm_unlock(address)

    def free(self) -> None:
        """Collective; nobody holds the lock. RuntimeError: this PE does."""
        if self._holder is not None:
            raise RuntimeError("this PE holds the lock: release it before free")
        super().free()

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.release()


class Condition(_Object):
    """A condition variable of the whole job, as threading.Condition is one of a process: PEs wait until another one has changed what
    they look at under the lock. A context manager: its lock is held in the with statement. Woken once for each notify, and never
    without one.

        with ready:
            ready.wait_for(lambda: total[0] > 0)

    lock: a Lock, which several conditions may have in common; a new one unless given. Collective, as zeros; all PEs give the same
    lock. dsm_cond_init."""

    def __init__(self, lock: Optional[Lock] = None) -> None:
        if lock is not None and not isinstance(lock, Lock):
            raise TypeError(f"lock is of type {type(lock).__name__}, but must be a dsm.Lock, or None for a new one")
        self._is_own = lock is None
        self.lock = Lock() if lock is None else lock
        super().__init__()

    def _held(self) -> int:
        """The address; RuntimeError if the lock is not held."""
        address = self._at()
        if self.lock._holder != threading.get_ident():
            raise RuntimeError("this thread does not hold the lock of the condition")
        return address

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquires the lock: see Lock.acquire."""
        return self.lock.acquire(blocking, timeout)

    def release(self) -> None:
        """Releases the lock: see Lock.release."""
        self.lock.release()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Releases the lock, waits for a notify by any PE, and returns when this thread holds the lock again: True, or False if
        `timeout` seconds passed before it. RuntimeError: this thread does not hold the lock. dsm_cond_wait, dsm_cond_timedwait."""
        address, lock = self._held(), self.lock._at()
        limit_ns = None if timeout is None else nanoseconds(timeout, "None")
        self.lock._holder = None
        try:
            if limit_ns is None:
                _library.dsm_cond_wait(address, lock)
                return True
            return _library.dsm_cond_timedwait(address, lock, limit_ns) == 0
        finally:
            self.lock._holder = threading.get_ident()

    def wait_for(self, predicate: Callable[[], Any], timeout: Optional[float] = None) -> Any:
        """Waits until predicate(), which is called with the lock held, is true, and returns what it returned; also after `timeout`
        seconds."""
        self._held()
        end_ns = None if timeout is None else time.monotonic_ns() + nanoseconds(timeout, "None")
        result = predicate()
        while not result:
            left_ns = None if end_ns is None else end_ns - time.monotonic_ns()
            if left_ns is not None and left_ns <= 0:
                break
            self.wait(None if left_ns is None else left_ns / 1e9)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wakes one of the threads that wait, on whatever PE, or up to `n` of them; each goes on when it has the lock. RuntimeError:
        this thread does not hold the lock. dsm_cond_signal."""
        address, count = self._held(), integer(n, "n")
        if count < 0:
            raise ValueError(f"n is {count}, but must be at least 0")
        for _ in range(count):
            _library.dsm_cond_signal(address)

    def notify_all(self) -> None:
        """Wakes all that wait. RuntimeError: this thread does not hold the lock. dsm_cond_broadcast."""
        _library.dsm_cond_broadcast(self._held())

    def free(self) -> None:
        """Gives its memory back, and its own lock's. Collective; nobody waits. RuntimeError: this PE holds the lock."""
        if self._is_own and self._address:
            self.lock.free()
        super().free()

    def __enter__(self) -> "Condition":
        self.acquire()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.release()


class Flag(_Object):
    """A number that only grows, 0 at first, which PEs wait for: what a PE wrote before set() is visible after wait(). Collective,
    as zeros. dsm_flag_init."""

    def set(self, value: int) -> None:
        """Sets the flag, if it is lower, and wakes those who wait for as much. 0..2**64-1. dsm_flag_set."""
        _library.dsm_flag_set(self._at(), self._number(value))

    def get(self) -> int:
        """The flag now. dsm_flag_get."""
        return _library.dsm_flag_get(self._at())

    def wait(self, least: int) -> None:
        """Returns when the flag is at least `least`. dsm_flag_wait."""
        _library.dsm_flag_wait(self._at(), self._number(least))

    @staticmethod
    def _number(value: int) -> int:
        return int(convert(value, np.dtype(np.uint64)))
