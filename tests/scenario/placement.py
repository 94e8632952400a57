# SPDX-License-Identifier: BSD-3-Clause
"""Aim: no thread of a job runs on a processor that the user excluded. Method: a job that shares processors, with lanes
that relay and PEs that wait, is confined to one processor, before it starts or while it runs; for three seconds the
affinity mask of every thread is read as often as possible, and must never include another processor."""
import os
import subprocess
import time
import unittest

import scenario

WATCH_S = 3
ONLINE = sorted(os.sched_getaffinity(0))


def threads(pid):
    try:
        return [int(entry) for entry in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def mask_of(thread):
    try:
        return os.sched_getaffinity(thread)
    except OSError:
        return set()  # it has ended


@unittest.skipIf(len(ONLINE) < 2 or len(ONLINE) != os.sysconf("SC_NPROCESSORS_ONLN"), "no processors to move between")
class Placement(scenario.Case):
    def setUp(self):
        super().setUp()
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            job.terminate()
            job.communicate(timeout=scenario.LIMIT_S)
        super().tearDown()

    def start(self, processors):
        """A ring with lanes, and more threads than processors."""
        job = subprocess.Popen(
            [scenario.OSHRUN, "--hosts", "3", "-n", str(max(6, len(ONLINE) + 1)), scenario.program("scenario_busy")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=scenario.environment(self.mark),
            preexec_fn=lambda: os.sched_setaffinity(0, processors))
        self.jobs.append(job)
        self.assertEqual(job.stdout.readline(), "begun\n")

    def watch(self, allowed):
        wide, look_count = {}, 0
        end = time.monotonic() + WATCH_S
        pids = scenario.processes(self.mark)
        while time.monotonic() < end:
            for pid in pids:
                for thread in threads(pid):
                    mask = mask_of(thread)
                    look_count += 1
                    if not mask <= allowed:
                        wide[scenario.name_of(pid), thread] = mask
        self.assertGreater(look_count, 1000)
        self.assertEqual(wide, {}, "threads run beyond the processors they were given")

    def test_a_job_started_on_one_processor_stays_there(self):
        self.start({ONLINE[0]})
        self.watch({ONLINE[0]})

    def test_a_job_moved_to_one_processor_stays_there(self):
        self.start(set(ONLINE))
        time.sleep(0.5)
        last = {ONLINE[-1]}
        # A thread that is moving itself may restore its previous mask after ours: repeat until all threads have it,
        # like taskset -a -p, which is not atomic either.
        for _ in range(3):
            for pid in scenario.processes(self.mark):
                for thread in threads(pid):
                    try:
                        os.sched_setaffinity(thread, last)
                    except OSError:
                        pass  # it has ended
            time.sleep(0.05)
        self.watch(last)


if __name__ == "__main__":
    unittest.main()
