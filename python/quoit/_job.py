# SPDX-License-Identifier: BSD-3-Clause
"""The process as a PE: its job, teams and contexts, and what every collective routine needs: a workspace in symmetric memory
and the check that all PEs mean the same."""
from __future__ import annotations

import atexit
import bisect
import os
import sys
import zlib
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _core
from ._check import choice, integer, pe_of

# Workspace for collectives on private arrays: what is larger goes in pieces. The smaller one is for a job whose
# symmetric heap does not have room for the larger.
WORK_BYTES = (1 << 20, 1 << 16)
# Of the text by which PEs compare their calls.
CALL_BYTES = 160
# Sources of non-blocking puts that are kept until the next quiet; more are completed first.
PENDING_BYTES_MAX = 64 << 20


class Block(_core.Block):
    """A block of memory that PEs share, with the line that allocated it."""
    __slots__ = ("what", "where")

    def need(self) -> None:
        if not self.address:
            raise ValueError(f"{self.what}, allocated at {self.where}, was freed")


class Blocks:
    """The blocks of one kind of memory, found by their addresses."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.of: dict[int, Block] = {}

    def add(self, address: int, size: int, what: str) -> Block:
        block = Block(address, size)
        block.what, block.where = what, caller()
        bisect.insort(self.starts, address)
        self.of[address] = block
        return block

    def at(self, address: int, extent: int) -> Optional[Block]:
        """The block that holds these bytes, or None."""
        index = bisect.bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        block = self.of[self.starts[index]]
        return block if address + extent <= block.address + block.bytes else None

    def forget(self, block: Block) -> None:
        self.starts.remove(block.address)
        del self.of[block.address]
        block.forget()

    def clear(self) -> None:
        for block in list(self.of.values()):
            self.forget(block)


class Job:
    """What the package knows about this process as a PE. One a process; `job` below."""

    def __init__(self) -> None:
        self.state = "not initialized"
        self.blocks = Blocks()  # of the symmetric heap
        self.pages = Blocks()  # of quoit.dsm
        self.world: Optional["Team"] = None
        self.default: Optional["Context"] = None
        self.work: Any = None
        self.before_end: list[Any] = []  # called by finalize

    def need(self) -> "Job":
        """Initializes the library at the first use of what needs it: collective, as shmem_init is."""
        if self.state == "not initialized":
            self.start()
        elif self.state == "finalized":
            raise RuntimeError("quoit was finalized: a process is a PE once, from its first call to finalize()")
        return self

    def start(self) -> None:
        _core.init()
        self.state = "running"
        self.world = Team(_core.WORLD)
        self.default = Context._of(_core.CTX_DEFAULT, self.world)
        self.work = Work(self.world.n_pes)
        if os.environ.get("QUOIT_CHECK", "0") != "0":  # of the program's own blocks oshrun --check makes a table
            _core.free_at_exit(self.work.source_at)
        atexit.register(report, self)
        if self.world.n_pes > 1 and sys.excepthook is sys.__excepthook__:
            sys.excepthook = report_error

    def allocate(self, size: int, is_zero: bool, what: str) -> Block:
        """Collective. MemoryError on all PEs where the heap has no room."""
        agree(self.world, what)
        address = _core.allocate(max(size, 1), is_zero)
        if not address:
            raise MemoryError(f"{what}: no room for {size} bytes in the symmetric heap of each PE; its limit is "
                              "SHMEM_SYMMETRIC_SIZE (oshrun --symmetric-size)")
        return self.blocks.add(address, size, what)

    def free(self, block: Block) -> None:
        """Collective."""
        address = block.address
        block.need()
        self.need()
        agree(self.world, f"free of {block.what}, allocated at {block.where}")
        self.blocks.forget(block)
        _core.deallocate(address)  # begins with a barrier
        self.default._completed()


class Work:
    """Symmetric memory for collectives: `source` and `dest`, each of `size` bytes, as arrays of bytes; `digest` of this PE's
    call and `digests` of those of all."""

    def __init__(self, pes: int) -> None:
        for self.size in WORK_BYTES:
            self.source_at = _core.allocate(2 * self.size + 8 * (pes + 1), False)
            if self.source_at:
                break
        else:
            raise MemoryError("no room in the symmetric heap for the workspace of collectives, "
                              f"{2 * WORK_BYTES[-1]} bytes: set a larger SHMEM_SYMMETRIC_SIZE")
        self.dest_at = self.source_at + self.size
        self.digest_at = self.dest_at + self.size
        self.source = np.frombuffer(_core.memory(self.source_at, self.size), np.uint8)
        self.dest = np.frombuffer(_core.memory(self.dest_at, self.size), np.uint8)
        self.digest, self.digests = np.split(np.frombuffer(_core.memory(self.digest_at, 8 * (pes + 1)), np.uint64), [1])


def caller() -> str:
    """FILE:LINE of the code outside this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def hint(error: Any) -> str:
    """What people meet who take an ordinary array for a symmetric one; "" for other errors."""
    from ._array import ndarray
    name = getattr(error, "name", None)  # from Python 3.10 on
    if not isinstance(error, AttributeError) or type(getattr(error, "obj", None)) is not np.ndarray or not hasattr(ndarray, name):
        return ""
    return (f"quoit: this array is an ordinary one of numpy, as the results of arithmetic and of numpy's functions are; {name} is "
            "for symmetric ones, which quoit.zeros or quoit.asarray makes on all PEs together\n")


def report_error(*error: Any) -> None:
    """An exception that ends a PE, as Python shows it: which PE, and in one write, so that oshrun does not mix those of several."""
    import traceback
    sys.stderr.write(f"PE {job.world.my_pe}: " + "".join(traceback.format_exception(*error)) + hint(error[1]))


def report(of: Job) -> None:
    """What was not freed: once for the job, as its PEs allocate alike. Not after an error, which has other lines to read."""
    kept = [*of.blocks.of.values(), *of.pages.of.values()]
    if of.state != "running" or not kept or of.world.my_pe != 0:
        return
    if getattr(sys, "last_value", None) is not None or getattr(sys, "last_exc", None) is not None:
        return
    print("quoit: memory was not freed:", file=sys.stderr)
    for block in kept:
        print(f"  {block.what}, allocated at {block.where}", file=sys.stderr)
    print("  free each by its free(), or make it in a with statement", file=sys.stderr)


def ranges(numbers: list[int]) -> str:
    """1,2,3,5 as "PEs 1-3,5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] + 1 == number:
            parts[-1].append(number)
        else:
            parts.append([number])
    text = ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
    return ("PEs " if len(numbers) > 1 else "PE ") + text


def agree(team: "Team", call: str) -> None:
    """Collective over the team: all its PEs must give the same text, which describes what they are about to do together.

    Otherwise all of them get the same ValueError, so that no PE waits for another. On return, what earlier collectives left
    in the workspace has been read by every PE of the team. PEs in another collective than this one give no text: what came in
    its place is not shown."""
    work, count, text = job.work, team.n_pes, call.encode()
    team.sync()
    digest = zlib.crc32(text)
    work.digest[0] = digest
    _core.fcollect(team._handle, work.digest_at + 8, work.digest_at, 8)
    if (work.digests[:count] == digest).all():  # then all PEs find it so
        return
    size = min(CALL_BYTES, work.size // count)
    text = text[:size - 4].ljust(size - 4)
    work.source[:size] = np.frombuffer(zlib.crc32(text).to_bytes(4, "little") + text, np.uint8)
    _core.fcollect(team._handle, work.dest_at, work.source_at, size)
    calls: dict[str, list[int]] = {}
    for pe in range(count):
        said = bytes(work.dest[pe * size:(pe + 1) * size])
        if zlib.crc32(said[4:]) != int.from_bytes(said[:4], "little"):
            raise ValueError(f"PEs are in different collective calls, this one in {call}; oshrun --check, or check=True of "
                             "quoit.run, says which PE is in which")
        calls.setdefault(said[4:].decode(errors="replace").rstrip(), []).append(pe)
    raise ValueError("PEs of one collective call differ: " +
                     "; ".join(f"{ranges(pes)}: {text}" for text, pes in calls.items()))


class Team:
    """A set of PEs, numbered from 0, that takes part in collectives (specification 9.4). A context manager: the team is
    destroyed at the end of the with statement. False in a condition on the PEs outside of it.

    my_pe: this PE's number in the team, -1 outside of it; n_pes: the number of its PEs. shmem_team_my_pe, shmem_team_n_pes."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.my_pe: int = _core.team_my_pe(handle)
        self.n_pes: int = max(_core.team_n_pes(handle), 0)

    def __bool__(self) -> bool:
        return self.my_pe >= 0

    def __repr__(self) -> str:
        return f"<Team: PE {self.my_pe} of {self.n_pes}>" if self else "<Team without this PE>"

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.destroy()

    def _alive(self) -> "Team":
        job.need()
        if not self:
            raise ValueError("this PE is not in the team, or the team was destroyed")
        return self

    def split(self, start: int = 0, stride: int = 1, size: Optional[int] = None) -> "Team":
        """The team of PEs start, start + stride, ... of this one, `size` of them (as many as there are). Collective over this
        team. ValueError if the range leaves the team. shmem_team_split_strided."""
        self._alive()
        stride = integer(stride, "stride")
        if stride < 1:
            raise ValueError(f"stride is {stride}, but must be at least 1")
        start = pe_of(start, self.n_pes, "the team")
        most = (self.n_pes - 1 - start) // stride + 1
        size = most if size is None else integer(size, "size")
        if not 1 <= size <= most:
            raise ValueError(f"size is {size}, but from PE {start} in steps of {stride} there are 1..{most} PEs")
        agree(self, f"split(start={start}, stride={stride}, size={size})")
        return Team(_core.team_split(self._handle, start, stride, size))

    def split_2d(self, xrange: int) -> tuple["Team", "Team"]:
        """This PE's teams along x and along y, where the PEs of this team lie in rows of `xrange`: PE i in row i // xrange and
        column i % xrange. Collective over this team. ValueError: xrange is not 1..n_pes. shmem_team_split_2d."""
        self._alive()
        xrange = integer(xrange, "xrange")
        if not 1 <= xrange <= self.n_pes:
            raise ValueError(f"xrange is {xrange}, but the team has 1..{self.n_pes} PEs for a row")
        agree(self, f"split_2d(xrange={xrange})")
        x, y = _core.team_split_2d(self._handle, xrange)
        return Team(x), Team(y)

    def translate(self, pe: int, to: Optional["Team"] = None) -> int:
        """The number in `to` (all PEs, unless given) of PE `pe` of this team; -1 if it is not in it. Local.
        shmem_team_translate_pe."""
        self._alive()
        other = team_of(to)
        return _core.team_translate(self._handle, pe_of(pe, self.n_pes, "the team"), other._handle)

    def sync(self) -> None:
        """Returns when all PEs of the team have called it; completes no puts. shmem_team_sync."""
        _core.team_sync(self._alive()._handle)

    def context(self, *options: str) -> "Context":
        """A Context whose PE numbers are those of this team."""
        return Context(*options, team=self)

    def destroy(self) -> None:
        """Ends the team. Nothing on PEs outside. shmem_team_destroy."""
        if self._handle in (_core.WORLD, _core.SHARED):
            raise ValueError("the teams WORLD and SHARED cannot be destroyed")
        if self:
            _core.team_destroy(self._handle)
            self._handle, self.my_pe = 0, -1


def team_of(team: Any) -> Team:
    """The team of an argument; of all PEs for None."""
    if team is None:
        return job.need().world
    if not isinstance(team, Team):
        raise TypeError(f"team is {team!r}, but must be a Team: quoit.world(), quoit.shared(), or a split of one")
    return team._alive()


class Future:
    """A put or get that was begun by put_nbi or get_nbi."""
    __slots__ = ("_context", "_serial", "_value")

    def __init__(self, context: "Context", value: Any) -> None:
        self._context, self._serial, self._value = context, context._quiets, value

    def done(self) -> bool:
        """Whether a quiet since then has completed it. Asks nobody."""
        return self._context._quiets != self._serial

    def result(self) -> Any:
        """Completes all operations of the context if this one is not yet complete. The array of a get; None of a put."""
        if not self.done():
            self._context.quiet()
        return self._value


class Context:
    """A stream of operations with its own quiet and fence (specification 9.5). A context manager: destroyed, which completes its
    operations, at the end of the with statement.

    options: "private" (used by the thread that made it), "serialized" (by one thread at a time), "nostore" (no fence is needed).
    team: the PE numbers of on() are those of this team; all PEs unless given. Errors: ValueError for another option,
    RuntimeError if no context is left. shmem_ctx_create, shmem_team_create_ctx."""
    _names = {"private": _core.PRIVATE, "serialized": _core.SERIALIZED, "nostore": _core.NOSTORE}

    def __init__(self, *options: str, team: Optional[Team] = None) -> None:
        team = team_of(team)
        bits = 0
        for option in options:
            bits |= self._names[choice(option, "an option of a context", self._names)]
        self._fill(_core.ctx_create(team._handle, bits), team)
        if not self._handle:
            raise RuntimeError("no context is left: destroy those that are not needed")

    def _fill(self, handle: int, team: Team) -> None:
        self._handle, self.team = handle, team
        self._token = _core.Block(handle, 0)
        self._quiets = 0
        self._pending: list[Any] = []
        self._pending_bytes = 0

    @classmethod
    def _of(cls, handle: int, team: Team) -> "Context":
        made = cls.__new__(cls)
        made._fill(handle, team)
        return made

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.destroy()

    def _alive(self) -> int:
        job.need()
        if not self._handle:
            raise ValueError("the context was destroyed")
        return self._handle

    def _keep(self, memory: np.ndarray, value: Any) -> Future:
        """Holds the private memory of an operation that was begun until the next quiet, whether or not its Future, whose
        result is `value`, is kept."""
        if self._pending_bytes > PENDING_BYTES_MAX:
            self.quiet()
        self._pending.append(memory)
        self._pending_bytes += memory.nbytes
        return Future(self, value)

    def _completed(self) -> None:
        self._quiets += 1
        self._pending.clear()
        self._pending_bytes = 0

    def on(self, array: Any, pe: int) -> Any:
        """`array` on PE `pe` of the context's team, through this context: as array.on(pe) otherwise. TypeError: no symmetric
        array."""
        if not hasattr(array, "_remote"):
            raise TypeError(f"array is of type {type(array).__name__}, but must be a symmetric array, such as quoit.zeros(3)")
        return array._remote(pe, self)

    def quiet(self, pes: Any = None) -> None:
        """Returns when all operations of the context are complete; or those to `pes` alone, a PE or several of the context's team.
        Futures are done after one of all PEs. ValueError: no such PE. shmem_ctx_quiet, shmem_ctx_pe_quiet."""
        handle = self._alive()
        if pes is None:
            _core.ctx_quiet(handle)
            self._completed()
            return
        listed = pes if isinstance(pes, (list, tuple, range, np.ndarray)) else [pes]
        numbers = np.array([pe_of(pe, self.team.n_pes, "the context's team") for pe in listed], np.intc)
        _core.ctx_pe_quiet(handle, numbers.__array_interface__["data"][0], numbers.size)

    def fence(self) -> None:
        """Puts, atomics and signals before it are delivered, on each PE, before those after it. shmem_ctx_fence."""
        _core.ctx_fence(self._alive())

    def destroy(self) -> None:
        """Completes all operations and ends the context. shmem_ctx_destroy."""
        if self._handle == _core.CTX_DEFAULT:
            raise ValueError("the default context cannot be destroyed")
        _core.ctx_destroy(self._alive())
        self._completed()
        self._token.forget()
        self._handle = 0


job = Job()


def init() -> None:
    """Makes this process a PE; collective. Everything that needs it does so at its first use, so it is seldom called.
    shmem_init_thread with SHMEM_THREAD_MULTIPLE: any thread may use the package."""
    job.need()


def finalize() -> None:
    """Ends this process as a PE; collective. The end of the program does so, too. Reports symmetric memory that was not freed,
    which cannot be used afterwards. shmem_finalize."""
    if job.state != "running":
        return
    report(job)
    for end in job.before_end:
        end()
    job.blocks.clear()
    job.pages.clear()
    job.state = "finalized"
    _core.deallocate(job.work.source_at)
    _core.finalize()


def is_initialized() -> bool:
    """Whether this process is a PE now: from its first use of what needs that to finalize(). shmem_query_initialized."""
    return job.state == "running"


class Info(NamedTuple):
    """What info() returns."""
    #: Of the library, three numbers with dots; of the specification that it has: (major, minor).
    version: str
    specification: tuple[int, int]
    #: The path of the shared library that this process uses.
    library: str


def info() -> Info:
    """Versions, and the library's path; does not make this process a PE. shmem_info_get_version, shmem_info_get_name."""
    return Info(_core.VENDOR.split()[-1], (_core.MAJOR_VERSION, _core.MINOR_VERSION), _core.library() or "")


def my_pe() -> int:
    """This PE's number, 0..n_pes()-1. shmem_my_pe."""
    return job.need().world.my_pe


def n_pes() -> int:
    """The number of PEs of the job. shmem_n_pes."""
    return job.need().world.n_pes


def barrier() -> None:
    """Completes this PE's operations and returns when all PEs have called it. shmem_barrier_all."""
    job.need()
    _core.barrier_all()
    job.default._completed()


def sync() -> None:
    """Returns when all PEs have called it; completes no operations, as barrier does. shmem_sync_all."""
    job.need().world.sync()


def quiet(pes: Any = None) -> None:
    """Returns when all operations of the default context are complete; or those to `pes` alone, a PE or several. ValueError: no
    such PE. shmem_quiet, shmem_pe_quiet."""
    job.need().default.quiet(pes)


def fence() -> None:
    """Orders the operations of the default context to each PE. shmem_fence."""
    job.need().default.fence()


def world() -> Team:
    """The team of all PEs. SHMEM_TEAM_WORLD."""
    return job.need().world


def shared() -> Team:
    """The team of the PEs of this PE's host. SHMEM_TEAM_SHARED."""
    job.need()
    return Team(_core.SHARED)


def global_exit(status: int = 1) -> None:
    """Ends the whole job with `status` from this PE; does not return. shmem_global_exit."""
    status = integer(status, "status")
    job.need()
    sys.stdout.flush()
    sys.stderr.flush()
    _core.global_exit(status)
