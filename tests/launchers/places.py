# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit info networks --host shows which hosts reach which, and where, before a job has to find out. Method: machines of
network namespaces, with cards and losses of their own."""
import json
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
import scenario
from namespaces import Namespaces

QUOIT = os.path.join(scenario.BIN, "quoit")


class Hosts(Namespaces, scenario.Case):
    def networks(self, *options):
        return subprocess.run([QUOIT, "info", "networks", "--host", ",".join(self.addresses[:3]), "--rsh", self.entering(), *options],
                              capture_output=True, text=True, timeout=scenario.LIMIT_S, check=False, env=scenario.environment(self.mark))

    def test_networks(self):
        """Which hosts reach which, where a card has one address on two of them; then what one sends to another is lost."""
        self.add_cards(["192.168.1.1/24"] * 2)
        result = self.networks("--json", "--network-ports", str(random.randint(20000, 29000)))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        found_all = json.loads(result.stdout)
        taken = [place for place in found_all["places"] if place["taken"]]
        self.assertEqual((found_all["joined"], [(place["host"], place["device"], place["address"]) for place in taken]),
                         (True, [(address, "eth0", address) for address in self.addresses[:3]]))
        self.assertEqual({one["result"] for place in taken for one in place["reached from"]}, {"ok"})
        cards = {place["host"]: [(one["host"], one["result"]) for one in place["reached from"]]
                 for place in found_all["places"] if place["device"] == "ens1" and place["address"] == "192.168.1.1"}
        self.assertEqual(cards, {self.addresses[0]: [(self.addresses[1], "another host"), (self.addresses[2], "error")],
                                 self.addresses[1]: [(self.addresses[0], "another host"), (self.addresses[2], "error")]})
        end_loss = self.lose_packets(0, 2)
        result = self.networks("--network-device", "10.99.0.0/16", "--network-ports", "20000-20100")
        self.assertEqual((result.returncode, result.stderr), (1, ""), result)
        found = re.findall(r"(?m)^  (\S+) to (\S+), eth0 \S+ port (\d+): timed out: a firewall\?$", result.stdout)
        self.assertEqual([pair[:2] for pair in found], [(self.addresses[0], self.addresses[2]), (self.addresses[2], self.addresses[0])], result)
        self.assertTrue(all(20000 <= int(pair[2]) <= 20100 for pair in found), result)
        self.assertRegex(result.stdout, r"(?m)^  10\.99\.0\.10 +\. +\d+\.\d\d ms +no$")
        end_loss()
        if self.lose_large_packets(0, 1):
            result = self.networks("--network-device", "eth0")
            self.assertEqual(re.findall(r"(?m)^  (\S+) to (\S+), .*: connected, 64 KiB stall: an MTU\?$", result.stdout),
                             [(self.addresses[0], self.addresses[1]), (self.addresses[1], self.addresses[0])], result)
        self.assert_nothing_left()


if __name__ == "__main__":
    scenario.main()
