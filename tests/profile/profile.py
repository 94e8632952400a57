# SPDX-License-Identifier: BSD-3-Clause
"""Aim: `oshrun --profile` counts every call, byte and collective once, at its line, PE and peer, on one host, rings,
networks and several machines; its times fit one another and those that the program took; and a job that is killed has
a profile of what it did.
Method: known.c, of which the model below says how often each line is called by each PE, with how many bytes and with
whom."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import scenario

KNOWN = scenario.program("profile_known")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.c")
LATE = 1
MODEL = "papers-2022"


def lines():
    with open(SOURCE, encoding="utf-8") as file:
        return {match[1]: f"known.c:{number}" for number, line in enumerate(file, 1)
                if (match := re.search(r"/\* /(\w+) \*/", line))}


class Model:
    """What known.c does with n PEs in so many rounds."""

    def __init__(self, n, rounds):
        at = lines()
        self.calls, self.puts, self.gets, self.atomics = {}, {}, {}, {}
        size = (n + 1) // 2
        for me in range(n):
            self.add("shmem_malloc", at["malloc"], me, 1, 3 << 20)
            self.add("shmem_long_sum_reduce", at["reduce"], me, rounds, 8 * rounds)
            self.add("shmem_barrier_all", at["late"], me, rounds, 0)
            self.add("shmem_putmem_signal", at["signal"], me, rounds, 64 * rounds)
            self.meet(self.puts, me, (me + 1) % n, rounds, 64 * rounds)
            if me % 2 == 0:
                self.add("shmem_team_sync", at["sync"], me, rounds, 0)
                self.add("shmem_ctx_int_put_nbi", at["ctx"], me, rounds, 20 * rounds)
                self.meet(self.puts, me, (me // 2 + 1) % size * 2, rounds, 20 * rounds)
            for pe in range(n):
                if pe == me:
                    continue
                self.add("shmem_putmem", at["put"], me, rounds, (100 * me + pe + 1) * rounds)
                self.meet(self.puts, me, pe, rounds, (100 * me + pe + 1) * rounds)
                self.add("shmem_getmem", at["get"], me, rounds, (1000 + 100 * me + pe) * rounds)
                self.meet(self.gets, me, pe, rounds, (1000 + 100 * me + pe) * rounds)
                self.add("shmem_long_p", at["p"], me, (pe + 1) * rounds, 8 * (pe + 1) * rounds)
                self.meet(self.puts, me, pe, (pe + 1) * rounds, 8 * (pe + 1) * rounds)
                self.add("shmem_long_atomic_inc", at["inc"], me, rounds, 8 * rounds)
                self.meet(self.atomics, me, pe, rounds, 8 * rounds)

    def add(self, routine, line, pe, calls, size):
        old = self.calls.get((routine, line, pe), (0, 0))
        self.calls[routine, line, pe] = (old[0] + calls, old[1] + size)

    @staticmethod
    def meet(matrix, pe, peer, calls, size):
        old = matrix.get((pe, peer), (0, 0))
        matrix[pe, peer] = (old[0] + calls, old[1] + size)


class Profile(scenario.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "job.json")

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def read(self):
        with open(self.path, encoding="utf-8") as file:
            return json.load(file)

    def profile(self, *arguments):
        result = self.run_job("--profile", self.path, *arguments)
        self.assertEqual(result.status, 0, result)
        summary = result.err.splitlines()
        self.assertLessEqual(len(summary), 20, result.err)
        self.assertEqual(any(line.startswith(" ~") for line in summary), "; ~ estimated from some of its calls" in result.err)
        self.assertIn(f"all of it: {self.path}\n", result.err)
        walls = dict(map(int, line.split()) for line in result.out.splitlines())
        return self.read(), walls, result.err

    def check_counts(self, found, model):
        calls = {(row["routine"], row["line"], pe["pe"]): (pe["calls"], pe["bytes"])
                 for row in found["rows"] for pe in row["pes"]}
        for key, expected in model.calls.items():
            self.assertEqual(calls.get(key), expected, key)
        own = {key for key in calls if key[1].startswith("known.c:") and key[0] in {key[0] for key in model.calls}}
        self.assertEqual(own, set(model.calls))
        for name in ("puts", "gets", "atomics"):
            matrix = {(pe, peer): (count, size) for pe, peer, count, size in found[name]}
            self.assertEqual(matrix, getattr(model, name), name)

    def check_times(self, found, walls):
        """Parts are not more than the whole, and sums are sums."""
        for row in found["rows"]:
            for part in ("calls", "bytes", "sampled", "ns", "wait_ns", "last", "held_ns"):
                self.assertEqual(sum(pe[part] for pe in row["pes"]), row["all"][part], (row["routine"], part))
            self.assertLessEqual(row["all"]["sampled"], 0 if row["compared"] else row["all"]["calls"] - 1, row["routine"])
            self.assertEqual(row["compared"], row["all"]["last"])
            self.assertEqual(max(pe["longest_ns"] for pe in row["pes"]), row["all"]["longest_ns"])
            for pe in row["pes"]:
                self.assertLessEqual(pe["wait_ns"], pe["ns"])
                self.assertLessEqual(pe["longest_ns"], pe["ns"])
        self.assertEqual(sum(pe["run_ns"] for pe in found["pes"]), found["run_ns"])
        self.assertLessEqual(max(pe["begin_ns"] + pe["run_ns"] for pe in found["pes"]), found["span_ns"])
        for pe in found["pes"]:
            mine = [each for row in found["rows"] for each in row["pes"] if each["pe"] == pe["pe"]]
            for part in ("calls", "bytes", "sampled", "ns", "wait_ns", "last", "held_ns"):
                self.assertEqual(sum(each[part] for each in mine), pe[part], part)
            self.assertLessEqual(pe["ns"], pe["run_ns"])
            self.assertGreaterEqual(pe["run_ns"], walls[pe["pe"]])
            self.assertEqual(sum(pe["call_ns_of"]), pe["ns"])
            self.assertEqual(sum(pe["wait_ns_of"]), pe["wait_ns"])
            for call_ns, wait_ns in zip(pe["call_ns_of"], pe["wait_ns_of"]):
                self.assertLessEqual(wait_ns, call_ns)
                self.assertLessEqual(call_ns, pe["bin_ns"])

    def check(self, pes, rounds, *arguments):
        found, walls, summary = self.profile("-n", pes, *arguments, KNOWN, rounds, 0)
        self.assertEqual((found["pe_count"], sorted(walls)), (pes, list(range(pes))))
        self.check_counts(found, Model(pes, rounds))
        self.check_times(found, walls)
        compared = {(row["routine"], row["line"]): row["compared"] for row in found["rows"] if row["compared"]}
        self.assertEqual(compared["shmem_barrier_all", lines()["late"]], rounds)
        self.assertEqual(compared["shmem_team_sync", lines()["sync"]], rounds if pes > 2 else 0)
        for pe in found["pes"]:
            self.assertGreaterEqual(pe["heap_bytes"], 3 << 20)
            self.assertLess(pe["heap_bytes"], 4 << 20)
        return found, summary

    def test_one_host(self):
        found, summary = self.check(5, 40)
        self.assertEqual(found["carried"], {"links": [], "network": []})
        self.assertIn(f"shmem_malloc ({lines()['malloc']})", summary)

    def test_ring(self):
        found, _ = self.check(7, 10, "--hosts", 3)
        self.assertEqual({pe["pe"]: pe["host"] for pe in found["pes"]}, {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2})
        self.assertEqual(len(found["carried"]["links"]), 6)

    def test_network(self):
        found, _ = self.check(4, 10, "--hosts", 2, "--network", "tcp")
        self.assertEqual(len(found["carried"]["network"]), 2)

    def test_machines(self):
        rsh = os.path.join(self.folder.name, "rsh")
        with open(rsh, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nshift; exec "$@"\n')
        os.chmod(rsh, 0o755)
        stats = os.path.join(self.folder.name, "stats.json")
        found, _ = self.check(4, 10, "--host", "east:3,west:1", "--rsh", rsh, "--network", "tcp", "--stats-json", stats)
        self.assertEqual({pe["pe"]: pe["host"] for pe in found["pes"]}, {0: 0, 1: 0, 2: 0, 3: 1})
        with open(stats, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(found["carried"], {name: told[name] for name in ("links", "network")})
        across = {kind: [sum(size for pe, peer, _, size in found[kind] if pe // 3 == host != peer // 3) for host in (0, 1)]
                  for kind in ("puts", "gets")}
        for host, row in enumerate(found["carried"]["network"]):
            self.assertGreaterEqual(row["put_bytes"] + row["message_bytes"], across["puts"][host], row)
            self.assertGreaterEqual(row["get_bytes"], across["gets"][host], row)

    def test_a_job_inside(self):
        """What the environment has this job write is not for a job that a PE starts."""
        env = {f"QUOIT_{name}": os.path.join(self.folder.name, name) for name in ("PROFILE", "TRACE", "STATS_JSON", "OUTPUT")}
        inside = f"{scenario.OSHRUN} -n 1 {KNOWN} 3 0"
        result = self.run_job("-x", f"QUOIT_PROFILE={self.path}", "-n", 2, "sh", "-c", f"env; {inside} && exec {KNOWN} 1 0",
                              env=env)
        self.assertEqual((result.status, result.err.count("all of it:")), (0, 1), result)
        for pe in range(2):
            with open(os.path.join(env["QUOIT_OUTPUT"], f"pe{pe}.out"), encoding="utf-8") as file:
                said = file.read()
            self.assertIn("PATH=", said)
            self.assertEqual([name for name in env if f"{name}=" in said], [])
        found = self.read()
        self.assertEqual(found["pe_count"], 2)
        self.check_counts(found, Model(2, 1))

    def virtual(self, pes, rounds, *arguments):
        """The profile of a run in virtual time, which must take as long as that, and of a second one the same bytes."""
        texts = []
        for _ in range(2):
            found, walls, summary = self.profile("--virtual", MODEL, "-n", pes, *arguments, KNOWN, rounds, 0)
            with open(self.path, "rb") as file:
                texts.append(file.read())
        self.assertEqual(texts[0], texts[1])
        self.check_counts(found, Model(pes, rounds))
        self.check_times(found, dict.fromkeys(walls, 0))
        took = re.search(r"^oshrun: (\d+)\.(\d{3}) us of virtual time", summary, re.M)
        self.assertEqual(found["span_ns"], int(took[1] + took[2]))
        self.assertEqual([pe["begin_ns"] for pe in found["pes"]], [0] * pes)
        return found, summary

    def test_virtual_time(self):
        """Of a PE nothing but its calls takes time, and a put as long as the model says."""
        line_ns = 100
        found, summary = self.virtual(5, 20, "--set", f"line_latency={line_ns}ns,memory_rate=1e9")
        self.assertEqual(found["virtual"], MODEL)
        self.assertIn("where the virtual time of 5 PEs went", summary)
        for pe in found["pes"]:
            self.assertEqual(pe["ns"], pe["run_ns"])
        at = lines()
        for routine, line in (("shmem_putmem", "put"), ("shmem_getmem", "get"), ("shmem_long_p", "p")):
            row = next(row for row in found["rows"] if (row["routine"], row["line"]) == (routine, at[line]))
            for pe in row["pes"]:
                self.assertEqual(pe["ns"], pe["calls"] * line_ns + pe["bytes"], (routine, pe))
                self.assertEqual(pe["wait_ns"], 0)

    def test_virtual_time_of_a_ring(self):
        found, _ = self.virtual(7, 8, "--hosts", 3)
        self.assertEqual(len(found["carried"]["links"]), 6)
        self.assertEqual(self.virtual(4, 700)[0]["compared_every"], 2)

    def test_threads(self):
        """Calls of threads that count at once are all there."""
        threads, calls = 4, 20000
        for hosts in (1, 2):
            result = self.run_job("--profile", self.path, "-n", 2, "--hosts", hosts, scenario.program("profile_threads"), threads,
                                  calls // hosts ** 4)
            self.assertEqual(result.status, 0, result)
            found, each = self.read(), threads * (calls // hosts ** 4)
            for routine in ("shmem_long_p", "shmem_long_atomic_inc"):
                rows = [row for row in found["rows"] if row["routine"] == routine]
                self.assertEqual(sum(row["all"]["calls"] for row in rows), 2 * each)
                self.assertEqual(sum(row["all"]["bytes"] for row in rows), 16 * each)
            for name in ("puts", "atomics"):
                self.assertEqual(found[name], [[0, 1, each, 8 * each], [1, 0, each, 8 * each]])

    def test_the_late_one(self):
        """A PE that sleeps before each barrier comes last to most of them, and the others wait for it about as long."""
        rounds, late_ms = 12, 40
        found, walls, summary = self.profile("-n", 4, KNOWN, rounds, late_ms)
        self.check_times(found, walls)
        row = next(row for row in found["rows"] if row["line"] == lines()["late"])
        last = {pe["pe"]: pe["last"] for pe in row["pes"]}
        self.assertGreater(last[LATE], rounds // 2, last)
        self.assertGreater(row["pes"][LATE]["held_ns"], rounds // 2 * 3 * late_ms * 1000000 // 2)
        asleep = found["pes"][LATE]
        self.assertLessEqual(asleep["ns"], asleep["run_ns"] - rounds * late_ms * 1000000)
        self.assertIn(f"PE {LATE} came last to", summary)

    def test_more_collectives_than_are_kept(self):
        """Every second of them is compared then, or every fourth, of all teams alike."""
        rounds = 1500
        found, walls, _ = self.profile("-n", 3, KNOWN, rounds, 0)
        self.check_counts(found, Model(3, rounds))
        self.check_times(found, walls)
        step = found["compared_every"]
        self.assertEqual(step, 4)
        world = sum(row["compared"] for row in found["rows"] if row["routine"] != "shmem_team_sync")
        self.assertEqual(world, (2 * rounds + 4 + step - 1) // step)

    def test_killed(self):
        """A job that fails has a profile of all calls that had returned."""
        result = self.run_job("--profile", self.path, "-n", 2, "sh", "-c", f'[ $QUOIT_PE = 1 ] && exec {KNOWN} || exit 3')
        self.assertNotEqual(result.status, 0)
        self.assertEqual(self.read()["rows"], [])
        result = self.run_job("--profile", self.path, "-n", 2, "--timeout", "1s", KNOWN, 1000, 20000)
        self.assertEqual(result.status, 124)
        found = self.read()
        self.assertEqual([pe["pe"] for pe in found["pes"]], [0, 1])
        puts = next(row for row in found["rows"] if row["routine"] == "shmem_putmem")
        self.assertEqual(puts["all"]["calls"], 2)

    def read_page(self):
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.startswith("<!doctype html>") and page.endswith("</html>\n"))
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), "https?:|@import|<link|src=")
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        return json.loads(found[1])

    def test_page(self):
        """The page has the data that a file of JSON has, and needs no network; a browser draws all of it."""
        self.path = os.path.join(self.folder.name, "<b>.html")
        result = self.run_job("--profile", self.path, "-n", 4, "--hosts", 2, KNOWN, 10, 0)
        self.assertEqual(result.status, 0, result)
        found = self.read_page()
        self.check_counts(found, Model(4, 10))
        self.check_times(found, dict(map(int, line.split()) for line in result.out.splitlines()))
        browser = shutil.which("chromium")
        if not browser:
            return
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom",
             f"--user-data-dir={self.folder.name}/browser", f"file://{urllib.parse.quote(self.path)}"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=300)
        drawn = done.stdout
        self.assertEqual(drawn.count('<tr class="row"'), len(found["rows"]))
        for table, count in (("rows", len(found["rows"]) + 1), ("matrix", 5), ("carried", 5), ("memory", 5),
                             ("late", 1 + sum(row["compared"] > 0 for row in found["rows"]))):
            rows = re.search(rf'<table[^>]* id="{table}">(.*?)</table>', drawn, re.S)[1].count("<tr")
            self.assertEqual(rows, count, table)
        for strips, least in (("shares", 12), ("timeline", 12)):
            self.assertGreaterEqual(re.search(rf'<div id="{strips}">(.*?)</div></div>|$', drawn, re.S)[0].count("<rect"), 3)
            self.assertGreaterEqual(drawn.count("<rect"), least)

    def quoit(self, *words):
        done = subprocess.run([os.path.join(scenario.BIN, "quoit"), "profile", *map(str, words)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def rows_of(self, *words):
        status, out, err = self.quoit("--json", "--rows", 0, *words)
        self.assertEqual((status, err), (0, ""))
        return {row.pop("name"): row for row in json.loads(out)["rows"]}

    def test_quoit_profile(self):
        """One run: sums of the file. Two: of an average PE in each, and their difference."""
        paths = [os.path.join(self.folder.name, name) for name in ("a.json", "b.html")]
        for path, pes, rounds in zip(paths, (2, 4), (10, 30)):
            self.assertEqual(self.run_job("--profile", path, "-n", pes, KNOWN, rounds, 0).status, 0)
        with open(paths[0], encoding="utf-8") as file:
            found = json.load(file)
        keys = ("calls", "bytes", "ns", "wait_ns", "sampled")
        rows = self.rows_of(paths[0])
        self.assertEqual(rows, {f"{row['routine']} ({row['line']})": {key: row["all"][key] for key in keys}
                                for row in found["rows"]})
        self.assertEqual(self.rows_of("--by", "pe", paths[0]),
                         {f"PE {pe['pe']}": {key: pe[key] for key in keys} for pe in found["pes"]})
        for by in ("routine", "line"):
            for key in keys:
                self.assertEqual(sum(row[key] for row in self.rows_of("--by", by, paths[0]).values()),
                                 sum(row["all"][key] for row in found["rows"]))
        both, other = self.rows_of(*paths), self.rows_of(paths[1])
        self.assertEqual(set(both), {*rows, *other})
        for name, row in both.items():
            for key in keys:
                self.assertEqual(row[f"{key}_a"], rows.get(name, {}).get(key, 0) / 2)
                self.assertEqual(row[f"{key}_b"], other.get(name, {}).get(key, 0) / 4)
            self.assertEqual(row["difference_ns"], row["ns_b"] - row["ns_a"])
        for row in found["rows"]:  # what was not timed is marked, and the mark explained
            row["all"]["sampled"] = 0
        for marked in (1, 0):
            found["rows"][0]["all"]["sampled"] = marked
            with open(self.path, "w", encoding="utf-8") as file:
                json.dump(found, file)
            out = self.quoit(self.path)[1].splitlines()[1:]
            self.assertEqual(["~" in line for line in out], [bool(marked)] * 2 + [False] * (len(out) - 2))
            self.assertEqual("estimated" in out[0], bool(marked))
            out = self.quoit("--rows", 0, self.path, paths[1])[1].splitlines()[3:]
            self.assertEqual(sum("~" in line[:10] for line in out), marked)
        status, out, _ = self.quoit("--rows", 3, *paths)
        self.assertEqual((status, len(out.splitlines())), (0, 7))
        self.assertIn(f"shmem_barrier_all ({lines()['late']})", self.quoit("--rows", 0, paths[0])[1])

    def test_quoit_profile_of_other_files(self):
        for text, what in (("", "is no profile"), ("{}", "is no profile"), ("[1]", "is no profile"), ("\0", "is no profile"),
                           ('{"quoit_profile": 1, "rows": [{}]}', "is no profile"), ('{"quoit_profile": 2}', "has version 2")):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
            status, out, err = self.quoit(self.path)
            self.assertEqual((status, out), (1, ""))
            self.assertIn(what, err)
            self.assertIn("[Q0724]", err)
        self.assertEqual(self.quoit("/nonexistent/a.json")[0], 1)
        self.assertEqual([self.quoit(*words)[0] for words in ((), ("--by", "x", "y"), ("--rows", "-1", "y"), ("a", "b", "c"))], [2] * 4)

    def test_a_file_that_cannot_be_written(self):
        result = self.run_job("--profile", "/nonexistent/x.json", "-n", 2, KNOWN, 1, 0)
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("cannot write /nonexistent/x.json", result.err)


if __name__ == "__main__":
    scenario.main()
