# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a job on shared pages loses nothing and ends nothing when one of its PEs, or the proxy of a host, stands still for a
while; and it ends soon, with the reason and with nothing left behind, when a PE is killed at any time.
Method: tests/dsm/random.c, which compares every byte with a reference, with processes stopped in turn by SIGSTOP; and with one
killed by SIGKILL after a random time. Prints its seed; FAULTS_SEED=N repeats a run."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario

RUN_S = 3
FROZEN_S = 0.35
KILLED_COUNT = 4  # for each of SHAPES
SHAPES = [(1, 3, "newgendsm"), (3, 3, "newgendsm"), (1, 3, "async"), (3, 3, "async")]
RANDOM = scenario.program("random")


class Faults(scenario.Case):
    def begin(self, hosts, pes, protocol, *arguments):
        return self.start("--hosts", hosts, "-n", pes, "--timeout", f"{scenario.LIMIT_S}s", "--link-limit", "20s", RANDOM, *arguments,
                          env={"DSM_PROTOCOL": protocol, "DSM_MEMORY": "8M"})

    def named(self, name):
        return sorted(pid for pid in scenario.processes(self.mark) if scenario.name_of(pid) == name)

    def freeze(self, job, pid, seconds):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        self.assertIsNone(job.poll(), "the job ended while a process stood still")
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)

    def frozen(self, hosts, pes, protocol):
        """Each PE stands still in turn, so each home does; then each proxy; the job goes on for some time after it."""
        job = self.begin(hosts, pes, protocol, "--seconds", RUN_S)
        self.wait_for(lambda: len(self.named("random")) == pes, "the PEs")
        time.sleep(0.3)
        for pid in self.named("random"):
            self.freeze(job, pid, FROZEN_S)
        for pid in self.named("quoit-proxy") if hosts > 1 else []:
            self.freeze(job, pid, FROZEN_S / 3)
        self.assertIsNone(job.poll(), "the job was over before all had stood still")
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out, err), (0, b"", b""))

    def test_frozen_on_one_host(self):
        self.frozen(1, 3, "newgendsm")

    def test_frozen_on_a_ring(self):
        self.frozen(3, 3, "newgendsm")

    def test_frozen_with_handlers(self):
        self.frozen(3, 3, "async")

    def test_killed(self):
        seed = int(os.environ.get("FAULTS_SEED", 0)) or random.randrange(1, 1 << 30)
        print(f"faults: FAULTS_SEED={seed}", flush=True)
        rng = random.Random(seed)
        for hosts, pes, protocol in SHAPES:
            for _ in range(KILLED_COUNT):
                job = self.begin(hosts, pes, protocol, "--seconds", scenario.LIMIT_S)
                self.wait_for(lambda: len(self.named("random")) == pes, "the PEs")
                time.sleep(rng.uniform(0, 0.5))
                os.kill(rng.choice(self.named("random")), signal.SIGKILL)
                since = time.monotonic()
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                with self.subTest(hosts=hosts, protocol=protocol, seed=seed):
                    self.assertLess(time.monotonic() - since, scenario.SOON_S)
                    self.assertEqual(job.returncode, 128 + signal.SIGKILL, err)
                    self.assertRegex(err.decode(), r"PE \d on \S+ .*was killed by SIGKILL")
                    self.assert_nothing_left()


if __name__ == "__main__":
    scenario.main()
