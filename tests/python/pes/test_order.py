# SPDX-License-Identifier: BSD-3-Clause
"""Aim: atomics, signals, waits, locks, teams and contexts of the package quoit. Method: all PEs work on the same elements at once;
the results are what any order of atomic operations gives."""
import os
import re
import threading

import numpy as np
import pytest

import quoit
from model import LEFT, ME, PES, RIGHT, data, refused, same, symmetric

ROUNDS = 20


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4", "u8", "f4", "f8"])
def test_add(dtype):
    with symmetric(np.zeros(4, dtype)) as a:
        for _ in range(ROUNDS):
            for pe in range(PES):
                a.on(pe).add(1, ME + 1)
                a.on(pe).add([2, 3, 3], [1, 2, 3])  # twice to one element
        quoit.barrier()
        total = PES * (PES + 1) // 2
        same(a, np.array([0, ROUNDS * total, ROUNDS * PES, 5 * ROUNDS * PES], dtype))


@pytest.mark.parametrize("dtype", ["i8", "u4", "f8"])
def test_fetch_add_gives_each_number_once(dtype):
    with symmetric(np.zeros(1, dtype)) as a:
        mine = np.array([a.on(0).fetch_add(0, 1) for _ in range(ROUNDS)])
        assert (np.diff(mine.astype(float)) > 0).all()
        every = np.sort(quoit.concatenate(mine))
        same(every, np.arange(ROUNDS * PES).astype(dtype))


def test_other_atomics():
    with symmetric(np.zeros((2, 3), np.int64)) as a:
        winners = quoit.sum(int(a.on(0).compare_swap((1, 2), 0, ME + 1) == 0))
        assert winners == 1
        a.on(RIGHT).set((0, 0), -5)
        quoit.barrier()
        assert a.on(RIGHT).fetch((0, 0)) == -5 and a[0, 0] == -5
        quoit.barrier()
        assert a.on(RIGHT).swap((0, 0), ME) == -5
        quoit.barrier()
        assert a[0, 0] == LEFT
        same(a.on(RIGHT).fetch((0, slice(1, None))), np.zeros(2, np.int64))
        quoit.barrier()
        bit = 1 << ME
        for pe in range(PES):
            a.on(pe).bitwise_or((0, 1), bit)
            assert not a.on(pe).fetch_xor((0, 2), bit) & bit
        quoit.barrier()
        assert a[0, 1] == a[0, 2] == (1 << PES) - 1
        quoit.barrier()
        for pe in range(PES):
            assert a.on(pe).fetch_and((0, 1), ~bit) & bit
            a.on(pe).bitwise_xor((0, 2), bit)
            assert not a.on(pe).fetch_or((0, 2), bit) & bit
            a.on(pe).bitwise_and((0, 2), ~bit)
        quoit.barrier()
        assert a[0, 1] == a[0, 2] == 0
    with symmetric(np.full(2, 1.5)) as f:
        assert f.on(RIGHT).swap(0, ME) == 1.5 and f.on(RIGHT).fetch(1) == 1.5
        f.on(RIGHT).set(1, 2.5)
        quoit.barrier()
        same(f, np.array([LEFT, 2.5]))


def test_wrong_atomics():
    with symmetric(np.zeros(2)) as f, symmetric(np.zeros(2, np.int16)) as h:
        refused(TypeError, "of int32, int64, uint32, uint64, but", f.on(0).compare_swap, 0, 1, 2)
        refused(TypeError, "float32, float64, but the array has dtype int16", h.on(0).add, 0, 1)
        refused(IndexError, "size 2", f.on(0).add, 2, 1)
        refused(TypeError, "would lose", f.on(0).add, 0, 1j)


def test_signals():
    with symmetric(np.zeros(100)) as a, quoit.signal(2) as s:
        a.on(RIGHT).put_signal(slice(0, 50), data(ME, 50), s[0:1])
        s[0:1].wait(">=", 1)
        same(a[:50], data(LEFT, 50))
        a.on(RIGHT).put_signal(slice(99, 49, -1), data(ME, 50, seed=1), s[1:], 5, "set")
        s[1:].wait(">=", 5)
        same(a[99:49:-1], data(LEFT, 50, seed=1))
        quoit.barrier()
        sent = a.on(RIGHT).put_signal_nbi(slice(10, 20), data(ME, 10, seed=2), s[:1])
        s[:1].wait("==", 2)
        same(a[10:20], data(LEFT, 10, seed=2))
        sent.result()
        assert sent.done()
        s[1:].on(RIGHT).signal(2)
        s[1:].wait("==", 7)
        assert s[1:].signal_fetch() == 7 and s[:1].signal_fetch() == 2
        quoit.barrier()
        refused(TypeError, "one element of a symmetric array of uint64", a.on(0).put_signal, 0, 1, s)
        refused(ValueError, "one of 'add', 'set'", a.on(0).put_signal, 0, 1, s[:1], 1, "mul")
        refused(TypeError, "one element", a.on(0).signal)
        refused(TypeError, "one element", s.signal_fetch)
        for wrong, kind in ((-1, OverflowError), (2 ** 64, OverflowError), (1.5, TypeError)):
            refused(kind, "holds .?0|would lose", s[:1].on(0).signal, wrong)
            refused(kind, "holds .?0|would lose", a.on(0).put_signal, 0, 1, s[:1], wrong)
        quoit.barrier()
        assert s.tolist() == [2, 7]


@pytest.mark.parametrize("dtype", ["i2", "u2", "i4", "u4", "i8", "u8"])
def test_waits(dtype):
    with symmetric(np.zeros(PES + 2, dtype)) as a:
        assert a.test("==", 0) and not a.test("!=", 0)
        quoit.barrier()
        a.on(RIGHT)[ME] = ME + 3
        quoit.quiet()
        assert a.wait_any(">", 0) == LEFT
        assert a.wait_some(">=", 3) == [LEFT]
        a[LEFT:LEFT + 1].wait("==", LEFT + 3)
        a[PES:].wait("<=", 0)
        quoit.barrier()
        refused(ValueError, "must be one of '=='", a.wait, "=>", 1)
        refused(OverflowError, "holds", a.wait, "==", 2 ** 65)
        refused(ValueError, "gaps", a[::2].wait, "==", 0)
        refused(ValueError, "no element to wait for", a[:0].wait_any, "==", 0)
    with symmetric(np.zeros(2)) as f:
        refused(TypeError, "float64", f.wait, "==", 0)


def test_waits_for_a_value_each():
    with symmetric(np.zeros((2, PES), np.int32)) as a:
        wanted = np.arange(2 * PES, dtype=np.int32).reshape(2, PES) + 1
        for pe in range(PES):
            a.on(pe)[0, ME] = ME + 1
        quoit.quiet()
        a[0].wait("==", wanted[0])
        assert not a.test("!=", wanted)
        quoit.barrier()
        for pe in range(PES):
            a.on(pe)[1, ME] = PES + ME + 1
        quoit.quiet(range(PES))
        a.wait("==", wanted)
        assert a.test("==", wanted) and a.test_any("==", wanted) in range(2 * PES)
        assert a.test_some(">=", wanted) == list(range(2 * PES))
        assert a.test_any("<", wanted) is None and a.test_some("<", wanted) == []
        quoit.barrier()
        refused(ValueError, r"value has shape \(3,\)", a[0, :1].wait, "==", [1, 2, 3])


def test_waits_skip():
    with symmetric(np.zeros(PES + 1, np.uint64)) as a:
        seen = np.zeros(PES + 1, bool)
        seen[PES] = True
        for pe in range(PES):
            a.on(pe)[ME] = 1
        while not seen.all():
            index = a.wait_any("!=", 0, skip=seen)
            assert not seen[index] and a[index] == 1
            seen[index] = True
        refused(ValueError, "all are skipped", a.wait_any, "!=", 0, seen)
        refused(ValueError, "all are skipped", a.wait_some, "!=", 0, seen)
        seen[:] = False
        seen[PES] = True
        assert a.wait_some("==", 1, seen) == list(range(PES))
        a.wait("==", 1, skip=seen)
        assert a.test("==", 1, skip=seen) and not a.test("==", 1)
        assert a.test_any("==", 0, skip=seen) is None and a.test_some("==", 1, ~seen) == []
        refused(ValueError, r"must be bool \(", a.wait, "==", 1, [True])
        quoit.barrier()


@pytest.mark.parametrize("dtype", ["i4", "u8", "f8"])
def test_old_values_of_several_elements(dtype):
    values = np.arange(12).astype(dtype).reshape(3, 4)
    with symmetric(values + 100 * ME) as a:
        theirs = values + 100 * RIGHT
        r = a.on(RIGHT)
        same(r.fetch(...), theirs)
        same(r.fetch_add((slice(None), [1, 3]), values[:, :2]), theirs[:, [1, 3]])
        theirs[:, [1, 3]] += values[:, :2]
        same(r.swap(1, values[2]), theirs[1])
        theirs[1] = values[2]
        if dtype != "f8":
            same(r.fetch_xor(2, 5), theirs[2])
            theirs[2] ^= np.array(5, dtype)
            same(r.compare_swap(..., theirs[:, ::-1], values), theirs)
            theirs = np.where(theirs == theirs[:, ::-1], values, theirs)
        same(r[...], theirs)
        quoit.barrier()


def test_threads_run_while_one_waits():
    with symmetric(np.zeros(1, np.int64)) as a:
        threading.Timer(0.01, lambda: a.on(ME).set(0, 1)).start()
        a.wait("==", 1)  # does not end unless the other thread gets the interpreter
        quoit.barrier()


def test_lock():
    lock = quoit.Lock()
    with symmetric(np.zeros(1, np.int64)) as a:
        for _ in range(ROUNDS):
            with lock:
                a.on(0)[0] = a.on(0)[0] + 1
                refused(RuntimeError, "holds the lock already", lock.acquire)
        quoit.barrier()
        assert a.on(0)[0] == ROUNDS * PES
        refused(RuntimeError, "does not hold", lock.release)
        got = quoit.sum(int(lock.acquire(blocking=False)))
        assert got == 1
        if lock._is_held:
            lock.release()
    lock.free()


def test_teams():
    with quoit.world().split(start=0, stride=2) as even:
        assert bool(even) == (ME % 2 == 0)
        if even:
            assert (even.my_pe, even.n_pes) == (ME // 2, (PES + 1) // 2)
            assert even.translate(even.my_pe) == ME
            assert quoit.world().translate(ME, even) == even.my_pe
            assert quoit.sum(ME, team=even) == sum(range(0, PES, 2))
            same(quoit.allgather(data(ME, 3), team=even), np.stack([data(pe, 3) for pe in range(0, PES, 2)]))
            refused(ValueError, "the team has", quoit.broadcast, 1, even.n_pes, None, even)
            even.sync()
        else:
            refused(ValueError, "not in the team", even.sync)
            refused(ValueError, "not in the team", quoit.sum, 1, None, even)
    refused(ValueError, "at least 1", quoit.world().split, 0, 0)
    refused(ValueError, f"there are 1..{PES} PEs", quoit.world().split, 0, 1, PES + 1)
    refused(ValueError, "cannot be destroyed", quoit.world().destroy)
    assert quoit.shared().n_pes >= 1
    if ME % 2 == 0:
        refused(ValueError, "destroyed", even.sync)


def test_split_2d():
    for xrange in range(1, PES + 1):
        x, y = quoit.world().split_2d(xrange)
        with x, y:
            row, column = divmod(ME, xrange)
            assert quoit.allgather(ME, team=x).tolist() == list(range(row * xrange, min(row * xrange + xrange, PES)))
            assert quoit.allgather(ME, team=y).tolist() == list(range(column, PES, xrange))
            assert (x.my_pe, y.my_pe) == (column, row)
            with symmetric(data(ME, 5)) as a:
                for pe in range(x.n_pes):
                    there = a.local(pe, x)
                    assert there is None or (there == data(row * xrange + pe, 5)).all()
    refused(ValueError, f"has 1..{PES} PEs", quoit.world().split_2d, PES + 1)
    refused(ValueError, f"has 1..{PES} PEs", quoit.world().split_2d, 0)
    if PES > 1:
        refused(ValueError, r"PE 0: split_2d\(xrange=1\)", quoit.world().split_2d, min(ME, 1) + 1)


def test_info():
    quoit.sync()
    found = quoit.info()
    assert found.version == quoit.__version__ and re.fullmatch(r"\d+\.\d+\.\d+\S*", found.version)
    assert found.specification == (1, 6) and os.path.basename(found.library).startswith("libshmem.so")
    assert quoit.is_initialized()


def test_quiet_of_some_pes():
    with symmetric(np.zeros(PES)) as a:
        future = a.on(RIGHT).put_nbi(ME, 1.0)
        quoit.quiet(RIGHT)
        assert a.on(RIGHT)[ME] == 1 and not future.done()
        a.on(LEFT).put_nbi(ME, 2.0)
        quoit.quiet([LEFT, RIGHT])
        assert a.on(LEFT)[ME] == 2
        quoit.quiet()
        assert future.done()
        refused(ValueError, f"has {PES} PEs?", quoit.quiet, [0, PES])
        refused(TypeError, "must be an integer", quoit.quiet, "all")
        quoit.barrier()


def test_contexts():
    with symmetric(np.zeros(4)) as a:
        with quoit.Context() as c, quoit.world().context("serialized") as other:
            c.on(a, RIGHT)[0] = ME
            other.on(a, RIGHT)[1:3] = ME
            future = c.on(a, RIGHT).put_nbi(3, ME)
            c.fence()
            other.quiet()
            assert not future.done()
            c.quiet()
            assert future.done()
            kept = c.on(a, RIGHT)
            refused(ValueError, "the context's team has", c.on, a, PES)
        for call in (lambda: kept[0], lambda: kept.__setitem__(0, 1.0), c.quiet, lambda: c.on(a, 0)):
            refused(ValueError, "context was destroyed", call)
        quoit.barrier()
        same(a, np.full(4, float(LEFT)))
    refused(ValueError, "'private', 'serialized', 'nostore'", quoit.Context, "fast")
    refused(TypeError, "must be a symmetric array", c.on, np.zeros(3), 0)
    for call in (lambda: quoit.Context(team=0), lambda: quoit.sum(1, team="all"), lambda: quoit.alltoall([1], team=1),
                 lambda: quoit.world().translate(0, 1)):
        refused(TypeError, "must be a Team: quoit.world", call)
