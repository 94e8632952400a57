# SPDX-License-Identifier: BSD-3-Clause
"""Aim: `quoit top` and `oshrun --stats-json` print what the links of a job carry and where its PEs wait, and leave
terminal and machine unchanged.
Method: jobs with known traffic and waits are observed from outside: two samples must agree with the rates printed
between them, the last sample with the totals at the end, and the waiting PEs with the program; a pseudo terminal acts
as the user."""
import fcntl
import json
import os
import pty
import pwd
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import scenario

QUOIT = os.path.join(scenario.BIN, "quoit")
BUSY = scenario.program("scenario_busy")
MISBEHAVE = scenario.program("scenario_misbehave")


class Top(scenario.Case):
    def top(self, *arguments, **how):
        return subprocess.run([QUOIT, "top", *map(str, arguments)], capture_output=True, text=True,
                              timeout=scenario.LIMIT_S, env=scenario.environment(self.mark), **how)

    def begin(self, *options):
        """A job that has printed its first line."""
        job = self.start(*options)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        return job

    def end(self, job):
        job.kill()
        job.communicate(timeout=scenario.LIMIT_S)

    def look(self, job):
        result = self.top("--once", "--json", "--interval", "50ms", job.pid)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_rates_follow_from_the_counts(self):
        job = self.begin("--hosts", 4, "-n", 4, BUSY)
        watcher = subprocess.Popen([QUOIT, "top", "--json", "--interval", "200ms", str(job.pid)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=scenario.environment(self.mark))
        looks = [json.loads(watcher.stdout.readline()) for _ in range(4)]

        def have_grown():
            return all(b["bytes"] > a["bytes"] and b["doorbells"] > a["doorbells"]
                       for a, b in zip(looks[0]["links"], looks[-1]["links"]))
        end = time.monotonic() + scenario.LIMIT_S
        while not have_grown() and time.monotonic() < end: # a busy machine
            looks.append(json.loads(watcher.stdout.readline()))
        self.end(job)
        watcher.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(watcher.returncode, 0)
        ring = sorted([link, *ends] for link in range(4) for ends in ([link, (link + 1) % 4], [(link + 1) % 4, link]))
        for before, now in zip(looks, looks[1:]):
            self.assertEqual((now["job"], now["program"], now["hosts"], now["pes"], now["whole"]),
                             (job.pid, "scenario_busy", 4, 4, True))
            self.assertEqual(now["machines"], [{"host": i, "name": f"host{i}", "answers": True} for i in range(4)])
            self.assertEqual(sorted([row["link"], row["from"], row["to"]] for row in now["links"]), ring)
            for a, b in zip(before["links"], now["links"]):
                for count in ("bytes", "messages", "relays", "doorbells", "resends"):
                    rate = (b[count] - a[count]) / now["interval_s"]
                    self.assertAlmostEqual(b[count + "_per_s"], rate, delta=0.06 + rate / 1e5)
                asleep_s = (b["asleep_ns"] - a["asleep_ns"]) / 1e9 / now["lanes"]
                self.assertAlmostEqual(b["asleep"], asleep_s / now["interval_s"], delta=0.01)
                self.assertTrue(b["up"])
        self.assertTrue(all(b["bytes"] > a["bytes"] and b["sleeps"] >= a["sleeps"] and b["doorbells"] > a["doorbells"]
                            for a, b in zip(looks[0]["links"], looks[-1]["links"])))

    def test_who_waits_where(self):
        job = self.start("--hosts", 2, "-n", 4, MISBEHAVE, 1, "flag")
        calls = ["shmem_barrier_all", "shmem_long_wait_until", "shmem_barrier_all", "shmem_barrier_all"]
        looks = []

        def all_stay(): # until they are there they wait for each other too
            result = self.top("--once", "--json", "--interval", "50ms", job.pid)
            pes = json.loads(result.stdout)["PEs"] if result.returncode == 0 else []
            is_there = [(pe["state"], pe.get("call")) for pe in pes] == [("waiting", call) for call in calls]
            looks.append(pes if is_there else [])
            return len(looks) > 1 and looks[-1] and looks[-2] and all(
                b["waiting_s"] > a["waiting_s"] for a, b in zip(looks[-2], looks[-1]))

        self.wait_for(all_stay, "all PEs to wait")
        first, second = looks[-2:]
        pids = set(self.pids_of("scenario_misbeh"))
        self.end(job)
        self.assertEqual([(pe["pe"], pe["host"]) for pe in first], [(0, 0), (1, 0), (2, 1), (3, 1)])
        self.assertEqual([pe["call"] for pe in first], calls)
        self.assertEqual({pe["pid"] for pe in first}, pids)
        self.assertEqual([pe["for"] for pe in first], ["", "flag != 0, which is 0", "", ""])
        for a, b in zip(first, second):
            self.assertGreater(b["waiting_s"], a["waiting_s"])

    @unittest.skipUnless(os.geteuid() == 0, "only root can make a pid namespace here")
    def test_a_pe_in_a_pid_namespace(self):
        """The printed pid is that of the observer's namespace."""
        job = self.start("-n", 1, "unshare", "--pid", "--fork", "--kill-child", MISBEHAVE, 0, "flag")
        looks = ["--once", "--json", "--interval", "50ms", job.pid]
        self.wait_for(lambda: '"waiting"' in self.top(*looks).stdout, "the PE to wait")
        pid = self.look(job)["PEs"][0]["pid"]
        name = scenario.name_of(pid)
        self.end(job)
        self.assertEqual(name, "scenario_misbeh")

    @unittest.skipUnless(os.geteuid() == 0, "only root can start a job of somebody else")
    def test_root_sees_the_jobs_of_others(self):
        nobody = 65534
        job = self.start("-n", 2, BUSY, user=nobody, group=nobody, extra_groups=[])
        self.assertEqual(job.stdout.readline(), b"begun\n")
        pes = self.look(job)["PEs"]
        rows = {row["job"]: row for row in json.loads(self.top("--list", "--json").stdout)}
        lines = [line.split() for line in self.top("--list").stdout.splitlines()]
        name = pwd.getpwuid(nobody).pw_name
        self.assertEqual(rows[job.pid]["user"], name)
        self.assertIn([str(job.pid), name, "2", "1"], [line[:4] for line in lines])
        refused = self.top("--once", job.pid, user=nobody + 1)
        self.end(job)
        self.assertEqual(len(pes), 2)
        self.assertEqual(refused.returncode, 1)

    def test_link_that_is_down(self):
        job = self.begin("--hosts", 3, "-n", 3, "--fault", "link 1-2 down at 0s", BUSY)
        self.wait_for(lambda: sum(row["downs"] > 0 for row in self.look(job)["links"]) == 2, "both ends to see the fault")
        self.wait_for(lambda: any(row["relays_per_s"] for row in self.look(job)["links"]), "traffic the other way")
        text = self.top("--once", "--interval", "50ms", job.pid).stdout
        down = {tuple(sorted((row["from"], row["to"]))) for row in self.look(job)["links"] if not row["up"]}
        self.end(job)
        self.assertEqual(down, {(1, 2)})
        self.assertEqual(len(re.findall(r"^ +1  host[12] -> host[12] +down ", text, re.MULTILINE)), 2, text)
        self.assertIn("DOWN", text)
        self.assertNotIn("\033", text)

    def test_which_job(self):
        self.assertEqual(self.top("--once", os.getpid()).returncode, 1)
        one, two = (self.begin("--hosts", 2, "-n", 2, BUSY), self.begin("-n", 2, BUSY))
        told = self.top("--once")
        listed = {row["job"]: row for row in json.loads(self.top("--list", "--json").stdout)}
        alone = self.look(two)
        self.end(one)
        self.end(two)
        # Other tests may run jobs at the same time.
        self.assertEqual(told.returncode, 2)
        for job in (one, two):
            self.assertIn(str(job.pid), told.stderr)
            self.assertEqual((listed[job.pid]["program"], listed[job.pid]["pes"]), ("scenario_busy", 2))
        self.assertEqual((alone["links"], len(alone["PEs"])), ([], 2))
        self.assertEqual(self.top("--once", one.pid).returncode, 1)
        self.assertNotIn(one.pid, [row["job"] for row in json.loads(self.top("--list", "--json").stdout)])

    def test_wrong(self):
        for arguments in (["--nothing"], ["x"], ["1", "2"], ["--interval"], ["--interval", "0"], ["0"]):
            result = self.top(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertTrue(result.stderr.startswith("quoit top: "), result.stderr)

    def play(self, columns, end, **env):
        """quoit top in a terminal of that many columns, until it has drawn twice and `end` has been called."""
        job = self.begin("--hosts", 3, "-n", 3, BUSY)
        user, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
        before = termios.tcgetattr(terminal)
        shown_env = scenario.environment(self.mark, **env)
        shown_env = {name: value for name, value in shown_env.items() if value}
        process = subprocess.Popen([QUOIT, "top", "--interval", "100ms", str(job.pid)], stdin=terminal,
                                   stdout=terminal, stderr=subprocess.PIPE, env=shown_env,
                                   start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        seen = b""
        limit = time.monotonic() + scenario.LIMIT_S
        while seen.count(b"\033[H") < 3:
            self.assertLess(time.monotonic(), limit)
            if select.select([user], [], [], 0.1)[0]:
                seen += os.read(user, 65536)
        during = termios.tcgetattr(terminal)
        end(process, user, job)
        while process.poll() is None or select.select([user], [], [], 0.1)[0]:
            self.assertLess(time.monotonic(), limit)
            if select.select([user], [], [], 0.1)[0]:
                seen += os.read(user, 65536)
        process.stderr.close()
        after = termios.tcgetattr(terminal)
        os.close(user)
        os.close(terminal)
        self.end(job)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(after, before)
        self.assertFalse(during[3] & termios.ECHO)
        self.assertTrue(seen.startswith(b"\033[?1049h") and seen.endswith(b"\033[?25h\033[?1049l"), seen[-80:])
        return seen.decode()

    def test_terminal(self):
        ways = (lambda process, user, job: os.write(user, b"q"), lambda process, user, job: os.write(user, b"\x03"),
                lambda process, user, job: process.send_signal(signal.SIGTERM), lambda process, user, job: job.kill())
        for columns, end, no_colour in zip((40, 120, 60, 200), ways, ("1", "", "1", "")):
            with self.subTest(columns=columns):
                seen = self.play(columns, end, NO_COLOR=no_colour)
                self.assertEqual("\033[1m" in seen, not no_colour)
                for frame in seen.split("\033[H")[1:]:
                    lines = re.sub(r"\033\[[0-9;?]*[A-Za-z]", "", frame).replace("\r", "").split("\n")
                    self.assertLessEqual(len(lines), 20)
                    self.assertLessEqual(max(map(len, lines)), columns)
                    self.assertIn("quoit top", lines[0])

    def test_stats_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stats.json")
            result = self.run_job("--stats", "--stats-json", path, "--hosts", 4, "-n", 4, BUSY, 10)
            self.assertEqual(result.status, 0, result)
            with open(path) as file:
                told = json.load(file)
            self.assertEqual((told["hosts"], told["pes"], len(told["links"])), (4, 4, 8))
            rows = re.findall(r"^ +(\d) +host(\d) -> host(\d) +(\d+) +[\d.]+ \S*B +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$",
                              result.err, re.MULTILINE)
            names = ("link", "from", "to", "bytes", "messages", "relays", "doorbells", "resends", "downs", "sleeps")
            self.assertEqual(rows, [tuple(str(row[name]) for name in names) for row in told["links"]], result.err)
            for row in told["links"]:
                # 10 rounds: 20000 bytes to each neighbour. Opposite hosts send through a neighbour.
                self.assertGreaterEqual(row["bytes"], 200000)
                self.assertGreater(row["messages"], 0)
            self.assertGreaterEqual(sum(row["relays"] for row in told["links"]), 40)
            result = self.run_job("--stats-json", "/nowhere/x", "-n", 1, BUSY, 1)
            self.assertIn("/nowhere/x", result.err)


if __name__ == "__main__":
    scenario.main()
