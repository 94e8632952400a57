# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the package quoit share. They run on every PE of a job under pytest, which stops at the first failure, so that
the job ends. Data of any PE can be made on every other one, so that results are compared with numpy's of the same data."""
import contextlib

import numpy as np
import pytest

import quoit

ME, PES = quoit.my_pe(), quoit.n_pes()
RIGHT, LEFT = (ME + 1) % PES, (ME - 1) % PES
RECORD = np.dtype([("name", "S5"), ("value", "<f4"), ("count", "<i2", (3,))])


def data(pe, shape, dtype=np.float64, seed=0):
    """An array of any dtype, the same wherever it is made."""
    kind = np.dtype(dtype)
    random = np.random.default_rng([seed, pe, 7])
    if kind.kind in "fc":
        made = random.integers(-999, 999, shape) / 8
        return np.asarray(made + 1j * random.integers(-9, 9, shape) if kind.kind == "c" else made).astype(kind)
    count = int(np.prod(shape, dtype=int))
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    raw = random.integers(65, 90, count * kind.itemsize, np.uint8)
    if kind == RECORD:
        return raw.view(np.uint8).view(kind).reshape(shape)
    return raw.view(kind).reshape(shape).copy()


def same(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.dtype == np.longdouble or found.dtype.kind == "c":  # padding; zeros of a sign that depends on the order
        assert (found == expected).all()
    else:
        assert found.tobytes() == expected.tobytes()


@contextlib.contextmanager
def symmetric(values):
    """A symmetric array with them, that no PE reads after another freed it."""
    with quoit.array(values) as made:
        yield made
        quoit.barrier()


def refused(kind, text, function, *arguments):
    with pytest.raises(kind, match=text):
        function(*arguments)
