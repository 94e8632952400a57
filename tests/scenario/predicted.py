# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit predict PROGRAM prints the times that oshrun --virtual has, and where they go, the same in each run; wrong input and runs
that fail are named.

Method: programs of virtual.c, whose time is known: a put of 1 MB that takes all of it, for which the other PE waits. Numbers are
those of --json; the table must have the same ones. Jobs of oshrun --virtual without a profile must take as long."""
import json
import os
import re
import subprocess
import tempfile

import scenario

PROGRAM = scenario.program("scenario_virtual")
QUOIT = os.path.join(scenario.BIN, "quoit")
MODEL = "ring-gen4-x8"
SHARES = ("compute", "put", "get", "atomics", "collectives", "wait", "other")


class Predicted(scenario.Case):
    def predict(self, *arguments, status=0):
        """Of a run that ends with this status; the environment has no options of this machine."""
        done = subprocess.run([QUOIT, "predict", *map(str, arguments)], capture_output=True, text=True, timeout=scenario.LIMIT_S,
                              env=scenario.environment(self.mark), check=False)
        self.assertEqual(done.returncode, status, done)
        return done

    def rows(self, *arguments, model=MODEL):
        """{hosts: {column: value}}."""
        report = json.loads(self.predict(*arguments, "--model", model, "--json").stdout)
        table = report["sections"][0]["items"][0]
        return {row[0]: dict(zip(table["columns"], row)) for row in table["rows"]}

    def time_of(self, *arguments):
        result = self.run_job("--virtual", MODEL, *arguments)
        self.assertEqual(result.status, 0, result)
        found = re.search(r"^oshrun: (\d+)\.(\d{3}) us of virtual time", result.err, re.M)
        return int(found[1] + found[2])

    def test_times_are_those_of_oshrun(self):
        arguments = (PROGRAM, "tasks", "--hosts", "1,3,4", "--pes-per-host", 2)
        rows = self.rows(*arguments)
        for hosts, row in rows.items():
            self.assertEqual(row["time"], self.time_of("--hosts", hosts, "-n", 2 * hosts, PROGRAM, "tasks"), row)
            self.assertEqual(row["PEs"], 2 * hosts)
            self.assertAlmostEqual(row["speed-up"], rows[1]["time"] / row["time"], delta=0.001)
            self.assertAlmostEqual(row["efficiency"], 100 * rows[1]["time"] / row["time"] / hosts, delta=0.01)
            self.assertAlmostEqual(sum(row[name] for name in SHARES), 100, delta=0.05)
            self.assertEqual(row["other"], 0)
            self.assertGreater(min(row["get"], row["atomics"], row["collectives"]), 0)
        self.assertEqual(self.rows(*arguments), rows)

    def test_two_runs_print_the_same(self):
        arguments = (PROGRAM, "parts", "--hosts", "1,2,4", "--model", MODEL)
        for more in ((), ("--json",)):
            self.assertEqual(self.predict(*arguments, *more).stdout, self.predict(*arguments, *more).stdout)

    def test_where_the_time_goes(self):
        """PE 0 puts all the time, PE 1 waits, and the link is busy: 1 MB is far more than latencies."""
        for row in self.rows(PROGRAM, "put", 1000000, "--hosts", 2).values():
            self.assertTrue(45 < row["put"] < 50 and 45 < row["wait"] < 50, row)
            self.assertEqual(row["fullest link"], "host0 -> host1")
            self.assertTrue(90 < row["busy"] <= 100, row)
        row = self.rows(PROGRAM, "compute", "--compute", "measured", "--hosts", 2)[2]
        self.assertGreater(row["compute"], 50, row)
        self.assertGreaterEqual(row["time"], 20000000)

    def test_the_model_counts(self):
        put = (PROGRAM, "put", 1000000, "--hosts", 2)
        base_ns = self.rows(*put)[2]["time"]
        for other in (self.rows(*put, "--set", "link_rate=2x"), self.rows(*put, model="ring-gen4-x16")):
            self.assertAlmostEqual(base_ns / other[2]["time"], 2, delta=0.1)
        both = self.predict(*put, "--model", MODEL, "--model", "ring-gen5-x8").stdout
        self.assertRegex(both, rf"(?s)\n\n{MODEL}\n.*\n\nring-gen5-x8\n")

    def test_table(self):
        """The terminal has what JSON has."""
        lines = self.predict(PROGRAM, "--hosts", 2, "--model", MODEL, "--", "put", "1000").stdout.splitlines()
        row = self.rows(PROGRAM, "put", 1000, "--hosts", 2)[2]
        self.assertEqual(lines[0], f"Program: {PROGRAM} put 1000")
        self.assertLessEqual(max(map(len, lines[1:])), 120, lines)
        self.assertEqual(lines[-1].split()[:4], ["2", "2", f"{row['time'] / 1000:.3g}", "us"], lines)

    def test_runs_that_fail(self):
        """They are named with their message, and the others go on."""
        done = self.predict(PROGRAM, "not-three", "--hosts", "2,3,4", "--model", MODEL, status=1)
        self.assertRegex(done.stderr, rf"quoit predict: {MODEL}, 3 hosts, 3 PEs: status 3\n  PE \d: three PEs are too many\n"
                                      r"(  .*\n)*  oshrun: PE \d on host\d exited with status 3 before shmem_finalize +\[Q0202\]")
        self.assertNotIn("where the time", done.stderr)
        self.assertEqual([line.split()[2] != "\u2013" for line in done.stdout.splitlines()[-3:]], [True, False, True])
        done = self.predict("true", "--hosts", "1,2", "--model", MODEL, status=1)
        self.assertIn("1 host, 1 PE: no PE has called shmem_init", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_long_run_is_named(self):
        done = self.predict(PROGRAM, "late", "--hosts", "1", "--model", MODEL)
        self.assertIn(f"quoit predict: {MODEL}, 1 host, 1 PE: 2 s so far\n", done.stderr)

    def test_wrong_input(self):
        for arguments, words in (
                (("./nothing", "--model", MODEL), r"there is no program \./nothing"),
                (("no-such-program", "--model", MODEL), r"there is no program no-such-program"),
                ((__file__, "--model", MODEL), r"predicted\.py is not executable"),
                ((PROGRAM, "--model", MODEL, "--hosts", "0,2"), r"0,2 is not a growing list of 1 to 1024 hosts"),
                ((PROGRAM, "--model", MODEL, "--hosts", "4,2"), r"4,2 is not a growing list"),
                ((PROGRAM, "--model", MODEL, "--pes-per-host", "0"), r"--pes-per-host is 1 to 4096, not 0"),
                ((PROGRAM, "--model", "nothing"), r"there is no model nothing .*\[Q0702\]"),
                ((PROGRAM, "--model", MODEL, "--set", "rate=1"), r"\"rate=1\" is not NAME=VALUE.*\[Q0703\]"),
                ((PROGRAM,), r"a program needs --model MODEL"),
                ((PROGRAM, "--model", MODEL, "--compute", "some"), r"invalid choice: 'some'"),
                ((PROGRAM, "--model", MODEL, "--seeds", "2"), r"--seeds is of rings, not of a program"),
                (("--pes-per-host", "2"), r"--pes-per-host needs a PROGRAM")):
            with self.subTest(arguments=arguments):
                done = self.predict(*arguments, status=2)
                self.assertRegex(done.stderr, "^quoit predict: .*" + words)
                self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1))

    def test_page(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no matplotlib")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.html")
            self.predict(PROGRAM, "not-three", "--hosts", "1,2,3", "--model", MODEL, "--model", "ring-gen5-x8", "--html", path, status=1)
            with open(path, encoding="utf-8") as file:
                page = file.read()
            self.assertEqual(page.count("<svg"), 4)
            for words in ("speed-up", "virtual time", f"Where the time goes, {MODEL}", "as many times as PEs"):
                self.assertIn(words, page)


if __name__ == "__main__":
    scenario.main()
