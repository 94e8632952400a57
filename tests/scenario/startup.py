# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a program started in an environment in which it cannot be part of a job says so, with a remedy; it never
silently runs as N jobs of one PE. Method: a small program with the environment of other launchers, with broken
connections to oshrun, with few descriptors and little address space."""
import resource
import shutil
import subprocess
import unittest

import scenario

GREET = scenario.program("scenario_greet")
PE_ENVIRONMENTS = (
    ("Open MPI", {"OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI 2"),
    ("srun of Slurm", {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}, "--mpi=pmi2"),
    ("mpiexec", {"PMI_SIZE": "4", "PMI_RANK": "0", "PMI_FD": "99"}, "PMI_FD"),
    ("MVAPICH", {"MV2_COMM_WORLD_SIZE": "4"}, "mpiexec.hydra"),
    ("flux run", {"FLUX_JOB_SIZE": "4"}, "-o pmi=simple"),
    ("PALS", {"PALS_LOCAL_SIZE": "4"}, "--pmi=pmix"),
)


@unittest.skipUnless(shutil.os.path.exists(GREET), "the library was not built")
class Startup(scenario.Case):
    def alone(self, *command, env=None, limits=(), **how):
        def prepare():
            for which, value in limits:
                resource.setrlimit(which, (value, value))

        result = subprocess.run([*command], stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=prepare,
                                env=scenario.environment(self.mark, **(env or {})), timeout=scenario.LIMIT_S, **how)
        return scenario.Result(result.returncode, result.stdout, result.stderr, 0)

    def test_other_launchers(self):
        for name, env, remedy in PE_ENVIRONMENTS:
            with self.subTest(env=env):
                result = self.alone(GREET, env=env)
                self.assertEqual((result.status, result.out), (1, ""), result)
                self.assertIn(name, result.err)
                self.assertRegex(result.err, r"without PMI and PMIx.*\[Q0301\]\n  needed: .*" + remedy + ".* oshrun -n 4 PROGRAM")
                self.assertEqual(self.alone(GREET, env={**env, "QUOIT_LAUNCHER": "none"}).status, 0)
        for env in ({"PMIX_RANK": "0"}, {"PMI_FD": "99"}, {"PMI_FD": "1"}, {"PMI_FD": "x"}):
            result = self.alone(GREET, env=env)
            self.assertEqual((result.status, result.out), (1, ""), result)
            self.assertIn(list(env)[0] + " is ", result.err)
        result = self.alone(GREET, env={"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "1"}) # PE 0 says it
        self.assertEqual((result.status, result.out), (1, ""), result)
        self.assertNotIn("Q0301", result.err)

    def test_one_process_of_a_launcher(self):
        """A job of one process is valid, as in the shell of an allocation, and so is oshrun inside another launcher's job."""
        for env in ({"SLURM_STEP_NUM_TASKS": "1"}, {"OMPI_COMM_WORLD_SIZE": "1"}, {"SLURM_NTASKS": "4"},
                    {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}):
            self.assertEqual(self.alone(GREET, env=env).status, 0)
        self.assertEqual(self.run_job("-n", 2, GREET, env={"SLURM_STEP_NUM_TASKS": "4", "PMIX_RANK": "0"}).status, 0)

    def test_broken_connection(self):
        for text, words in (("abc", "is no descriptor"), ("", "is no descriptor"), ("-1", "is no descriptor"),
                            ("5000000000", "is no descriptor"), ("99", "was closed"), ("1", "no connection to oshrun")):
            with self.subTest(text=text):
                result = self.alone(GREET, env={"QUOIT_BOOT_FD": text})
                self.assertEqual((result.status, result.out), (1, ""), result)
                self.assertRegex(result.err, words + r".*\[Q0304\]")

    def test_two_programs_in_turn(self):
        result = self.run_job("-n", 2, "sh", "-c", f"'{GREET}' && '{GREET}'")
        self.assertEqual(result.status, 1, result)
        self.assertIn("started a second OpenSHMEM program", result.err)
        self.assertIn("[Q0208]", result.err)
        self.assertNotIn("version", result.err)

    def test_few_descriptors(self):
        result = self.alone(scenario.OSHRUN, "-n", "2", GREET, limits=((resource.RLIMIT_NOFILE, 7),))
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, r"ulimit -n.*\[Q0213\]")

    def test_no_null_device(self):
        hide = "mount -t tmpfs none /dev"
        if subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True).returncode != 0:
            self.skipTest("mounts of one's own are not allowed here")
        result = self.alone("unshare", "-m", "sh", "-c", hide + ' && exec "$@"', "sh", scenario.OSHRUN, "-n", "2", "true")
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, r"cannot open /dev/null.*\[Q0213\]")

    @unittest.skipIf(scenario.SANITIZE or not shutil.which("valgrind"), "no valgrind")
    def test_valgrind_alone(self):
        """Its address space is smaller than the default limit of the heap, and no resource limit of the process says
        so."""
        result = self.alone("valgrind", "-q", GREET)
        self.assertEqual(result.status, 0, result)
        result = self.alone("valgrind", "-q", GREET, env={"SHMEM_SYMMETRIC_SIZE": "200G"})
        self.assertEqual(result.status, 1, result)
        self.assertIn("[Q0302]", result.err)

    @unittest.skipIf(scenario.SANITIZE, "a sanitizer wants to be the first library")
    def test_mpi_in_the_process(self):
        mpi = "LD_PRELOAD=" + scenario.program("libscenario_mpi.so")
        result = self.run_job("-n", 3, "-x", mpi, GREET)
        self.assertEqual((result.status, result.err.count("[Q0307]")), (0, 1), result)
        self.assertIn("one process in each of the 3 PEs", result.err)
        self.assertNotIn("Q0307", self.run_job("-n", 1, "-x", mpi, GREET).err)


if __name__ == "__main__":
    scenario.main()
