# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that a network joins: --network. What is refused, how a job ends when a host dies or hangs, what quoit info
networks says. The data is checked by conformance.*.network and stress.mix.network. Skipped without a driver."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

import scenario

GREET, BUSY, DIRECT, PATHS = (scenario.program(f"scenario_{name}") for name in ("greet", "busy", "direct", "paths"))
PATHS_BYTES = 8 * (16 + 64 + 256 + 1024 + 4096 << 10)  # of two PEs at least, in puts that are puts of the network, and in gets
QUOIT = os.path.join(scenario.BIN, "quoit")
DRIVERS = ("tcp", "ofi", "ucx")
NETWORK = ("--network", "auto")


def networks(*arguments):
    return subprocess.run([QUOIT, "info", "networks", *arguments], capture_output=True, text=True,
                          timeout=scenario.LIMIT_S, check=False)


def usable_drivers():
    found = json.loads(networks("--json").stdout)["networks"]
    return [driver for driver in DRIVERS if any(one["usable"] and one["driver"] == driver for one in found)]


class Options(scenario.Case):
    def test_what_needs_links_is_refused(self):
        for options, text in ((("--protocol", "scratchpad"), "--protocol scratchpad needs a ring of links of all hosts, and --network auto has none"),
                              (("--barrier", "papers"), "--barrier papers needs a ring of links of all hosts, and --network auto has none"),
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

    def test_path_network_without_one(self):
        result = self.run_job("--path", "network", "--network", "ring", "-n", 2, GREET)
        self.assertEqual((result.status, result.out), (2, ""), result)
        self.assertIn("--path network wants a network, and --network ring is none: --network auto", result.err)
        result = self.run_job("--path", "network", "--network", "pigeons", "-n", 2, GREET)
        self.assertEqual((result.status, result.out), (1, ""), result)
        self.assertIn("host 0 cannot join the network: this installation of Quoit has no network driver pigeons [Q0222]",
                      result.err)
        alone = subprocess.run([GREET], env=scenario.environment(self.mark, QUOIT_PATH="network"), capture_output=True,
                               text=True, timeout=scenario.LIMIT_S, check=False)
        self.assertEqual((alone.returncode, alone.stdout), (1, ""), alone)
        self.assertIn("--path network: the job has no network to send through", alone.stderr)
        self.assertIn("[Q0305]", alone.stderr)

    def test_info_names_each_driver(self):
        text = networks()
        self.assertEqual(text.returncode, 0, text.stderr)
        for driver in DRIVERS:
            self.assertIn(driver, text.stdout)
        told = json.loads(networks("--json").stdout)
        first = told["auto"].split()[0]
        self.assertIn(first, DRIVERS)
        self.assertEqual(told["networks"][0]["driver"], first)
        self.assertRegex(text.stdout, rf"(?m)^  auto     {first} before ")
        self.assertNotIn("auto", json.loads(networks("--json", "--network", "ucx").stdout))
        found = json.loads(networks("--json", "--network-device", "eth99").stdout)["networks"]
        self.assertEqual({network["usable"] for network in found}, {False})


class WithNetwork(scenario.Case):
    def setUp(self):
        super().setUp()
        if not usable_drivers():
            self.skipTest("no network driver finds a network here: quoit info networks")


class Counts(WithNetwork):
    NAMES = ("host", "puts", "put_bytes", "gets", "get_bytes", "messages", "message_bytes", "sleeps", "lost")

    def test_path_network(self):
        """The bytes of PEs of one host are in the driver's hands; with two hosts those of both hosts' PEs."""
        for driver in usable_drivers():
            for hosts in (1, 2):
                with tempfile.TemporaryDirectory() as folder:
                    path = os.path.join(folder, "stats.json")
                    result = self.run_job("--path", "network", "--hosts", hosts, "-n", 2 * hosts, "--network", driver,
                                          "--stats-json", path, PATHS, "mapped")
                    self.assertEqual((result.status, result.out), (0, "paths ok\n"), result)
                    with open(path) as file:
                        networks = json.load(file)["network"]
                self.assertEqual(len(networks), hosts)
                for network in networks:
                    self.assertGreaterEqual(network["put_bytes"], PATHS_BYTES)
                    self.assertGreaterEqual(network["get_bytes"], PATHS_BYTES)

    def test_stats(self):
        """10 rounds: 20,000 bytes to each other host, from memory to memory, and an atomic and barriers in messages."""
        for driver in usable_drivers():
            with self.subTest(driver=driver), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "stats.json")
                result = self.run_job("--hosts", 3, "-n", 3, "--network", driver, "--stats", "--stats-json", path, BUSY, 10)
                self.assertEqual(result.status, 0, result)
                with open(path) as file:
                    told = json.load(file)
                self.assertEqual((told["links"], [row["host"] for row in told["network"]]), ([], [0, 1, 2]))
                for row in told["network"]:
                    self.assertEqual((row["puts"], row["put_bytes"], row["gets"], row["get_bytes"], row["lost"]), (20, 400000, 0, 0, 0))
                    self.assertGreater(row["messages"], 30)
                    self.assertGreater(row["message_bytes"], 64 * row["messages"])
                rows = [tuple(map(int, line)) for line in re.findall(r"^ +" + r" +".join([r"(\d+)"] * len(self.NAMES)) + "$",
                                                                     result.err, re.MULTILINE)]
                self.assertEqual(rows, [tuple(row[name] for name in self.NAMES) for row in told["network"]], result.err)

    def test_top(self):
        job = self.start("--hosts", 2, "-n", 4, *NETWORK, BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        watcher = subprocess.Popen([QUOIT, "top", "--json", "--interval", "200ms", str(job.pid)], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=scenario.environment(self.mark))
        before, now = (json.loads(watcher.stdout.readline()) for _ in range(2))
        end = time.monotonic() + scenario.LIMIT_S
        while not all(b["puts"] > a["puts"] for a, b in zip(before["network"], now["network"])) and time.monotonic() < end:
            before, now = now, json.loads(watcher.stdout.readline())
        text = subprocess.run([QUOIT, "top", "--once", "--interval", "50ms", str(job.pid)], capture_output=True, text=True,
                              timeout=scenario.LIMIT_S, env=scenario.environment(self.mark), check=False).stdout
        job.kill()
        job.communicate(timeout=scenario.LIMIT_S)
        watcher.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((now["links"], [row["host"] for row in now["network"]]), ([], [0, 1]))
        for a, b in zip(before["network"], now["network"]):
            self.assertGreater(b["puts"], a["puts"])
            for name in ("puts", "put_bytes", "gets", "get_bytes", "messages", "message_bytes"):
                rate = (b[name] - a[name]) / now["interval_s"]
                self.assertAlmostEqual(b[name + "_per_s"], rate, delta=0.06 + rate / 1e5)
        self.assertEqual(len(re.findall(r"^host[01] +\d+ +[\d.]+ \S*B/s +0 +0 B/s +\d+ ", text, re.MULTILINE)), 2, text)
        self.assertNotIn("link", text)


class Starting(WithNetwork):
    """Proxies load the network's library, where it has one, while PEs start; these are shells that begin their program when
    they are let."""

    def held(self, driver, *program):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        gate = os.path.join(folder.name, "gate")
        job = self.start("--hosts", 3, "--network", driver, "-n", 3, "sh", "-c",
                         'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"', gate, *program)
        return job, gate

    def wait_for_proxies(self, driver):
        def has_loaded(pid):
            with open(f"/proc/{pid}/maps") as maps:
                return driver == "tcp" or f"libquoit-net-{driver}.so" in maps.read()

        end = time.monotonic() + scenario.LIMIT_S
        proxies = []
        while len(proxies) < 3 or not all(map(has_loaded, proxies)):
            self.assertLess(time.monotonic(), end, "no proxy has the driver while the PEs start")
            time.sleep(0.05)
            proxies = self.pids_of("quoit-proxy")
        return proxies

    def test_drivers_are_loaded_before_programs_begin(self):
        for driver in usable_drivers():
            with self.subTest(driver=driver):
                job, gate = self.held(driver, GREET)
                self.wait_for_proxies(driver)
                os.close(os.open(gate, os.O_CREAT))
                out, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual((job.returncode, err), (0, b""))
                self.assertEqual(sorted(out.decode().splitlines()), [f"hello from PE {i} of 3" for i in range(3)])

    def test_a_proxy_killed_before_its_memory_is_made(self):
        driver = usable_drivers()[0]
        job, _ = self.held(driver, GREET)
        os.kill(self.wait_for_proxies(driver)[1], signal.SIGKILL)
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 1, err)
        self.assertRegex(err.decode(), r"the proxy of host\d has died of SIGKILL")

    def test_programs_that_need_no_proxy(self):
        driver = usable_drivers()[0]
        job, gate = self.held(driver, "echo", "done")
        self.wait_for_proxies(driver)
        os.close(os.open(gate, os.O_CREAT))
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out, err), (0, b"done\n" * 3, b""))


class Direct(WithNetwork):
    """PEs with ends of their own; the data is checked by conformance.*.direct and stress.mix.*.direct too."""

    def test_words_in_order_and_a_fork(self):
        """Rounds of four small operations and barriers: none of them needs the proxy of its own host."""
        for driver in usable_drivers():
            with self.subTest(driver=driver), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "stats.json")
                result = self.run_job("--hosts", 3, "-n", 3, "--network", driver, "--network-direct", "yes",
                                      "--stats-json", path, DIRECT, 40)
                self.assertEqual((result.status, result.out), (0, "begun\n"), result)
                with open(path) as file:
                    told = json.load(file)["network"]
                for row in told:
                    # While a PE connects, the proxy does it.
                    self.assertTrue(80 < row["by_pes"] <= row["puts"] + row["gets"] + row["messages"], told)

    def test_a_provider_that_is_taken_by_its_name_alone(self):
        listed = json.loads(networks("--json", "--network", "ofi").stdout)["networks"]
        usable = {one["provider"]: one["usable"] for one in listed}
        provider = next((name for name in ("sockets", "udp;ofi_rxd") if name in usable), None)
        if provider is None:
            self.skipTest("libfabric is not here, or has no provider that must be named")
        self.assertFalse(usable[provider])
        result = self.run_job("--hosts", 2, "-n", 2, "--network", "ofi", "--network-provider", provider, DIRECT, 5)
        self.assertEqual((result.status, result.out), (0, "begun\n"), result)

    def test_none_in_a_job_that_ends_soon(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stats.json")
            result = self.run_job("--hosts", 2, "-n", 2, *NETWORK, "--network-provider", "tcp;ofi_rxm" if "ofi" in usable_drivers() else "tcp",
                                  "--stats-json", path, DIRECT, 20)
            self.assertEqual(result.status, 0, result)
            with open(path) as file:
                self.assertEqual([row["by_pes"] for row in json.load(file)["network"]], [0, 0])

    def test_a_wrong_word(self):
        result = self.run_job("--hosts", 2, "--network-direct", "perhaps", GREET)
        self.assertEqual(result.status, 2, result)
        self.assertIn("auto, yes or no", result.err)


class Ending(WithNetwork):
    def busy(self, driver, *options, program=BUSY):
        job = self.start("--hosts", 3, "--network", driver, *options, "-n", 6, program)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        return job

    def proxies(self):
        return self.pids_of("quoit-proxy")

    def end_of(self, job, limit_s, how="has died of SIGKILL"):
        begin = time.monotonic()
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertLess(time.monotonic() - begin, limit_s + scenario.LATE_S)
        self.assertEqual(job.returncode, 1, err)
        self.assertRegex(err.decode(), r"the proxy of host\d " + how)
        self.assert_nothing_left()

    def test_a_killed_proxy(self):
        for driver in usable_drivers():
            with self.subTest(driver=driver):
                job = self.busy(driver)
                os.kill(self.proxies()[1], signal.SIGKILL)
                self.end_of(job, 0)

    def test_a_killed_proxy_under_direct_puts(self):
        for driver in usable_drivers():
            with self.subTest(driver=driver):
                job = self.busy(driver, "--network-direct", "yes", program=DIRECT)
                time.sleep(0.5)  # puts are under way
                os.kill(self.proxies()[1], signal.SIGKILL)
                self.end_of(job, 0)

    def test_a_killed_pe(self):
        job = self.busy("auto")
        victims = self.pids_of("scenario_busy")
        os.kill(victims[3], signal.SIGKILL)
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 137, err)
        self.assertRegex(err.decode(), r"PE \d+ on host\d was killed by SIGKILL")


if __name__ == "__main__":
    scenario.main()
