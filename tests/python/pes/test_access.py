# SPDX-License-Identifier: BSD-3-Clause
"""Aim: what a.on(pe)[key] reads and writes is what numpy does with the same key on the same array. Method: each PE writes to its
right neighbour, and compares what its left one wrote into it, byte by byte, with numpy's result for that PE's data."""
import numpy as np
import pytest

import quoit
from model import LEFT, ME, PES, RECORD, RIGHT, data, refused, same, symmetric

SIMPLE = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]
OTHERS = ["?", "f2", "f16", "c8", "c16", "S3", "U2", ">i4", ">f8", "M8[ns]", RECORD]
SHAPE = (5, 6, 7)
KEYS = [
    (), 0, -1, (1, 2, 3), (-5, 0, -7), ..., (..., 1), (1, ...), slice(None), slice(1, 4), slice(None, None, 2), slice(None, None, -1),
    (slice(1, 4), slice(2, 5), slice(3, 6)), (2, slice(None, None, 3)), (slice(None), 3), (slice(None), slice(None), 2),
    (slice(4, None, -2), slice(None, None, 2), slice(None, None, -3)), (slice(None), None, 2), slice(2, 2), (0, slice(5, 5)),
    (slice(None), slice(None), slice(1, 6)), (slice(1, 2), slice(None), slice(None, None, 2)),
]
FANCY = [
    [0, 3, 1], [[0, 1], [4, 2]], ([0, 1, 2], [3, 4, 5], [6, 0, 6]), (slice(None), [5, 0]), ([1, 1, 1],), (np.array([2, 2]), 1, [3, 3]),
    np.array([-1, -5]), ([0, 4], slice(None, None, 2), [1, 6]), np.zeros(5, bool), np.arange(5) % 2 == 0,
    np.arange(5 * 6 * 7).reshape(SHAPE) % 11 == 3, [],
]


@pytest.mark.parametrize("dtype", SIMPLE)
def test_elements(dtype):
    values = data(ME, 9, dtype)
    with symmetric(np.zeros(9, dtype)) as a:
        for i in range(9):
            a.on(RIGHT)[i - 9 if i % 2 else i] = values[i].item()
        quoit.barrier()
        same(a, data(LEFT, 9, dtype))
        for i in (0, 4, -1):
            got = a.on(RIGHT)[i]
            assert type(got) is np.dtype(dtype).type
            same(got, values[i])
        quoit.barrier()
        a.on(RIGHT)[2] = values[3]  # numpy's own scalar
        quoit.barrier()
        same(a[2], data(LEFT, 9, dtype)[3])


def test_limits_of_integers():
    for dtype in SIMPLE[:8]:
        limits = np.iinfo(dtype)
        with symmetric(np.zeros(2, dtype)) as a:
            a.on(RIGHT)[0], a.on(RIGHT)[1] = limits.min, limits.max
            for wrong in (limits.min - 1, limits.max + 1, 2 ** 70):
                refused(OverflowError, f"{limits.min}..{limits.max}", a.on(RIGHT).__setitem__, 0, wrong)
            quoit.barrier()
            assert a.tolist() == [limits.min, limits.max]
            assert a.on(RIGHT)[0] == limits.min and a.on(RIGHT)[1] == limits.max


@pytest.mark.parametrize("key", range(len(KEYS) + len(FANCY)))
def test_keys(key):
    key = (KEYS + FANCY)[key]
    with symmetric(data(ME, SHAPE)) as a:
        same(a.on(RIGHT)[key], data(RIGHT, SHAPE)[key])
        same(a.on(RIGHT).get_nbi(key).result(), np.asarray(data(RIGHT, SHAPE)[key]))
        quoit.barrier()
        form = data(0, SHAPE)[key].shape
        a.on(RIGHT)[key] = data(ME, form, seed=1)
        quoit.barrier()
        expected = data(ME, SHAPE)
        expected[key] = data(LEFT, form, seed=1)
        same(a, expected)
        quoit.barrier()
        future = a.on(RIGHT).put_nbi(key, data(ME, form, seed=2))
        assert future.result() is None and future.done()
        quoit.barrier()
        expected[key] = data(LEFT, form, seed=2)
        same(a, expected)
        quoit.barrier()
        a.on(RIGHT)[key] = 7  # broadcast
        quoit.barrier()
        expected[key] = 7
        same(a, expected)


@pytest.mark.parametrize("dtype", OTHERS, ids=str)
def test_any_dtype(dtype):
    with symmetric(data(ME, (3, 4), dtype)) as a:
        for key in ((), (1, 2), slice(None, None, -2), (slice(None), slice(1, None, 2)), [2, 0]):
            same(a.on(RIGHT)[key], data(RIGHT, (3, 4), dtype)[key])
        quoit.barrier()
        a.on(RIGHT)[:, ::2] = data(ME, (3, 4), dtype, 1)[:, ::2]
        quoit.barrier()
        expected = data(ME, (3, 4), dtype)
        expected[:, ::2] = data(LEFT, (3, 4), dtype, 1)[:, ::2]
        same(a, expected)


def test_views():
    """A view of a symmetric array is symmetric, however its axes lie."""
    with symmetric(data(ME, (4, 6, 3))) as a:
        for view in (lambda x: x.T, lambda x: x[::-1, 1::2], lambda x: x.transpose(1, 2, 0)[::2], lambda x: x.reshape(8, 9)[1:3],
                     lambda x: x.view(np.int64), lambda x: x[2], lambda x: x[1:1]):
            part = view(a)
            assert isinstance(part, quoit.ndarray) and quoit.is_symmetric(part) == (part.size > 0)
            same(part.on(RIGHT)[...], view(data(RIGHT, (4, 6, 3))))
        quoit.barrier()
        a.T.on(RIGHT)[:, 1] = data(ME, (3, 4), seed=3)
        quoit.barrier()
        expected = data(ME, (4, 6, 3))
        expected.T[:, 1] = data(LEFT, (3, 4), seed=3)
        same(a, expected)


def test_duplicates_and_large():
    with symmetric(np.zeros(300000)) as a:
        numbers = np.arange(300000) % 1000
        a.on(RIGHT)[numbers] = np.arange(300000)  # the last of each is kept
        values = data(ME, 150000)
        a.on(RIGHT)[1000::2] = values[500:]
        quoit.barrier()
        expected = np.zeros(300000)
        expected[numbers] = np.arange(300000)
        expected[1000::2] = data(LEFT, 150000)[500:]
        same(a, expected)
        same(a.on(RIGHT)[::3], a_of(RIGHT)[::3])


def a_of(pe):
    made = np.zeros(300000)
    made[np.arange(300000) % 1000] = np.arange(300000)
    made[1000::2] = data((pe - 1) % PES, 150000)[500:]
    return made


def test_many_nbi(monkeypatch):
    """More pending bytes than are kept; the futures that were not kept arrive too, from temporaries that are gone."""
    monkeypatch.setattr("quoit._job.PENDING_BYTES_MAX", 1 << 20)
    with symmetric(np.zeros((40, 1 << 13))) as a:
        for i in range(40):
            a.on(RIGHT).put_nbi(i, np.full(1 << 13, ME * 100 + i, float))
        quoit.barrier()
        same(a, np.zeros((40, 1 << 13)) + (LEFT * 100 + np.arange(40.0))[:, None])


def test_arithmetic_is_numpy():
    with symmetric(np.arange(6.0).reshape(2, 3)) as a:
        assert type(a + 1) is np.ndarray and type(a.copy()) is np.ndarray and type(a.sum()) is np.float64
        assert type(a[0]) is quoit.ndarray and type(np.sqrt(a)) is np.ndarray and type(a @ a.T) is not object
        before = a
        a += ME
        assert a is before and quoit.is_symmetric(a)
        np.multiply(a, 2, out=a)
        quoit.barrier()
        same(a.on(RIGHT)[:], (np.arange(6.0).reshape(2, 3) + RIGHT) * 2)
        quoit.barrier()
        others = np.from_dlpack(a), np.frombuffer(a).reshape(2, 3)  # other packages see the same memory
        a[1, 1] = 77 + ME
        assert all(other[1, 1] == 77 + ME for other in others)
        refused(ValueError, "not in symmetric memory", (a + 1).view(quoit.ndarray).on, 0)
        refused(ValueError, "not in symmetric memory", a[[0, 1]].on, 0)


def test_local():
    with symmetric(data(ME, (3, 4))) as a:
        found = a[1:].local(RIGHT)
        if quoit.shared().n_pes == PES:
            same(found, data(RIGHT, (3, 4))[1:])
        same(a.local(ME), data(ME, (3, 4)))
        refused(ValueError, "but the job has", a.local, PES)


def test_wrong_access():
    with symmetric(np.zeros((4, 5), np.int32)) as a, symmetric(np.zeros(4)) as b:
        refused(ValueError, rf"pe is {PES}, but the job has {PES} PEs? \((0..)?{PES - 1}\)", a.on, PES)
        refused(ValueError, "pe is -1", a.on, -1)
        refused(TypeError, "pe is 1.0, but must be an integer", a.on, 1.0)
        refused(IndexError, "out of bounds for axis 0 with size 4", b.on(0).__getitem__, 4)
        refused(IndexError, "out of bounds for axis 0 with size 4", b.on(0).__setitem__, -5, 1.0)
        refused(IndexError, "integers", b.on(0).__getitem__, 2 ** 70)
        refused(IndexError, "too many indices", a.on(0).__getitem__, (1, 2, 3))
        refused(IndexError, "has 4 elements", b.on(0).__getitem__, [0, 4])
        refused(IndexError, "5", a.on(0).__getitem__, ([0], [5]))
        refused(TypeError, "would lose something", a.on(0).__setitem__, (0, 0), 1.5)
        refused(TypeError, "would lose something", a.on(0).__setitem__, 0, [1, 2, 3, 4, 1j])
        refused(TypeError, "value is .text., but the array takes numbers", b.on(0).__setitem__, 0, "text")
        refused(ValueError, r"value has shape \(2,\), but the slice has \(5,\)", a.on(0).__setitem__, 0, [1, 2])
        refused(TypeError, "cannot be deleted", a.on(0).__delitem__, 0)
        refused(TypeError, "read r", iter, b.on(0))
        quoit.barrier()
        assert not a.any() and not b.any()
    for call in (lambda: a.on(0), lambda: b.on(0)[0], lambda: b.on(0).__setitem__(0, 1.0), a.free):
        refused(ValueError, "free", call)


def test_allocation():
    for shape, dtype in ((0, "f8"), (3, "i1"), ((), "c16"), ((2, 0, 3), "u2"), ((2, 3), RECORD)):
        with quoit.zeros(shape, dtype) as a:
            same(a, np.zeros(shape, dtype))
            same(a.on(RIGHT)[...], np.zeros(shape, dtype))
            quoit.barrier()
    a = quoit.full((2, 2), ME)
    assert (a.on(RIGHT)[:] == RIGHT).all() and quoit.asarray(a) is a
    refused(ValueError, "view of a part", a[1:].free)
    quoit.barrier()
    a.free()
    refused(TypeError, "Python objects", quoit.empty, 3, object)
    refused(ValueError, "at least 0", quoit.empty, -1)
    refused(MemoryError, "SHMEM_SYMMETRIC_SIZE", quoit.empty, 1 << 55, "i1")
    if PES > 1:
        refused(ValueError, r"PE 0: zeros: float64 \(0,\)", quoit.zeros, ME)
    quoit.zeros(3).free()


def test_numpy_functions_make_ordinary_arrays():
    with symmetric(data(ME, (4, 6))) as a:
        for made in (np.concatenate([a, a]), np.stack([a, a]), np.zeros_like(a), np.empty_like(a), np.sort(a), np.repeat(a, 2),
                     np.where(a > 0, a, 0), a + a, a.copy(), *np.array_split(np.array(a), 2)):
            assert type(made) is np.ndarray
        same(np.concatenate([a, a]), np.concatenate([data(ME, (4, 6))] * 2))
        for view in (np.split(a, 2)[1], np.transpose(a), np.reshape(a, 24)):
            assert quoit.is_symmetric(view) and type(view) is quoit.ndarray
        assert type(np.mean(a)) is np.float64 and np.mean(a) == data(ME, (4, 6)).mean()
        assert np.add(a, 1, out=a) is a


@pytest.mark.parametrize("kind", SIMPLE)
def test_short_runs(kind):
    """Slices of one step, which the extension writes and reads itself as long as they are short, and those it leaves: of every
    length around its limit, at both ends, from numbers, numpy's numbers and arrays, with the elements beside them unchanged."""
    dtype = np.dtype(kind)
    most = 4096 // dtype.itemsize
    length = most + 40
    with symmetric(data(ME, length, dtype)) as a, symmetric(np.zeros(2 * length, dtype)) as wide:
        expected, there = data(RIGHT, length, dtype), a.on(RIGHT)
        for start, stop in ((0, 1), (0, 16), (5, 5 + most), (5, 6 + most), (None, 0), (-16, None), (length, None), (None, None), (3, 1)):
            same(there[start:stop], expected[start:stop])
            assert type(there[start:stop]) is np.ndarray and there[start:stop].flags.writeable
        quoit.barrier()
        for number, (start, stop) in enumerate(((0, 16), (20, 20 + most), (7, 8 + most), (-9, None), (-length, 4))):
            values = data(ME, len(expected[start:stop]), dtype, seed=number)
            for value in (number + 3, values, dtype.type(number + 5), np.array(9, dtype), values[::-1], values.tolist(), values[:1],
                          np.flip(values).newbyteorder("<") if dtype.itemsize > 1 else values, a[:len(values)] * 0 + dtype.type(2)):
                there[start:stop] = value
                expected[start:stop] = value
                quoit.quiet()
                same(there[...], expected)
        there[4] = dtype.type(77)
        there[-1] = np.array([78], dtype)
        expected[4], expected[-1] = 77, 78
        quoit.barrier()
        same(there[...], expected)
        gaps = wide[::2].on(RIGHT)
        gaps[2:6] = dtype.type(3)
        quoit.barrier()
        assert wide.tolist() == [0] * 4 + [3, 0] * 4 + [0] * (2 * length - 12)
        same(gaps[1:4], np.array([0, 3, 3], dtype))
        refused(ValueError, r"value has shape \(2,\), but the slice has \(3,\)", there.__setitem__, slice(0, 3), np.zeros(2, dtype))
        refused(ValueError, r"value has shape \(3, 1\)", there.__setitem__, slice(0, 3), np.zeros((3, 1), dtype))
        refused(TypeError, "would lose|takes", there.__setitem__, slice(0, 3), np.ones(3, complex))
