# SPDX-License-Identifier: BSD-3-Clause
"""Aim: silence is no death (docs/design/silence.md). Processes that are stopped for several times the limit, alone, a host's
together, or oshrun itself, end nothing: one line names the host, one says that it is back, and the job goes on and ends right.
What waits for too long says why.

Method: a job at work writes its rounds to a file (busy.c). SIGSTOP and SIGCONT stand for a machine that is busy, swaps or is
suspended; lines are awaited on standard error."""
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time

import scenario

BUSY = scenario.program("scenario_busy")
LIMIT_S = 0.4
SHORT = ("--network-limit", f"{int(LIMIT_S * 1000)}ms")
TCP = ("--network", "tcp", "--hosts", 3, "-n", 3)
SILENT = r"oshrun: nothing has come from (?:the proxy of |the agent on )(\S+) for [\d.]+ s"
ANSWERS = SILENT + r", but its machine answers; the job waits for it \[Q0317\]\n"
BACK = r"oshrun: (\S+) is back after ([\d.]+) s \[Q0318\]\n"


class Reader(threading.Thread):
    """What comes from a pipe, while others look at it."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.data = pipe, b""
        self.start()

    def run(self):
        while data := os.read(self.pipe.fileno(), 65536):
            self.data += data

    @property
    def text(self):
        return scenario.Job.REMARK.sub(b"", self.data).decode(errors="replace")


class Silence(scenario.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="quoit-silence-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = os.path.join(cls.folder, "rsh")
        with open(cls.rsh, "w") as file:
            file.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(cls.rsh, 0o755)

    def setUp(self):
        super().setUp()
        self.progress = os.path.join(self.folder, self.mark)

    def rounds(self):
        try:
            with open(self.progress, "rb") as file:
                return int.from_bytes(file.read(), sys.byteorder)
        except FileNotFoundError:
            return 0

    def begin(self, *options):
        job = self.start(*options, BUSY, "until", self.progress)
        job.err = Reader(job.stderr)
        self.wait_for(lambda: self.rounds() > 0, "the first round")
        return job

    def end(self, job):
        """It goes on, and ends right: two rounds more, since one may have been under way."""
        last = self.rounds()
        self.wait_for(lambda: self.rounds() >= last + 2 or job.poll() is not None, "the job to go on")
        with open(self.progress + ".end", "w"):
            pass
        status = job.wait(timeout=scenario.LIMIT_S)
        job.err.join(timeout=scenario.LIMIT_S)
        job.stdout.close()
        job.stderr.close()
        self.assertEqual(status, 0, job.err.text)
        self.assertEqual(re.sub(rf"{SILENT}.*\n|{BACK}", "", job.err.text), "")
        os.unlink(self.progress + ".end")
        os.unlink(self.progress)
        self.assert_nothing_left()

    def await_line(self, job, line):
        self.wait_for(lambda: re.search(line, job.err.text) or job.poll() is not None, line)
        self.assertRegex(job.err.text, line)
        return re.search(line, job.err.text)

    def stop(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def go_on(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    def runner(self):
        """oshrun's own; no agent's, which descends from it here."""
        pids = self.pids_of("quoit-job")
        return next(pid for pid in pids if not any(self.descends(pid, other) for other in pids if other != pid))

    @staticmethod
    def descends(pid, ancestor):
        while pid > 1 and pid != ancestor:
            pid = scenario.parent_of(pid)
        return pid == ancestor

    def agents(self):
        return [pid for pid in self.pids_of("quoit-job") if pid != self.runner()]

    def below(self, ancestor):
        return [pid for pid in scenario.processes(self.mark) if self.descends(pid, ancestor)]


class Emulated(Silence):
    def is_here(self, driver):
        return self.run_job("--network", driver, "--hosts", 2, "-n", 2, scenario.program("scenario_greet")).status == 0

    def stop_proxy(self, limit_s, line, *options):
        job = self.begin(*options, "--network-limit", f"{int(limit_s * 1000)}ms")
        victim = self.pids_of("quoit-proxy")[1]
        self.stop([victim])
        name = self.await_line(job, line)[1]
        time.sleep(1.5 * limit_s)
        self.assertIsNone(job.poll(), job.err.text)
        self.go_on([victim])
        self.assertEqual(self.await_line(job, BACK)[1], name)
        self.end(job)

    def test_a_stopped_proxy(self):
        """Its machine answers."""
        for options in (TCP, (*TCP, "--network-direct", "yes")):
            with self.subTest(options=options):
                self.stop_proxy(LIMIT_S, ANSWERS, *options)

    def test_a_stopped_proxy_of_a_network_that_cannot_tell(self):
        """oshrun sees that it is stopped."""
        for driver in ("ofi", "ucx"):
            with self.subTest(driver=driver):
                if self.is_here(driver):
                    self.stop_proxy(3, SILENT, "--network", driver, "--hosts", 3, "-n", 3)

    def test_the_default(self):
        """It is named after 2 s, on every network."""
        for driver in ("tcp", "ofi", "ucx"):
            with self.subTest(driver=driver):
                if not self.is_here(driver):
                    continue
                job = self.begin("--network", driver, "--hosts", 2, "-n", 2)
                victim = self.pids_of("quoit-proxy")[1]
                self.stop([victim])
                self.await_line(job, ANSWERS if driver == "tcp" else SILENT + r"; the job waits for it, up to --network-limit \(60 s\)")
                self.go_on([victim])
                self.await_line(job, BACK)
                self.end(job)

    def test_all_proxies(self):
        """None is silent to one that is stopped itself."""
        job = self.begin(*TCP, *SHORT)
        victims = self.pids_of("quoit-proxy")
        self.stop(victims)
        time.sleep(3 * LIMIT_S)
        self.go_on(victims)
        self.end(job)


class Agents(Silence):
    """Who is known to live is waited for five times as long as the limit."""

    LIMIT_S = 3

    def begin(self, *options):
        options = options or ("--network-limit", f"{self.LIMIT_S}s")
        return super().begin("--host", "east,west", "--rsh", self.rsh, "--network", "tcp", "-n", 2, *options)

    def test_a_stopped_agent(self):
        """The proxies show that its machine is there."""
        job = self.begin()
        victim = self.agents()[0]
        self.stop([victim])
        self.assertIn(self.await_line(job, SILENT)[1], ("east", "west"))
        time.sleep(self.LIMIT_S)
        self.assertIsNone(job.poll(), job.err.text)
        self.go_on([victim])
        self.await_line(job, BACK)
        self.end(job)

    def test_a_stopped_host(self):
        job = self.begin()
        victims = self.below(self.agents()[0])
        self.assertEqual({"quoit-proxy", "scenario_busy"} - {scenario.name_of(pid) for pid in victims}, set())
        self.stop(victims)
        self.await_line(job, SILENT)
        time.sleep(self.LIMIT_S)
        self.assertIsNone(job.poll(), job.err.text)
        self.go_on(victims)
        self.await_line(job, BACK)
        self.end(job)

    def test_stopped_oshrun(self):
        job = self.begin()
        victim = self.runner()
        self.stop([victim])
        time.sleep(1.5 * self.LIMIT_S)
        self.go_on([victim])
        self.end(job)

    def test_an_agent_gives_oshrun_up(self):
        """After several times the limit; its last words say why, though oshrun reads them later."""
        job = self.begin("--network-limit", "1s")
        victim, agents = self.runner(), self.agents()
        self.stop([victim])
        self.wait_for(lambda: not any(scenario.state_of(agent) for agent in agents), "the agents to end")
        self.go_on([victim])
        self.assertEqual(job.wait(timeout=scenario.LIMIT_S), 1)
        job.err.join(timeout=scenario.LIMIT_S)
        job.stdout.close()
        job.stderr.close()
        self.assertRegex(job.err.text, r"oshrun: (east|west) was lost: it gave up: nothing had come to it for [\d.]+ s.*\[Q0225\]")
        self.assert_nothing_left()


if __name__ == "__main__":
    scenario.main()
