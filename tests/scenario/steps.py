# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whichever process of a job dies, hangs, stops or starves, at whichever step of the start and the end: the job ends with a
message that names it, or reports whom it waits for and goes on when that continues. Never silence, and nothing is left.

Method: builds with test drivers have steps (base/step.h), at which TEST_STEP has the process itself stop, die or hang, so no
test sleeps until it may be there. Each step of each participant on one host, a ring, a network, both, and several machines."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import scenario
from net import Ring
from scenario import greetings

GREET, TOOL = scenario.program("scenario_greet"), scenario.program("libscenario_tool.so")
COUNT = 3
SHAPES = {
    "one host": (),
    "ring": ("--hosts", COUNT),
    "network": ("--hosts", COUNT, "--network", "tcp"),
    "rings": ("--hosts", 4, "--rings", 2, "--network", "tcp"),
    "machines": ("--host", "north,east,west"),
}
PE_STEPS = ("hello", "layout", "ready", "go", "leaving", "finalized", "end")
PROXY_STEPS = ("start", "contact", "contacts", "ready", "served", "stop")
# Steps in which nothing but this process can hold the others up, before all go and after all are in shmem_finalize.
REPORTED = {"pe.hello": "has not called shmem_init", "pe.layout": "has not come through shmem_init",
            "pe.ready": "has not come through shmem_init", "pe.finalized": "is waited for in shmem_finalize",
            "proxy1.start": "does not serve its host", "proxy1.contact": "does not serve its host",
            "proxy1.contacts": "does not serve its host", "proxy1.ready": "does not serve its host"}
HANGS = ("pe.layout", "pe.ready", "proxy1.start", "proxy1.contact", "proxy1.contacts", "proxy1.ready")
SOON = {"QUOIT_LINK_TIMEOUT": "1s"}    # to the first report; and six times that, to the end of who hangs
NEVER = {"QUOIT_LINK_TIMEOUT": "1h"}   # where a report is not expected


class Steps(scenario.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scenario.need_steps()
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = os.path.join(cls.folder, "rsh")
        with open(cls.rsh, "w") as file:
            file.write('#!/bin/sh\nshift\nexec "$@"\n')
        os.chmod(cls.rsh, 0o755)

    def options_of(self, shape):
        return list(SHAPES[shape])

    def words(self, shape, step, action):
        """The command line and environment in which one process does that. A PE is the last one, a program of its own."""
        options = self.options_of(shape)
        if shape == "machines":
            options += ["--rsh", self.rsh]
        if shape == "rings":
            count = 4
        else:
            count = COUNT
        if not step.startswith("pe."):
            return [*options, "-n", count, GREET], {"TEST_STEP": f"{step}={action}"}, count
        return [*options, "-n", count - 1, GREET, ":", "-n", 1, "-x", f"TEST_STEP={step}={action}", GREET], {}, count

    def steps_of(self, shape):
        """pe, the proxy of host 1, oshrun, an agent."""
        steps = ["pe." + step for step in PE_STEPS]
        steps += ["oshrun.go", "oshrun.stop"] + (["oshrun.layout"] if shape != "machines" else [])
        if shape != "machines":
            steps.append("oshrun.prepare")
        if shape == "machines":
            steps += ["agent1.prepare", "agent1.make", "agent1.go", "agent1.stop"]
        if shape != "one host":
            has_network = shape != "ring"
            steps += ["proxy1." + step for step in PROXY_STEPS if has_network or not step.startswith("contact")]
        return steps

    def run_step(self, shape, step, action, env):
        words, more, _ = self.words(shape, step, action)
        return self.run_job(*words, env={**env, **more})

    def check_kill(self, shape, step):
        with self.subTest(shape=shape, step=step, action="kill"):
            result = self.run_step(shape, step, "kill", NEVER)
            who = step.split(".")[0]
            status, text = {"pe": (137, r"PE \d on \w+ was killed by SIGKILL .*\[Q0201\]"),
                            "proxy1": (1, r"the proxy of (host1|east) has died of SIGKILL.*\[Q0205\]"),
                            "oshrun": (137, r"a process of oshrun was killed by SIGKILL.*\[Q0219\]"),
                            "agent1": (1, r"(?s)east was lost: .*\[Q0225\]|cannot start the agent on east: .*\[Q0225\]")}[who]
            self.assertEqual(result.status, status, result)
            self.assertRegex(result.err, text)
            self.assert_nothing_left()

    def check_hang(self, shape, step, action="hang"):
        with self.subTest(shape=shape, step=step, action=action):
            result = self.run_step(shape, step, action, SOON if action == "hang" else NEVER)
            self.assertEqual(result.status, 1, result)
            who = "PE [23]" if step.startswith("pe.") else r"the proxy of (host1|east)"
            self.assertRegex(result.err, rf"(?m)^oshrun: {who}( on \w+)? \(process \d+\) {REPORTED[step]} after \d+ s; "
                                         r"it could run, and has done nothing +\[Q0238\]" if action == "hang" else
                                         r"the proxy of (host1|east) closed its connection to oshrun and ran on.*\[Q0236\]")
            self.assert_nothing_left()

    def stopped(self):
        return [pid for pid in scenario.processes(self.mark) if scenario.state_of(pid) == "T"]

    def wait_for_stop(self, step):
        """The process that has stopped itself."""
        name = {"pe": "scenario_greet", "proxy1": "quoit-proxy"}.get(step.split(".")[0], "quoit-job")
        self.wait_for(lambda: any(scenario.name_of(pid) == name for pid in self.stopped()), f"{step} to stop")
        return next(pid for pid in self.stopped() if scenario.name_of(pid) == name)

    def check_stop(self, shape, step):
        """A report where only this process is waited for; then it goes on, and the job with it."""
        with self.subTest(shape=shape, step=step, action="stop"):
            words, more, count = self.words(shape, step, "stop")
            is_reported = step in REPORTED
            with open(os.path.join(self.folder, "err"), "w+b") as err:
                job = self.start(*words, env={**(SOON if is_reported else NEVER), **more}, stderr=err)
                victim = self.wait_for_stop(step)

                def text():
                    err.seek(0)
                    return err.read().decode()

                if is_reported:
                    who = r"PE \d on \w+" if step.startswith("pe.") else r"the proxy of (host1|east)"
                    self.wait_for(lambda: "it is stopped by a signal" in text(), f"a report of {step}")
                    self.assertRegex(text(), rf"still waiting for {who} \(process \d+\), which {REPORTED[step]} after \d+ s: "
                                             r"it is stopped by a signal")
                os.kill(victim, signal.SIGCONT)
                out, _ = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual(job.returncode, 0, text())
                self.assertEqual(sorted(out.decode().split("\n")[:-1]), greetings(count), text())
                self.assertNotRegex(text(), "Q0238")
            self.assert_nothing_left()


class Short(Steps):
    """A part of all, on a ring and a network."""

    def test_killed(self):
        for step in self.steps_of("ring"):
            self.check_kill("ring", step)
        self.check_kill("network", "proxy1.contact")

    def test_hangs(self):
        self.check_hang("ring", "proxy1.start")
        self.check_hang("one host", "pe.layout")
        self.check_hang("network", "proxy1.contact", "close")

    def test_stopped(self):
        for shape, step in (("one host", "pe.hello"), ("ring", "pe.ready"), ("network", "proxy1.contact"), ("ring", "pe.go"),
                            ("ring", "pe.finalized"), ("ring", "oshrun.go")):
            self.check_stop(shape, step)

    def test_proxies_that_work_when_they_end(self):
        """For longer than those that sleep are waited for."""
        for shape in ("ring", "machines"):
            with self.subTest(shape=shape):
                words, env, count = self.words(shape, "proxy1.stop", "work")
                result = self.run_job(*words, env=env)
                self.assertGreater(result.seconds, 4, result)
                self.assertEqual((result.status, sorted(result.out.split("\n")[:-1]), result.err), (0, greetings(count), ""), result)
                self.assert_nothing_left()

    def test_agent_that_has_said_all(self):
        """One that is stopped then is named, and the job ends."""
        for action in ("stop", "hang"):
            with self.subTest(action=action):
                words, env, count = self.words("machines", "agent1.end", action)
                result = self.run_job(*words, env=env)
                self.assertLess(result.seconds, scenario.LATE_S, result)
                self.assertEqual((result.status, sorted(result.out.split("\n")[:-1])), (0, greetings(count)), result)
                self.assertRegex(result.err, r"the agent on east did not end within \d s after the PEs, and was killed +\[Q0229\]")
                self.assert_nothing_left()

    @unittest.skipIf(scenario.SANITIZE, "a sanitizer wants to be the first library")
    def test_preloaded_tool(self):
        """One that owns the lowest descriptors and a thread: it is in the PEs, and neither in oshrun nor in the proxies."""
        for shape in ("one host", "ring", "network", "machines"):
            with self.subTest(shape=shape):
                words, _, count = self.words(shape, "none", "none")
                result = self.run_job(*words, env={"LD_PRELOAD": TOOL})
                self.assertEqual((result.status, sorted(result.out.split("\n")[:-1])), (0, greetings(count)), result)
        job = self.start(*SHAPES["network"], "-n", COUNT, GREET, env={"LD_PRELOAD": TOOL, "TEST_STEP": "proxy1.start=stop"})
        victim = self.wait_for_stop("proxy1.start")
        for pid in (victim, *self.pids_of("quoit-job", "quoit-guard", "oshrun")):
            with open(f"/proc/{pid}/maps") as file:
                self.assertNotIn("libscenario_tool", file.read())
        with open(f"/proc/{self.pids_of('scenario_greet')[0]}/maps") as file:
            self.assertIn("libscenario_tool", file.read())
        self.assertLessEqual({int(fd) for fd in os.listdir(f"/proc/{victim}/fd")}, set(range(64)))
        os.kill(victim, signal.SIGCONT)
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, sorted(out.decode().split("\n")[:-1])), (0, greetings(COUNT)), err)


class All(Steps):
    @scenario.each(*SHAPES)
    def test_killed(self, shape):
        for step in self.steps_of(shape):
            self.check_kill(shape, step)

    @scenario.each(*SHAPES)
    def test_hangs(self, shape):
        for step in set(HANGS) & set(self.steps_of(shape)):
            self.check_hang(shape, step)
        if shape != "one host":
            self.check_hang(shape, "proxy1.start", "close")

    @scenario.each(*SHAPES)
    def test_stopped(self, shape):
        """But the proxy that stops when all PEs have ended, which is not waited for (ending.py); and one whose connections are
        open, of which the network has limits of its own."""
        for step in self.steps_of(shape):
            is_the_network_waiting = step == "proxy1.ready" and shape in ("network", "rings", "machines")
            if step != "proxy1.stop" and not is_the_network_waiting:
                self.check_stop(shape, step)

    @scenario.each("ring", "network")
    def test_starved(self, shape):
        """All processes of a job get what two busy ones leave of one processor, with the lowest priority. The job takes many
        times as long, and nobody is taken for one that hangs."""
        core = min(os.sched_getaffinity(0))

        def starve():
            os.sched_setaffinity(0, {core})
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))

        spinners = [subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"])
                    for _ in range(2)]
        try:
            words, _, count = self.words(shape, "none", "none")
            job = self.start(*words, env=SOON, preexec_fn=starve)
            begin = time.monotonic()
            out, err = job.communicate(timeout=4 * scenario.LIMIT_S)
            self.assertEqual((job.returncode, sorted(out.decode().split("\n")[:-1])), (0, greetings(count)),
                             f"{time.monotonic() - begin:.1f} s {err.decode()}")
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()


class Kept(Ring, Steps):
    """Jobs on a ring that `quoit ring` keeps: their own processes at each step as above, and the keeper and a host of the ring
    while oshrun is at one of its own."""

    OSHRUN_STEPS = ("prepare", "layout", "go", "stop")
    TAKES_SHARE = ("prepare", "layout")  # what the keeper must answer comes after these steps
    IS_REFUSED = r"no share of the ring \S+: .*\[Q0224\]"

    def setUp(self):
        super().setUp()
        self.ring("up", "--hosts", COUNT)

    def options_of(self, shape):
        return ["--ring", self.name]

    def test_killed(self):
        for step in self.steps_of("kept ring"):
            if not step.startswith("proxy1.contact"):
                self.check_kill("kept ring", step)

    def test_hangs(self):
        for step in ("pe.layout", "pe.ready", "proxy1.start", "proxy1.ready"):
            self.check_hang("kept ring", step)
        self.check_hang("kept ring", "proxy1.start", "close")

    def test_stopped(self):
        for step in self.steps_of("kept ring"):
            if step != "proxy1.stop" and not step.startswith("proxy1.contact"):
                self.check_stop("kept ring", step)

    def job_at(self, step, act):
        """A job whose oshrun stops at the step while act() happens."""
        words, env, _ = self.words("kept ring", "oshrun." + step, "stop")
        job = self.start(*words, env={**NEVER, **env})
        self.wait_for(lambda: self.stopped() or job.poll() is not None, f"oshrun.{step} to stop")
        victim = self.wait_for_stop("oshrun." + step) if job.poll() is None else self.fail(job.communicate())
        act()
        os.kill(victim, signal.SIGCONT)
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assert_nothing_left()
        return scenario.Result(job.returncode, out.decode(), err.decode(), 0)

    def check_goes_on(self, result):
        self.assertEqual((result.status, sorted(result.out.split("\n")[:-1])), (0, greetings(COUNT)), result)

    def test_killed_keeper(self):
        """A named end, unless all PEs have ended."""
        for step in self.OSHRUN_STEPS:
            with self.subTest(step=step):
                result = self.job_at(step, lambda: os.kill(self.keeper(), signal.SIGKILL))
                if step == "stop" and result.status == 0:
                    self.check_goes_on(result)
                else:
                    self.assertEqual(result.status, 1, result)
                    self.assertRegex(result.err, r"the ring \S+ has ended, .*\[Q0228\]|" + self.IS_REFUSED)
                self.ring("down", check=False)
                self.ring("up", "--hosts", COUNT)

    def test_stopped_keeper(self):
        """A job that needs it names it, and says that it is stopped; one that has its share goes on."""
        keeper = self.keeper()
        for step in self.OSHRUN_STEPS:
            with self.subTest(step=step):
                try:
                    result = self.job_at(step, lambda: os.kill(keeper, signal.SIGSTOP))
                finally:
                    os.kill(keeper, signal.SIGCONT)
                if step in self.TAKES_SHARE:
                    self.assertEqual(result.status, 1, result)
                    self.assertRegex(result.err, rf"the keeper of the ring \(process {keeper}\) has not answered for \d+ s: it is "
                                                 r"stopped by a signal .*\[Q0245\]")
                else:
                    self.check_goes_on(result)
        self.check_goes_on(self.run_job(*self.words("kept ring", "none", "none")[0]))

    def test_host_of_the_ring(self):
        """A job has links of its own: it goes on beside a host that is stopped; and one that dies takes the PEs there with it, or,
        before they have been started, is back or named."""
        for step in self.OSHRUN_STEPS:
            with self.subTest(step=step, action="stop"):
                host = self.status()[1]["pid"]
                try:
                    self.check_goes_on(self.job_at(step, lambda: os.kill(host, signal.SIGSTOP)))
                finally:
                    os.kill(host, signal.SIGCONT)
            with self.subTest(step=step, action="kill"):
                starts = self.status()[1]["starts"]
                result = self.job_at(step, lambda: os.kill(self.status()[1]["pid"], signal.SIGKILL))
                if result.status == 0:
                    self.check_goes_on(result)
                else:
                    self.assertRegex(result.err, r"\[Q0\d+\]")
                self.wait_for_ring("host 1 is back", lambda: self.status()[1]["starts"] > starts and
                                   all(host["ready"] for host in self.status()) and self.status_of_links() == {"up"})


if __name__ == "__main__":
    scenario.main(6)
