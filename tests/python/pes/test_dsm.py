# SPDX-License-Identifier: BSD-3-Clause
"""Aim: arrays, locks and flags of quoit.dsm share memory as the module says. Method: all PEs write parts of the same arrays, or the
same element under a lock; after a barrier each compares all of it with what the parts give."""
import threading

import numpy as np
import pytest

import quoit
from model import LEFT, ME, PES, RECORD, RIGHT, data, refused, same
from quoit import dsm

ROUNDS = 10
HOMES = [None, "block", "cyclic", PES - 1]


@pytest.mark.parametrize("dtype", ["f8", "i1", "?", "c16", "S3", RECORD], ids=str)
def test_each_pe_writes_its_part(dtype):
    for home in HOMES:
        with dsm.zeros((3 * PES, 700), dtype, home) as a:
            same(a, np.zeros(a.shape, dtype))
            dsm.barrier()
            a[ME::PES] = data(ME, (3, 700), dtype)
            dsm.barrier()
            for pe in range(PES):
                same(a[pe::PES], data(pe, (3, 700), dtype))
            dsm.barrier()
            a[RIGHT::PES, ::7] = data(ME, (3, 100), dtype, 1)
            dsm.barrier()
            same(a[ME::PES, ::7], data(LEFT, (3, 100), dtype, 1))


def test_memory_is_zero_again():
    for home in HOMES:
        for _ in range(3):
            with dsm.empty(5000, np.uint8, home) as a:
                assert not a.any()
                dsm.barrier()
                a[ME::PES] = 0xFF
                dsm.barrier()
                assert (a == 0xFF).all()


def test_values_of_pe_0():
    with dsm.full((2, 3), ME + 5) as a, dsm.array(data(ME, 40)) as b, dsm.full(4, ME, np.float32) as c:
        same(a, np.full((2, 3), 5))
        same(b, data(0, 40))
        same(c, np.zeros(4, np.float32))


def test_home():
    with dsm.zeros((PES, 4096), np.uint8, "cyclic") as a:
        if dsm.home(a) == 0:  # where one host maps the same pages everywhere, each PE answers 0
            dsm.prefetch(a)
            assert {dsm.home(a[pe]) for pe in range(PES)} in ({0}, set(range(PES)))
        dsm.barrier()


def test_lock():
    lock, other = dsm.Lock(), dsm.Lock()
    with dsm.zeros(2, np.int64) as total:
        for _ in range(ROUNDS):
            with lock:
                total[0] += ME + 1
                refused(RuntimeError, "holds the lock already", lock.acquire)
            with other:
                total[1] += 1
        dsm.barrier()
        assert total.tolist() == [ROUNDS * PES * (PES + 1) // 2, ROUNDS * PES]
    refused(RuntimeError, "does not hold", lock.release)
    got = lock.acquire(blocking=False)
    assert quoit.sum(int(got)) == 1
    if not got:
        assert not lock.acquire(timeout=0.01)
    refused(ValueError, "at least 0", other.acquire, True, -2)
    refused(ValueError, "for blocking=True", other.acquire, False, 1)
    dsm.barrier()
    if got:
        refused(RuntimeError, "before free", lock.free)
        lock.release()
    lock.free()
    other.free()
    refused(ValueError, "Lock was freed", other.acquire)


def test_lock_between_threads():
    lock = dsm.Lock()
    with dsm.zeros(1, np.int64) as total:
        def add():
            for _ in range(ROUNDS):
                with lock:
                    total[0] += 1
        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        dsm.barrier()
        assert total[0] == 2 * ROUNDS * PES
    lock.free()


def test_flag():
    flag = dsm.Flag()
    with dsm.zeros(PES) as a:
        flag.wait(ME)  # one PE after the other
        a[ME] = a[:ME].sum() + 1
        flag.set(ME + 1)
        flag.wait(PES)
        same(a, np.array([2.0 ** max(pe, 0) for pe in range(PES)]))
        assert flag.get() == PES
        dsm.barrier()
    refused(OverflowError, "holds 0..", flag.set, -1)
    flag.free()


def test_fetch_add():
    with dsm.zeros((2, 2), np.int64) as a:
        mine = [dsm.fetch_add(a, (1, 0)) for _ in range(ROUNDS)]
        assert mine == sorted(set(mine))
        same(np.sort(quoit.concatenate(mine)), np.arange(ROUNDS * PES))
        dsm.fetch_add(a, (0, -1), -3)
        dsm.barrier()
        same(a, np.array([[0, -3 * PES], [ROUNDS * PES, 0]]))
        dsm.barrier()
        refused(IndexError, "out of bounds", dsm.fetch_add, a, (2, 0))
        refused(ValueError, "selects 2", dsm.fetch_add, a, 0)
        refused(TypeError, "would lose", dsm.fetch_add, a, (0, 0), 1.5)
    with dsm.zeros(2) as f:
        refused(TypeError, "int64 and uint64", dsm.fetch_add, f, 0)


def test_copies_are_ordinary_arrays():
    with dsm.array(data(0, (4, 5))) as a:
        for made in (a + 1, a.copy(), np.concatenate([a, a]), np.stack([a]), np.zeros_like(a), np.sort(a), np.where(a > 0, a, 0)):
            assert type(made) is np.ndarray
        assert type(a[1:]) is dsm.ndarray and type(a.sum()) is np.float64
        assert all(type(part) is dsm.ndarray for part in np.split(a, 2))
        same(quoit.sum(a), data(0, (4, 5)) * PES if PES < 3 else sum([data(0, (4, 5))] * PES))
        dsm.barrier()


def test_wrong_usage():
    refused(TypeError, "Python objects", dsm.zeros, 3, object)
    refused(ValueError, "must be 'block', 'cyclic'", dsm.zeros, 3, float, "here")
    refused(ValueError, f"the job has {PES} PEs?", dsm.zeros, 3, float, PES)
    refused(TypeError, "array on shared pages", dsm.home, np.zeros(3))
    if PES > 1:
        refused(ValueError, r"PE 0: dsm.zeros: float64 \(0,\)", dsm.zeros, ME)
    a = dsm.zeros((4, 4))
    refused(ValueError, "gaps", dsm.prefetch, a[:, 1])
    refused(ValueError, "view or a copy", a[1:].free)
    a.free()
    refused(ValueError, "freed", a.free)
    refused(TypeError, "not freed", dsm.prefetch, a)


def test_condition():
    """A queue of one place: each PE puts numbers in and takes as many out; none is lost, and every sleep ends by a notify."""
    lock = dsm.Lock()
    room, there = dsm.Condition(lock), dsm.Condition(lock)
    taken = []
    with dsm.zeros(2, np.int64) as place:  # the number, and whether it is there
        def put():
            for i in range(ROUNDS):
                with room:
                    assert room.wait_for(lambda: place[1] == 0)
                    place[:] = ME * ROUNDS + i, 1
                    there.notify()
        thread = threading.Thread(target=put)
        thread.start()
        for _ in range(ROUNDS):
            with there:
                while place[1] == 0:
                    assert there.wait()
                taken.append(int(place[0]))
                place[1] = 0
                room.notify()
        thread.join()
        same(np.sort(quoit.concatenate(taken)), np.arange(ROUNDS * PES))
    there.free()
    room.free()
    lock.free()


def test_condition_of_all():
    """The last PE to come wakes all others; what it wrote is visible to them."""
    turn = dsm.Condition()
    with dsm.zeros(2, np.int64) as come:
        for number in range(1, 6):
            with turn:
                come[0] += 1
                if come[0] == number * PES:
                    come[1] = number
                    turn.notify_all()
                else:
                    assert turn.wait_for(lambda: come[1] >= number)
                assert come[1] >= number
        dsm.barrier()
    for pe in range(PES):  # one after the other, as each one's notify is all others'
        dsm.barrier()
        if pe == ME:
            condition_of_one(turn)
    for each in (turn.wait, turn.notify, turn.notify_all, lambda: turn.wait_for(bool)):
        refused(RuntimeError, "does not hold the lock of the condition", each)
    refused(TypeError, "must be a dsm.Lock, or None", dsm.Condition, threading.Lock())
    dsm.barrier()
    turn.free()
    refused(ValueError, "was freed", turn.acquire)


def condition_of_one(turn):
    with turn:
        assert not turn.wait(timeout=0.01) and not turn.wait_for(lambda: False, timeout=0.01)
        assert turn.wait_for(lambda: "found", 0) == "found"
        turn.notify(3)  # nobody waits: nothing is kept for later
        assert not turn.wait(0)
        refused(TypeError, "timeout is 'x', but must be a number of seconds .* or None for no limit", turn.wait, "x")
        refused(ValueError, "n is -1, but must be at least 0", turn.notify, -1)
        refused(RuntimeError, "before free", turn.free)
