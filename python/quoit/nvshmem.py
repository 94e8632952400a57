# SPDX-License-Identifier: BSD-3-Clause
"""The names of NVSHMEM4Py (nvshmem.core) on CPUs: a program that was written for GPUs runs on a laptop, with numpy arrays.

    import quoit.nvshmem as nvshmem            # was: import nvshmem.core as nvshmem
    from quoit.nvshmem import Device           # was: from cuda.core.experimental import Device
    nvshmem.init(device=Device())
    x = nvshmem.array((4,), dtype="float32")   # was a CuPy array
    nvshmem.put(x, source, remote_pe=1)

`python -m quoit.run -n 4 -m quoit.nvshmem program.py` runs a program in which `import nvshmem.core` stays as it is. Arrays are
quoit's symmetric arrays. There are no kernels and no streams: each call is complete, or delivered by the next quiet, in the order
of the program; `stream` and `device` are None or those of this module's Device, and anything else is a NvshmemInvalid. Names that
need a GPU raise an AttributeError that says so. Other errors are those of quoit: TypeError, ValueError, MemoryError.

The signatures are those of NVIDIA's documentation, docs.nvidia.com/nvshmem/api, language bindings."""
from __future__ import annotations

import enum
import os
import runpy
import sys
from time import perf_counter
from typing import Any, Optional, Union

import numpy as np

import quoit

from ._array import ndarray
from ._check import Shape
from ._job import Team, job
from ._remote import address_of

__all__ = ["Buffer", "ComparisonType", "Device", "InitStatus", "NvshmemError", "NvshmemInvalid", "SignalOp", "Stream", "TeamConfig",
           "Teams", "UniqueID", "Version", "alltoall", "array", "barrier", "barrier_all", "broadcast", "buffer", "bytearray",
           "collective_on_buffer", "fcollect", "fence", "finalize", "free", "free_array", "get", "get_peer_array", "get_peer_buffer",
           "get_unique_id", "get_version", "init", "init_status", "my_pe", "n_pes", "put", "put_signal", "quiet", "reduce",
           "reducescatter", "signal_op", "signal_wait", "sync", "sync_all", "team_destroy", "team_my_pe", "team_n_pes",
           "team_split_2d", "team_split_strided", "team_translate_pe"]
core = sys.modules[__name__]
_OF_GPUS = {
    "get_multicast_array": "NVLink", "get_multicast_buffer": "NVLink", "get_multicast_tensor": "NVLink",
    "library_finalize": "kernels", "library_init": "kernels", "module_finalize": "kernels", "module_init": "kernels",
    "NvshmemKernelObject": "kernels", "NvshmemResource": "CUDA memory", "NvshmemStream": "CUDA streams", "device": "kernels",
    "register_external_array": "CUDA memory", "register_external_buffer": "CUDA memory",
    "unregister_external_array": "CUDA memory", "unregister_external_buffer": "CUDA memory",
    "bytetensor": "CUDA tensors: use array and torch.from_dlpack", "tensor": "CUDA tensors: use array and torch.from_dlpack",
    "free_tensor": "CUDA tensors: use free_array", "get_peer_tensor": "CUDA tensors: use get_peer_array",
    "get_team_unique_id": "a bootstrap of their own: use team_split_strided",
    "team_init": "a bootstrap of their own: use team_split_strided",
}


def __getattr__(name: str) -> Any:
    if name in _OF_GPUS:
        raise AttributeError(f"nvshmem.{name} is for GPUs and {_OF_GPUS[name]}; quoit.nvshmem runs on CPUs")
    raise AttributeError(f"module 'quoit.nvshmem' has no attribute {name!r}")


class NvshmemInvalid(ValueError):
    """A wrong argument: a stream, device or launcher that quoit.nvshmem cannot use."""


class NvshmemError(RuntimeError):
    """An operation that failed: memory of a PE that cannot be mapped here."""


class SignalOp(enum.IntEnum):
    """What a signal operation does: store the value, or add it."""
    SIGNAL_SET = 0
    SIGNAL_ADD = 1


class ComparisonType(enum.IntEnum):
    """What signal_wait waits for."""
    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_LE = 3
    CMP_LT = 4
    CMP_GE = 5


class InitStatus(enum.IntEnum):
    """What init_status returns: NOT_INITIALIZED or IS_INITIALIZED; the others are of GPUs."""
    STATUS_NOT_INITIALIZED = 0
    STATUS_IS_BOOTSTRAPPED = 1
    STATUS_IS_INITIALIZED = 2
    STATUS_LIMITED_MPG = 3
    STATUS_FULL_MPG = 4


_UPDATES = {SignalOp.SIGNAL_SET: "set", SignalOp.SIGNAL_ADD: "add"}
_COMPARISONS = {ComparisonType.CMP_EQ: "==", ComparisonType.CMP_NE: "!=", ComparisonType.CMP_GT: ">", ComparisonType.CMP_LE: "<=",
                ComparisonType.CMP_LT: "<", ComparisonType.CMP_GE: ">="}


class Stream:
    """Stands for a stream: operations are made at once, so there is nothing to wait for."""

    def sync(self) -> None:
        """Returns at once: nothing is left to wait for."""


class Device:
    """Stands for cuda.core's Device: the processor of this PE. Any number is accepted."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def set_current(self) -> None:
        """Does nothing: a PE has one processor to use."""

    def create_stream(self) -> Stream:
        """A Stream, for the arguments of that name."""
        return Stream()

    def sync(self) -> None:
        """Returns at once: nothing is left to wait for."""


def _in_order(stream: Any) -> None:
    if stream is not None and not isinstance(stream, Stream):
        raise NvshmemInvalid(f"stream is of type {type(stream).__name__}, but quoit.nvshmem runs on CPUs, in the order of the "
                             "program: leave it out, or take one of quoit.nvshmem.Device().create_stream()")


class UniqueID:
    """What get_unique_id returns. It may be sent to all PEs as with GPUs, but need not: the launcher has joined them."""

    def __init__(self) -> None:
        self._data = np.zeros(128, np.uint8)


class Version:
    """What get_version returns: openshmem_spec_version, nvshmem4py_version and libnvshmem_version, as texts."""

    def __init__(self, openshmem_spec_version: str = "", nvshmem4py_version: str = "", libnvshmem_version: str = "") -> None:
        self.openshmem_spec_version = openshmem_spec_version
        self.nvshmem4py_version, self.libnvshmem_version = nvshmem4py_version, libnvshmem_version

    def __repr__(self) -> str:
        return (f"Version(openshmem_spec_version={self.openshmem_spec_version!r}, "
                f"nvshmem4py_version={self.nvshmem4py_version!r}, libnvshmem_version={self.libnvshmem_version!r})")


def get_version() -> Version:
    """Versions of the specification and of Quoit, which is in the place of both libraries."""
    found = quoit.info()
    return Version(".".join(map(str, found.specification)), f"Quoit {found.version}", f"Quoit {found.version}")


def get_unique_id(empty: bool = False) -> UniqueID:
    """An identifier that init accepts and does not need."""
    return UniqueID()


def init(device: Optional[Device] = None, uid: Optional[UniqueID] = None, rank: Optional[int] = None, nranks: Optional[int] = None,
         mpi_comm: Any = None, initializer_method: str = "") -> None:
    """Makes this process a PE; collective. The launcher numbers the PEs: rank, nranks and the communicator must agree with it,
    and otherwise are a NvshmemInvalid. quoit.init."""
    if device is not None and not isinstance(device, Device):
        raise NvshmemInvalid(f"device is of type {type(device).__name__}, but quoit.nvshmem runs on CPUs: leave it out, or take a "
                             "quoit.nvshmem.Device()")
    if initializer_method not in ("", "mpi", "uid"):
        raise NvshmemInvalid(f"initializer_method is {initializer_method!r}, but must be 'mpi' or 'uid', or left out")
    quoit.init()
    if mpi_comm is not None:
        rank, nranks = mpi_comm.Get_rank(), mpi_comm.Get_size()
    for name, value, own in (("rank", rank, quoit.my_pe()), ("nranks", nranks, quoit.n_pes())):
        if value is not None and value != own:
            raise NvshmemInvalid(f"{name} is {value}, but this is PE {quoit.my_pe()} of {quoit.n_pes()}: the job is started by python "
                                 "-m quoit.run or oshrun, which number the PEs")


def finalize() -> None:
    """Ends this process as a PE; collective. Reports what was not freed. quoit.finalize."""
    quoit.finalize()


def init_status() -> InitStatus:
    """Whether this process is a PE now."""
    return InitStatus.STATUS_IS_INITIALIZED if quoit.is_initialized() else InitStatus.STATUS_NOT_INITIALIZED


def my_pe() -> int:
    """This PE's number. quoit.my_pe."""
    return quoit.my_pe()


def n_pes() -> int:
    """The number of PEs of the job. quoit.n_pes."""
    return quoit.n_pes()


class TeamConfig:
    """Settings of a team, of which there are none here. Accepted, as is None."""

    def __init__(self, num_contexts: int = 0) -> None:
        self.num_contexts = num_contexts


class _Teams:
    """Teams.TEAM_WORLD, TEAM_SHARED and TEAM_NODE, and those that the splits added, by name; values are handles."""
    TEAM_INVALID, TEAM_WORLD, TEAM_SHARED, TEAM_NODE = -1, 0, 1, 2

    def __init__(self) -> None:
        self._made: dict[int, Team] = {}
        self._names: dict[str, int] = {}

    def __getattr__(self, name: str) -> int:
        try:
            return self._names[name]
        except KeyError:
            known = ", ".join(("TEAM_WORLD", "TEAM_SHARED", "TEAM_NODE", *self._names))
            raise AttributeError(f"there is no team {name!r}, but {known}") from None

    def __getitem__(self, name: str) -> int:
        return getattr(self, name)

    def __contains__(self, name: str) -> bool:
        return name in self._names or name in ("TEAM_WORLD", "TEAM_SHARED", "TEAM_NODE")

    def of(self, handle: int) -> Team:
        """The quoit.Team of a handle; ValueError if there is none."""
        if handle == self.TEAM_WORLD:
            return job.need().world
        if handle in (self.TEAM_SHARED, self.TEAM_NODE):
            return quoit.shared()
        if handle not in self._made:
            raise NvshmemInvalid(f"team is {handle!r}, which is no team of this PE, or was destroyed")
        return self._made[handle]

    def add(self, team: Team, name: Optional[str], axis: str = "") -> int:
        """The handle of a new team, under a name; TEAM_INVALID on PEs outside of it."""
        if not team:
            return self.TEAM_INVALID
        handle = max(self._made, default=self.TEAM_NODE) + 1
        self._made[handle] = team
        self._names[f"{name}{axis}" if name else f"TEAM{axis}_{handle}"] = handle
        return handle

    def remove(self, handle: int) -> None:
        """Destroys a team, and forgets its name."""
        self.of(handle).destroy()
        del self._made[handle]
        self._names = {name: each for name, each in self._names.items() if each != handle}


Teams = _Teams()


def team_my_pe(team: int) -> int:
    """This PE's number in the team, -1 for TEAM_INVALID."""
    return -1 if team == Teams.TEAM_INVALID else Teams.of(team).my_pe


def team_n_pes(team: int) -> int:
    """The number of PEs of the team, -1 for TEAM_INVALID."""
    return -1 if team == Teams.TEAM_INVALID else Teams.of(team).n_pes


def team_split_strided(parent_team: int, start: int, stride: int, size: int, config: Optional[TeamConfig] = None,
                       config_mask: int = 0, new_team_name: Optional[str] = None) -> int:
    """The team of PEs start, start + stride, ... of the parent; collective over it. TEAM_INVALID outside. Team.split."""
    return Teams.add(Teams.of(parent_team).split(start, stride, size), new_team_name)


def team_split_2d(parent_team: int, xrange: int, xaxis_config: Optional[TeamConfig] = None, xaxis_mask: int = 0,
                  yaxis_config: Optional[TeamConfig] = None, yaxis_mask: int = 0,
                  new_team_name: Optional[str] = None) -> tuple[int, int]:
    """This PE's teams along x and y, named NAME_X and NAME_Y; collective over the parent. Team.split_2d."""
    x, y = Teams.of(parent_team).split_2d(xrange)
    return Teams.add(x, new_team_name, "_X"), Teams.add(y, new_team_name, "_Y")


def team_destroy(team: Union[int, str]) -> None:
    """Ends a team, given by its handle or name; nothing for TEAM_INVALID. Team.destroy."""
    handle = Teams[team] if isinstance(team, str) else team
    if handle != Teams.TEAM_INVALID:
        Teams.remove(handle)


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """The number in dest_team of a PE of src_team; -1 if it is not in it. Team.translate."""
    return Teams.of(src_team).translate(src_pe, Teams.of(dest_team))


class Buffer:
    """Bytes of symmetric memory, made by buffer(). size: in bytes; handle: the address. numpy.asarray(b) and DLPack give the bytes
    without a copy."""

    def __init__(self, memory: np.ndarray) -> None:
        self._memory = memory
        self.size: int = memory.nbytes
        self.handle: int = address_of(memory)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        return np.array(self._memory, dtype) if copy else np.asarray(self._memory, dtype)

    def __dlpack__(self, **named: Any) -> Any:
        return self._memory.__dlpack__(**named)

    def __dlpack_device__(self) -> tuple:
        return self._memory.__dlpack_device__()


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """`size` bytes of symmetric memory; collective. `release` and `except_on_del` change nothing: what is not freed is
    reported. MemoryError: no room. quoit.empty."""
    return Buffer(quoit.empty(size, np.uint8))


def free(buffer: Buffer) -> None:
    """Gives a buffer back; collective. ValueError: it was freed."""
    _symmetric(buffer).free()


def get_peer_buffer(buffer: Buffer, pe: int) -> Buffer:
    """The buffer on PE `pe`, for loads and stores. NvshmemError: that PE is on another host."""
    return Buffer(get_peer_array(_symmetric(buffer), pe))


def array(shape: Shape, dtype: Any = "float32", release: bool = False, morder: str = "C", except_on_del: bool = True) -> ndarray:
    """A symmetric numpy array in C or Fortran order, whose elements are not set; collective. `release` and `except_on_del` as for
    buffer. quoit.empty."""
    if morder not in ("C", "F"):
        raise NvshmemInvalid(f"morder is {morder!r}, but must be 'C' or 'F'")
    if morder == "C":
        return quoit.empty(shape, dtype)
    return quoit.empty(tuple(np.atleast_1d(shape))[::-1], dtype).T


def bytearray(shape: Shape, dtype: Any = "float32", release: bool = False, device_id: Optional[int] = None, morder: str = "C",
              except_on_del: bool = True) -> ndarray:
    """The bytes of an array of this shape and dtype, as a symmetric array of uint8 in one dimension; collective."""
    return quoit.empty(int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize, np.uint8)


def free_array(array: ndarray) -> None:
    """Gives an array back; collective. ValueError: it was freed, or is a view of a part."""
    _symmetric(array).free()


def get_peer_array(array: ndarray, peer_pe: int) -> np.ndarray:
    """The array on PE `peer_pe` as a numpy array, for loads and stores. NvshmemError: that PE is on another host.
    ndarray.local."""
    found = _symmetric(array).local(peer_pe)
    if found is None:
        raise NvshmemError(f"PE {peer_pe} is on another host, whose memory cannot be mapped here: use put and get")
    return found


def _symmetric(values: Any) -> ndarray:
    """An array, buffer or other object with an array's memory as a symmetric array; it is found by its address."""
    return np.asarray(values).view(ndarray)


def _pair(dst: Any, src: Any, is_dst_remote: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where a put or get writes and reads: as much as the source has, at the start of dst. A buffer's bytes take any dtype."""
    to, source = np.asarray(dst), np.asarray(src)
    if to.dtype != source.dtype and isinstance(dst, Buffer):
        source = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    elif to.dtype != source.dtype and isinstance(src, Buffer):
        source = source[:source.size // to.itemsize * to.itemsize].view(to.dtype)
    if to.dtype != source.dtype or source.size > to.size:
        raise ValueError(f"dst has {to.size} elements of {to.dtype}, which cannot take the {source.size} of {source.dtype} of src")
    if to.shape != source.shape:
        if not (to.flags.c_contiguous and source.flags.c_contiguous):
            raise ValueError(f"dst has shape {to.shape} and src {source.shape}: both must be contiguous, or have one shape")
        to, source = to.reshape(-1)[:source.size], source.reshape(-1)
    return (to.view(ndarray), source) if is_dst_remote else (to, source.view(ndarray))


def put(dst: Any, src: Any, remote_pe: int = -1, stream: Optional[Stream] = None) -> None:
    """Writes src to dst on PE `remote_pe`; delivered by the next quiet or barrier. dst: a symmetric array or buffer of src's dtype,
    with as many elements at least. ValueError: they do not fit, or there is no such PE. dst.on(pe)[...] = src."""
    _in_order(stream)
    to, source = _pair(dst, src, True)
    to.on(remote_pe)[...] = source


def get(dst: Any, src: Any, remote_pe: int = -1, stream: Optional[Stream] = None) -> None:
    """Reads src of PE `remote_pe` into dst, any array with as many elements at least. Errors as put. src.on(pe)[...]."""
    _in_order(stream)
    to, source = _pair(dst, src, False)
    to[...] = source.on(remote_pe)[...]


def _signal(signal_var: Any) -> ndarray:
    found = np.asarray(signal_var)
    if found.nbytes < 8 or not found.flags.c_contiguous or address_of(found) % 8:
        raise ValueError("signal_var is 8 bytes of symmetric memory, aligned to 8: buffer(8), or an array of one uint64")
    return found.reshape(-1).view(np.uint8)[:8].view(np.uint64).view(ndarray)


def _of(value: Any, kinds: dict, name: str) -> str:
    if value not in kinds:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(str(each) for each in kinds)}")
    return kinds[value]


def put_signal(dst: Any, src: Any, signal_var: Any, signal_val: int, signal_op: SignalOp, remote_pe: int = -1,
               stream: Optional[Stream] = None) -> None:
    """As put, then updates the signal on the same PE, which sees the data when it sees the update. signal_var: a buffer of 8 bytes,
    or an array of one uint64. Remote.put_signal."""
    _in_order(stream)
    update = _of(signal_op, _UPDATES, "signal_op")
    to, source = _pair(dst, src, True)
    to.on(remote_pe).put_signal(..., source, _signal(signal_var), signal_val, update)


def signal_op(signal_var: Any, signal_val: int, signal_op: SignalOp, remote_pe: int = -1, stream: Optional[Stream] = None) -> None:
    """Updates the signal on PE `remote_pe`. Remote.signal."""
    _in_order(stream)
    _signal(signal_var).on(remote_pe).signal(signal_val, _of(signal_op, _UPDATES, "signal_op"))


def signal_wait(signal_var: Any, signal_val: int, signal_op: ComparisonType, stream: Optional[Stream] = None) -> None:
    """Returns when this PE's signal compares so with signal_val. ndarray.wait."""
    _in_order(stream)
    _signal(signal_var).wait(_of(signal_op, _COMPARISONS, "signal_op"), signal_val)


def quiet(stream: Optional[Stream] = None) -> None:
    """Returns when this PE's operations are complete. quoit.quiet."""
    _in_order(stream)
    quoit.quiet()


def fence(stream: Optional[Stream] = None) -> None:
    """Orders this PE's operations to each PE. quoit.fence."""
    _in_order(stream)
    quoit.fence()


def sync(team: int, stream: Optional[Stream] = None) -> None:
    """Returns when all PEs of the team have called it; completes nothing. Team.sync."""
    _in_order(stream)
    Teams.of(team).sync()


def barrier(team: int, stream: Optional[Stream] = None) -> None:
    """Completes this PE's operations, and returns when all PEs of the team have called it. quoit.quiet, then Team.sync."""
    _in_order(stream)
    quoit.quiet()
    Teams.of(team).sync()


def sync_all(stream: Optional[Stream] = None) -> None:
    """As sync, of all PEs. quoit.sync."""
    sync(Teams.TEAM_WORLD, stream)


def barrier_all(stream: Optional[Stream] = None) -> None:
    """As barrier, of all PEs. quoit.barrier."""
    _in_order(stream)
    quoit.barrier()


_OPS = {"sum": (quoit.sum, np.add), "min": (quoit.min, np.minimum), "max": (quoit.max, np.maximum)}


def _parts(dst_array: Any, src_array: Any, stream: Optional[Stream], times: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Both as arrays; dst has times[0] elements for times[1] of src."""
    _in_order(stream)
    to, source = np.asarray(dst_array), np.asarray(src_array)
    if to.dtype != source.dtype or to.size * times[1] != source.size * times[0]:
        raise ValueError(f"dst has {to.size} elements of {to.dtype}, but for the {source.size} of {source.dtype} of src it must have "
                         f"{source.size * times[0] / times[1]:g}")
    if not to.flags.c_contiguous:
        raise ValueError("dst must be contiguous")
    return to.view(ndarray), source.view(ndarray)


def reduce(team: int, dst_array: Any, src_array: Any, op: str, stream: Optional[Stream] = None) -> None:
    """dst becomes the "sum", "min" or "max" over the PEs of the team, element by element. ValueError: another op, or sizes that
    do not fit. quoit.sum, min, max."""
    to, source = _parts(dst_array, src_array, stream, (1, 1))
    _of(op, _OPS, "op")[0](source.reshape(to.shape), out=to, team=Teams.of(team))


def reducescatter(team: int, dst_array: Any, src_array: Any, op: str, stream: Optional[Stream] = None) -> None:
    """As reduce, of which each PE gets its own part: src has as many parts of dst's size as the team has PEs."""
    of = Teams.of(team)
    to, source = _parts(dst_array, src_array, stream, (1, of.n_pes))
    combine = _of(op, _OPS, "op")[1]
    parts = quoit.alltoall(source.reshape(of.n_pes, to.size), team=of)
    to[...] = combine.reduce(parts, axis=0, dtype=to.dtype).reshape(to.shape)


def alltoall(team: int, dst_array: Any, src_array: Any, stream: Optional[Stream] = None) -> None:
    """Part k of src goes to PE k of the team; part k of dst came from PE k. quoit.alltoall."""
    of = Teams.of(team)
    to, source = _parts(dst_array, src_array, stream, (1, 1))
    if to.size % of.n_pes:
        raise ValueError(f"alltoall takes a multiple of {of.n_pes} elements, one part for each PE of the team, but src has {to.size}")
    quoit.alltoall(source.reshape(of.n_pes, -1), out=to.reshape(of.n_pes, -1), team=of)


def fcollect(team: int, dst_array: Any, src_array: Any, stream: Optional[Stream] = None) -> None:
    """dst becomes the src of all PEs of the team, one after the other. quoit.allgather."""
    of = Teams.of(team)
    to, source = _parts(dst_array, src_array, stream, (of.n_pes, 1))
    quoit.allgather(source, out=to.reshape(of.n_pes, *source.shape), team=of)


def broadcast(team: int, dst_array: Any, src_array: Any, root: int = 0, stream: Optional[Stream] = None) -> None:
    """dst becomes the src of PE `root` of the team. quoit.broadcast."""
    to, source = _parts(dst_array, src_array, stream, (1, 1))
    quoit.broadcast(source.reshape(to.shape), root, out=to, team=Teams.of(team))


def collective_on_buffer(coll: str, team: int, dest: Buffer, src: Buffer, dtype: Optional[str] = None, op: Optional[str] = None,
                         root: int = 0, stream: Optional[Stream] = None, enable_timing: bool = False) -> Optional[float]:
    """The collective named `coll` ("reduce", "reducescatter", "alltoall", "fcollect", "broadcast") of two buffers, taken as
    arrays of `dtype`, bytes unless given. With enable_timing its time in ms."""
    routines = {"reduce": reduce, "reducescatter": reducescatter, "alltoall": alltoall, "fcollect": fcollect, "broadcast": broadcast}
    routine = _of(coll, routines, "coll")
    kind = np.dtype(dtype or np.uint8)
    words = [op] if coll.startswith("reduce") else [root] if coll == "broadcast" else []
    start = perf_counter()
    routine(team, np.asarray(dest).view(kind), np.asarray(src).view(kind), *words, stream=stream)
    return (perf_counter() - start) * 1000 if enable_timing else None


def _main(words: list) -> None:
    """Runs a program in which nvshmem.core is this package's module."""
    if not words or not os.path.exists(words[0]):
        sys.exit("usage: python -m quoit.run -n 4 -m quoit.nvshmem PROGRAM.py [ARGUMENT]...")
    from quoit import nvshmem
    sys.modules["nvshmem"] = sys.modules["nvshmem.core"] = nvshmem
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _main(sys.argv[1:])
