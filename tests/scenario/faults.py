# SPDX-License-Identifier: BSD-3-Clause
"""Aim: --fault causes the faults it describes; a job survives one link down, and ends soon, naming the links, when the
ring is partitioned.
Method: jobs that greet or sleep on a ring while oshrun cuts links; invalid values of --fault. Programs that check every
byte under faults are in tests/stress."""
import os
import unittest

import scenario

MISBEHAVE = scenario.program("scenario_misbehave")
BUSY_S = 20


class Words(scenario.Case):
    def test_wrong_words_are_told(self):
        for text, said in (
            ("link 2-3 dwn at 1s", 'after "2-3" comes "down", not "dwn"'),
            ("link 2-3 down at", "comes a time"),
            ("link 2-3 down at soon", 'not "soon"'),
            ("link 2-3 down at 1s for 5ms more", 'nothing may follow "5ms"'),
            ("link 2-5 down at 1s", "there is no link 2-5"),
            ("link 1-3 down at 1s", "there is no link 1-3"),
            ("host 5 dies at 1s", "host 5 is not there"),
            ("links random every 20ms for 50ms", "shorter than"),
            ("the cat", "say "),
        ):
            result = self.run_job("--hosts", 5, "-n", 5, "--fault", text, "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(said, result.err)
            self.assertIn("[Q0210]", result.err)
        self.assertIn("--hosts 2", self.run_job("--fault", "host 0 dies at 1s", "true").err)


@unittest.skipUnless(os.path.exists(MISBEHAVE), "without the library")
class Faults(scenario.Case):
    def faulty(self, *faults, options=(), seconds=BUSY_S, run=None):
        words = [word for fault in faults for word in ("--fault", fault)]
        return (run or self.run_job)("--hosts", 5, "-n", 5, *options, *words, MISBEHAVE, 0, "sleep", seconds)

    def ended(self, *faults, options=()):
        """Soon, and before the program ends by itself."""
        return self.faulty(*faults, options=options, run=self.run_soon)

    def test_one_link_is_no_end(self):
        result = self.faulty("link 3-2 down at 0s", "link 4-0 down at 200ms for 100ms",
                             options=("--link-limit", "20s", "--stats"), seconds=1)
        self.assertEqual(result.status, 0, result)
        self.assertIn("link 2-3 goes down (--fault)", result.err)
        self.assertIn("link 4-0 is up again (--fault)", result.err)
        self.assertIn("resends", result.err)

    def test_many_changes_are_folded(self):
        """Some thousand changes a second are reported as about a hundred lines and ten a second, with the number of the
        others."""
        result = self.faulty("links random every 200us for 50us seed 3", options=("--link-limit", "20s"), seconds=1)
        self.assertEqual(result.status, 0, result)
        lines = [line for line in result.err.splitlines() if "(--fault)" in line]
        self.assertLess(len(lines), 120 + 10 * result.seconds)
        self.assertRegex("\n".join(lines), r"after \d+ changes that are not printed")

    def test_faults_faster_than_they_can_be_done(self):
        """oshrun keeps serving: its own time limit ends the job."""
        result = self.faulty("links random every 2ns for 1ns", options=("--timeout", "1s"))
        self.assertEqual(result.status, 124, result)
        self.assertLess(result.seconds, 1 + scenario.LATE_S)

    def test_two_links_end_the_job(self):
        result = self.ended("link 1-2 down at 0s", "link 4-3 down at 100ms", options=("--link-limit", "500ms"))
        self.assertEqual(result.status, 1, result)
        self.assertIn("links 1-2 and 3-4 are down: hosts 2,3 cannot be reached", result.err)
        self.assertEqual(result.err.count("[Q0217]"), 1)

    def test_a_single_host_is_cut_off(self):
        result = self.ended("link 4-0 down at 0s", "link 0-1 down at 0s", options=("--link-limit", "300ms"))
        self.assertIn("links 0-1 and 4-0 are down: host 0 cannot be reached", result.err)

    def test_the_papers_protocol_and_barrier_end_with_a_link(self):
        for options in (("--protocol", "scratchpad"), ("--barrier", "papers")):
            result = self.ended("link 4-3 down at 100ms for 5ms", options=options)
            self.assertEqual(result.status, 1, result)
            self.assertIn("link 3-4 went down, which no job with {} {} outlives".format(*options), result.err)
            self.assertEqual(result.err.count("[Q02"), 1, result)

    def test_a_dead_host_ends_the_job(self):
        for options in ((), ("--protocol", "scratchpad", "--barrier", "papers")):
            result = self.ended("host 2 dies at 100ms", options=options)
            self.assertEqual(result.status, 1, result)
            self.assertIn("host2 dies (--fault)", result.err)
            self.assertIn("the proxy of host2 has died", result.err)


if __name__ == "__main__":
    scenario.main()
