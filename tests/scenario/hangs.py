# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a job in which every PE waits, and nobody is left to end a wait, says so once, with the likely cause and who waits for
what; it goes on, and Ctrl-C says it again. A wait that somebody ends, however late and from wherever, brings no such line.

Method: kinds of hangs and of long waits (hang.c), all at once, since they sleep: of each hang the line is awaited, then the job
is interrupted. Long waits last longer than the 10 s after which the line comes. On one host, on a ring and over a network."""
import re
import shutil
import signal
import subprocess
import time
import unittest

import scenario

HANG = scenario.program("scenario_hang")
SHAPES = {"host": ("-n", 3), "ring": ("--hosts", 3, "-n", 3), "tcp": ("--network", "tcp", "--hosts", 3, "-n", 3)}
# Kind: what the line says, its code, and a position
HANGS = {
    "value": (r"no PE is left to write what PE 2 waits for", "Q0140", r"PE 2 is waiting in shmem_long_wait_until .*for flag == 7, which is 0"),
    "values": (r"no PE is left to write what PEs 0-2 wait for", "Q0140", r"PEs 0-2 are waiting in .*for flag == 1, which is 0"),
    "count-short": (r"no PE is left to write what PE 2 waits for", "Q0140", r"PE 2 is waiting in .*for count >= 3, which is 2"),
    "no-signal": (r"no PE is left to write what PE 0 waits for", "Q0140", r"PE 0 is waiting in shmem_signal_wait_until"),
    "any-of": (r"no PE is left to write what PE 0 waits for", "Q0140", r"PEs 1,2 are waiting in shmem_sync_all"),
    "two-locks": (r"PE 0 waits for a lock whose holder, PE 1, waits too", "Q0142", r"PE 1 is waiting in shmem_set_lock .*which PE 0 holds"),
    "ring-of-locks": (r"PE 0 waits for a lock whose holder, PE 1, waits too", "Q0142", r"PE 2 is waiting in shmem_set_lock .*which PE 0 holds"),
    "kept-lock": (r"PE 1 waits for a lock whose holder, PE 0, waits too", "Q0142", r"PE 0 is waiting in shmem_barrier_all"),
    "other-order": (r"the collectives that the PEs are in do not match", "Q0141", r"PE 0 is waiting in shmem_long_sum_reduce"),
    "circle-of-teams": (r"the collectives that the PEs are in do not match", "Q0141", r"PEs 0-2 are waiting in shmem_team_sync"),
    "pool": (r"no PE is left to write what PE 2 waits for", "Q0140", r"PE 2 is waiting in shmem_long_wait_until .*for flag == 7, which is 0"),
    "part-of-team": (r"the collectives that the PEs are in do not match", "Q0141", r"PE 0 is waiting in shmem_team_sync"),
}
WAITS = ("sleeps", "computes", "reads", "thread", "chain", "alarms", "child", "gives-up", "trickles", "commands", "stops")
FEW = ("value", "two-locks", "other-order")  # of each shape but one host
WAITS_OF_RINGS = ("sleeps", "trickles", "stops")
LONG_S = 15
# ThreadSanitizer gives each process a second thread, which might end a wait.
HAS_THREADS = "thread" in scenario.SANITIZE


class Kinds(scenario.Case):
    def read_until(self, job, words):
        """What the job prints on standard error until a line has `words`."""
        text = ""
        for line in job.stderr:
            text += line.decode()
            if re.search(words, text):
                return text
        self.fail(f"the job ended without {words}:\n{text}")
        return ""

    def see_hangs(self, cases):
        """Each case is a shape and a kind; all at once, since their jobs sleep."""
        jobs = {(shape, kind): self.start("--timeout", "300s", *SHAPES[shape], HANG, kind) for shape, kind in cases}
        for (shape, kind), job in jobs.items():
            with self.subTest(shape=shape, kind=kind):
                cause, code, position = HANGS[kind]
                text = self.read_until(job, "the job goes on; Ctrl-C ends it")
                self.assertRegex(text, rf"warning: every PE waits, and nothing has moved for \d\d+ s: {cause} +\[{code}\]")
                self.assertRegex(text, position)
                job.send_signal(signal.SIGINT)
                out, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual((job.returncode, out), (130, b""), err)
                self.assertRegex(err.decode(), r"ended by SIGINT +\[Q0207\]")
                self.assertRegex(err.decode(), position.replace("is waiting", "was waiting").replace("are waiting", "were waiting"))

    def see_waits(self, cases):
        jobs = {(shape, kind): self.start(*SHAPES[shape], HANG, kind, stdin=subprocess.PIPE) for shape, kind in cases}
        stopping = sum(kind == "stops" for _, kind in cases)
        self.wait_for(lambda: len(self.stopped()) == stopping, "the PEs that stop themselves")
        time.sleep(LONG_S)
        for pid in self.stopped():
            scenario.send(pid, signal.SIGCONT)
        for (shape, kind), job in jobs.items():
            with self.subTest(shape=shape, kind=kind):
                out, err = job.communicate(b"x", timeout=scenario.LIMIT_S)
                self.assertEqual((job.returncode, out, err), (0, b"the wait has ended\n", b""))

    def stopped(self):
        return [pid for pid in self.pids_of("scenario_hang") if scenario.state_of(pid) == "T"]


class Short(Kinds):
    @unittest.skipIf(HAS_THREADS, "each PE has a second thread")
    def test_a_hang(self):
        self.see_hangs([("host", "value")])


class All(Kinds):
    @unittest.skipIf(HAS_THREADS, "each PE has a second thread")
    def test_hangs_on_one_host(self):
        self.see_hangs([("host", kind) for kind in HANGS])

    @unittest.skipIf(HAS_THREADS, "each PE has a second thread")
    def test_hangs_on_a_ring_and_a_network(self):
        self.see_hangs([(shape, kind) for shape in ("ring", "tcp") for kind in FEW])

    @unittest.skipUnless(shutil.which("addr2line"), "lines come from addr2line")
    def test_calls_of_one_line(self):
        """Several calls of one line are one place."""
        words = r"\n  PEs 0-2 were waiting in shmem_long_wait_until \(hang.c:\d+\) for flag == 1, which is 0\n"
        self.run_out(2, [words], "-n", 3, HANG, "two-calls")

    def test_waits_that_end(self):
        self.see_waits([("host", kind) for kind in WAITS] + [("ring", kind) for kind in WAITS_OF_RINGS])


if __name__ == "__main__":
    scenario.main()
