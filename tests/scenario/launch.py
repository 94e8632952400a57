# SPDX-License-Identifier: BSD-3-Clause
"""Aim: oshrun starts the given programs in the given place with the given environment, and rejects bad usage before
anything starts. Method: programs of the system (sh, pwd, env) under oshrun, and their output."""
import os
import re
import subprocess
import tempfile

import scenario


class Launch(scenario.Case):
    def test_counts_and_programs(self):
        self.assertEqual(self.run_job("-n", 4, "echo", "x").out, "x\n" * 4)
        self.assertEqual(self.run_job("-np", 3, "echo", "x").out, "x\n" * 3)
        self.assertEqual(self.run_job("-n2", "echo", "x").out, "x\n" * 2)
        self.assertEqual(self.run_job("echo", "x").out, "x\n")
        self.assertEqual(self.run_job("--hosts", 3, "echo", "x").out, "x\n" * 3)
        result = self.run_job("-n", 2, "echo", "a", ":", "-n", 3, "echo", "b")
        self.assertEqual(sorted(result.out.split()), ["a"] * 2 + ["b"] * 3)

    def test_arguments_reach_the_program(self):
        result = self.run_job("-n", 1, "--", "printf", "%s|", "--tag", "-n", "a b", "", "$HOME")
        self.assertEqual(result.out, "--tag|-n|a b||$HOME|")

    def test_environment(self):
        result = self.run_job("-x", "MINE=1 2", "-x", "GIVEN", "-n", 2, "sh", "-c", "echo $MINE $GIVEN",
                              env={"GIVEN": "here"})
        self.assertEqual(result.out, "1 2 here\n" * 2)
        result = self.run_job("-x", "MINE=a", "sh", "-c", "echo [$MINE]", ":", "sh", "-c", "echo [$MINE]")
        self.assertEqual(sorted(result.out.split()), ["[]", "[a]"])
        result = self.run_job("-x", "MINE=1", "-x", "MINES=2", "-x", "MINE=3", "sh", "-c", "echo $MINE $MINES")
        self.assertEqual(result.out, "3 2\n") # the last one counts
        self.assertEqual(self.run_job("-x", "PATH=/nowhere", "/bin/sh", "-c", "echo $PATH").out, "/nowhere\n")
        self.assertEqual(self.run_job("-x", "NOTSET", "true").status, 2)

    def test_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = os.path.realpath(folder)
            script = os.path.join(folder, "script")
            with open(script, "w") as file:
                file.write("#!/bin/sh\npwd\n")
            os.chmod(script, 0o755)
            self.assertEqual(self.run_job("--wdir", folder, "./script").out, folder + "\n")
            result = self.run_job("-n", 1, "--wdir", "/", "pwd", ":", "--wdir", folder, "pwd")
            self.assertEqual(sorted(result.out.split()), ["/", folder])
            result = self.run_job("--wdir", folder + "/nowhere", "pwd")
            self.assertEqual(result.status, 2)

    def test_binding(self):
        cores = sorted(os.sched_getaffinity(0))
        show = "grep Cpus_allowed_list /proc/self/status | cut -f2"
        result = self.run_job("--bind-to", "core", "-n", 2 * len(cores), "--tag", "sh", "-c", show)
        seen = dict(re.findall(r"\[PE (\d+) host0\] (\S+)", result.out))
        self.assertEqual(seen, {str(i): str(cores[i % len(cores)]) for i in range(2 * len(cores))})
        result = self.run_job("--bind-to", "none", "sh", "-c", show)
        free = subprocess.run(["sh", "-c", show], capture_output=True, text=True).stdout
        self.assertEqual(result.out, free)

    def test_dry_run_starts_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_job("--dry-run", "--hosts", 2, "-n", 3, "touch", folder + "/made")
            self.assertEqual(os.listdir(folder), [])
        lines = result.out.splitlines()
        self.assertEqual([line.split()[:3] for line in lines],
                         [["PE", "0", "host0"], ["PE", "1", "host0"], ["PE", "2", "host1"]])

    def test_hosts_without_pes(self):
        result = self.run_job("--dry-run", "--hosts", 5, "--on", "3,1", "-n", 3, "true")
        self.assertEqual([line.split()[:3] for line in result.out.splitlines()],
                         [["PE", "0", "host1"], ["PE", "1", "host1"], ["PE", "2", "host3"]])
        for more in ([], ["--protocol", "scratchpad"]):
            result = self.run_job("--hosts", 5, "--on", "1,3", "-n", 4, *more, scenario.program("scenario_busy"), 20)
            self.assertEqual((result.status, result.out), (0, "begun\n"), result)
        result = self.run_job("--hosts", 5, "--on", "1,4", "-x", "SHMEM_INFO=1", scenario.program("scenario_greet"))
        self.assertIn("relayed: by the proxies to host 4, 2 hops",
                      result.out)

    def test_bad_usage(self):
        for arguments, words in [
            (["-n", "0", "true"], "-n is 0"),
            (["-n", "x", "true"], "whole number"),
            (["-n", "99999999999", "true"], "must be 1..65536"),
            (["-n", "99999999999999999999999", "true"], "must be 1..65536"),
            (["--hosts", "2", "--fault", "link 0-1 down at 1s for 0", "true"], "longer than nothing"),
            (["-n"], "needs a value"),
            (["-n", "2"], "no program"),
            ([], "no program"),
            (["-n", "2", "true", ":"], "missing beside"),
            (["--hots", "2", "true"], "did you mean --hosts?"),
            (["--frobnicate", "true"], "unknown option --frobnicate"),
            (["--hosts", "4", "-n", "2", "true"], "wants a PE on each host"),
            (["--hosts", "4", "--on", "1,4", "true"], "\"4\" is no host of the ring (0..3)"),
            (["--hosts", "4", "--on", "1,1", "true"], "host 1 is there twice"),
            (["--hosts", "4", "--on", "1,", "true"], "\"\" is no host"),
            (["--hosts", "4", "--on", "1-3", "true"], "\"1-3\" is no host"),
            (["--hosts", "4", "--on", "9999999999999999999999", "true"], "is no host"),
            (["--hosts", "4", "--on", "1,2", "-n", "1", "true"], "wants a PE on each of these hosts"),
            (["--hosts", "4", "--on", "1,2", "--barrier", "papers", "true"], "leaves some without"),
            (["--hosts", "4", "--on", "1,2", "--network", "auto", "true"], "has no use for them"),
            (["--weight", "50", "true"], "with --ring"),
            (["--ring", "lab", "--weight", "0", "true"], "1..100"),
            (["--ring", "lab", "--weight", "101", "true"], "1..100"),
            (["--on", "0", "true"], "wants a ring of 2 to 64 hosts"),
            (["--lanes", "3", "true"], "1, 2, 4 or 8"),
            (["--chunk=100", "true"], "multiple of 64"),
            (["--timeout", "soon", "true"], "500ms or 60s"),
            (["--bind-to", "socket", "true"], "core or none"),
            (["--help=1", "true"], "takes no value"),
            (["-x", "=1", "true"], "-x wants"),
        ]:
            with self.subTest(arguments=arguments):
                result = self.run_job(*arguments)
                self.assertEqual(result.status, 2, result)
                self.assertIn(words, result.err)
                self.assertEqual(len(result.err.splitlines()), 1, result)
                self.assertEqual(result.out, "")

    def test_program_that_cannot_run(self):
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain")
            with open(plain, "wb") as file:
                file.write(b"\x7fELF not really")
            self.assertEqual(self.run_job("-n", 2, "no-such-program").status, 127)
            self.assertEqual(self.run_job("./no-such-program").status, 127)
            self.assertEqual(self.run_job(plain).status, 126)
            self.assertEqual(self.run_job(folder).status, 126)
            result = self.run_job("plain", cwd=folder)
            self.assertEqual(result.status, 127)
            self.assertIn("did you mean ./plain?", result.err)
            # The second program is invalid: the first must not have run either.
            result = self.run_job("touch", folder + "/made", ":", plain)
            self.assertEqual(result.status, 126)
            self.assertFalse(os.path.exists(folder + "/made"))
            os.chmod(plain, 0o755)
            result = self.run_job("-n", 2, plain)
            self.assertEqual(result.status, 126, result)
            self.assertIn("Q0212", result.err)

    def test_environment_mistakes(self):
        result = self.run_job("echo", "ran", env={"SHMEM_SYMMETRIC_SIZE": "12Q"})
        self.assertEqual((result.status, result.out, len(result.err.splitlines())), (2, "", 1), result)
        self.assertIn('SHMEM_SYMMETRIC_SIZE is "12Q"', result.err)
        result = self.run_job("echo", "ran", env={"SHMEM_SYMETRIC_SIZE": "1G"})
        self.assertEqual((result.status, result.out), (0, "ran\n"))
        self.assertIn("did you mean SHMEM_SYMMETRIC_SIZE?", result.err)
        result = self.run_job("-n", 3, "echo", "ran", env={"QUOIT_LANE": "2"})
        self.assertEqual(result.err.count("did you mean QUOIT_LANES?"), 1)

    def test_own_variables_by_x(self):
        """-x of one of Quoit's variables has the same effect as the variable in oshrun's environment."""
        result = self.run_job("-x", "QUOIT_TAG=1", "-n", 2, "echo", "hi")
        self.assertEqual(sorted(result.out.splitlines()), ["[PE 0 host0] hi", "[PE 1 host0] hi"], result)
        result = self.run_job("-x", "QUOIT_TIMEOUT=300ms", "sleep", 100)
        self.assertEqual(result.status, 124, result)
        result = self.run_job("-x", "QUOIT_TIMEOUT=300ms", "--timeout", "50s", "sleep", "0.5")
        self.assertEqual(result.status, 0, result)
        result = self.run_job("-x", "QUOIT_HOSTS=2", "-n", 2, "--dry-run", "true", env={"QUOIT_HOSTS": "1"})
        self.assertIn("PE 1  host1", result.out)
        result = self.run_job("-x", "SHMEM_SYMMETRIC_SIZE=12Q", "echo", "ran")
        self.assertEqual((result.status, result.out), (2, ""), result)
        self.assertIn('SHMEM_SYMMETRIC_SIZE is "12Q"', result.err)
        result = self.run_job("-x", "SHMEM_SYMETRIC_SIZE=1G", "echo", "ran")
        self.assertIn("did you mean SHMEM_SYMMETRIC_SIZE?", result.err)
        result = self.run_job("-x", "QUOIT_LANES=2", "true", ":", "-x", "QUOIT_LANES=4", "true")
        self.assertEqual((result.status, len(result.err.splitlines())), (2, 1), result)
        self.assertIn("of the whole job", result.err)

    def test_help(self):
        text = self.run_job("--help")
        self.assertEqual((text.status, text.err), (0, ""))
        self.assertLess(len(text.out.splitlines()), 60)
        self.assertEqual(self.run_job("-h").out, text.out)
        self.assertIn("OpenSHMEM 1.6", self.run_job("--version").out)
        table = self.run_job("--options", "--lanes", 4, env={"QUOIT_SLOTS": "8"}).out
        rows = {line.split()[0]: line.split() for line in table.splitlines()}
        self.assertEqual(rows["--lanes"][1:4], ["QUOIT_LANES", "4", "2"])
        self.assertEqual(rows["--slots"][1:4], ["QUOIT_SLOTS", "8", "16"])
        manual = self.run_job("--man-options").out
        for name in rows:
            if name.startswith("-") and name != "-":
                self.assertIn(name.replace("-", "\\-"), manual)

    def test_where_options_go(self):
        """The table names each option's reader; options read by PEs reach them, with one value for all or one per
        program."""
        manual = self.run_job("--man-options").out.replace("\\-", "-")
        entries = manual.split("\n.TP\n")[1:]
        self.assertEqual([entry for entry in entries if "Read by " not in entry], [])
        show = ["sh", "-c", "echo $QUOIT_CHECK,$QUOIT_CORE,$QUOIT_PATH,$QUOIT_LANES"]
        both = self.run_job("--check", "--core", "none", "--path", "stream", "--lanes", "4", *show, ":", *show)
        self.assertEqual(both.out, 2 * "1,none,stream,\n", both)
        one = self.run_job("-x", "QUOIT_CHECK=1", "-x", "QUOIT_CORE=none", *show, ":", *show)
        self.assertEqual(sorted(one.out.splitlines()), ["1,,,", "1,none,,"], one)

    def test_every_form_of_fault(self):
        """The values of --fault are described in the help of the option and in the manual."""
        manual = self.run_job("--man-options").out.replace("\\-", "-")
        for form in ("link A-B down at TIME for TIME", "link A-B down at TIME", "host H dies at TIME",
                     "links random every TIME for TIME", "seed N"):
            self.assertIn(form, manual)

    def test_many_pes(self):
        result = self.run_job("-n", 200, "sh", "-c", "echo $$")
        self.assertEqual(result.status, 0)
        self.assertEqual(len(set(result.out.split())), 200)


if __name__ == "__main__":
    scenario.main()
