# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a copy between PEs of one host uses the forced or tuned method, `quoit info paths` prints which and why, and a
table that is missing, broken, of another machine or forbidden loses no data. Method: a program that compares every
byte, under tables written here, made by `quoit tune`, and under a filter that refuses process_vm_*."""
import json
import os
import re
import subprocess
import sys
import tempfile

import scenario

QUOIT = os.path.join(os.path.dirname(scenario.OSHRUN), "quoit")
FORBID = [scenario.program("scenario_forbid"), "process_vm_readv,process_vm_writev"]
PATHS = scenario.program("scenario_paths")
SIZES = ["128K", "256K", "512K", "1M", "2M", "4M", "8M", "16M", "32M", "64M"]


class Paths(scenario.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "quoit", "paths." + os.uname().nodename)

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def run_in(self, *command, **more):
        env = scenario.environment(self.mark, XDG_CONFIG_HOME=self.folder.name, **more)
        return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                              timeout=3 * scenario.LIMIT_S)

    def job(self, *arguments, forbid=False):
        expected = [] if forbid or "--path" not in arguments else ["cma" if "cma" in arguments else "mapped"]
        return self.run_in(*(FORBID if forbid else []), scenario.OSHRUN, *arguments, "-n", 2, PATHS, *expected)

    def told(self, *arguments, **more):
        result = self.run_in(QUOIT, "info", "paths", "--json", *arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["paths"], result.stderr

    def write(self, text):
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        with open(self.file, "w") as file:
            file.write(text)

    def table(self, way):
        """A valid table of this machine in which every size uses one method; its header is that of quoit."""
        told, _ = self.told()
        head = f"quoit paths 2\nmachine {told['machine']}\nprocessor {told['processor']}\n"
        return head + "".join(" ".join([kind, *len(SIZES) * [way]]) + "\n" for kind in ("heap", "globals"))

    def has_cma(self):
        return self.told()[0]["cma"].startswith("works")

    def ok(self, result, err=""):
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "paths ok\n", err))

    def test_forced(self):
        for way in ("memcpy", "movsb", "stream", "cma"):
            if way == "cma" and not self.has_cma():
                continue
            self.ok(self.job("--path", way))
            told, _ = self.told("--path", way)
            self.assertEqual(told["why"], "forced: --path, QUOIT_PATH")
            self.assertEqual([told["heap all sizes"], told["globals all sizes"]], [way] * 2)
        self.assertEqual(self.told(QUOIT_PATH="stream")[0]["heap all sizes"], "stream")
        told, _ = self.told("--path", "network")
        self.assertEqual([told["why"], told["heap all sizes"]], ["forced: --path, QUOIT_PATH", "network"])
        wrong = self.job("--path", "carrier-pigeon")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("must be auto, memcpy, movsb, stream, cma or network", wrong.stderr)

    def test_tuned(self):
        for way in ("memcpy", "stream", "cma"):
            self.write(self.table(way))
            self.ok(self.job())
            told, err = self.told()
            self.assertEqual((told["why"], told["file"], err), ("tuned, in file", self.file, ""))
            if way != "cma" or self.has_cma():
                self.assertEqual(told["heap all sizes" if way == "memcpy" else "heap all larger"], way)
                self.assertEqual(told.get("globals up to 64K", "memcpy"), "memcpy")

    def test_forbidden(self):
        result = self.job("--path", "cma", forbid=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("--path cma: the kernel refuses", result.stderr)
        self.assertIn("Operation not permitted", result.stderr)
        self.assertIn("[Q0305]", result.stderr)
        self.ok(self.job(forbid=True))
        self.write(self.table("cma"))  # tuned where it was allowed: quietly absent
        self.ok(self.job(forbid=True))
        result = self.run_in(*FORBID, QUOIT, "info", "paths", "--json")
        told = json.loads(result.stdout)["paths"]
        self.assertEqual(told["cma"], "forbidden: Operation not permitted")
        self.assertEqual(told["heap all sizes"], "memcpy")

    def test_broken_or_foreign(self):
        good = self.table("stream")
        foreign = re.sub("processor .*", "processor Abacus", good)
        for text, reason in ((good[:-30], "line 5 is not \"globals\" and 10 methods"), ("", "does not begin"), (foreign, "was not measured on this machine"),
                             (good + "more\n", "goes on after its last line"), ("x" * 1025, "larger than any table")):
            self.write(text)
            result = self.job()
            self.assertEqual((result.returncode, result.stdout), (0, "paths ok\n"), result.stderr)
            self.assertRegex(result.stderr, r"\A[^\n]*" + re.escape(self.file) + r"[^\n]*" + reason + r"[^\n]*\[Q0306\]\n\Z")
            told, err = self.told()
            self.assertEqual(told["why"], "built in")
            self.assertIn(reason, err)

    def test_tune(self):
        few = ("--time", "200ms", "--memory", "1M", "--force")
        result = self.run_in(QUOIT, "tune", *few)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("stored in " + self.file, result.stdout)
        rows = re.findall(r"^(heap|globals) .*? (warm|cold) +(\S+) +([0-9.]+)(?: +[0-9.-]+){3}  (\w+)$", result.stdout, re.M)
        measured = SIZES[:3]  # larger sizes use the method of 512K
        self.assertEqual({row[:3] for row in rows},
                         {(kind, use, size) for kind in ("heap", "globals") for use in ("warm", "cold") for size in measured})
        self.assertTrue(all(float(row[3]) > 0 for row in rows))
        ways = {row[0::2][:2]: row[4] for row in rows}
        with open(self.file) as file:
            stored = file.read().splitlines()[3:]
        self.assertEqual([line.split()[:4] for line in stored],
                         [[kind, *(ways[kind, size] for size in measured)] for kind in ("heap", "globals")])
        told, err = self.told()
        self.assertEqual((told["why"], told["file"], err), ("tuned, in file", self.file, ""))
        self.ok(self.job())
        self.assertEqual(os.listdir(os.path.dirname(self.file)), [os.path.basename(self.file)])

    def test_tune_forbidden_and_dry(self):
        result = self.run_in(*FORBID, QUOIT, "tune", "--dry-run", "--time", "100ms", "--memory=1M")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertFalse(os.path.exists(self.file))
        rows = re.findall(r"^(?:heap|globals) .* (\S+)  (\w+)$", result.stdout, re.M)
        self.assertTrue(len(rows) >= 12 and all(row[0] == "-" and row[1] != "cma" for row in rows), result.stdout)

    def test_tune_under_load(self):
        """With two programs that compute on each processor nothing is stored, and the previous table is preserved."""
        self.write(self.table("stream"))
        spin = "print(flush=True)\nwhile True: pass"
        busy = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE, env=scenario.environment(self.mark))
                for _ in range(2 * len(os.sched_getaffinity(0)))]
        try:
            for process in busy:
                process.stdout.readline()
            result = self.run_in(QUOIT, "tune", "--time", "1s", "--memory", "1M")
        finally:
            for process in busy:
                process.kill()
                process.communicate()
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("too busy to tell the methods apart, so nothing is stored", result.stderr)
        self.assertIn("--force", result.stderr)
        with open(self.file) as file:
            self.assertEqual(file.read(), self.table("stream"))
        self.assertEqual(os.listdir(os.path.dirname(self.file)), [os.path.basename(self.file)])

    def test_tune_wrong(self):
        for arguments in (["--time", "soon"], ["--time", "0"], ["--memory", "1K"], ["--memory"], ["--frobnicate"], ["x"]):
            result = self.run_in(QUOIT, "tune", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr.startswith("quoit tune: "), result.stderr)
        with open(os.path.join(self.folder.name, "quoit"), "w"):
            pass  # a file in place of the folder
        result = self.run_in(QUOIT, "tune", "--time", "100ms", "--memory", "1M")
        self.assertEqual(result.returncode, 1)
        self.assertIn(self.file, result.stderr)


if __name__ == "__main__":
    scenario.main()
