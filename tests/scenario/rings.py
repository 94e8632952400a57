# SPDX-License-Identifier: BSD-3-Clause
"""Rings joined by a network: --rings. What is refused, what goes which way, how a job ends when a host, a PE or the links
of one ring die. The data is checked by conformance.*.rings and stress.mix.rings. Skipped without a driver."""
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

import scenario

GREET, BUSY, DIRECT = (scenario.program(f"scenario_{name}") for name in ("greet", "busy", "direct"))
QUOIT = os.path.join(scenario.BIN, "quoit")
PATIENT = ("--link-limit", "30s")  # of a busy machine, where the limit is not what is tested


def has_driver():
    told = subprocess.run([QUOIT, "info", "networks", "--json"], capture_output=True, text=True, timeout=scenario.LIMIT_S, check=False)
    return any(one["usable"] for one in json.loads(told.stdout)["networks"])


class Options(scenario.Case):
    def test_what_cannot_be(self):
        for options, text in ((("--hosts", 4, "--rings", 3), "--rings 3: a number of rings, from 2, with two hosts or more in each"),
                              (("--hosts", 4, "--rings", 1), "--rings 1: a number of rings, from 2"),
                              (("--hosts", 4, "--rings", "3+2"), "--rings 3+2: the sizes of rings that add up to the 4 hosts"),
                              (("--hosts", 4, "--rings", "4+0"), "--rings 4+0: the sizes of rings"),
                              (("--hosts", 4, "--rings", "3+"), "--rings 3+: the sizes of rings"),
                              (("--hosts", 65, "-n", 65, "--rings", 2), "--rings takes 64 hosts at most"),
                              (("--hosts", 4, "--on", "0,1", "--rings", 2), "--on names those of a ring"),
                              (("--hosts", 4, "--rings", 2, "--network", "ring"), "--network ring is none: --network auto"),
                              (("--hosts", 4, "--rings", 2, "--protocol", "scratchpad"), "and --rings 2 has none"),
                              (("--hosts", 4, "--rings", 2, "--barrier", "papers"), "and --rings 2 has none"),
                              (("--hosts", 4, "--rings", 2, "--fault", "link 1-2 down at 1s"), "there is no such link"),
                              (("--hosts", 2, "--rings", "1+1", "--fault", "links random every 2s for 1s"), "there is no such link"),
                              (("--host", "a,b,c,d", "--rings", 2), "--rings wants links between machines")):
            result = self.run_job(*options, GREET)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn(text, result.err)


class Rings(scenario.Case):
    def setUp(self):
        super().setUp()
        if not has_driver():
            self.skipTest("no network driver finds a network here: quoit info networks")

    def stats_of(self, hosts, rings):
        """10 rounds: 20,000 bytes to each other host, which over the network go from memory to memory."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stats.json")
            result = self.run_job("--hosts", hosts, "--rings", rings, "-n", hosts, *PATIENT, "--stats", "--stats-json", path, BUSY, 10)
            self.assertEqual(result.status, 0, result)
            with open(path) as file:
                return json.load(file), result.err

    def check_stats(self, hosts, rings, sizes):
        told, text = self.stats_of(hosts, rings)
        ring_of = [(sum(sizes[:i]), size) for i, size in enumerate(sizes) for _ in range(size)]
        links = [(host, first + (host + 1 - first) % size) for host, (first, size) in enumerate(ring_of) if size > 1]
        self.assertEqual([(row["link"], row["from"], row["to"]) for row in told["links"]],
                         [row for a, b in links for row in ((a, a, b), (a, b, a))])
        self.assertTrue(all(row["messages"] > 0 or size == 2 for row in told["links"] for _, size in [ring_of[row["from"]]]), told)
        for host, (_, size) in enumerate(ring_of):
            row = told["network"][host]
            self.assertEqual((row["host"], row["puts"], row["put_bytes"], row["lost"]),
                             (host, 10 * (hosts - size), 200000 * (hosts - size), 0), told)
        for host, (_, size) in enumerate(ring_of):
            self.assertEqual(text.count(f"[host{host}]"), 1 if size > 1 else 0, text)

    def test_what_goes_which_way(self):
        self.check_stats(5, 2, [3, 2])
        self.check_stats(5, "1+3+1", [1, 3, 1])

    def test_info(self):
        result = self.run_job("--hosts", 5, "--rings", "2+3", "-n", 5, *PATIENT, "-x", "SHMEM_INFO=1", GREET)
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.out, r"to PE 1 +direct: puts through the window into host 1")
        for pe in (2, 3, 4):
            self.assertRegex(result.out, rf"to PE {pe} +network: by the proxies to host {pe}")

    def test_top(self):
        job = self.start("--hosts", 4, "--rings", "1+3", "-n", 4, *PATIENT, BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        told, text = (subprocess.run([QUOIT, "top", "--once", *how, "--interval", "200ms", str(job.pid)], capture_output=True,
                                     text=True, timeout=scenario.LIMIT_S, env=scenario.environment(self.mark), check=False).stdout
                      for how in (["--json"], []))
        job.kill()
        job.communicate(timeout=scenario.LIMIT_S)
        told = json.loads(told)
        self.assertEqual([(row["from"], row["to"]) for row in told["links"]], [(1, 2), (2, 1), (2, 3), (3, 2), (3, 1), (1, 3)])
        self.assertEqual([row["host"] for row in told["network"]], [0, 1, 2, 3])
        self.assertEqual([text.count(f"[host{host}]") for host in range(4)], [0, 1, 1, 1], text)
        self.assertEqual(len(re.findall(r"^host[0-3] +\d+ ", text, re.MULTILINE)), 4, text)

    def traced(self, *words):
        """What the trace of a job has in it."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.pftrace")
            result = self.run_job("--lanes", 1, *PATIENT, "--trace", path, *words)
            self.assertEqual(result.status, 0, result)
            with open(path, "rb") as file:
                return file.read()

    def test_trace(self):
        told = self.traced("--hosts", 3, "--rings", "2+1", "-n", 3, BUSY, 3)
        for name in (b"host0 -> host1 (right) bytes", b"host2 network bytes sent", b"lane 1 network"):
            self.assertTrue(name in told, name)

    def test_direct_puts(self):
        """To the next PE, of which all but the last one's is a neighbour on the ring of three that begins at host 1."""
        told = self.traced("--hosts", 4, "--rings", "1+3", "-n", 4, DIRECT, 3)
        for pe in range(3):
            self.assertEqual(f"landed from PE {pe}".encode() in told, pe > 0, pe)

    def busy(self, *options):
        job = self.start("--hosts", 5, "--rings", "2+3", "-n", 10, *(options or PATIENT), BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        return job

    def end_of(self, job, status, pattern):
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, status, err)
        self.assertRegex(err.decode(), pattern)
        self.assert_nothing_left()
        return err.decode()

    def test_a_killed_pe(self):
        job = self.busy()
        os.kill(self.pids_of("scenario_busy")[7], signal.SIGKILL)
        self.end_of(job, 137, r"PE \d+ on host\d was killed by SIGKILL")

    def test_a_killed_host(self):
        job = self.busy("--fault", "host 3 dies at 100ms", *PATIENT)
        self.end_of(job, 1, r"the proxy of host3 has died")

    def test_a_link_goes_down(self):
        result = self.run_job("--hosts", 5, "--rings", "2+3", "-n", 10, *PATIENT, "--fault", "link 3-4 down at 0s for 300ms",
                              "--timeout", scenario.LIMIT_S, BUSY, 200)
        self.assertEqual((result.status, result.out), (0, "begun\n"), result)
        self.assertIn("link 3-4 goes down (--fault)", result.err)

    def test_two_links_of_a_ring_end_the_job(self):
        result = self.run_job("--hosts", 5, "--rings", "2+3", "-n", 10, "--link-limit", "3s", "--fault", "link 2-3 down at 0s",
                              "--fault", "link 3-4 down at 0s", BUSY)
        self.assertEqual(result.status, 1, result)
        self.assertIn("links 2-3 and 3-4 are down: host 3 cannot be reached", result.err)


if __name__ == "__main__":
    scenario.main()
