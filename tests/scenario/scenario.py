# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the scenario tests: starting oshrun, and finding what a job left behind.

Every job has a mark in its environment, by which its processes are found in /proc, whichever process started them. The
folder of the programs under test comes from SCENARIO_BIN, that of the test programs from SCENARIO_PROGRAMS."""
import os
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
LIMIT_S = 60
# "Within a second", with a margin for a machine that runs other tests.
SOON_S = 5


def program(name):
    return os.path.join(PROGRAMS, name)


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


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.mark = uuid.uuid4().hex
        self.shared_before = set(os.listdir("/dev/shm"))

    def tearDown(self):
        self.assert_nothing_left()

    def assert_nothing_left(self):
        end = time.monotonic() + SOON_S
        left = processes(self.mark)
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left = processes(self.mark)
        names = [(pid, name_of(pid)) for pid in left]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(names, [], "processes were left behind")
        mine = {n for n in set(os.listdir("/dev/shm")) - self.shared_before if "quoit" in n or "shmem" in n}
        self.assertEqual(mine, set(), "shared memory was left behind")

    def start(self, *arguments, env=None, **how):
        """oshrun in the background, as a Popen."""
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([OSHRUN, *map(str, arguments)], env=environment(self.mark, **(env or {})), **how)

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
        return Result(job.returncode, out.decode(errors="replace"), err.decode(errors="replace"),
                      time.monotonic() - begin)

    def wait_for(self, condition, what, limit=LIMIT_S):
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                self.fail(f"waited {limit} s for {what}")
            time.sleep(0.01)


def main():
    unittest.main(verbosity=2, argv=sys.argv)
