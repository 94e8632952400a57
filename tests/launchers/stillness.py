# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a job over several machines whose PEs wait for what can never come has a named end, or a warning, wherever they are; PEs that
are late or stopped, and puts that are under way, are waited for.

Method: two and three machines, with the PE that leaves first and last. Of oshrun: Here is by a --rsh that ignores the name, Hosts by
machines made of network namespaces, over one of whose cables a put takes longer than the limit. HydraHosts is mpiexec.hydra over
such machines, Srun a Slurm of two nodes (real.py)."""
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import direct
import machines
from machines import HAS_NETWORK, MISBEHAVE, scenario
from real import IN_SLURM, Slurm


SLOW = re.compile(r"^srun: |\[Q031[78]\]$", re.M)  # a busy machine: nodes are not free yet, a host is silent, or is back


class Stillness:
    """begun(count, *words) of a class: a job over so many machines, with per_machine PEs on each (docs/design/stillness.md)."""

    POLLS_S = 30                 # of nothing but polls in vain, before the end
    END_S = 200                  # of a job that has no end
    COUNTS = (2, 3)              # of machines
    ON, BY_EXIT = r" on \S+", ""  # what the launcher's agents know of the PE that has left
    WAITERS = r"PEs? [-,012]+ (was|were) waiting in shmem_set_lock"
    HANG_END = r"^"  # after the signal that ends it
    HANG, HANG_PLACE = r"for a value that no PE is left to write, a lock .*\[Q0140\]", r"PEs? [-,012]+ (is|are) waiting in shmem_\w+"

    def places(self):
        """Jobs over two and three machines, with the PE that leaves first and last."""
        return [(count, leaver) for count in self.COUNTS for leaver in (0, count - 1)]

    @staticmethod
    def stop(job):
        job.send_signal(signal.SIGTERM)

    @staticmethod
    def read_lines(job, count):
        """Of standard error, without what a busy machine adds: nodes that are not free yet, hosts that are slow."""
        lines = (line.decode() for line in job.stderr)
        return list(itertools.islice((line for line in lines if not SLOW.search(line)), count))

    @staticmethod
    def but_slow(err):
        return "".join(line for line in err.decode().splitlines(True) if not SLOW.search(line))

    def test_a_lock_whose_holder_has_left(self):
        for count, leaver in self.places():
            with self.subTest(count=count, leaver=leaver):
                job = self.begun(count, MISBEHAVE, -1, "keep", leaver)
                _, err = job.communicate(timeout=self.END_S)
                self.assertEqual(job.returncode, 1, err)
                self.assertRegex(err.decode(), rf"PE {leaver}{self.ON} left the job by .*exit\(0\) or return from main with a lock .*Q0242")
                self.assertRegex(err.decode(), self.WAITERS)

    def test_one_leaves_and_the_others_wait(self):
        jobs = [(leaver, self.begun(count, MISBEHAVE, -1, "desert", leaver)) for count, leaver in self.places()]
        for leaver, job in jobs:
            line, = self.read_lines(job, 1)
            self.stop(job)
            _, err = job.communicate(timeout=scenario.LIMIT_S)
            self.assertRegex(line, rf"warning: PE {leaver}{self.ON} waits in shmem_finalize{self.BY_EXIT}, .*\[Q0220\]", err)

    @unittest.skipIf("thread" in scenario.SANITIZE, "ThreadSanitizer gives each process a second thread, which might end a wait")
    def test_every_pe_waits(self):
        """None has left: the job is reported, and goes on."""
        jobs = [(waiter, self.begun(count, MISBEHAVE, waiter, "flag")) for count, waiter in self.places()]
        for waiter, job in jobs:
            lines = self.read_lines(job, 2)
            self.stop(job)
            _, err = job.communicate(timeout=scenario.LIMIT_S)
            self.assertRegex(lines[0], rf"warning: every PE waits, and nothing has moved for \d+ s: {self.HANG.format(waiter)}", err)
            self.assertRegex(lines[1], self.HANG_PLACE, err)
            self.assertRegex(err.decode(), self.HANG_END)

    @unittest.skipIf("thread" in scenario.SANITIZE, "ThreadSanitizer gives each process a second thread, which might end a poll")
    def test_one_leaves_and_the_others_poll(self):
        jobs = [(leaver, self.begun(count, MISBEHAVE, -1, "poll-" + how, leaver))
                for (count, leaver), how in zip(self.places(), ("test", "g", "g", "signal"))]
        for leaver, job in jobs:
            _, err = job.communicate(timeout=self.END_S + scenario.LIMIT_S)
            self.assertEqual(job.returncode, 1, err)
            self.assertRegex(err.decode(), rf"warning: PE {leaver}{self.ON} waits in shmem_finalize.*, .*nothing but poll.*\[Q0220\]")
            self.assertRegex(err.decode(), rf"PE {leaver}{self.ON} left the job by .*wait or poll for what no PE will write.*\[Q0244\]")

    def token(self, leaver, stopped):
        """A job whose token does not go on before `go` is made, the PE that is stopped, and `go`."""
        folder = tempfile.mkdtemp(dir="/var/tmp")  # the nodes of slurm.sh have a /tmp of their own
        self.addCleanup(shutil.rmtree, folder)
        go = os.path.join(folder, "go")
        job = self.begun(2, MISBEHAVE, -1, "token", leaver, per_machine=2, env={"SCENARIO_GO": go})
        found = [re.fullmatch(r"PE (\d) is process (\d+)\n", job.stdout.readline().decode()).groups() for _ in range(4)]
        victim = int(dict(found)[str(stopped)]) if stopped is not None else None
        if victim:  # it has waited for a while when it has looked again several times
            before, end = self.switches(victim), time.monotonic() + scenario.LIMIT_S
            while self.switches(victim) < before + 5:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            os.kill(victim, signal.SIGSTOP)
            open(go, "w").close()
        return job, victim, go

    @staticmethod
    def switches(pid):
        with open(f"/proc/{pid}/status") as file:
            return int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", file.read())[1])

    def test_those_that_are_late_or_stopped_are_waited_for(self):
        """For longer than the limit, while others wait and poll; then a long chain of puts."""
        jobs = [self.token(0, None), self.token(3, None), self.token(0, 2), self.token(3, 1)]
        time.sleep(self.POLLS_S + 8)
        for job, victim, go in jobs:
            with self.subTest(victim=victim):
                self.assertIsNone(job.poll())
                if victim:
                    os.kill(victim, signal.SIGCONT)
                else:
                    open(go, "w").close()
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual((job.returncode, self.but_slow(err)), (0, ""))


class PutMuch:
    """Over machines that are namespaces."""

    def test_a_put_under_way_is_waited_for(self):
        """For longer than the limit, over a cable that carries 2 Mbit/s, while the PE that waits for it polls."""
        if not self.slow_down(2, "2mbit"):
            self.skipTest("tc cannot slow a link down here")
        self.addCleanup(subprocess.run, ["ip", "netns", "exec", self.switch, "tc", "qdisc", "delete", "dev", "port2", "root"],
                        capture_output=True, check=False)
        begin = time.monotonic()
        job = self.begun(3, MISBEHAVE, -1, "put-much", 0)
        _, err = job.communicate(timeout=self.END_S)
        self.assertEqual((job.returncode, err), (0, b""))
        self.assertGreater(time.monotonic() - begin, self.POLLS_S + 5)


class Oshrun(Stillness):
    BY_EXIT = r", by exit\(0\).*"
    WAITERS = r"PEs? [-,012]+ (was|were) waiting in shmem_set_lock .* for lock held_lock"
    HANG = r"no PE is left to write what PE {} waits for +\[Q0140\]"
    HANG_END = r"ended by SIGTERM +\[Q0207\]\n(  PEs? [-,012]+ (was|were) waiting in shmem_\w+.*\n){2}"

    def begun(self, count, *words, per_machine=1, **how):
        return self.start("--timeout", f"{self.END_S}s", *self.on(count, per_machine), *words, **how)


@HAS_NETWORK
class Here(Oshrun, machines.Machines):
    """All names are this machine."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = ("--rsh", cls.script('shift; exec "$@"'))

    @classmethod
    def on(cls, count, per_machine=1):
        return ("--host", ",".join(f"{name}:{per_machine}" for name in ("east", "west", "north")[:count]), *cls.rsh)

    def test_additions_between_polls_are_waited_for(self):
        """For longer than the limit, to a number that is polled for."""
        job = self.begun(3, MISBEHAVE, -1, "count-slowly", 0)
        _, err = job.communicate(timeout=self.END_S)
        self.assertEqual(job.returncode, 0, err)
        self.assertNotIn(b"Q0244", err)


@HAS_NETWORK
class Hosts(PutMuch, Oshrun, machines.Apart, machines.Machines):
    pass


class Launched(Stillness):
    """words(per_machine, count) of a class: the launcher, for so many PEs in all."""

    def begun(self, count, *words, per_machine=1, env=None):
        command = [*self.words(per_machine, count * per_machine), *words]
        job = scenario.Job([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=scenario.environment(self.mark, **(env or {})))
        self.addCleanup(self.end_job, job)
        return job

    def test_one_has_passed_while_others_are_elsewhere(self):
        """In shmem_finalize too, after a barrier more, or in no collective: alone on its machine, or not. Of another host than the
        first QUOIT_CONTROL_ELSEWHERE_MAX are named."""
        jobs = []
        for count, per_machine, last in ((2, 1, 0), (2, 1, 1), (2, 6, 11), (max(self.COUNTS), 1, 1)):
            jobs += [(last, self.begun(count, MISBEHAVE, last, "finalize", 0, per_machine=per_machine), r"(waiting in shmem_finalize|running)"),
                     (last, self.begun(count, MISBEHAVE, -1, "pass", last, per_machine=per_machine), "(waiting in shmem_long_wait_until|running)")]
        for leaver, job, call in jobs:
            with self.subTest(job=job.args[-6:]):
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual(job.returncode, 1, err)
                self.assertRegex(err.decode(), rf"quoit: PE {leaver} on \S+ left the job by .* while others were elsewhere +\[Q0209\]\n")
                self.assertRegex(err.decode(), rf"(?m)^  PEs? [-,\d]+ (was|were) {call}")
                self.assertEqual(err.decode().count("[Q0"), 1, err)

    def end_job(self, job):
        if job.poll() is None:
            self.stop(job)
            job.communicate(timeout=scenario.LIMIT_S)


@unittest.skipIf(IN_SLURM, "in a Slurm")
class HydraHosts(PutMuch, Launched, direct.Hydra):
    """The tests of the base are not run again."""
    test_places = test_conformance = test_ends = None

    def words(self, per_machine, count):
        return ["ip", "netns", "exec", self.names[0], *super().words(per_machine, count)]


@unittest.skipUnless(IN_SLURM, "run by InSlurm")
class Srun(Launched, scenario.Case):
    COUNTS = (2,)
    MPI = "pmi2"

    def words(self, per_machine, count):
        return ["srun", "-J", f"stillness{os.urandom(4).hex()}", "--mpi=" + self.MPI, "-N", count // per_machine, "-n", count]

    @staticmethod
    def stop(job):
        subprocess.run(["scancel", "--name", job.args[job.args.index("-J") + 1]], check=True)


class SrunPmix(Srun):
    MPI = "pmix"


class InSlurm(Slurm):
    def test_in_a_slurm(self):
        self.run_in_a_slurm(__file__, "Srun", "SrunPmix.test_a_lock_whose_holder_has_left",
                            "SrunPmix.test_one_leaves_and_the_others_poll",
                            "SrunPmix.test_one_has_passed_while_others_are_elsewhere")


if __name__ == "__main__":
    scenario.main()
