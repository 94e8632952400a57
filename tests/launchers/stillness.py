# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a job over several machines whose PEs wait for what can never come has a named end, or a warning, wherever they are; PEs that
are late or stopped, and puts that are under way, are waited for.

Method: two and three machines, with the PE that leaves first and last; Here is by a --rsh that ignores the name, Hosts by machines
made of network namespaces, over one of whose cables a put takes longer than the limit."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import machines
from machines import HAS_NETWORK, MISBEHAVE, PATIENT, scenario


class Stillness:
    """on(count, per_machine) of a class: the options of a job over so many machines (docs/design/stillness.md)."""

    POLLS_S = 30  # of nothing but polls in vain, before the end

    def places(self):
        """Jobs over two and three machines, with the PE that leaves first and last: options, and that PE."""
        return [(self.on(count), leaver) for count in (2, 3) for leaver in (0, count - 1)]

    def begun(self, *words, **how):
        return self.start("--timeout", "200s", *words, **how)

    def test_a_lock_whose_holder_has_left(self):
        for options, leaver in self.places():
            with self.subTest(options=options, leaver=leaver):
                result = self.run_job("--timeout", "200s", *options, MISBEHAVE, -1, "keep", leaver)
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.err, rf"PE {leaver} on \S+ left the job by exit\(0\) or return from main with a lock .*Q0242")
                self.assertRegex(result.err, r"PEs? [-,012]+ (was|were) waiting in shmem_set_lock .* for lock held_lock")

    def test_one_leaves_and_the_others_wait(self):
        jobs = [(leaver, self.begun(*options, MISBEHAVE, -1, "desert", leaver)) for options, leaver in self.places()]
        for leaver, job in jobs:
            line = job.stderr.readline().decode()
            job.send_signal(signal.SIGTERM)
            _, err = job.communicate(timeout=scenario.LIMIT_S)
            self.assertRegex(line, rf"warning: PE {leaver} on \S+ waits in shmem_finalize, by exit\(0\).*\[Q0220\]", err)

    @unittest.skipIf("thread" in scenario.SANITIZE, "ThreadSanitizer gives each process a second thread, which might end a poll")
    def test_one_leaves_and_the_others_poll(self):
        jobs = [(leaver, self.begun(*options, MISBEHAVE, -1, "poll-" + how, leaver))
                for (options, leaver), how in zip(self.places(), ("test", "g", "g", "signal"))]
        for leaver, job in jobs:
            _, err = job.communicate(timeout=200 + scenario.LIMIT_S)
            self.assertEqual(job.returncode, 1, err)
            self.assertRegex(err.decode(), rf"warning: PE {leaver} on \S+ waits in shmem_finalize, .*nothing but poll.*\[Q0220\]")
            self.assertRegex(err.decode(), rf"PE {leaver} on \S+ left the job by .*wait or poll for what no PE will write.*\[Q0244\]")

    def token(self, leaver, stopped):
        """A job whose token does not go on before `go` is made, the PE that is stopped, and `go`."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        go = os.path.join(folder, "go")
        job = self.begun(*self.on(2, 2), MISBEHAVE, -1, "token", leaver, env={"SCENARIO_GO": go})
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
                self.assertEqual((job.returncode, err), (0, b""))


@HAS_NETWORK
class Here(Stillness, machines.Machines):
    """All names are this machine."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = ("--rsh", cls.script('shift; exec "$@"'))

    @classmethod
    def on(cls, count, per_machine=1):
        return (*PATIENT, "--host", ",".join(f"{name}:{per_machine}" for name in ("east", "west", "north")[:count]), *cls.rsh)


@HAS_NETWORK
class Hosts(Stillness, machines.Apart, machines.Machines):
    def test_a_put_under_way_is_waited_for(self):
        """For longer than the limit, over a cable that carries 2 Mbit/s, while the PE that waits for it polls."""
        if not self.slow_down(2, "2mbit"):
            self.skipTest("tc cannot slow a link down here")
        self.addCleanup(subprocess.run, ["ip", "netns", "exec", self.switch, "tc", "qdisc", "delete", "dev", "port2", "root"],
                        capture_output=True, check=False)
        result = self.run_job(*self.on(3), "--timeout", "200s", MISBEHAVE, -1, "put-much", 0)
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertGreater(result.seconds, self.POLLS_S + 5)


if __name__ == "__main__":
    scenario.main()
