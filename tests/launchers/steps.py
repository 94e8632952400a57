# SPDX-License-Identifier: BSD-3-Clause
"""Aim: under the launchers that users have, whichever process dies, hangs or stops at whichever step of the start and the end
(base/step.h), the job ends with a message that names it, or goes on when that continues; and nothing is left.

Method: mpiexec.hydra on one host and on hosts that are namespaces, and srun in a Slurm of two nodes (real.py). A PE or proxy acts
at its step by itself; the launcher's processes are killed and stopped while a PE has stopped itself at one."""
import os
import re
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
import direct
import scenario
from real import HYDRA, IN_SLURM, Slurm, has
from scenario import greetings

GREET, BUSY = scenario.program("scenario_greet"), scenario.program("scenario_busy")
COUNT = 4                                # on several hosts two each
LAST = COUNT - 1
STEPS = ("hello", "layout", "ready", "go", "leaving", "finalized", "end")
PROXY_STEPS = ("start", "contact", "ready")
AGENT_STEPS = ("start", "layout", "go", "finalized")
NAMES = {"pe": "scenario_greet", "proxy": "quoit-proxy", "agent": "quoit-agent"}
SOON = {"QUOIT_LINK_TIMEOUT": "1s", "QUOIT_NETWORK_LIMIT": "60s"}
NEVER = {"QUOIT_LINK_TIMEOUT": "1h", "QUOIT_NETWORK_LIMIT": "1h"}
# By us, or by the launcher, which may be first; Hydra also gives up where it answers a PE that is dead.
NAMED = r"Q0\d{3}\]|BAD TERMINATION|[Kk]illed|KILLED|process manager error waiting for completion"


class Steps:
    """Mixed into a case of a launcher."""

    LAUNCHER = ()      # its processes between the user and a PE, outermost first
    OWN_DEATH = ()     # of LAUNCHER, those whose death the launcher itself may not notice
    HAS_PROXIES = False
    NOT_NOTICED = ()   # deaths of LAUNCHER at a step, before all PEs have joined, that it does not report to other hosts
    # Of a PE that dies before it has joined, only the launcher can know: what has it end the others then; None: nothing does.
    ENDS_ALL = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scenario.need_steps()

    def pids_of_launcher(self, name):
        return self.pids_of(name)

    def begin(self, who, step, action, env):
        """A job in which that acts so: a PE as the only one with the variable, since it does not know its number at first."""
        given = f"export TEST_STEP={who}.{step}={action}"
        if who.startswith("pe"):
            given = f'[ "${{PMI_RANK:-$PMIX_RANK}}" != {who[2:]} ] || export TEST_STEP=pe.{step}={action}'
        more = self.ENDS_ALL if (step, action) == ("hello", "kill") else ()
        command = [*self.launcher(), *more, "sh", "-c", f'{given}; exec "$0"', GREET]
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", env=scenario.environment(self.mark, **env))

    def finish(self, job):
        try:
            out, _ = job.communicate(timeout=scenario.LIMIT_S)
        except subprocess.TimeoutExpired:
            left = [(pid, scenario.name_of(pid), scenario.state_of(pid)) for pid in scenario.processes(self.mark)]
            for pid, _, _ in left:
                scenario.send(pid, signal.SIGKILL)
            out, _ = job.communicate()
            self.fail(f"the job hangs: {left}\n{out}")
        return scenario.Result(job.returncode, out, "", 0)

    def check_goes_on(self, result):
        self.assertEqual(result.status, 0, result)
        self.assertEqual(sorted(re.findall(r"^hello from .*$", result.out, re.M)), greetings(COUNT), result)

    def busy(self):
        """A job whose PEs run, for ever."""
        job = subprocess.Popen([str(word) for word in (*self.launcher(), BUSY)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", env=scenario.environment(self.mark, **NEVER))
        while job.stdout.readline() not in ("begun\n", ""):
            pass  # srun reports what it waits for
        return job

    def finish_busy(self, job):
        """What is ours ends by itself."""
        try:
            self.wait_for(lambda: not self.pids_of("scenario_busy", "quoit-agent", "quoit-proxy"), "all that is ours to end",
                          scenario.LATE_S)
        finally:
            job.kill()
            for pid in scenario.processes(self.mark):
                scenario.send(pid, signal.SIGKILL)
            out, _ = job.communicate(timeout=scenario.LIMIT_S)
        return out

    def stopped_at(self, who, step, env):
        """A job and its process that has stopped itself there."""
        job = self.begin(who, step, "stop", env)
        name = NAMES[who.rstrip("0123456789")]

        def find():
            return [pid for pid in self.pids_of(name) if scenario.state_of(pid) == "T"]

        self.wait_for(lambda: find() or job.poll() is not None, f"{who}.{step} to stop")
        return job, find()[0] if job.poll() is None else self.fail(self.finish(job))

    def agent(self):
        return "agent1" if self.HAS_PROXIES else "agent0"

    def test_killed(self):
        cases = [(f"pe{rank}", step) for rank in (0, LAST) for step in STEPS if step != "hello" or self.ENDS_ALL is not None]
        cases += [("proxy1", step) for step in PROXY_STEPS if self.HAS_PROXIES]
        cases += [(self.agent(), step) for step in AGENT_STEPS if step == "finalized" or self.ENDS_ALL is not None]
        for who, step in cases:
            with self.subTest(who=who, step=step):
                # Hydra does not always end the processes of other hosts: what waits for this one ends after its own limit.
                result = self.finish(self.begin(who, step, "kill", SOON if who.startswith("proxy") else NEVER))
                self.assertNotEqual(result.status, 0, result)
                self.assertRegex(result.out, NAMED)
                self.assert_nothing_left()

    def test_hangs(self):
        """Where only our own code runs: a named end."""
        for who, step in [(f"pe{LAST}", "layout"), (f"pe{LAST}", "ready")] + [("proxy1", "start")] * self.HAS_PROXIES:
            with self.subTest(who=who, step=step):
                result = self.finish(self.begin(who, step, "hang", SOON))
                self.assertNotEqual(result.status, 0, result)
                self.assertRegex(result.out, r"\[Q0(238|221)\]")
                self.assert_nothing_left()

    def test_agent_hangs(self):
        """Before the PEs have finalized it is named."""
        for step in ("go", "finalized"):
            with self.subTest(step=step):
                result = self.finish(self.begin(self.agent(), step, "hang", SOON))
                self.assertNotEqual(result.status, 0, result)
                self.assertRegex(result.out, r"the agent of PE \d's host \(process \d+\) hangs: .*\[Q0241\]")
                self.assert_nothing_left()

    def test_agent_that_is_not_needed(self):
        """It has given its last answer: the job ends as if nothing were, and the agent with it."""
        for action in ("stop", "hang", "kill"):
            with self.subTest(action=action):
                result = self.finish(self.begin(self.agent(), "leave", action, NEVER))
                self.check_goes_on(result)
                self.assertNotRegex(result.out, r"\[Q0")
                self.assert_nothing_left()

    def test_agent_killed_beside_a_stopped_proxy(self):
        for step in ("begin", *PROXY_STEPS) if self.HAS_PROXIES else ():
            with self.subTest(step=step):
                job, victim = self.stopped_at("proxy" if step == "begin" else "proxy1", step, SOON)  # as in test_killed
                os.kill(scenario.parent_of(victim), signal.SIGKILL)
                result = self.finish(job)
                self.assertNotEqual(result.status, 0, result)
                self.assertRegex(result.out, NAMED)
                self.assert_nothing_left()

    def test_stopped(self):
        """It goes on with the job."""
        cases = [(f"pe{rank}", step) for rank in (0, LAST) for step in STEPS]
        cases += [("proxy1", step) for step in ("start", "contact") if self.HAS_PROXIES]
        cases += [(self.agent(), step) for step in AGENT_STEPS]
        for who, step in cases:
            with self.subTest(who=who, step=step):
                job, victim = self.stopped_at(who, step, NEVER)
                os.kill(victim, signal.SIGCONT)
                self.check_goes_on(self.finish(job))
                self.assert_nothing_left()

    def test_launcher_stopped(self):
        """Each of its processes at each step of a PE: the job goes on when that continues."""
        for name in self.LAUNCHER:
            for step in STEPS:
                with self.subTest(name=name, step=step):
                    job, victim = self.stopped_at(f"pe{LAST}", step, NEVER)
                    stopped = self.pids_of_launcher(name)
                    self.assertTrue(stopped)
                    for pid in stopped:
                        os.kill(pid, signal.SIGSTOP)
                    os.kill(victim, signal.SIGCONT)
                    self.wait_for(lambda: scenario.state_of(victim) != "T", "the PE to go on")
                    for pid in stopped:
                        scenario.send(pid, signal.SIGCONT)
                    self.check_goes_on(self.finish(job))
                    self.assert_nothing_left()

    def test_launcher_killed(self):
        """One of its processes at each step of a PE: all PEs end, also where the launcher itself does not report it."""
        for name in self.LAUNCHER:
            for step in (step for step in STEPS if (name, step) not in self.NOT_NOTICED):
                with self.subTest(name=name, step=step):
                    job, victim = self.stopped_at(f"pe{LAST}", step, NEVER)
                    os.kill(self.pids_of_launcher(name)[0], signal.SIGKILL)
                    scenario.send(victim, signal.SIGCONT)
                    self.wait_for(lambda: not self.pids_of("scenario_greet", "quoit-proxy"), "the PEs to end")
                    if name in self.OWN_DEATH:
                        job.kill()
                    self.finish(job)
                    self.assert_nothing_left()


    def test_launchers_process_of_a_host_killed(self):
        """While all PEs run, where launchers may not notice it: it is named by another host, since nobody may see what the PEs of its
        own print."""
        for which in (0, -1) if self.HAS_PROXIES else (0,):
            with self.subTest(which=which):
                job = self.busy()
                os.kill(sorted({scenario.parent_of(pid) for pid in self.pids_of("scenario_busy")})[which], signal.SIGKILL)
                out = self.finish_busy(job)
                if self.HAS_PROXIES:
                    self.assertRegex(out, r"the launcher's process on host \S+, which started the PEs \d\.\.\d, ended .*\[Q0320\]")
                    self.assertEqual(out.count("[Q0"), 1, out)

    def test_launcher_killed_beside_a_stopped_agent(self):
        job = self.busy()
        os.kill(self.pids_of("quoit-agent")[-1], signal.SIGSTOP)
        os.kill(self.pids_of_launcher(self.LAUNCHER[0])[0], signal.SIGKILL)
        self.finish_busy(job)


@unittest.skipIf(IN_SLURM, "in a Slurm")
@unittest.skipUnless(has(*HYDRA[:1]), "no mpiexec.hydra (mpich)")
class Hydra(Steps, scenario.Case):
    LAUNCHER = ("mpiexec.hydra", "hydra_pmi_proxy")

    def launcher(self):
        return [*HYDRA, "-n", COUNT]


@unittest.skipIf(IN_SLURM, "in a Slurm")
class HydraHosts(Steps, direct.Hydra):
    """The tests of the base are not run again."""
    LAUNCHER = ("mpiexec.hydra", "hydra_pmi_proxy")
    HAS_PROXIES = True
    ENDS_ALL = None    # at times it waits for ever for its process on the other host
    test_places = test_conformance = test_ends = None

    def launcher(self):
        return ["ip", "netns", "exec", self.names[0], *self.words(2, COUNT)]


@unittest.skipUnless(IN_SLURM, "run by InSlurm")
class Srun(Steps, scenario.Case):
    LAUNCHER = ("srun", "slurmstepd")
    OWN_DEATH = ("slurmstepd",)
    ENDS_ALL = ("-K",)

    def pids_of_launcher(self, name):
        """All of the Slurm, which are in a namespace of their own: slurmd, not srun, starts some of them."""
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and scenario.name_of(pid) == name]

    def launcher(self):
        return ["srun", "-N1", "--mpi=pmi2", "-n", COUNT]


class SrunPmix(Srun):
    def launcher(self):
        return ["srun", "-N1", "--mpi=pmix", "-n", COUNT]


class SrunHosts(Srun):
    HAS_PROXIES = True
    NOT_NOTICED = (("slurmstepd", "hello"),)  # PE 0 reports that it waits (direct.py)

    def launcher(self):
        return ["srun", "-N2", "--mpi=pmi2", "-n", COUNT]


class InSlurm(Slurm):
    def test_in_a_slurm(self):
        self.run_in_a_slurm(__file__, "Srun", "SrunPmix", "SrunHosts")


if __name__ == "__main__":
    scenario.main(1 if IN_SLURM else 6)
