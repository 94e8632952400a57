# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for tests, as root: network namespaces, each with its address 10.99.0.1i, joined by a bridge in a namespace of its own,
with a remote shell of our own in each (rsh.py)."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

RSH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rsh.py")


def namespaces_problem():
    """Why there can be none; None: there can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if not shutil.which("ip"):
        return "no ip (iproute2)"
    made = subprocess.run(["ip", "netns", "add", f"quoit{os.getpid()}"], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", f"quoit{os.getpid()}"], capture_output=True, check=False)
    return None if made.returncode == 0 else "the kernel makes no network namespaces: " + made.stderr


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


class Namespaces:
    """Mixed into a TestCase."""

    COUNT = 4

    @classmethod
    def setUpClass(cls):
        problem = namespaces_problem()
        if problem:
            raise unittest.SkipTest(problem)
        cls.mark_of_hosts = f"quoit{os.getpid()}-{os.urandom(3).hex()}"
        cls.switch = cls.mark_of_hosts + "s"
        cls.names = [f"{cls.mark_of_hosts}n{i}" for i in range(cls.COUNT)]
        cls.addresses = [f"10.99.0.{10 + i}" for i in range(cls.COUNT)]
        for name in (cls.switch, *cls.names):
            ip("netns", "add", name)
            cls.addClassCleanup(subprocess.run, ["ip", "netns", "delete", name], check=False)
        ip("-n", cls.switch, "link", "add", "br0", "type", "bridge")
        ip("-n", cls.switch, "link", "set", "br0", "up")
        for i, name in enumerate(cls.names):
            ip("-n", cls.switch, "link", "add", f"port{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", cls.switch, "link", "set", f"port{i}", "master", "br0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "address", "add", cls.addresses[i] + "/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            server = subprocess.Popen(["ip", "netns", "exec", name, sys.executable, "-B", RSH, "serve", cls.addresses[i]],
                                      stdout=subprocess.PIPE, text=True)
            cls.addClassCleanup(cls.end, server)
            server.stdout.readline()

    @classmethod
    def entering(cls):
        """A remote shell that enters the namespace of an address by itself."""
        file = tempfile.NamedTemporaryFile("w", delete=False)
        cls.addClassCleanup(os.unlink, file.name)
        cases = "".join(f"{address}) name={name};; " for address, name in zip(cls.addresses, cls.names))
        with file:
            file.write(f'#!/bin/sh\ncase $1 in {cases}esac\nshift\nexec ip netns exec $name sh -c "$*"\n')
        os.chmod(file.name, 0o755)
        return file.name

    @staticmethod
    def end(server):
        server.kill()
        server.wait()
        server.stdout.close()

    def plug(self, host, state):
        ip("-n", self.switch, "link", "set", f"port{host}", state)

    def add_cards(self, addresses):
        """A second network, whose device ens1 has these addresses in the first namespaces, and none that is link-local: the kernel
        gives those a second or two after the start, and they join hosts that have nothing else."""
        ip("-n", self.switch, "link", "add", "br1", "type", "bridge")
        self.addCleanup(ip, "-n", self.switch, "link", "delete", "br1")
        ip("-n", self.switch, "link", "set", "br1", "up")
        for host, address in enumerate(addresses):
            ip("-n", self.switch, "link", "add", f"card{host}", "type", "veth", "peer", "name", "ens1", "netns", self.names[host])
            self.addCleanup(ip, "-n", self.switch, "link", "delete", f"card{host}")
            ip("-n", self.switch, "link", "set", f"card{host}", "master", "br1", "up")
            ip("-n", self.names[host], "address", "add", address, "dev", "ens1")
            ip("-n", self.names[host], "link", "set", "ens1", "addrgenmode", "none", "up")

    def lose_packets(self, host, other):
        """What the host sends to the other one goes to an address of Ethernet that nobody has. Returns what ends that."""
        words = ("-n", self.names[host], "neigh"), (self.addresses[other], "dev", "eth0")
        ip(*words[0], "replace", *words[1], "lladdr", "02:00:00:00:00:99", "nud", "permanent")
        return self.undo(*words[0], "delete", *words[1])

    def cut_route(self, host, other):
        words = ("-n", self.names[host], "route"), ("unreachable", self.addresses[other] + "/32")
        ip(*words[0], "add", *words[1])
        return self.undo(*words[0], "delete", *words[1])

    def lose_large_packets(self, *hosts):
        """The hosts' devices send packets of 9,000 bytes, which the ports of the bridge drop, and report to nobody. False: ip
        cannot do that."""
        for host in hosts:
            words = ("-n", self.names[host], "link", "set", "eth0")
            self.addCleanup(subprocess.run, ["ip", *words, "mtu", "1500", "gso_max_segs", "65535"], check=False)
            if subprocess.run(["ip", *words, "mtu", "9000", "gso_max_segs", "1"], capture_output=True, check=False).returncode != 0:
                return False
        return True

    def undo(self, *words):
        """Once, and at the end of the test at the latest."""
        left = [words]
        def act():
            while left:
                ip(*left.pop())
        self.addCleanup(act)
        return act

    def slow_down(self, host, rate):
        if not shutil.which("tc"):
            return False
        return subprocess.run(["ip", "netns", "exec", self.switch, "tc", "qdisc", "add", "dev", f"port{host}", "root", "tbf",
                               "rate", rate, "burst", "64kb", "latency", "50ms"], capture_output=True, check=False).returncode == 0
