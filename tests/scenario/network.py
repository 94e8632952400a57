# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that a network joins: --network. What is refused, how a job ends when a host dies or hangs, what quoit info
networks says. The data is checked by conformance.*.network and stress.mix.network. Skipped without a driver."""
import json
import os
import signal
import subprocess
import time
import unittest

import scenario

GREET, BUSY = scenario.program("scenario_greet"), scenario.program("scenario_busy")
QUOIT = os.path.join(scenario.BIN, "quoit")
DRIVERS = ("ofi", "ucx")
NETWORK = ("--network", "auto")


def networks(*arguments):
    return subprocess.run([QUOIT, "info", "networks", *arguments], capture_output=True, text=True,
                          timeout=scenario.LIMIT_S, check=False)


def usable_drivers():
    found = json.loads(networks("--json").stdout)["networks"]
    return [driver for driver in DRIVERS if any(one["usable"] and one["driver"] == driver for one in found)]


class Options(scenario.Case):
    def test_what_needs_links_is_refused(self):
        for options, text in ((("--protocol", "scratchpad"), "--protocol scratchpad needs a ring of links"),
                              (("--barrier", "papers"), "--barrier papers needs a ring of links"),
                              (("--fault", "link 0-1 down at 1s"), "--fault: a link needs a ring")):
            result = self.run_job("--hosts", 2, *NETWORK, *options, GREET)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn(text, result.err)

    def test_a_driver_that_is_not_there(self):
        result = self.run_job("--hosts", 2, "--network", "pigeons", GREET)
        self.assertEqual(result.status, 1, result)
        self.assertIn("has no network driver pigeons [Q0222]", result.err)

    def test_one_host_needs_none(self):
        result = self.run_job("--network", "pigeons", "-n", 2, GREET)
        self.assertEqual(result.status, 0, result)

    def test_info_names_each_driver(self):
        text = networks()
        self.assertEqual(text.returncode, 0, text.stderr)
        for driver in DRIVERS:
            self.assertIn(driver, text.stdout)
        found = json.loads(networks("--json", "--network-device", "eth99").stdout)["networks"]
        self.assertEqual({network["usable"] for network in found}, {False})


class Ending(scenario.Case):
    def setUp(self):
        super().setUp()
        if not usable_drivers():
            self.skipTest("no network driver finds a network here: quoit info networks")

    def busy(self, driver, *options):
        job = self.start("--hosts", 3, "--network", driver, *options, "-n", 6, BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        return job

    def proxies(self):
        return [pid for pid in scenario.processes(self.mark) if scenario.name_of(pid) == "quoit-proxy"]

    def end_of(self, job, limit_s):
        begin = time.monotonic()
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertLess(time.monotonic() - begin, limit_s + scenario.SOON_S)
        self.assertEqual(job.returncode, 1, err)
        self.assertRegex(err.decode(), r"the proxy of host\d has died")
        self.assert_nothing_left()

    def test_a_killed_proxy(self):
        for driver in usable_drivers():
            with self.subTest(driver=driver):
                job = self.busy(driver)
                os.kill(self.proxies()[1], signal.SIGKILL)
                self.end_of(job, 0)

    def test_a_frozen_proxy(self):
        """It answers nobody, and the kernel keeps its connections up: only its silence tells."""
        for driver in usable_drivers():
            with self.subTest(driver=driver):
                job = self.busy(driver, "--link-limit", "1s")
                os.kill(self.proxies()[1], signal.SIGSTOP)
                self.end_of(job, 1)

    def test_a_killed_pe(self):
        job = self.busy("auto")
        victims = [pid for pid in scenario.processes(self.mark) if scenario.name_of(pid) == "scenario_busy"]
        os.kill(victims[3], signal.SIGKILL)
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 137, err)
        self.assertRegex(err.decode(), r"PE \d+ on host\d was killed by SIGKILL")


if __name__ == "__main__":
    scenario.main()
