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

    def freeze(self, pid, seconds):
        """False: it has ended."""
        if not scenario.send(pid, signal.SIGSTOP):
            return False
        time.sleep(seconds)
        scenario.send(pid, signal.SIGCONT)
        time.sleep(0.02)
        return True

    def frozen(self, hosts, pes, protocol):
        """Each PE stands still in turn, so each home does; then each proxy; the job goes on for some time after it. If it was over
        sooner, since this process was held up, again with more time."""
        for run_s in (RUN_S, 3 * RUN_S, 9 * RUN_S):
            job = self.begin(hosts, pes, protocol, "--seconds", run_s)
            self.wait_for(lambda: len(self.pids_of("random")) == pes or job.poll() is not None, "the PEs")
            time.sleep(0.3)
            stood = [self.freeze(pid, FROZEN_S) for pid in self.pids_of("random")]
            stood += [self.freeze(pid, FROZEN_S / 3) for pid in self.pids_of("quoit-proxy")]
            is_going_on = job.poll() is None
            out, err = job.communicate(timeout=scenario.LIMIT_S)
            self.assertEqual((job.returncode, out, err), (0, b"", b""))
            if is_going_on and stood == [True] * (pes + (hosts if hosts > 1 else 0)):
                return
        self.fail(f"the job was over before all had stood still: {stood}")

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
                self.wait_for(lambda: len(self.pids_of("random")) == pes, "the PEs")
                time.sleep(rng.uniform(0, 0.5))
                os.kill(rng.choice(self.pids_of("random")), signal.SIGKILL)
                since = time.monotonic()
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                with self.subTest(hosts=hosts, protocol=protocol, seed=seed):
                    self.assertLess(time.monotonic() - since, scenario.LATE_S)
                    self.assertEqual(job.returncode, 128 + signal.SIGKILL, err)
                    self.assertRegex(err.decode(), r"PE \d on \S+ .*was killed by SIGKILL")
                    self.assert_nothing_left()


if __name__ == "__main__":
    scenario.main()
