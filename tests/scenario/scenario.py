# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the scenario tests: starting oshrun, and finding what a job left behind.

Every job has a mark in its environment, by which its processes are found in /proc, whichever process started them. The
folder of the programs under test comes from SCENARIO_BIN, that of the test programs from SCENARIO_PROGRAMS."""
import functools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest
import uuid

BIN = os.environ["SCENARIO_BIN"]
PROGRAMS = os.environ["SCENARIO_PROGRAMS"]
SANITIZE = os.environ.get("SCENARIO_SANITIZE", "")
OSHRUN = os.path.join(BIN, "oshrun")
# Long enough for a loaded machine; a job that takes longer hangs.
LIMIT_S = 120
# Of a single run: what a job must not wait for takes 60 s and more.
LATE_S = 30
# "Within a second", with a margin: the fastest of some runs. A single one may meet a machine that does something else; and
# tests/load/load.py says how much longer everything takes beside its load.
SOON_S = min(5 * int(os.environ.get("TEST_SLOWDOWN", "1")), LATE_S)
RUNS_MAX = 3


def program(name):
    return os.path.join(PROGRAMS, name)


class Job(subprocess.Popen):
    """What communicate() tells is without LeakSanitizer's remark on a thread that ended while it looked, and without the lines
    about hosts that were silent for a while, as on a busy machine: `silences` has those."""

    REMARK = re.compile(rb"^==\d+==Unable to get registers from thread \d+\.\n", re.M)
    SILENCE = re.compile(rb"^(?:oshrun|quoit): .*\[Q031[78]\]\n", re.M)
    silences = ()

    def communicate(self, *arguments, **how):
        out, err = (self.REMARK.sub(b"", text) if text else text for text in super().communicate(*arguments, **how))
        self.silences = [line.decode() for line in self.SILENCE.findall(err or b"")]
        return out, self.SILENCE.sub(b"", err) if err else err


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __str__(self):
        return f"status {self.status} after {self.seconds:.2f} s\n--- out\n{self.out}\n--- err\n{self.err}"


def environment(mark, **more):
    made = {k: v for k, v in os.environ.items() if not k.startswith(("SHMEM_", "QUOIT_"))}
    made.update(SCENARIO_MARK=mark, NO_COLOR="1")
    made.update(more)
    return made


def processes(mark):
    """Pids of living processes that have the mark."""
    found = []
    needle = ("SCENARIO_MARK=" + mark).encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if needle in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            pass
    return found


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""


def send(pid, number):
    """A signal. False: the process has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def has_output(pipe):
    """Something can be read, or the writers have gone."""
    return bool(select.select([pipe], [], [], 0)[0])


def state_of(pid):
    """"": it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def has_mpi(compiler):
    """Whether it is there, and finds the header of its MPI, which packages have apart."""
    return bool(shutil.which(compiler)) and subprocess.run([compiler, "-E", "-x", "c", "-"], input=b"#include <mpi.h>\n",
                                                           capture_output=True, check=False).returncode == 0


def has_steps():
    """Whether the programs under test have the steps of base/step.h."""
    greet = program("scenario_greet")
    result = os.path.exists(greet) and subprocess.run([greet], env={**os.environ, "TEST_STEP": "pe.hello=kill"}, capture_output=True,
                                                      check=False)
    return bool(result) and result.returncode == -signal.SIGKILL


def need_steps():
    if not has_steps():
        raise unittest.SkipTest("the library was built without steps for tests (QUOIT_TEST_DRIVERS)")


def greetings(count):
    """What scenario_greet prints as a job of so many PEs, sorted."""
    return sorted(f"hello from PE {i} of {count}" for i in range(count))


def until_good(run, is_good):
    """What the first of up to three runs that is good gives, or the last. For what a machine that holds a process up may spoil;
    the caller judges it."""
    for _ in range(RUNS_MAX):
        result = run()
        if is_good(result):
            break
    return result


def each(*values):
    """Makes a case for each value, named for it, of a method that takes one. Cases run at once (main), the rounds of a loop do not."""
    def note(method):
        method.case_values = values
        return method
    return note


class Case(unittest.TestCase):
    maxDiff = None

    def __init_subclass__(cls, **how):
        super().__init_subclass__(**how)
        for name in dir(cls):
            method = getattr(cls, name)
            for value in getattr(method, "case_values", ()):
                word = re.sub(r"\W+", "_", str(value)).strip("_")
                setattr(cls, f"{name}_{word}", functools.partialmethod(method, value))
                setattr(cls, name, None)

    def setUp(self):
        self.mark = uuid.uuid4().hex
        self.shared_before = set(os.listdir("/dev/shm"))

    def tearDown(self):
        self.assert_nothing_left()

    def assert_nothing_left(self):
        end = time.monotonic() + LATE_S
        left = processes(self.mark)
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left = processes(self.mark)
        names = [(pid, name_of(pid)) for pid in left]
        for pid in left:
            send(pid, signal.SIGKILL)
        self.assertEqual(names, [], "processes were left behind")
        mine = {n for n in set(os.listdir("/dev/shm")) - self.shared_before if "quoit" in n or "shmem" in n}
        self.assertEqual(mine, set(), "shared memory was left behind")

    def pids_of(self, *names):
        return sorted(pid for pid in processes(self.mark) if name_of(pid) in names)

    def start(self, *arguments, env=None, **how):
        """oshrun in the background, as a Job."""
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return Job([OSHRUN, *map(str, arguments)], env=environment(self.mark, **(env or {})), **how)

    def run_job(self, *arguments, env=None, text_in=None, limit=LIMIT_S, cwd=None):
        begin = time.monotonic()
        job = self.start(*arguments, env=env, cwd=cwd,
                         stdin=subprocess.PIPE if text_in is not None else subprocess.DEVNULL)
        try:
            out, err = job.communicate(text_in.encode() if text_in is not None else None, timeout=limit)
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = job.communicate()
            self.fail(f"the job hangs: {arguments}\n{out.decode()}\n{err.decode()}")
        return Result(job.returncode, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - begin)

    def run_soon(self, *arguments, until="", soon_s=SOON_S, **how):
        """A job that ends soon, and says `until` where it had the time: up to three runs, the last of which counts. What is
        always late, or never says it, fails."""
        result = until_good(lambda: self.run_job(*arguments, **how),
                            lambda result: result.seconds < soon_s and re.search(until, result.err))
        self.assertLess(result.seconds, soon_s, result)
        if until:
            self.assertRegex(result.err, until)
        return result

    def run_out(self, seconds, words, *arguments, **how):
        """A job that its --timeout of so many seconds ends, and what is said of its PEs then. One that was held up had not come
        to where it waits: again with three times as many."""
        for given in (seconds * 3 ** run for run in range(RUNS_MAX)):
            result = self.run_job("--timeout", f"{given}s", *arguments, limit=given + LIMIT_S, **how)
            self.assertEqual(result.status, 124, result)
            if all(re.search(each, result.err) for each in words):
                break
        for each in words:
            self.assertRegex(result.err, each)
        self.assertLess(result.seconds, given + LATE_S, result)
        return result

    def wait_for(self, condition, what, limit=LIMIT_S):
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                self.fail(f"waited {limit} s for {what}")
            time.sleep(0.01)


class Lines:
    """A stream that several processes share: what one writes for a test reaches standard error as whole lines."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text
        if text.endswith("\n"):
            os.write(2, self.text.encode())
            self.text = ""

    def flush(self):
        pass


class Share(unittest.TestSuite):
    """What one of several processes runs: the next case that nobody has begun, until there is none."""
    _cleanup = False

    def __init__(self, cases, queue):
        super().__init__()
        self.cases, self.queue = cases, queue

    def __iter__(self):
        while taken := os.read(self.queue, 1):
            yield self.cases[taken[0]]


def each_case(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_case(test)
        else:
            yield test


class AtOnce(unittest.TestProgram):
    """Runs the cases in several processes."""

    def __init__(self, processes):
        self.processes = processes
        super().__init__(argv=sys.argv)

    def runTests(self):
        cases = list(each_case(self.test))
        queue, into_queue = os.pipe()
        os.write(into_queue, bytes(range(len(cases))))
        os.close(into_queue)
        begun = [self.fork(cases, queue) for _ in range(min(self.processes, len(cases)))]
        # A process that dies fails, with the case that it had taken
        sys.exit(any([os.waitpid(pid, 0)[1] for pid in begun]))

    def fork(self, cases, queue):
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            result = unittest.TextTestRunner(Lines(), verbosity=2, descriptions=False).run(Share(cases, queue))
            status = not result.wasSuccessful()
        finally:
            sys.stdout.flush()
            os._exit(status)


def main(processes=1):
    """Runs the cases that the command line names, or all; in so many processes, where they wait for most of their time."""
    if processes > 1:
        AtOnce(processes)
    unittest.main(verbosity=2, argv=sys.argv)
