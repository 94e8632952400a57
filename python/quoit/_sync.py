# SPDX-License-Identifier: BSD-3-Clause
"""Signals and locks."""
from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._array import ndarray, zeros
from ._check import integer
from ._remote import address_of


def signal(count: int = 1) -> ndarray:
    """Signals, initially 0: a symmetric array of uint64, collective as zeros. Updated by r.put_signal and s.on(pe).signal(),
    awaited by s.wait(">=", 1); of several, s[i:i+1] is one. Specification 9.8."""
    return zeros(integer(count, "count"), np.uint64)


class Lock:
    """One mutex for the whole job, granted in the order of request (specification 9.13). A context manager: held in the with
    statement. Made and freed collectively."""

    def __init__(self) -> None:
        self._word = zeros(1, np.int64)
        self._is_held = False

    def acquire(self, blocking: bool = True) -> bool:
        """Returns when this PE holds the lock; with blocking=False at once, and whether it does. RuntimeError if it holds it
        already. shmem_set_lock, shmem_test_lock."""
        if self._is_held:
            raise RuntimeError("this PE holds the lock already")
        self._word._block()
        if blocking:
            _core.set_lock(address_of(self._word))
            self._is_held = True
        else:
            self._is_held = _core.test_lock(address_of(self._word))
        return self._is_held

    def release(self) -> None:
        """Completes this PE's operations, and lets the next PE have the lock. RuntimeError if this PE does not hold it.
        shmem_clear_lock."""
        if not self._is_held:
            raise RuntimeError("this PE does not hold the lock")
        self._word._block()
        self._is_held = False
        _core.clear_lock(address_of(self._word))

    def free(self) -> None:
        """Collective; no PE holds the lock."""
        if self._is_held:
            raise RuntimeError("this PE holds the lock: release it before free")
        self._word.free()

    def __enter__(self) -> "Lock":
        self.acquire()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.release()
