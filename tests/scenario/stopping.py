# SPDX-License-Identifier: BSD-3-Clause
"""Aim: stops and continues (docs/design/stopping.md). SIGSTOP, SIGTSTP and SIGCONT to any of a job's processes, in any order, at
once or a millisecond apart, also while it starts and ends, never end a job, and leave nothing stopped once each process that was
sent a stop was sent SIGCONT. Time in which a job is stopped does not count for its limits.

Method: one process after another of a job whose PEs wait for each other in each round is stopped, then continued; the rounds must
go on, and the job must end well. Of a small job all subsets in two orders; of others random ones, by a seed that is printed and
that STOPPING_SEED repeats. A shell on a pseudo terminal stops and continues a job by Ctrl-Z and fg."""
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import unittest

import scenario
import terminal

BUSY = scenario.program("scenario_busy")
STOPS = (signal.SIGSTOP, signal.SIGTSTP)
GAPS_S = (0, 0.001)
# Which host is dead by its silence is not tested here: none is, however long a loaded machine holds one up.
PATIENT = ("--network-limit", "300s", "--link-timeout", "300s")
SHAPES = {"host": ("-n", 3), "ring": ("--hosts", 3, "-n", 3), "tcp": ("--network", "tcp", "--hosts", 3, "-n", 3)}


class Stopping(scenario.Case):
    @classmethod
    def setUpClass(cls):
        cls.seed = int(os.environ.get("STOPPING_SEED", random.getrandbits(32)))
        print(f"{cls.__name__}: STOPPING_SEED={cls.seed}", flush=True)
        cls.folder = tempfile.mkdtemp(prefix="quoit-stopping-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = os.path.join(cls.folder, "rsh")
        with open(cls.rsh, "w") as file:
            file.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(cls.rsh, 0o755)

    def setUp(self):
        super().setUp()
        self.random = random.Random(f"{self.seed} {self.id()}")
        self.progress = os.path.join(self.folder, self.mark)

    def agents(self, *more):
        return ("--host", "east,west", "--rsh", self.rsh, "--network", "tcp", "-n", 2, *more)

    def rounds(self):
        try:
            with open(self.progress, "rb") as file:
                return int.from_bytes(file.read(), sys.byteorder)
        except FileNotFoundError:
            return 0

    def start(self, *arguments, **how):
        """In a process group of its own, as a shell starts it; where no shell could continue it, the kernel ignores SIGTSTP."""
        how.setdefault("preexec_fn", os.setpgrp)
        if scenario.SANITIZE:  # at its end a process stops its threads by ptrace to find leaks, which other stops disturb
            options = [os.environ.get("ASAN_OPTIONS", ""), "detect_leaks=0"]
            how["env"] = {**how.get("env", {}), "ASAN_OPTIONS": ":".join(filter(None, options))}
        return super().start(*arguments, **how)

    def begin(self, *options):
        """A job at work, and its processes."""
        job = self.start(*options, BUSY, "until", self.progress)
        self.wait_for(lambda: self.rounds() > 0, "the first round")
        return job, sorted(scenario.processes(self.mark))

    def end(self, job, status=0):
        with open(self.progress + ".end", "w"):
            pass
        try:
            _, err = job.communicate(timeout=scenario.LIMIT_S)
        except scenario.subprocess.TimeoutExpired:
            self.fail(f"the job does not end: {self.states(scenario.processes(self.mark))}")
        finally:
            os.unlink(self.progress + ".end")
            os.unlink(self.progress)
        self.assertEqual((job.returncode, err.decode()), (status, ""))
        self.assert_nothing_left()

    @staticmethod
    def states(pids):
        return {f"{scenario.name_of(pid)} {pid}": scenario.state_of(pid) for pid in pids}

    def send(self, pids, numbers, gap_s):
        for pid, number in zip(pids, itertools.cycle(numbers)):
            scenario.send(pid, number)
            if gap_s:
                time.sleep(gap_s)

    def check_that_it_runs(self, job, pids, what):
        """Two rounds more: one may have been under way."""
        last, end = self.rounds(), time.monotonic() + scenario.LIMIT_S
        while self.rounds() < last + 2 or any(scenario.state_of(pid) == "T" for pid in pids):
            if time.monotonic() > end or job.poll() is not None:
                self.fail(f"{what}: the job does not go on: {self.states(pids)}, status {job.poll()}")
            time.sleep(0.001)

    def stop_and_continue(self, stopped, continued, numbers, gap_s, dwell_s):
        self.send(stopped, numbers, gap_s)
        time.sleep(dwell_s)
        self.send(continued, (signal.SIGCONT,), gap_s)

    def random_trial(self, pids):
        """The arguments of stop_and_continue."""
        chosen = self.random.sample(pids, self.random.randint(1, len(pids)))
        if self.random.random() < 0.3:
            chosen = list(pids)
        continued = self.random.choice((sorted(chosen), sorted(chosen, reverse=True), self.random.sample(chosen, len(chosen))))
        numbers = [self.random.choice(STOPS) for _ in chosen] if self.random.random() < 0.3 else [self.random.choice(STOPS)]
        return chosen, continued, numbers, self.random.choice(GAPS_S), self.random.choice((0, 0.001, 0.02))

    def random_subsets(self, trials, *options):
        job, pids = self.begin(*PATIENT, *options)
        for _ in range(trials):
            trial = self.random_trial(pids)
            self.stop_and_continue(*trial)
            self.check_that_it_runs(job, pids, trial)
        self.end(job)

    def starts_and_ends(self, jobs, *options):
        """At any moment of a short job, whose processes come and go meanwhile."""
        for _ in range(jobs):
            job = self.start(*PATIENT, *options, BUSY, 2)
            time.sleep(self.random.random() * 0.2)
            for _ in range(2):
                pids = sorted(scenario.processes(self.mark))
                if pids:
                    self.stop_and_continue(*self.random_trial(pids))
            try:
                _, err = job.communicate(timeout=scenario.LIMIT_S)
            except scenario.subprocess.TimeoutExpired:
                self.fail(f"the job does not end: {self.states(scenario.processes(self.mark))}")
            self.assertEqual((job.returncode, err.decode()), (0, ""))
            self.assert_nothing_left()


class Quick(Stopping):
    def test_all_subsets(self):
        """Of the processes of a job with two PEs on one host, by pid, upwards and downwards, as a batch system sends."""
        job, pids = self.begin("-n", 2)
        self.assertEqual(len(pids), 5)
        trials = [(subset, step, number) for size in range(1, 6) for subset in itertools.combinations(pids, size)
                  for step in (1, -1) for number in STOPS]
        for subset, step, number in trials:
            self.stop_and_continue(subset[::step], subset[::step], (number,), self.random.choice(GAPS_S), 0)
            self.check_that_it_runs(job, pids, (subset, step, number))
        self.end(job)

    def test_session_of_its_own(self):
        """There SIGTSTP stops no process, but the first one has the PEs stopped, and continues them."""
        job = self.start("-n", 2, BUSY, "until", self.progress, start_new_session=True, preexec_fn=None)
        self.wait_for(lambda: self.rounds() > 0, "the first round")
        pids = sorted(scenario.processes(self.mark))
        pes = self.pids_of("scenario_busy")
        for _ in range(20):
            job.send_signal(signal.SIGTSTP)
            self.wait_for(lambda: all(scenario.state_of(pe) == "T" for pe in pes), "the PEs to stop")
            self.assertNotEqual(scenario.state_of(job.pid), "T")
            job.send_signal(signal.SIGCONT)
            self.check_that_it_runs(job, pids, "a session of its own")
        self.end(job)

    def test_random_subsets(self):
        for shape in (*SHAPES.values(), self.agents()):
            with self.subTest(shape=shape):
                self.random_subsets(12, *shape)

    def test_starts_and_ends(self):
        for shape in (*SHAPES.values(), self.agents()):
            with self.subTest(shape=shape):
                self.starts_and_ends(4, *shape)

    def test_stopped_guard(self):
        """It need not go on for signals to pass, nor for the end of the job."""
        job, pids = self.begin("-n", 2)
        guard = next(pid for pid in pids if scenario.name_of(pid) == "quoit-guard")
        os.kill(guard, signal.SIGSTOP)
        job.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: all(scenario.state_of(pid) == "T" for pid in pids if scenario.name_of(pid) != "quoit-job"),
                      "the job to stop")
        job.send_signal(signal.SIGCONT)
        self.end(job)

    def test_killed_pe_of_a_stopped_job(self):
        """It ends the job, and the first process with it, which a shell has seen stop."""
        job, pids = self.begin("-n", 2)
        job.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: scenario.state_of(job.pid) == "T", "the job to stop")
        os.kill(pids[-1], signal.SIGKILL)
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 137)
        self.assertRegex(err.decode(), r"PE \d on host0 was killed by SIGKILL")

    def stopped_server(self, *names):
        """Stopped processes of an agent: the job ends at the other end, and nothing of theirs waits for SIGCONT."""
        options = self.agents("--network-limit", "1s")
        job, pids = self.begin(*options)
        runner = next(pid for pid in pids if scenario.parent_of(scenario.parent_of(scenario.parent_of(pid))) not in pids
                      and scenario.name_of(pid) == "quoit-job")
        agent = next(pid for pid in pids if scenario.name_of(pid) == "quoit-job" and pid != runner)
        chain = {"quoit-job": agent, "quoit-guard": scenario.parent_of(agent)}
        for name in names:
            os.kill(chain[name], signal.SIGSTOP)
        if "quoit-job" not in names:
            job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertRegex(err.decode(), "Q0225" if "quoit-job" in names else "Q0207")
        self.assert_nothing_left()

    def test_stopped_agent(self):
        self.stopped_server("quoit-job")

    def test_stopped_guard_of_an_agent(self):
        self.stopped_server("quoit-guard")

    def test_stopped_agent_and_guard(self):
        self.stopped_server("quoit-job", "quoit-guard")


class Shell(terminal.Terminal):
    """Keys to a shell that has a job in its foreground."""
    def setUp(self):
        super().setUp()
        self.random = random.Random(os.environ.get("STOPPING_SEED", random.getrandbits(32)))

    def keys_of(self, times, command):
        self.open_shell()
        self.type(command + "\n")
        self.expect("begun")
        for _ in range(times):
            self.wait_for(self.is_in_foreground, "the job to have the terminal")
            time.sleep(self.random.choice((0, 0.001, 0.05)))
            self.type("\x1a")
            self.expect("Stopped")
            self.expect("$ ")
            self.wait_for(lambda: set(self.states("scenario_busy")) == {"T"}, "the PEs to stop")
            self.type("fg\n")
            self.expect("oshrun")
        self.wait_for(self.is_in_foreground, "the job to have the terminal")
        self.type("\x03")
        self.type("echo status $?\n")
        self.expect("status 130")
        self.type("exit 0\n")
        self.assertEqual(self.status(), 0)

    def states(self, name):
        return [scenario.state_of(pid) for pid in self.pids_of(name)]

    def is_in_foreground(self):
        """A shell gives the terminal first and continues then: a key between the two is lost, whatever runs."""
        return os.tcgetpgrp(self.keys) != self.pid and "T" not in self.states("oshrun")

    def open_shell(self):
        shell = shutil.which("bash")
        if not shell:
            self.skipTest("bash is not installed")
        self.open_program(shell, "--norc", "--noprofile", "-i", PS1="$ ")

    def test_keys(self):
        for shape in ("-n 2", "--hosts 2 -n 2"):
            with self.subTest(shape=shape):
                self.keys_of(5, f"{scenario.OSHRUN} {shape} {BUSY}")

    def test_keys_to_the_pe_that_has_the_terminal(self):
        self.keys_of(5, f"{scenario.OSHRUN} -n 2 sh -c 'stty sane </dev/tty; exec {BUSY}'")


class Long(Stopping):
    def shape(self, name):
        return self.agents() if name == "agents" else SHAPES.get(name, ("-n", 1))

    @scenario.each(*SHAPES, "agents", "alone")
    def test_random_subsets(self, name):
        for _ in range(4):
            self.random_subsets(60, *self.shape(name))

    @scenario.each(*SHAPES, "agents", "alone")
    def test_starts_and_ends(self, name):
        self.starts_and_ends(60, *self.shape(name))

    def begin_within(self, *shape):
        """A job whose --timeout leaves it the time to begin, and that time: more on a machine that holds it up."""
        for limit_s in (8, 60):
            job = self.start("--timeout", f"{limit_s}s", *shape, BUSY, "until", self.progress)
            self.wait_for(lambda: self.rounds() > 0 or job.poll() is not None, "the first round")
            if job.poll() is None:
                return job, limit_s
            job.communicate()
        self.fail("the job did not begin in a minute")

    @scenario.each(("host", True), ("tcp", False), ("agents", True), ("agents", False))
    def test_time_stopped_does_not_count(self, case):
        """Longer than --timeout and, by Ctrl-Z, than the limits of silence. After it, --timeout comes as ever."""
        name, all_stop = case
        job, limit_s = self.begin_within(*self.shape(name))
        pids = sorted(scenario.processes(self.mark))
        self.send(pids if all_stop else [job.pid], (signal.SIGSTOP if all_stop else signal.SIGTSTP,), 0)
        time.sleep(limit_s + 1)
        self.send(pids, (signal.SIGCONT,), 0)
        self.check_that_it_runs(job, pids, "after a stop for longer than --timeout")
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 124, err.decode())
        self.assertIn("Q0206", err.decode())
        os.unlink(self.progress)


if __name__ == "__main__":
    scenario.main(4)
