# SPDX-License-Identifier: BSD-3-Clause
"""Aim: collectives of the package quoit give what numpy gives for the arrays of all PEs. Method: data of every PE is made on every
PE, and numpy's result compared byte by byte; from and to private and symmetric arrays, larger than the workspace, too."""
import contextlib

import numpy as np
import pytest

import quoit
from model import ME, PES, RECORD, data, refused, same, symmetric

NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "f16", "c8", "c16"]
SHAPES = [(), (1,), (7,), (3, 0), (2, 3, 4)]
LARGE = 1_300_001  # bytes, more than a piece of the workspace


def stack(shape, dtype, seed=0):
    return np.stack([data(pe, shape, dtype, seed) for pe in range(PES)])


def both(function, mine, expected):
    """From a private and from a symmetric array, into a new one and into `out`."""
    same(function(mine), expected)
    with symmetric(mine) as source, symmetric(np.zeros_like(expected)) as dest:
        same(function(source), expected)
        assert function(source, out=dest) is dest
        same(dest, expected)
        quoit.barrier()
        dest[...] = np.zeros_like(expected)
        quoit.barrier()
        function(mine, out=dest)
        same(dest, expected)


def reduced(ufunc, values):
    """One PE after the other, in the dtype of the data."""
    total = values[0].copy()
    for other in values[1:]:
        total = ufunc(total, other)
    return np.asarray(total, values.dtype)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_reductions(dtype):
    for shape in SHAPES:
        values = stack(shape, dtype)
        if values.dtype.kind in "fc":
            imaginary = np.round(np.imag(values)) % 3 * 1j if values.dtype.kind == "c" else 0
            values = (np.round(np.real(values)) % 5 + imaginary).astype(dtype)  # exact in any order
        both(quoit.sum, values[ME], reduced(np.add, values))
        both(quoit.cumsum, values[ME], reduced(np.add, values[:ME + 1]))
        same(quoit.cumsum(values[ME], exclusive=True), reduced(np.add, np.concatenate([values[:1] * 0, values[:ME]])))
        both(quoit.prod, values[ME], reduced(np.multiply, values))
        if values.dtype.kind != "c":
            both(quoit.max, values[ME], reduced(np.maximum, values))
            both(quoit.min, values[ME], reduced(np.minimum, values))
        if values.dtype.kind in "iu":
            both(quoit.bitwise_and, values[ME], reduced(np.bitwise_and, values))
            both(quoit.bitwise_or, values[ME], reduced(np.bitwise_or, values))
            both(quoit.bitwise_xor, values[ME], reduced(np.bitwise_xor, values))


def test_booleans_and_numbers():
    values = stack((9,), "?")
    same(quoit.all(values[ME]), values.all(axis=0))
    same(quoit.any(values[ME]), values.any(axis=0))
    same(quoit.sum(values[ME]), values.sum(axis=0))
    same(quoit.max(values[ME]), values.max(axis=0))
    total = quoit.sum(ME)
    assert type(total) is np.int64 and total == PES * (PES - 1) // 2
    assert quoit.any(ME == 0) and quoit.all(ME == 0) == (PES == 1)


@pytest.mark.parametrize("dtype", ["f8", "i1", "?", "f2", "S3", RECORD], ids=str)
def test_moves(dtype):
    for shape in SHAPES:
        values = stack(shape, dtype)
        both(quoit.allgather, values[ME], values)
        for root in {0, PES - 1}:
            same(quoit.broadcast(values[ME], root), values[root])
        shape = (2 * PES, *shape)
        blocks = stack(shape, dtype, 1)
        both(quoit.alltoall, blocks[ME], np.concatenate([blocks[pe, 2 * ME:2 * ME + 2] for pe in range(PES)]))
        lengths = [(pe * 3 + 1) % 4 for pe in range(PES)]
        parts = [data(pe, (length, *shape[1:]), dtype, 2) for pe, length in enumerate(lengths)]
        same(quoit.concatenate(parts[ME]), np.concatenate(parts))


def test_larger_than_the_workspace():
    values = stack((LARGE,), "u1")
    both(quoit.sum, values[ME], reduced(np.add, values))
    both(quoit.allgather, values[ME], values)
    same(quoit.broadcast(values[ME], PES - 1), values[PES - 1])
    blocks = stack((PES, LARGE // 2), "u1", 1)
    both(quoit.alltoall, blocks[ME], blocks[:, ME])
    parts = [values[pe][:LARGE // (pe + 1)] for pe in range(PES)]
    same(quoit.concatenate(parts[ME]), np.concatenate(parts))


def test_strided_sources():
    values = stack((6, 8), "f8")
    with symmetric(values[ME]) as a:
        for part in (lambda x: x.T, lambda x: x[::2, ::-3]):
            same(quoit.max(part(a)), np.max([part(each) for each in values], axis=0))
            same(quoit.allgather(part(a)), np.stack([part(each) for each in values]))


@pytest.mark.parametrize("dtype", ["f8", "i1", "f4", "u2", "c16", "S3"], ids=str)
def test_alltoall_of_strided_arrays(dtype):
    count = 3 * PES
    values = stack((2 * count,), dtype)
    expected = np.concatenate([values[pe, 1::2][3 * ME:3 * ME + 3] for pe in range(PES)])
    zero = np.zeros(3 * count, dtype)
    for make in (symmetric, contextlib.nullcontext):
        with make(values[ME]) as source, make(zero.copy()) as dest:
            quoit.barrier()
            out = dest[2::3]
            assert quoit.alltoall(source[1::2], out=out) is out
            same(out, expected)
            assert (dest[::3] == zero[::3]).all() and (dest[1::3] == zero[1::3]).all()
            same(quoit.alltoall(source[1::2]), expected)
            quoit.barrier()
    if PES > 1 and dtype == "f8":
        with symmetric(values[ME]) as source, symmetric(zero) as dest:
            refused(ValueError, r"in place, \(", quoit.alltoall, source[:count][::1 + ME % 2][:PES], dest[::2][:PES])


def test_alltoall_along_an_axis():
    values = stack((2, 3 * PES, 4), "f4")
    expected = np.concatenate([values[pe, :, 3 * ME:3 * ME + 3] for pe in range(PES)], axis=1)
    same(quoit.alltoall(values[ME], axis=1), expected)
    same(quoit.alltoall(values[ME], axis=-2), expected)
    out = np.zeros((4, 3 * PES, 2), "f4")
    quoit.alltoall(values[ME], out.T, axis=1)
    same(out.T, expected)
    refused(ValueError, f"of a multiple of {PES}.* and axis is 3", quoit.alltoall, values[ME], None, None, 3)


def test_wrong_calls_lose_nothing():
    refused(TypeError, "complex numbers, but the array has dtype float16", quoit.sum, np.float16(1))
    refused(TypeError, "bool and integers, but the array has dtype float64", quoit.bitwise_or, 1.0)
    refused(TypeError, "16 bytes, but the array has dtype complex128", quoit.max, 1j)
    refused(TypeError, "dtype >i4", quoit.sum, np.zeros(2, ">i4"))
    refused(TypeError, "Python objects", quoit.allgather, [None])
    refused(ValueError, "the team has", quoit.broadcast, 1, PES)
    refused(TypeError, "must be an array", quoit.sum, 1, [0])
    refused(ValueError, r"out is int64 \(3,\), but the result of sum is float64 \(2,\)", quoit.sum, np.zeros(2), np.zeros(3, int))
    refused(ValueError, "must be contiguous", quoit.sum, np.zeros(2), np.zeros(4)[::2])
    with symmetric(np.ones((PES, 4))) as a:
        refused(ValueError, "out overlaps", quoit.alltoall, a, a)
        refused(ValueError, "out overlaps", quoit.sum, a.reshape(-1)[1:], a.reshape(-1)[:-1])
        quoit.barrier()
        assert quoit.sum(a, out=a) is a and (a == PES).all()
    refused(ValueError, "a multiple of", quoit.alltoall, np.zeros(PES * 2 + 1), None, None, 0 if PES > 1 else 1)
    refused(ValueError, "this is a number", quoit.alltoall, 1.0)
    refused(ValueError, "takes numbers", quoit.concatenate, 1)
    if PES > 1:
        refused(ValueError, r"PE 0: sum: float64 \(0,\)", quoit.sum, np.zeros(ME))
        refused(ValueError, r"PE 0: max: int64 \(\)", quoit.min if ME else quoit.max, 1)
        refused(ValueError, "from PE 0;|from PE 1;", quoit.broadcast, 1, min(ME, 1))
    same(quoit.sum(np.ones(3)), np.full(3, float(PES)))
