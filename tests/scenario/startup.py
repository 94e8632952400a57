# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a program started in an environment in which it cannot be part of a job says so, with a remedy; it never
silently runs as N jobs of one PE. Method: a small program with the environment of other launchers, with broken
connections to oshrun, with few descriptors and little address space."""
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import scenario

GREET = scenario.program("scenario_greet")
DETECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "boot", "detect.c")
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

    def test_each_launcher_of_the_table(self):
        """The first process says it for all."""
        with open(DETECT, encoding="utf-8") as file:
            rows = re.findall(r'^    \{"([^"]+)", "(\w+)", "(\w+)", ', file.read(), re.M)
        self.assertGreater(len(rows), 8)
        for name, rank, size in rows:
            for number, count in (("0", 1), ("1", 0)):
                with self.subTest(name=name, rank=rank, number=number):
                    result = self.alone(GREET, env={rank: number, size: "4"})
                    self.assertEqual((result.status, result.out, result.err.count(f"started by {name} ({size}=4)")), (1, "", count))

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

    def test_wrappers(self):
        """Ones that close descriptors, and that start another process: the PE has a second way. Without its variables it is
        refused, and a program that a PE starts later is a job of its own."""
        closing = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"]
        renumbering = ["sh", "-c", 'for fd in 3 4 5 6 7 8 9; do eval "exec $fd</dev/null"; done; exec "$0"']
        for shape in ((), ("--hosts", 2), ("--hosts", 2, "--network", "tcp")):
            for wrapper in (closing, renumbering):
                with self.subTest(shape=shape, wrapper=wrapper):
                    result = self.run_job(*shape, "-n", 2, *wrapper, GREET)
                    self.assertEqual((result.status, sorted(result.out.split("\n")[:-1]), result.err),
                                     (0, ["hello from PE 0 of 2", "hello from PE 1 of 2"], ""), result)
        result = self.run_job("-n", 2, "env", "-i", f"SCENARIO_MARK={self.mark}", GREET)
        self.assertEqual((result.status, result.out), (1, ""), result)
        self.assertRegex(result.err, r"oshrun started this program, but .* has removed QUOIT_BOOT_FD .*\[Q0324\]")
        result = self.run_job("-n", 1, "sh", "-c", f"'{GREET}' && env -i '{GREET}'")
        self.assertEqual((result.status, result.out), (0, "hello from PE 0 of 1\n" * 2), result)
        self.assertEqual(self.run_job("-n", 2, "env", "-i", "QUOIT_LAUNCHER=none", GREET).status, 0)
        twice = [sys.executable, "-c", "import subprocess, sys; print([subprocess.run(sys.argv[1:]).returncode for i in (1, 2)])"]
        result = self.run_job("-n", 1, *twice, GREET)
        self.assertEqual(result.status, 0, result)
        self.assertIn("[0, 1]", result.out)
        self.assertRegex(result.err, r"the PE has had a program already \[Q0323\]")

    def test_strangers_at_the_socket(self):
        """A process that does not descend from the PE connects, though it knows the name; garbage from one that does; the PE
        then comes, by either way."""
        come = ("import os, socket, subprocess, sys\n"
                "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                "s.connect(chr(0) + os.environ['QUOIT_BOOT_SOCKET'])\n"
                "assert len(s.recv(4096)) > 8\n"
                "s.close()\n"
                "print(os.environ['QUOIT_BOOT_SOCKET'], flush=True)\n"
                "sys.stdin.readline()\n"
                "sys.exit(subprocess.run(sys.argv[1:]).returncode)")
        job = self.start("-n", 1, sys.executable, "-c", come, GREET, stdin=subprocess.PIPE)
        name = job.stdout.readline().decode().strip()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.connect("\0" + name)
            self.assertEqual(stranger.recv(4096), b"")
        out, err = job.communicate(b"\n", timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out, err), (0, b"hello from PE 0 of 1\n", b""))
        garbage = come.replace("s.close()", "s.send(b'x' * 100)\nos._exit(0)")
        result = self.run_job("-n", 1, sys.executable, "-c", garbage, GREET)
        self.assertEqual(result.status, 1, result)
        self.assertIn("[Q0214]", result.err)

    def test_two_programs_in_turn(self):
        result = self.run_job("-n", 2, "sh", "-c", f"'{GREET}' && '{GREET}'")
        self.assertEqual(result.status, 1, result)
        self.assertIn("started a second OpenSHMEM program", result.err)
        self.assertIn("[Q0208]", result.err)
        self.assertNotIn("version", result.err)

    def test_control_characters(self):
        """What a user, a file or the environment supplies reaches no terminal as a sequence that it obeys, in messages or
        in the plan; text beyond ASCII does."""
        evil, file = "\033]0;x\007\033[31m\u009b2J\x7f", self.hostfile("a\033[2Jb slots=1\nc\x01d\n")
        for words, env in (
                (("--hostfile", file, "--dry-run", "true"), {}), (("--host", "a" + evil, "--dry-run", "true"), {}),
                (("--dry-run", "-n", "2", "-x", "A=" + evil, "true", evil), {}), (("-n", "2", "./no" + evil), {}),
                (("-n", evil, "true"), {}), (("--" + evil, "true"), {}), (("--protocol", evil, "true"), {}),
                (("--fault", evil, "true"), {}), (("--wdir", "/" + evil, "true"), {}), (("-x", evil, "true"), {}),
                (("--ring", evil, "true"), {}), (("--output", "/no/" + evil, "true"), {}), (("--hostfile", evil, "true"), {}),
                (("--options", "--output", evil), {}), (("true",), {"QUOIT_PROTOCOL": evil}),
                (("true",), {"QUOIT_" + evil.replace("=", ""): "1"}), ((GREET,), {"SHMEM_SYMMETRIC_SIZE": evil})):
            with self.subTest(words=words, env=env):
                result = self.alone(scenario.OSHRUN, *words, env=env)
                self.assertNotRegex(result.out + result.err, "[\0-\x09\x0b-\x1f\x7f\x80-\x9f]")
        self.assertIn("./m\u00fcller", self.alone(scenario.OSHRUN, "./m\u00fcller").err)

    def hostfile(self, text):
        file = tempfile.NamedTemporaryFile("w", prefix="quoit-hosts-")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

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
