# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whole jobs on one host and on rings start, work and print what the links carried; and a PE, a proxy or oshrun
killed at a random instant ends the whole job, with a message, and leaves nothing, with either protocol.
Method: busy.c (puts to all PEs, atomics, barriers, checked) and kill -9; the seed is printed and can be set as
SCENARIO_SEED."""
import os
import random
import re
import shlex
import signal
import time

import scenario

BUSY = scenario.program("scenario_busy")
GREET = scenario.program("scenario_greet")
SEED = int(os.environ.get("SCENARIO_SEED", time.time_ns() % 1000000))
ROUNDS = 6
PAPERS = ["--protocol", "scratchpad", "--barrier", "papers", "--lanes", 2]


class Whole(scenario.Case):
    def test_hello(self):
        for count, options in ((1, ["-n", 1]), (2, ["-n", 2]), (16, ["-n", 16]), (5, ["--hosts", 5]),
                               (9, ["--hosts", 4, "-n", 9]), (2, ["--hosts", 2, "--lanes", 2, "--slots", 2])):
            with self.subTest(options=options):
                result = self.run_job(*options, GREET)
                self.assertEqual((result.status, result.err), (0, ""), result)
                self.assertEqual(sorted(result.out.splitlines()),
                                 sorted(f"hello from PE {pe} of {count}" for pe in range(count)))

    def test_work(self):
        for options in (["-n", 1], ["-n", 4], ["-n", 16], ["--hosts", 2, "-n", 2], ["--hosts", 3, "-n", 6],
                        ["--hosts", 5, "-n", 5, "--slots", 2, "--chunk", "1K"]):
            with self.subTest(options=options):
                result = self.run_job(*options, BUSY, 20)
                self.assertEqual((result.status, result.out, result.err), (0, "begun\n", ""), result)

    def test_two_programs(self):
        result = self.run_job("--hosts", 2, "-n", 2, GREET, ":", "-n", 2, "sh", "-c", shlex.quote(GREET))
        self.assertEqual(sorted(result.out.splitlines()), [f"hello from PE {pe} of 4" for pe in range(4)], result)

    def test_stats(self):
        result = self.run_job("--stats", "--hosts", 4, "-n", 4, BUSY, 10)
        self.assertEqual(result.status, 0, result)
        rows = re.findall(r"^ +(\d) +host(\d) -> host(\d) +(\d+) ", result.err, re.MULTILINE)
        self.assertEqual(sorted(row[:3] for row in rows),
                         sorted((str(link), a, b) for link in range(4)
                                for a, b in ((str(link), str((link + 1) % 4)), (str((link + 1) % 4), str(link)))))
        # Each host puts 20000 bytes ten times to each neighbour, so each direction carries at least that.
        for row in rows:
            self.assertGreaterEqual(int(row[3]), 200000, result)
        for host in range(4):
            self.assertIn(f"[host{host}]", result.err)

    def test_heap_size_is_refused_before_start(self):
        result = self.run_job("-n", 2, GREET, env={"SHMEM_SYMMETRIC_SIZE": "12Q"})
        self.assertEqual((result.status, result.out), (2, ""))
        self.assertEqual(self.run_job("-n", 2, GREET, env={"SHMEM_SYMMETRIC_SIZE": "1.5G"}).status, 0)


class Killed(scenario.Case):
    def victims(self, kind, job):
        if kind == "launcher":
            return [job.pid]
        name = {"pe": "scenario_busy", "proxy": "quoit-proxy"}[kind]
        return self.pids_of(name)

    def kill_one(self, kind, rng, hosts, options):
        """Kills at any instant: while the job starts, or while it works."""
        job = self.start(*options, "--hosts", hosts, "-n", 2 * hosts, BUSY)
        if rng.randrange(2):
            self.assertEqual(job.stdout.readline(), b"begun\n")
        time.sleep(rng.random() * 0.1)
        self.wait_for(lambda: self.victims(kind, job) or job.poll() is not None, "a victim")
        victims = self.victims(kind, job)
        os.kill(rng.choice(victims), signal.SIGKILL)
        begin = time.monotonic()
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.seconds.append(time.monotonic() - begin)
        self.assertLess(self.seconds[-1], scenario.LATE_S)
        self.assert_nothing_left()
        return job.returncode, err.decode()

    def repeat(self, kind):
        print(f"seed {SEED}; replay: SCENARIO_SEED={SEED}", flush=True)
        rng = random.Random(f"{SEED} {kind}")
        self.seconds = []
        for round_number in range(ROUNDS):
            hosts = rng.choice([2, 3, 5] if kind == "proxy" else [1, 2, 3, 5])
            options = PAPERS if round_number % 2 else []
            with self.subTest(seed=SEED, round=round_number, hosts=hosts, options=options):
                yield self.kill_one(kind, rng, hosts, options)
        self.assertLess(sorted(self.seconds)[ROUNDS // 2], scenario.SOON_S, self.seconds)

    def test_pe(self):
        for status, err in self.repeat("pe"):
            self.assertEqual(status, 137, err)
            self.assertRegex(err, r"PE \d+ on host\d was killed by SIGKILL")

    def test_proxy(self):
        for status, err in self.repeat("proxy"):
            self.assertEqual(status, 1, err)
            self.assertRegex(err, r"the proxy of host\d has died")

    def test_launcher(self):
        for status, _ in self.repeat("launcher"):
            self.assertEqual(status, -signal.SIGKILL)

    def test_launcher_of_pes_that_left_their_group(self):
        job = self.start("--hosts", 2, "-n", 4, "sh", "-c", f"setsid -w {shlex.quote(BUSY)}; exit $?")
        self.assertEqual(job.stdout.readline(), b"begun\n")
        job.kill()
        job.communicate(timeout=scenario.LIMIT_S)
        self.assert_nothing_left()
        job = self.start("-n", 4, "sh", "-c", f"setsid -w {shlex.quote(BUSY)}; exit $?")
        self.assertEqual(job.stdout.readline(), b"begun\n")
        os.kill(self.victims("pe", job)[0], signal.SIGKILL)
        job.communicate(timeout=scenario.LATE_S)
        self.assertEqual(job.returncode, 137)

    def test_alone_under_other_launchers(self):
        result = scenario.subprocess.run([GREET], capture_output=True, text=True, timeout=scenario.LIMIT_S,
                                         env=scenario.environment(self.mark))
        self.assertEqual((result.returncode, result.stdout), (0, "hello from PE 0 of 1\n"))
        result = scenario.subprocess.run([GREET], capture_output=True, text=True, timeout=scenario.LIMIT_S,
                                         env=scenario.environment(self.mark, PMI_SIZE="4", PMI_RANK="0"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("PMI_SIZE=4", result.stderr)


if __name__ == "__main__":
    scenario.main()
