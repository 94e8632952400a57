# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the names of NVSHMEM4Py do on CPUs what its documentation says. Method: each PE sends data that every PE can make, and compares
with numpy's result of the data of all."""
import numpy as np
import pytest

import quoit
import quoit.nvshmem as nvshmem
from model import LEFT, ME, PES, RIGHT, data, refused, same
from quoit.nvshmem import ComparisonType, Device, SignalOp, Teams

WORLD = Teams.TEAM_WORLD
STREAM = Device().create_stream()


def filled(values, morder="C"):
    made = nvshmem.array(values.shape, values.dtype, morder=morder)
    made[...] = values
    nvshmem.barrier_all()
    return made


def freed(*arrays):
    nvshmem.barrier_all()
    for array in arrays:
        nvshmem.free_array(array)


def test_start():
    nvshmem.init(device=Device(3), uid=nvshmem.get_unique_id(empty=True), rank=ME, nranks=PES, initializer_method="uid")
    assert nvshmem.init_status() == nvshmem.InitStatus.STATUS_IS_INITIALIZED
    assert (nvshmem.my_pe(), nvshmem.n_pes()) == (ME, PES) == (nvshmem.team_my_pe(WORLD), nvshmem.team_n_pes(WORLD))
    assert nvshmem.get_version().openshmem_spec_version == "1.6" and quoit.__version__ in repr(nvshmem.get_version())

    class Comm:
        Get_rank, Get_size = staticmethod(lambda: ME + 1), staticmethod(lambda: PES)

    refused(nvshmem.NvshmemInvalid, f"rank is {ME + 1}, but this is PE {ME} of {PES}", lambda: nvshmem.init(mpi_comm=Comm))
    refused(nvshmem.NvshmemInvalid, f"nranks is {PES + 1}", lambda: nvshmem.init(nranks=PES + 1))
    refused(nvshmem.NvshmemInvalid, "device is of type int", nvshmem.init, 0)
    refused(nvshmem.NvshmemInvalid, "'emulated'", lambda: nvshmem.init(initializer_method="emulated"))
    refused(AttributeError, "is for GPUs", getattr, nvshmem, "get_multicast_array")
    refused(AttributeError, "no attribute", getattr, nvshmem, "no_such")


@pytest.mark.parametrize("morder", ["C", "F"])
def test_put_get(morder):
    x, y = filled(np.zeros((4, 3), np.float32), morder), filled(data(ME, (4, 3), "f4"), morder)
    assert x.flags.c_contiguous == (morder == "C")
    nvshmem.put(x, y, remote_pe=RIGHT, stream=STREAM)
    nvshmem.barrier(WORLD, stream=STREAM)
    same(x, data(LEFT, (4, 3), "f4"))
    private = np.zeros((4, 3), np.float32)
    nvshmem.get(private, y, remote_pe=LEFT)
    same(private, data(LEFT, (4, 3), "f4"))
    nvshmem.barrier_all()
    nvshmem.put(x[1], data(ME, (2,), "f4", 1) if morder == "C" else data(ME, (3,), "f4", 1), RIGHT)
    nvshmem.quiet()
    nvshmem.sync_all()
    count = 2 if morder == "C" else 3
    same(x[1, :count], data(LEFT, (count,), "f4", 1))
    refused(ValueError, "cannot take the 13", nvshmem.put, x, np.zeros(13, "f4"), RIGHT)
    refused(ValueError, "12 elements of float32, which cannot take the 3 of float64", nvshmem.put, x, np.zeros(3), RIGHT)
    refused(ValueError, f"has {PES} PEs?", nvshmem.put, x, y)
    refused(nvshmem.NvshmemInvalid, "stream is of type object", nvshmem.put, x, y, RIGHT, object())
    refused(ValueError, "not in symmetric memory", nvshmem.put, private, y, RIGHT)
    freed(x, y)
    refused(ValueError, "freed", nvshmem.free_array, x)
    refused(nvshmem.NvshmemInvalid, "'C' or 'F'", lambda: nvshmem.array(3, morder="K"))


def test_buffers_and_signals():
    a, signal = nvshmem.buffer(100), nvshmem.buffer(8)
    bytes_ = nvshmem.bytearray((2, 3), "float64")
    assert (a.size, bytes_.shape, bytes_.dtype) == (100, (48,), np.uint8)
    nvshmem.free_array(bytes_)
    np.asarray(a)[...] = 0
    np.asarray(signal)[...] = 0
    nvshmem.barrier_all()
    nvshmem.put_signal(a, data(ME, 10), signal, 3, SignalOp.SIGNAL_SET, RIGHT, STREAM)
    nvshmem.signal_wait(signal, 3, ComparisonType.CMP_EQ)
    same(np.asarray(a)[:80].view(np.float64), data(LEFT, 10))
    nvshmem.barrier_all()
    nvshmem.signal_op(signal, 4, SignalOp.SIGNAL_ADD, RIGHT)
    nvshmem.signal_wait(signal, 7, ComparisonType.CMP_GE, STREAM)
    nvshmem.fence()
    found = np.zeros(5)
    nvshmem.get(found, nvshmem.Buffer(np.asarray(a)[:40]), RIGHT)
    same(found, data(ME, 10)[:5])
    for pe in range(PES):
        if np.asarray(a).view(quoit.ndarray).local(pe) is None:
            refused(nvshmem.NvshmemError, f"PE {pe} is on another host", nvshmem.get_peer_buffer, a, pe)
        else:
            there = np.asarray(nvshmem.get_peer_buffer(a, pe))
            same(there[:80].view(np.float64), data((pe - 1) % PES, 10))
    refused(ValueError, "must be one of", nvshmem.signal_op, signal, 1, 5, RIGHT)
    refused(ValueError, "8 bytes of symmetric memory", nvshmem.signal_wait, np.zeros(1, np.int32), 1, ComparisonType.CMP_EQ)
    nvshmem.barrier_all()
    nvshmem.free(a)
    nvshmem.free(signal)
    refused(ValueError, "freed", nvshmem.free, a)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1"])
def test_collectives(dtype):
    values = np.stack([data(pe, (PES, 3), dtype) for pe in range(PES)])
    source, same_size, part = filled(values[ME]), filled(np.zeros((PES, 3), dtype)), filled(np.zeros(3, dtype))
    large = filled(np.zeros(PES * PES * 3, dtype))
    for op, ufunc in (("sum", np.add), ("min", np.minimum), ("max", np.maximum)):
        expected = ufunc.reduce(values, axis=0, dtype=dtype)
        nvshmem.reduce(WORLD, same_size, source, op, STREAM)
        same(same_size, expected)
        nvshmem.reducescatter(WORLD, part, source, op)
        same(part, expected[ME])
    nvshmem.alltoall(WORLD, same_size, source)
    same(same_size, values[:, ME])
    nvshmem.fcollect(WORLD, large, source)
    same(large, values.reshape(-1))
    nvshmem.broadcast(WORLD, same_size, source, root=PES - 1)
    same(same_size, values[PES - 1])
    refused(ValueError, "must be one of sum, min, max", nvshmem.reduce, WORLD, same_size, source, "prod")
    refused(ValueError, "it must have", nvshmem.fcollect, WORLD, part[:2], source)
    to, taken = nvshmem.buffer(source.nbytes), nvshmem.buffer(source.nbytes)
    np.asarray(taken)[...] = np.ascontiguousarray(values[ME]).reshape(-1).view(np.uint8)
    assert nvshmem.collective_on_buffer("reduce", WORLD, to, taken, dtype, "max", enable_timing=True) >= 0
    same(np.asarray(to).view(dtype), values.max(axis=0).reshape(-1))
    refused(ValueError, "must be one of reduce", nvshmem.collective_on_buffer, "gather", WORLD, to, taken)
    nvshmem.free(to)
    nvshmem.free(taken)
    freed(source, same_size, part, large)


def test_teams():
    even = nvshmem.team_split_strided(WORLD, 0, 2, (PES + 1) // 2, None, 0, new_team_name="EVEN")
    if ME % 2 == 0:
        assert even == Teams.EVEN == Teams["EVEN"] and "EVEN" in Teams
        assert (nvshmem.team_my_pe(even), nvshmem.team_n_pes(even)) == (ME // 2, (PES + 1) // 2)
        assert nvshmem.team_translate_pe(even, nvshmem.team_my_pe(even), WORLD) == ME
        total = np.zeros(1, np.int64)
        nvshmem.reduce(even, total, np.array([ME]), "sum")
        assert total[0] == sum(range(0, PES, 2))
        nvshmem.sync(even)
        nvshmem.team_destroy("EVEN")
        refused(AttributeError, "no team 'EVEN', but TEAM_WORLD", lambda: Teams.EVEN)
        refused(nvshmem.NvshmemInvalid, "is no team of this PE", nvshmem.barrier, even)
    else:
        assert even == Teams.TEAM_INVALID and nvshmem.team_my_pe(even) == -1
        nvshmem.team_destroy(even)
    nvshmem.barrier_all()
    x, y = nvshmem.team_split_2d(WORLD, 2 if PES > 1 else 1, new_team_name="GRID")
    assert (Teams.GRID_X, Teams.GRID_Y) == (x, y)
    assert nvshmem.team_my_pe(x) == (ME % 2 if PES > 1 else 0)
    nvshmem.team_destroy(x)
    nvshmem.team_destroy(y)
    assert nvshmem.team_n_pes(Teams.TEAM_NODE) == quoit.shared().n_pes
