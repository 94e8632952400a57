# SPDX-License-Identifier: BSD-3-Clause
"""quoit.run: a function on the PEs of a job, from a script or a notebook. Loads neither numpy nor the library."""
from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from typing import Any, Callable, Optional, Sequence

from . import _pickle

TAG = re.compile(r"\[PE (\d+) [^\]]*\] ?")
INTERRUPT_LIMIT_S = 10


class RunError(RuntimeError):
    """A job of run() failed.

    errors: {pe: exception} of the PEs whose function raised; the first in order of PEs is the cause of this exception, and its
    traceback on that PE stands in the message. status: of the job, as oshrun's. messages: what oshrun reported."""

    def __init__(self, text: str, errors: dict, status: int, messages: str) -> None:
        super().__init__(text)
        self.errors, self.status, self.messages = errors, status, messages


def find_oshrun() -> str:
    """oshrun of the installation that this package is in, else of PATH."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for _ in range(6):  # PREFIX/lib[/x86_64-linux-gnu]/quoit/python/quoit, or a virtual environment's site-packages
        folder = os.path.dirname(folder)
        for name in ("oshrun.quoit", "oshrun"):  # the first where another project has the second, as on Debian
            path = os.path.join(folder, "bin", name)
            if os.access(path, os.X_OK):
                return path
    found = shutil.which("oshrun")
    if not found:
        raise FileNotFoundError("oshrun is neither beside this package nor in PATH")
    return found


def child_environment() -> dict:
    """In which a PE finds this package, and the modules that this process finds."""
    made = dict(os.environ)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [own, *(place or os.getcwd() for place in sys.path)]
    made["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(places))
    return made


class _Output:
    """Passes on the output of the PEs: of PE 0 at once, of the others after the end in order of PEs; or all at once, with the PE
    before each line."""

    def __init__(self, is_live: bool) -> None:
        self.is_live = is_live
        self.held: dict[tuple, list] = {}
        self.messages: list[str] = []

    def take(self, stream: Any, name: str) -> None:
        for line in stream:
            found = TAG.match(line)
            if not found:
                self.messages.append(line)  # of oshrun itself
            elif self.is_live:
                self.write(name, f"[PE {found[1]}] {line[found.end():]}")
            elif found[1] == "0":
                self.write(name, line[found.end():])
            else:
                self.held.setdefault((int(found[1]), name), []).append(line[found.end():])

    @staticmethod
    def write(name: str, text: str) -> None:
        to = getattr(sys, name)
        to.write(text)
        to.flush()

    def finish(self) -> None:
        for (_, name), lines in sorted(self.held.items(), key=lambda item: (item[0][0], item[0][1] == "stderr")):
            self.write(name, "".join(lines))


def _words(pes: int, hosts: int, check: bool, network: Optional[str], timeout: Optional[float], options: Sequence[str]) -> list:
    for name, value in (("pes", pes), ("hosts", hosts)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {value!r}, but must be an integer of at least 1")
    if pes < hosts:
        raise ValueError(f"pes is {pes}, but each of the {hosts} hosts has at least one")
    words = ["--tag", "-n", str(pes), "--hosts", str(hosts)]
    words += ["--check"] if check else []
    words += ["--network", network] if network else []
    words += ["--timeout", f"{round(timeout * 1000)}ms"] if timeout else []
    return words + list(options)


def _read_results(folder: str, pes: int) -> tuple:
    """{pe: result}, {pe: (exception, traceback as text)}"""
    results, errors = {}, {}
    for pe in range(pes):
        path = os.path.join(folder, str(pe))
        if os.path.exists(path):
            with open(path, "rb") as file:
                is_result, value, text = pickle.load(file)
            if is_result:
                results[pe] = value
            else:
                errors[pe] = (value, text)
    return results, errors


def _wait(job: subprocess.Popen, threads: list) -> None:
    """Until the job has ended and its output was passed on; an interrupt ends the job first."""
    __tracebackhide__ = True
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # returns to Python for signals
        job.wait()
    except BaseException:
        if job.poll() is None:
            job.send_signal(signal.SIGINT)
        try:
            job.wait(INTERRUPT_LIMIT_S)
        except subprocess.TimeoutExpired:
            job.kill()  # what guards the job ends the rest
            job.wait()
        raise


def run(function: Callable, *arguments: Any, pes: int = 2, hosts: int = 1, check: bool = False, network: Optional[str] = None,
        timeout: Optional[float] = None, output: str = "order", options: Sequence[str] = (), **named: Any) -> list:
    """Runs function(*arguments, **named) on each of `pes` PEs, and returns the list of their results in order of PEs.

    hosts: hosts emulated on this machine, joined into a ring (1: none). network: what joins them instead, as oshrun --network.
    check: oshrun --check, which finds misuse. timeout: seconds; after that the job is ended, and RunError says where each PE
    waited. options: more options of oshrun. output: "order": PE 0's lines as they come, the others' after the end, in order of
    PEs; "live": all as they come, with the PE before each line.

    The function, its arguments and results are pickled; functions and classes of __main__, of a notebook too, travel by value
    with the global variables that they name. Random generators of all PEs start alike unless the function seeds them by my_pe().

    Errors: RunError when a PE raises, or the job fails otherwise; the first exception, with its traceback, is the cause.
    KeyboardInterrupt ends the job first. TypeError when something cannot be pickled, ValueError for a wrong option."""
    __tracebackhide__ = True  # for IPython: what the PEs raised stands in the message
    if output not in ("order", "live"):
        raise ValueError(f"output is {output!r}, but must be 'order' or 'live'")
    words = _words(pes, hosts, check, network, timeout, options)
    with tempfile.TemporaryDirectory(prefix="quoit-run-") as folder:
        with open(os.path.join(folder, "function"), "wb") as file:
            file.write(_pickle.dumps((function, arguments, named, _pickle.cell_sources())))
        job = subprocess.Popen([find_oshrun(), *words, sys.executable, "-m", "quoit._pe", folder], env=child_environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
        passed = _Output(output == "live")
        threads = [threading.Thread(target=passed.take, args=(getattr(job, name), name), daemon=True)
                   for name in ("stdout", "stderr")]
        for thread in threads:
            thread.start()
        try:
            _wait(job, threads)
        finally:
            job.stdin.close()  # PE 0 ends the job where this end is closed, also by the death of this process
            passed.finish()
        results, errors = _read_results(folder, pes)
    if job.returncode == 0 and len(results) == pes:
        _Output.write("stderr", "".join(passed.messages))
        return [results[pe] for pe in range(pes)]
    raise _failed(job.returncode, errors, "".join(passed.messages), pes)


def _failed(status: int, errors: dict, messages: str, pes: int) -> RunError:
    """One exception for all that PEs raised: those with the same text are one line."""
    if not errors:
        return RunError(f"the job ended with status {status}\n{messages}".rstrip(), {}, status, messages)
    first = min(errors)
    alike: dict[str, list[int]] = {}
    for pe, (error, _) in errors.items():
        alike.setdefault(f"{type(error).__name__}: {error}", []).append(pe)
    lines = [f"PE{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} of {pes}: {text}"
             for text, numbers in alike.items()]
    lines += ["", f"on PE {first}:", errors[first][1].rstrip()]
    failed = RunError("\n".join(lines), {pe: error for pe, (error, _) in errors.items()}, status, messages)
    failed.__cause__ = errors[first][0]
    return failed
