# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls, as somebody new to the package writes them: each is an exception that says what is wrong and what is allowed, in
the words of the package, and changes nothing."""
import re

import numpy as np
import pytest

import quoit
from quoit import dsm

from model import PES

INNER = re.compile(r"int\(\) argument|not supported between|broadcast shape|cannot be interpreted|invalid literal|unhashable|"
                   r"sequence\.|C ssize_t|ctypes|argument \d+:|convert float|Cannot interpret|not understood|NoneType' object|_core")
TAKES = r"but the array takes integers -9223372036854775808\.\.9223372036854775807"
LOSES = "would lose something as the array's int64: it takes integers"
SHAPE = "but must be an integer or a tuple of integers"
KEY = "but must be of integers, slices"
OBJECTS = "Python objects"
PE = "pe is .*, but must be an integer"

# b: int64, 8; a: float64, (4, 3); u: uint8; t: bytes of 3; s: a signal; r: b on the last PE; d, lock, flag: of quoit.dsm.
VALUES = [
    ("b[...] = None", TypeError, f"value is None, {TAKES}"), ("b[0] = 'x'", TypeError, f"value is 'x', {TAKES}"),
    ("b[0:3] = [1, 2]", ValueError, r"shape \(2,\) into shape \(3,\)"), ("d[...] = None", TypeError, f"value is None, {TAKES}"),
    ("r[...] = None", TypeError, f"value is None, {TAKES}"), ("r[0] = 'x'", TypeError, f"value is 'x', {TAKES}"),
    ("r[0] = .5", TypeError, LOSES), ("r[0:2] = [1.5, 2]", TypeError, LOSES), ("r[0] = 1j", TypeError, LOSES),
    ("r[0:2] = [1, 2, 3]", ValueError, r"value has shape \(3,\), but the slice has \(2,\)"),
    ("r[0] = [1, 2]", ValueError, r"value has shape \(2,\), but the key selects one element"),
    ("r[0:2] = [[1, 2], [3]]", (ValueError, TypeError), "whose parts differ in length|but the array takes"),
    ("r[0] = 1 << 70", OverflowError, "value is 1180591620717411303424, but the array's int64 holds"),
    ("r[0:2] = np.array([1, None], object)", TypeError, TAKES), ("r[0] = object()", TypeError, TAKES),
    ("r[0:2] = np.array(['1', '2'])", TypeError, TAKES), ("r[[0, 1]] = None", TypeError, TAKES),
    ("r[[0, 1]] = [1, 2, 3]", ValueError, r"value has shape \(3,\)"), ("r.put_nbi(0, None)", TypeError, TAKES),
    ("u.on(0)[0] = 256", OverflowError, r"value is 256, but uint8 holds 0\.\.255"),
    ("u.on(0)[:2] = [1, -1]", OverflowError, r"value has elements -1\.\.1, but uint8 holds 0\.\.255"),
    ("a.on(0)[0] = '3'", TypeError, "value is '3', but the array takes numbers"),
    ("a.on(0)[...] = None", TypeError, "value is None, but the array takes numbers"),
    ("t.on(0)[0] = b'abcd'", TypeError, "it takes bytes of up to 3"), ("t.on(0)[0] = 5", TypeError, "takes bytes of up to 3"),
    ("del r[0]", TypeError, "cannot be deleted"), ("list(r)", TypeError, "a get for each element"),
]
KEYS = [
    ("r[9] = 1", IndexError, "index 9 is out of bounds for axis 0 with size 8"), ("r[9]", IndexError, "index 9 is out of bounds"),
    ("r[1.5]", IndexError, f"key holds 1.5, {KEY}"), ("r['a'] = 1", IndexError, f"key holds 'a', {KEY}"),
    ("r[[0.5]]", IndexError, rf"key holds \[0.5\], {KEY}"), ("r[{}]", IndexError, KEY), ("r[0, 0]", IndexError, "too many indices"),
    ("r[[0, 9]]", IndexError, r"indices are 0\.\.9, but the array has 8"), ("r[::0]", ValueError, "slice step cannot be zero"),
    ("r[[True, False]]", IndexError, "dimension is 8 but"), ("r.get_nbi('x')", IndexError, KEY), ("a.on(0)[4]", IndexError, "index 4"),
]
ATOMICS = [
    ("r.add(0, .5)", TypeError, LOSES), ("r.add(0, None)", TypeError, TAKES), ("r.add(0, 'x')", TypeError, TAKES),
    ("r.add(0)", TypeError, "missing 1 required positional argument: 'value'"), ("r.add(9, 1)", IndexError, "index 9"),
    ("r.add(1.5, 1)", IndexError, KEY), ("r.compare_swap(0, None, 1)", TypeError, TAKES), ("r.fetch('x')", IndexError, KEY),
    ("a.on(0).bitwise_or(0, 1)", TypeError, "is an atomic of int32, int64, uint32, uint64, but the array has dtype float64"),
    ("u.on(0).add(0, 1)", TypeError, "but the array has dtype uint8"),
    ("r.fetch_add(0, [1, 2])", ValueError, "but the key selects one element"),
    ("s.on(0).signal('x')", TypeError, "value is 'x', but the array takes integers 0"),
    ("s.on(0).signal(-1)", OverflowError, "value is -1, but uint64 holds 0"),
    ("s.on(0).signal(1, 'mul')", ValueError, "op is 'mul', but must be one of 'add', 'set'"),
    ("s.on(0).signal(1, [])", ValueError, r"op is \[\], but must be one of"), ("b.on(0).signal()", TypeError, "a signal is one"),
    ("r.put_signal(slice(None), 1, b)", TypeError, "a signal is one"), ("b.signal_fetch()", TypeError, "a signal is one"),
    ("b.wait('=>', 1)", ValueError, "comparison is '=>', but must be one of"), ("b.wait([], 1)", ValueError, "comparison is"),
    ("b.wait('==', .5)", TypeError, LOSES), ("b.wait('==', None)", TypeError, TAKES), ("b.test('==', 'x')", TypeError, TAKES),
    ("a.wait('==', 1)", TypeError, "but the array has dtype float64"), ("b[::2].wait('==', 0)", ValueError, "this view has gaps"),
]
ARRAYS = [
    ("quoit.signal('a')", TypeError, "count is 'a', but must be an integer"), ("quoit.signal(1.5)", TypeError, "count is 1.5"),
    ("quoit.signal(None)", TypeError, "count is None, but must be an integer"), ("quoit.signal(-1)", ValueError, "shape is -1"),
    ("quoit.zeros(-3)", ValueError, "shape is -3, but a length must be at least 0"), ("quoit.zeros('a')", TypeError, SHAPE),
    ("quoit.zeros((2, -3))", ValueError, r"shape is \(2, -3\), but a length"), ("quoit.zeros((2, 2.5))", TypeError, SHAPE),
    ("quoit.zeros(None)", TypeError, SHAPE), ("quoit.zeros(True)", TypeError, SHAPE), ("quoit.zeros()", TypeError, "'shape'"),
    ("quoit.zeros(1 << 62)", MemoryError, "which no memory has"), ("quoit.zeros([1] * 70)", ValueError, "at most 32"),
    ("quoit.zeros(3, 'nope')", TypeError, "dtype is 'nope', but must be one of numpy's"), ("quoit.zeros(3, object)", TypeError, OBJECTS),
    ("quoit.zeros(3, 5)", TypeError, "dtype is 5, but must be one of numpy's"), ("quoit.full(3, None)", TypeError, OBJECTS),
    ("quoit.full(3, 'x', int)", TypeError, TAKES), ("quoit.full(3, 1.5, int)", TypeError, LOSES),
    ("quoit.full(3, [1, 2])", ValueError, r"value has shape \(2,\)"), ("quoit.array([1.5], int)", TypeError, LOSES),
    ("quoit.array([[1, 2], [3]])", (ValueError, TypeError), "whose parts differ in length|Python objects"),
    ("quoit.array([object()])", TypeError, OBJECTS), ("quoit.array(['a'], float)", TypeError, "but the array takes numbers"),
    ("gone.on(0)", ValueError, "allocated at .*, was freed"), ("gone.free()", ValueError, "it was freed"),
    ("kept[0]", ValueError, "float64 .*, allocated at .*test_wrong.py:[0-9]+, was freed"),
    ("kept[0:2] = 1", ValueError, "was freed"), ("b[1:].free()", ValueError, "free the whole"),
]
PES_AND_TEAMS = [
    ("b.on(PES)", ValueError, rf"pe is {PES}, but the job has {PES} PEs? \((0\.\.)?{PES - 1}\)"), ("b.on('0')", TypeError, PE),
    ("b.on(-1)", ValueError, "pe is -1, but the job has"), ("b.on(0.0)", TypeError, PE), ("b.on(None)", TypeError, PE),
    ("b.on([0])", TypeError, PE), ("b.local('x')", TypeError, PE), ("c.on(b, 1)", ValueError, r"the context's team has 1 PE \(0\)"),
    ("c.on(np.zeros(3), 0)", TypeError, "must be a symmetric array"), ("quoit.quiet([None])", TypeError, PE),
    ("world.split(0, 'a')", TypeError, "stride is 'a', but must be an integer"), ("world.split(PES)", ValueError, "but the team has"),
    ("world.split(0, 1, 'a')", TypeError, "size is 'a', but must be an integer"), ("world.split_2d('a')", TypeError, "xrange is 'a'"),
    ("quoit.Context('fast')", ValueError, "'fast', but must be one of 'private', 'serialized', 'nostore'"),
    ("quoit.Context(['private'])", ValueError, "but must be one of"), ("quoit.global_exit('x')", TypeError, "status is 'x'"),
    ("quoit.sum(b, team='world')", TypeError, r"but must be a Team: quoit.world\(\)"), ("quoit.sum(None)", TypeError, OBJECTS),
    ("quoit.sum('abc')", TypeError, "sum takes bool, integers and floats"), ("quoit.all('x')", TypeError, "all takes numbers"),
    ("quoit.sum(b, out=[0] * 8)", TypeError, "out is of type list, but must be an array"),
    ("quoit.any(None)", TypeError, OBJECTS), ("quoit.broadcast(1, root='a')", TypeError, PE),
    ("quoit.alltoall(np.zeros(PES), axis='x')", TypeError, "axis is 'x', but must be an integer"),
    ("quoit.concatenate(5)", ValueError, "but this is a number"),
]
SHARED_PAGES = [
    ("dsm.zeros(-3)", ValueError, "a length must be at least 0"), ("dsm.zeros('a')", TypeError, SHAPE),
    ("dsm.zeros(3, home='here')", ValueError, "must be 'block', 'cyclic'"), ("dsm.full(3, 1.5, int)", TypeError, LOSES),
    ("dsm.array([1, None])", TypeError, OBJECTS), ("dsm.fetch_add(d, 9)", IndexError, "index 9"),
    ("dsm.fetch_add(d, 'x')", IndexError, KEY), ("dsm.fetch_add(d, 0, None)", TypeError, TAKES),
    ("dsm.fetch_add(d, [0], 1)", ValueError, "the key is of index arrays"), ("dsm.fetch_add(b, 0)", TypeError, "on shared pages"),
    ("lock.acquire(timeout='x')", TypeError, "timeout is 'x', but must be a number of seconds"),
    ("lock.acquire(timeout=None)", TypeError, "timeout is None"), ("lock.release()", RuntimeError, "does not hold"),
    ("lock.acquire(timeout=float('nan'))", ValueError, "timeout is nan"), ("lock.acquire(timeout=-2)", ValueError, "timeout is -2"),
    ("flag.set('x')", TypeError, "takes integers 0"), ("flag.wait(None)", TypeError, "takes integers 0"),
    ("flag.set(.5)", TypeError, "would lose something as the array's uint64"),
]


def test_another_collective(monkeypatch):
    """What PEs that are in another collective leave in the workspace is not shown."""
    from quoit import _core, _job
    fcollect, calls = _core.fcollect, []

    def disturbed(team, dest, source, size):
        fcollect(team, dest, source, size)
        calls.append(size)
        if len(calls) == 2:
            _job.job.work.dest[:size] = 0xd4

    if PES == 1:
        return
    monkeypatch.setattr(_core, "fcollect", disturbed)
    with pytest.raises(ValueError, match=r"PEs are in different collective calls, this one in sum: float64 .*check=True") as raised:
        quoit.sum(np.ones(4 + (quoit.my_pe() == 0)))
    assert str(raised.value).isascii()
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"PE 0: sum: float64 \(5,\); PEs? 1.*: sum: float64 \(4,\)"):
        quoit.sum(np.ones(4 + (quoit.my_pe() == 0)))


def test_wrong_calls():
    world = quoit.world()
    alone = world.split(0, 1, 1) if PES > 1 else world
    a, b, u = quoit.zeros((4, 3)), quoit.array(np.arange(8)), quoit.zeros(4, np.uint8)
    t, s, gone = quoit.zeros(3, "S3"), quoit.signal(), quoit.zeros(3)
    d, lock, flag = dsm.array(np.arange(4)), dsm.Lock(), dsm.Flag()
    kept = gone.on(0)
    gone.free()
    r = b.on(PES - 1)
    c = alone.context() if alone else None
    names = {**globals(), **locals()}
    for call, kind, text in VALUES + KEYS + ATOMICS + ARRAYS + PES_AND_TEAMS + SHARED_PAGES:
        if call.startswith("c.") and c is None:
            continue
        with pytest.raises(kind, match=text) as raised:
            exec(compile(call, call, "exec"), names)
        assert not INNER.search(str(raised.value)), (call, raised.value)
    quoit.barrier()
    assert (b == np.arange(8)).all() and not a.any() and not u.any() and (t == b"").all() and s.signal_fetch() == 0
    assert (d == np.arange(4)).all() and flag.get() == 0
    if c is not None:
        c.destroy()
    dsm.barrier()
    for each in (d, lock, flag, s, t, u, b, a):
        each.free()
    if alone is not world:
        alone.destroy()
