# SPDX-License-Identifier: BSD-3-Clause
"""Aim: programs form one job under the launchers that users have, and end there with the status of the PE that failed; MPI
and OpenSHMEM work in one program. Method: Hydra, Open MPI's mpirun, and srun in a Slurm of two nodes that the test brings
up; each is skipped where it is not installed."""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
import scenario
from scenario import greetings

GREET, MISBEHAVE = scenario.program("scenario_greet"), scenario.program("scenario_misbehave")
CONFORMANCE = os.environ["LAUNCHERS_CONFORMANCE"]
IN_SLURM = "LAUNCHERS_IN_SLURM" in os.environ
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
HYDRA = ["mpiexec.hydra"]
# What srun prints where the nodes of the job before are not free yet.
QUEUED = re.compile(r"^srun: job \d+ (queued and waiting for|has been allocated) resources\n", re.M)
MPIRUN = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]


def has(*tools):
    return all(shutil.which(tool) for tool in tools)


class Launchers(scenario.Case):
    def launch(self, *command, env=None):
        begin = time.monotonic()
        result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                errors="replace", timeout=scenario.LIMIT_S,
                                env=scenario.environment(self.mark, **(env or {})))
        return scenario.Result(result.returncode, result.stdout, QUEUED.sub("", result.stderr), time.monotonic() - begin)

    def check_greetings(self, launcher, count, env=None):
        result = self.launch(*launcher, "-n", count, GREET, env=env)
        self.assertEqual((result.status, sorted(result.out.split("\n")[:-1])), (0, greetings(count)), result)
        self.assertNotIn("quoit", result.err)

    @contextlib.contextmanager
    def static_program(self):
        """A program that is linked statically, in a folder that leads to no installation."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # the nodes of slurm.sh have a /tmp of their own
            program = os.path.join(folder, "program")
            subprocess.run([os.path.join(scenario.BIN, "oshcc"), "-static", "-o", program,
                            os.path.join(HERE, "..", "scenario", "greet.c")], check=True)
            yield program

    def check_static(self, *launchers):
        with self.static_program() as program:
            for launcher in launchers:
                with self.subTest(launcher=launcher):
                    result = self.launch(*launcher, "-n", 4, program, env={"PATH": SYSTEM_PATH})
                    self.assertEqual((result.status, sorted(result.out.split("\n")[:-1]), result.err), (0, greetings(4), ""), result)

    def check_static_with_pmix(self, launcher):
        with self.static_program() as program:
            result = self.launch(*launcher, "-n", 2, program)
            self.assertNotEqual(result.status, 0, result)
            self.assertRegex(result.err, r"statically \[Q0310\]\n  link without -static, or start with PMI: ")

    def check_conformance(self, launcher):
        for name in ("coll", "again", "memory"):
            result = self.launch(*launcher, "-n", 3, os.path.join(CONFORMANCE, "conformance_" + name))
            self.assertEqual(result.status, 0, result)

    def check_ends(self, launcher, deeds):
        for deed, argument, status, words in deeds:
            for who in (0, 1):
                with self.subTest(deed=deed, who=who):
                    result = self.launch(*launcher, "-n", 3, MISBEHAVE, who, deed, argument)
                    self.assertEqual(result.status, status, result)
                    self.assertRegex(result.out + result.err, words.replace("WHO", str(who)))
                    self.assertLess(result.seconds, scenario.LATE_S)

    def check_hybrids(self, launcher, compiler, orders=("ms", "sm", "mm", "after", "none")):
        if not scenario.has_mpi(compiler):
            self.skipTest(f"no {compiler}, or no header of its MPI")
        library = os.path.join(os.path.dirname(scenario.BIN), "lib")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # the nodes of slurm.sh have a /tmp of their own
            program = os.path.join(folder, "hybrid")
            subprocess.run([compiler, "-I", os.path.join(os.path.dirname(scenario.BIN), "include"), os.path.join(HERE, "hybrid.c"), "-o",
                            program, "-L", library, "-lshmem", "-Wl,-rpath," + library], check=True)
            for order in orders:
                with self.subTest(order=order):
                    result = self.launch(*launcher, "-n", 3, program, order)
                    self.assertEqual(result.status, 0, result)
                    self.assertEqual("sum 3 of 3" in result.out, order not in ("after", "none"), result)
            result = self.launch(*launcher, "-n", 3, program, "exit")
            self.assertNotEqual(result.status, 0, result)
            self.assertLess(result.seconds, scenario.LATE_S)


@unittest.skipIf(IN_SLURM, "in a Slurm")
@unittest.skipUnless(has(*HYDRA[:1]), "no mpiexec.hydra (mpich)")
class Hydra(Launchers):
    def test_greetings(self):
        for env in (None, {"QUOIT_LAUNCHER": "pmi2"}):
            for count in (1, 4):
                self.check_greetings(HYDRA, count, env)
        self.check_greetings([*HYDRA, "-pmi-port"], 3)
        result = self.launch(*HYDRA, "-n", 2, GREET, ":", "-n", 1, GREET)
        self.assertEqual(sorted(result.out.split("\n")[:-1]), greetings(3))

    def test_static(self):
        self.check_static(HYDRA)

    def test_conformance(self):
        self.check_conformance(HYDRA)

    def test_ends(self):
        self.check_ends(HYDRA, (("exit", 3, 3, r"PE WHO on \S+ exited with status 3 .*Q0202"), ("_exit", 9, 9, "PE WHO .*Q0203"),
                                ("global-exit", 5, 5, "^$"), ("global-exit", 0, 0, "^$"),
                                ("null", 0, 11, r"PE WHO on \S+ was killed by SIGSEGV"), ("bad-pe", 0, 1, "Q0104")))

    def test_hybrids(self):
        self.check_hybrids(HYDRA, "mpicc.mpich")


@unittest.skipIf(IN_SLURM, "in a Slurm")
@unittest.skipUnless(has(*MPIRUN[:1]), "no mpirun.openmpi (openmpi-bin)")
class OpenMpi(Launchers):
    def test_greetings(self):
        for count in (1, 4):
            self.check_greetings(MPIRUN, count)

    def test_static(self):
        self.check_static_with_pmix(MPIRUN)

    def test_conformance(self):
        self.check_conformance(MPIRUN)

    def test_ends(self):
        self.check_ends(MPIRUN, (("exit", 3, 3, ".*"), ("global-exit", 5, 5, ".*"), ("kill", 9, 137, ".*"),
                                 ("null", 0, 139, r"PE WHO on \S+ was killed by SIGSEGV"), ("bad-pe", 0, 1, "Q0104")))

    def test_hybrids(self):
        self.check_hybrids(MPIRUN, "mpicc.openmpi")

    def test_no_library(self):
        """A folder in front, with a library of that name that is none."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libpmix.so.2"), "w") as file:
                file.write("nothing")
            result = self.launch(GREET, env={"PMIX_NAMESPACE": "x", "PMIX_RANK": "0", "LD_LIBRARY_PATH": folder})
        self.assertEqual((result.status, result.out), (1, ""), result)
        self.assertIn("[Q0310]", result.err)


@unittest.skipIf(IN_SLURM or scenario.SANITIZE, "in a Slurm, or a sanitizer")
@unittest.skipUnless(has("srun", "slurmctld", "slurmd", "munged", "ip"), "no Slurm (slurm-wlm, munge, iproute2)")
class Slurm(scenario.Case):
    def test_in_a_slurm(self):
        self.run_in_a_slurm(__file__, "Srun")

    def run_in_a_slurm(self, file, *names):
        """These cases of a file, in a Slurm of two nodes."""
        apart = ["unshare", "-n", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child"]
        if subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
            self.skipTest("only root may make namespaces")
        result = subprocess.run([*apart, "bash", os.path.join(HERE, "slurm.sh"), sys.executable, file, *names],
                                env=scenario.environment(self.mark, LAUNCHERS_IN_SLURM="1"), capture_output=True, text=True,
                                timeout=7 * scenario.LIMIT_S)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


@unittest.skipUnless(IN_SLURM, "run by Slurm.test_in_a_slurm")
class Srun(Launchers):
    def test_greetings(self):
        for mpi in ("pmi2", "pmix"):
            self.check_greetings(["srun", "-N1", "--mpi=" + mpi], 4)
        self.check_greetings(["srun", "-N1", "--mpi=pmi2"], 3, {"QUOIT_LAUNCHER": "pmi2"})

    def test_static(self):
        self.check_static(["srun", "-N1", "--mpi=pmi2"], ["srun", "-N2", "--mpi=pmi2"])
        self.check_static_with_pmix(["srun", "-N1", "--mpi=pmix"])

    def test_none(self):
        result = self.launch("srun", "-N1", "-n4", "--mpi=none", GREET)
        self.assertEqual((result.status, result.out, result.err.count("[Q0301]")), (1, "", 1), result)
        self.assertIn("srun --mpi=pmi2", result.err)
        self.assertEqual(self.launch("srun", "-n1", "--mpi=none", GREET).out, "hello from PE 0 of 1\n")

    def test_several_hosts(self):
        for mpi in ("pmi2", "pmix"):
            self.check_greetings(["srun", "-N2", "--mpi=" + mpi], 4)
            self.check_greetings(["srun", "-N2", "-m", "cyclic", "--mpi=" + mpi], 5)
            result = self.launch("srun", "-N2", "-n4", "--mpi=" + mpi, os.path.join(CONFORMANCE, "conformance_coll"))
            self.assertEqual(result.status, 0, result)
            for deed, argument, status, words in (("exit", 3, 3, r"PE 3 on \S+ exited with status 3 .*Q0202"), ("global-exit", 5, 5, "^"),
                                                  ("null", 0, 139, r"PE 3 on \S+ was killed by SIGSEGV")):
                result = self.launch("srun", "-N2", "-n4", "--mpi=" + mpi, MISBEHAVE, 3, deed, argument)
                self.assertEqual(result.status, status, result)
                self.assertRegex(result.err, words)
        for launcher in (HYDRA, MPIRUN):
            if has(launcher[0]):
                self.check_greetings(["salloc", "-Q", "-N2", "-n4", *launcher], 4)

    def test_ends(self):
        for mpi in ("pmi2", "pmix"):
            self.check_ends(["srun", "-N1", "--mpi=" + mpi],
                            (("exit", 3, 3, r"PE WHO on \S+ exited with status 3 .*Q0202"), ("_exit", 9, 9, "PE WHO .*Q0203"),
                             ("global-exit", 5, 5, ".*"), ("kill", 9, 137, "PE WHO .*Q0203"),
                             ("null", 0, 139, r"PE WHO on \S+ was killed by SIGSEGV")))

    def test_hybrids(self):
        """Of Slurm's PMI, where MPI comes first."""
        self.check_hybrids(["srun", "-N1", "--mpi=pmi2"], "mpicc.mpich", ("ms", "mm", "none"))

    def test_hybrids_with_pmix(self):
        self.check_hybrids(["srun", "-N1", "--mpi=pmix"], "mpicc.openmpi")

    def test_allocation(self):
        """The shell of an allocation runs a program as one PE; launchers in it make a job."""
        self.assertEqual(self.launch("salloc", "-Q", "-N1", "-n4", GREET).out, "hello from PE 0 of 1\n")
        for launcher in (HYDRA, MPIRUN):
            if has(launcher[0]):
                self.check_greetings(["salloc", "-Q", "-N1", "-n4", *launcher], 4)

    def test_oshrun(self):
        """It finds the nodes of the allocation, and srun starts the agents."""
        result = self.launch("salloc", "-Q", "-N2", "--ntasks-per-node=2", scenario.OSHRUN, "--tag", GREET)
        self.assertEqual((result.status, sorted(result.out.split("\n")[:-1])),
                         (0, [f"[PE {i} node{i // 2}] hello from PE {i} of 4" for i in range(4)]), result)
        result = self.launch("salloc", "-Q", "-N2", "--ntasks-per-node=2", scenario.OSHRUN, MISBEHAVE, 3, "exit", 3)
        self.assertEqual(result.status, 3, result)
        self.assertRegex(result.err, "PE 3 on node1 exited with status 3 .*Q0202")


if __name__ == "__main__":
    scenario.main()
