# SPDX-License-Identifier: BSD-3-Clause
"""Aim: collectives between the hosts of a network take the schedules that `quoit tune --hosts` has stored for these hosts, in
every PE the same, and the rules where no table fits; `quoit info schedules` and the job itself say which. Method: tables
written here, wrong ones too, and one that quoit tune stores, of times that stand in for most of the measured ones; what PE 0
prints of its job. That the results are right under any table is shown by unit.coll.coll_test, coll.collectives.* and sim.network."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import scenario
from info import rows

QUOIT = os.path.join(scenario.BIN, "quoit")
TUNE = os.path.join(scenario.BIN, "..", "share", "quoit", "tune.py")
GREET = scenario.program("scenario_greet")
SIZES = ["8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M", "4M"]
NAMES = {"broadcast": ("rule", "around", "tree"), "reduce": ("rule", "around", "halving", "at-once"),
         "exchange": ("rule", "around", "dissemination")}
TABLE = {"broadcast": 3 * ["tree"] + 7 * ["around"], "reduce": ["at-once"] + 4 * ["halving"] + 5 * ["rule"],
         "exchange": 10 * ["dissemination"]}
TOLD = {"broadcast up to 32K": "tree", "broadcast all larger": "around", "reduce up to 8K": "at-once",
        "reduce up to 128K": "halving", "reduce all larger": "rule", "exchange all sizes": "dissemination"}
RULES = {f"{name} all sizes": "rule" for name in NAMES}


def usable_driver():
    found = json.loads(subprocess.run([QUOIT, "info", "networks", "--json"], capture_output=True, text=True, check=True).stdout)
    return next((one["driver"] for one in found["networks"] if one["usable"]), None)


class Case(scenario.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.env = {"XDG_CONFIG_HOME": self.folder.name}

    def quoit(self, *arguments):
        return subprocess.run([QUOIT, *map(str, arguments)], capture_output=True, text=True, timeout=3 * scenario.LIMIT_S,
                              env=scenario.environment(self.mark, **self.env), check=False)

    def told(self, *arguments):
        result = self.quoit("info", "schedules", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["schedules"], result.stderr

    def text(self, told, table=None):
        head = f"quoit schedules 1\nhosts {told['hosts']}\nnetwork {told['network']}\ndigest {told['digest']}\n"
        return head + "".join(" ".join([name, *line]) + "\n" for name, line in (table or TABLE).items())

    def write(self, told, text):
        os.makedirs(os.path.dirname(told["file"]), exist_ok=True)
        with open(told["file"], "w", encoding="ascii") as file:
            file.write(text)

    @staticmethod
    def table_of(told):
        return {name: value for name, value in told.items() if name.split()[0] in NAMES}


class Tables(Case):
    def test_whose_table(self):
        """Hosts in another order are the same hosts; another network, device or host is not."""
        some = ("--host", "a,bob@b:4,c", "--network", "ofi")
        told, _ = self.told(*some)
        self.assertEqual((told["hosts"], told["network"], told["why"]), (3, "ofi", "built-in rules"))
        self.assertEqual(self.table_of(told), RULES)
        self.write(told, self.text(told))
        for same in some, ("--host", "c:2,a,b", "--network", "ofi"):
            found, err = self.told(*same)
            self.assertEqual((found["why"], found["file"], self.table_of(found), err), ("tuned, in file", told["file"], TOLD, ""))
        for other in (("--host", "a,b,d", "--network", "ofi"), ("--host", "a,b", "--network", "ofi"), ("--host", "a,b,c"),
                      (*some, "--network-device", "eth1"), (*some, "--network-provider", "tcp"), ("--hosts", 3, "--network", "ofi")):
            found, err = self.told(*other)
            self.assertNotEqual(found["file"], told["file"], other)
            self.assertEqual((found["why"], err), ("built-in rules", ""), other)
        for none, why in ((), "one host has none"), (("--hosts", 3), "built-in rules of links"):
            self.assertEqual(self.told(*none)[0]["why"], why)
        found, _ = self.told(*some, "--schedules", "reduce:around")
        self.assertEqual((found["why"], found["reduce all sizes"], found["exchange all sizes"]),
                         ("forced: --schedules, QUOIT_SCHEDULES", "around", "rule"))

    def test_wrong_tables(self):
        told, _ = self.told("--host", "a,b")
        good = self.text(told)
        for text, reason in ((good[:-30], "line 7 is not \"exchange\" and 10 schedules"), ("", "does not begin"),
                             (good.replace("halving", "tree", 1), "line 6 is not \"reduce\" and 10 schedules"),
                             (good.replace("hosts 2", "hosts 3"), "was not measured on these hosts"),
                             (good + "more\n", "goes on after its last line"), ("x" * 1025, "is larger than any table")):
            self.write(told, text)
            found, err = self.told("--host", "a,b")
            self.assertEqual((found["why"], self.table_of(found)), ("built-in rules", RULES))
            self.assertRegex(err, r"\A[^\n]*" + re.escape(told["file"] + " " + reason) + r"[^\n]*\[Q0306\]\n\Z")

    def test_wrong_words(self):
        for text in ("pigeons", "broadcast:halving", "reduce:around,reduce:around", ""):
            result = self.run_job("--hosts", 2, "--schedules", text, GREET)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn("--schedules: ", result.err)
        for words in (["--network", "ofi"], ["--hosts", "2", "--host", "a,b"], ["--hosts", "2", "--memory", "1M"]):
            result = self.quoit("tune", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)
            self.assertTrue(result.stderr.startswith("quoit tune: "), result.stderr)
        for words in (["--hosts", "3"], ["--hosts", "1", "--network", "auto"]):
            result = self.quoit("tune", *words)
            self.assertEqual((result.returncode, result.stdout), (1, ""), words)
            self.assertIn("there is nothing to choose", result.stderr)
        for words in (["--hosts", "x"], ["--hosts", "0"], ["--host", "a,,b"]):
            result = self.quoit("tune", *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), words)


class Jobs(Case):
    def setUp(self):
        super().setUp()
        self.driver = usable_driver()
        if not self.driver:
            self.skipTest("no network driver finds a network here: quoit info networks")
        self.hosts = ("--hosts", 3, "--network", self.driver)

    def taken(self, *arguments, err=""):
        """What PE 0 of a job says."""
        result = self.run_job(*arguments, "-n", 3, "-x", "SHMEM_INFO=1", GREET, env=self.env)
        self.assertEqual((result.status, result.err), (0, err), result)
        return rows("".join(line for line in result.out.splitlines(True) if not line.startswith("hello")))["schedules"]

    def test_stored(self):
        told, _ = self.told(*self.hosts)
        self.assertEqual(self.table_of(self.taken(*self.hosts)), RULES)
        self.write(told, self.text(told))
        taken = self.taken(*self.hosts)
        self.assertEqual((taken["why"], self.table_of(taken)), ("tuned, in file", TOLD))
        taken = self.taken(*self.hosts, "--schedules", "exchange:around")
        self.assertEqual((taken["why"], self.table_of(taken)),
                         ("forced: --schedules, QUOIT_SCHEDULES", {**RULES, "exchange all sizes": "around"}))
        self.assertEqual(self.taken("--hosts", 3), {"hosts": "3", "why": "built-in rules of links"})
        self.write(told, "quoit schedules 0\n")
        result = self.run_job(*self.hosts, "-n", 3, GREET, env=self.env)
        self.assertEqual((result.status, result.err.count("\n"), result.err.count("[Q0306]")), (0, 1, 1), result)

    def test_agents_are_told(self):
        """Only oshrun reads the file, which agents on other machines may not have."""
        hosts = ("--host", "a,b,c", "--network", self.driver, "--network-device", "lo", "--rsh",
                 "sh -c 'shift; exec \"$@\"' sh")
        told, _ = self.told(*hosts[:6])
        self.write(told, self.text(told))
        taken = self.taken(*hosts)
        self.assertEqual((taken["why"], self.table_of(taken)), ("tuned, in file", TOLD))

    def tune(self, *more, slower, real=()):
        """quoit tune on three hosts, with measured(): the second pass so much slower, and these runs real."""
        stand_in = os.path.join(self.folder.name, "stand-in")
        with open(stand_in, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
                       f"import schedules\nsys.exit(schedules.measured({self.folder.name!r}, {slower}, {real}, sys.argv[1:]))\n")
        os.chmod(stand_in, 0o700)
        return subprocess.run([sys.executable, TUNE, "tune", stand_in, *map(str, self.hosts), *more], capture_output=True,
                              text=True, timeout=3 * scenario.LIMIT_S, env=scenario.environment(self.mark, **self.env), check=False)

    def test_tune(self):
        result = self.tune("--time", "100ms", slower=1.1, real=(3,))  # at once
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        told, err = self.told(*self.hosts)
        self.assertEqual((told["why"], err), ("tuned, in file", ""))
        self.assertIn("stored in " + told["file"], result.stdout)
        self.assertEqual(os.listdir(os.path.dirname(told["file"])), [os.path.basename(told["file"])])
        with open(told["file"], encoding="ascii") as file:
            self.assertEqual(file.read(), self.text(told, TUNED))
        parts = re.split(r"^(broadcast|reduce|exchange) .*\n +us.*\n", result.stdout, flags=re.M)[1:]
        for name, part in zip(parts[::2], parts[1::2], strict=True):
            lines = re.findall(r"^(\d+[KM]) +([0-9.]+)((?: +[0-9.-]+)+)  (\S+)$", part, re.M)
            count = 9 if name == "exchange" else 8  # up to 1M of each PE; larger sizes take the schedule of the last
            self.assertEqual([line[0] for line in lines], ["4K", *SIZES[:count]])
            self.assertEqual([line[3] for line in lines[1:]], TUNED[name][:count])
            self.assertEqual([float(line[1]) for line in lines[:2]], [101.3, 102.7] if name == "exchange" else [104.0, 108.0])
        self.assertEqual(self.table_of(self.taken(*self.hosts)), self.table_of(told))

    def test_tune_is_ended(self):
        """Nothing stays: neither what it ran, nor its folder in /tmp."""
        with tempfile.TemporaryDirectory() as folder:
            env = scenario.environment(self.mark, **self.env, TMPDIR=folder)
            tune = subprocess.Popen([QUOIT, "tune", *map(str, self.hosts), "--time", "60s"], env=env,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            end = time.monotonic() + scenario.LIMIT_S
            while not self.pids_of("quoit-proxy"):
                self.assertLess(time.monotonic(), end, "it measures nothing")
                time.sleep(0.05)
            tune.terminate()
            begin = time.monotonic()
            _, err = tune.communicate(timeout=scenario.LIMIT_S)
            self.assertEqual(tune.returncode, -signal.SIGTERM, err)
            self.assertLess(time.monotonic() - begin, scenario.LATE_S)  # it was to measure for a minute
            self.assert_nothing_left()
            self.assertEqual(os.listdir(folder), [])

    def test_tune_fails(self):
        """What was measured on busy machines is stored only if asked for, and nothing of what was not measured."""
        told, _ = self.told(*self.hosts)
        result = self.tune("--time", "100ms", slower=1.3)
        self.assertEqual((result.returncode, os.path.exists(told["file"])), (1, False), result.stdout)
        self.assertRegex(result.stderr, r"\Aquoit tune: the machines were too busy [^\n]*1\.30 times[^\n]*\n\Z")
        result = self.tune("--time", "100ms", "--force", slower=1.3)
        self.assertEqual((result.returncode, os.path.exists(told["file"]), result.stderr), (0, True, ""))
        os.unlink(told["file"])
        result = self.tune("--time", "100ms", "--dry-run", "--json", slower=1.1)
        self.assertEqual((result.returncode, os.path.exists(told["file"]), result.stderr), (0, False, ""))
        found = json.loads(result.stdout)
        self.assertEqual((found["hosts"], found["network"], found["stored"], round(found["spread"], 3)), (3, self.driver, None, 1.1))
        self.assertEqual([row["chosen"] for row in found["rows"] if row["collective"] == "reduce" and row["bytes"] > 4096],
                         TUNED["reduce"][:8])
        self.assertEqual(found["rows"][0], {"collective": "broadcast", "bytes": 4096, "chosen": "tree",
                                            "ns": {"rule": 104e3, "around": 104e3, "tree": 0.8 * 104e3}})
        result = self.quoit("tune", "--hosts", 2, "--network", "pigeons", "--time", "100ms")
        self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Aquoit tune: .*pigeons")


def factor(test, schedule, size, turn):
    """How long a schedule takes, the rules taking 1: what TUNED follows from."""
    if schedule == "tree":
        return 0.8 if size <= 32 << 10 else 1.2
    if (test, schedule) == ("broadcast", "around"):
        return 0.9 if size >= 512 << 10 else 0.8 if size == 128 << 10 else 1  # at 128K by chance: at no size beside it
    if schedule == "halving":
        return (1.1 if turn else 0.6) if size == 64 << 10 else 0.8 if 16 << 10 <= size < 64 << 10 else 1
    return {"at-once": 0.7, "dissemination": 0.5, "around": 0.96}[schedule]


TUNED = {"broadcast": 3 * ["tree"] + 3 * ["rule"] + 4 * ["around"], "reduce": ["at-once"] + 2 * ["halving"] + 7 * ["rule"],
         "exchange": 10 * ["dissemination"]}
RUNS_A_PASS = 7


def measured(folder, slower, real, words):
    """quoit, with times of quoit perf by factor(). A run is real, so that options and results are its own; of the others it lists the
    rows."""
    if words[0] != "perf":
        os.execv(QUOIT, [QUOIT, *words])
    log = os.path.join(folder, "runs")
    with open(log, "ab") as file:
        number = file.tell()
        file.write(b".")
    value = {word: words[at + 1] for at, word in enumerate(words) if word.startswith("--")}
    rows = [{"test": test, "bytes": int(size)} for test in value["--tests"].split(",") for size in value["--sizes"].split(",")]
    found = subprocess.run([QUOIT, *words, "--list"], capture_output=True, text=True, check=True).stdout
    if sum(int(line.split()[1]) for line in found.splitlines()) != len(rows):
        raise SystemExit(f"{words}: {found}")
    turn = number // RUNS_A_PASS % 2
    if number in real:
        subprocess.run([QUOIT, *words], stdout=subprocess.DEVNULL, check=True)
        with open(value["--json"], encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        os.unlink(value["--json"])
    schedules = dict(one.split(":") for one in value["--schedules"].split(",") if one != "rule")
    for row in rows:
        schedule = schedules.get("exchange" if row["test"] == "fcollect" else row["test"])
        ns = 1000 * (100 + row["bytes"] / 1024) * (slower if turn else 1)
        row["ns"] = {"median": ns * (factor(row["test"], schedule, row["bytes"], turn) if schedule else 1)}
    with open(value["--json"], "w", encoding="utf-8") as file:
        json.dump({"rows": rows}, file)
    return 0


if __name__ == "__main__":
    scenario.main()
