# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the device quoit0 is an Ethernet card to programs that know nothing of Quoit: ping, iperf3, HTTP, ssh, MPI over sockets,
tcpdump, DHCP, NetPIPE, qperf, routing, path MTU, IPv6; and idle rings need no processor. Method: the programs themselves on the hosts of a ring, each test skipped
where its program is absent; raw frames of all sizes and kinds by packet sockets, every byte checked; files by their digest."""
import hashlib
import json
import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import frames
import scenario
from frames import PACKET_OUTGOING, PORT, RAW_KIND, packets
from net import QUOIT, Ring

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 120
LAST_S = 20            # without a frame: nothing comes any more
GROUP = "239.7.7.7"
TAG_KIND = 0x8100
VLAN = 0x2007          # priority 1, number 7
VLAN_VALID = 0x10
IDLE_SHARE = 0.005     # of one processor, a host
IDLE_S = 2.5
# MPICH over UCX or libfabric would find out that the hosts are one machine.
SOCKETS = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "quoit0", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "quoit0"}


# What runs on the hosts

def body_of(number, size):
    return struct.pack("II", number, size) + random.Random(number).randbytes(size)


def size_of(number, largest):
    """Of the random bytes of a frame: all magnitudes are as likely."""
    chance = random.Random(f"size {number}")
    return min(largest, chance.randrange(1 << chance.randrange(1, 17)))


def send_frames(dest, count, largest, tag):
    """Frames of random sizes to a MAC address; tag 1: in a VLAN."""
    source = packets()
    own = source.getsockname()[4]
    head = bytes.fromhex(dest.replace(":", "")) + own
    if int(tag):
        head += struct.pack("!HH", TAG_KIND, VLAN)
    head += struct.pack("!H", RAW_KIND)
    for number in range(int(count)):
        source.send(head + body_of(number, size_of(number, int(largest))))
        time.sleep(0.0002)
    print("sent")


def take_frames(count, largest, tag):
    """Takes them in order; prints how many came whole, and how often one was not what was sent."""
    dest, came, wrong, last = packets(), 0, 0, -1
    print("ready", flush=True)
    dest.settimeout(LAST_S)
    while last < int(count) - 1:
        try:
            frame, notes, _, where = dest.recvmsg(70000, 100)
        except TimeoutError:
            break
        if where[2] == PACKET_OUTGOING or struct.unpack_from("!H", frame, 12)[0] != RAW_KIND:
            continue
        number, size = struct.unpack_from("II", frame, 14)
        status, vlan = struct.unpack_from("I", notes[0][2])[0], struct.unpack_from("H", notes[0][2], 16)[0]
        is_tagged = bool(status & VLAN_VALID) and vlan == VLAN
        whole = body_of(number, size_of(number, int(largest)))
        # short ones are padded to the least size of a frame
        wrong += number <= last or frame[14:14 + len(whole)] != whole or is_tagged != bool(int(tag))
        last = number
        came += 1
    print(came, wrong)


def hear(kind, count, limit=LAST_S):
    """Prints the numbers of the datagrams to a group or to everybody, as they come, until the last is here or none came for
    `limit` seconds."""
    ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ear.bind(("", PORT))
    if kind == "group":
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                       struct.pack("4sii", socket.inet_aton(GROUP), 0, socket.if_nametoindex("quoit0")))
    print("ready", flush=True)
    ear.settimeout(float(limit))
    heard = []
    try:
        while not heard or heard[-1] != int(count) - 1:
            heard.append(int(ear.recv(100)))
        ear.settimeout(0.2)
        while True:
            heard.append(int(ear.recv(100)))
    except TimeoutError:
        print(json.dumps(heard))


def say(kind, count):
    mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mouth.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                     struct.pack("4s4si", bytes(4), bytes(4), socket.if_nametoindex("quoit0")))
    for number in range(int(count)):
        mouth.sendto(str(number).encode(), (GROUP if kind == "group" else "10.77.0.255", PORT))
        time.sleep(0.005)


# The tests

def needs(*programs):
    missing = [one for one in programs if not shutil.which(one)]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


needs_root = unittest.skipUnless(os.geteuid() == 0, "needs root")


class Programs(Ring):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="quoit-ethernet-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, host, words):
        return [QUOIT, "ring", "exec", "--ring", self.name, str(host), "--", *map(str, words)]

    def run_on(self, host, *words, status=0, **how):
        how.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run(self.words(host, words), capture_output=True, text=True, timeout=LIMIT_S, **how)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout if status == 0 else result.stdout + result.stderr

    def begin_on(self, host, *words, ready="", **how):
        """In the background, until it prints a line with `ready`."""
        how.setdefault("stdout", subprocess.PIPE)
        child = subprocess.Popen(self.words(host, words), stderr=subprocess.STDOUT, text=True, **how)
        self.children.append(child)
        said = ""
        while ready and ready not in said:
            line = child.stdout.readline()
            self.assertTrue(line, f"{words} ended: {said}")
            said += line
        return child

    def begin_here(self, host, *words, ready="", **how):
        """A function of this file."""
        return self.begin_on(host, sys.executable, os.path.join(HERE, "ethernet.py"), *words, ready=ready, **how)

    def begin_frames(self, host, *words, ready="", **how):
        """One of frames.py."""
        return self.begin_on(host, sys.executable, frames.__file__, *words, ready=ready, **how)

    def ping(self, expected, host, *words):
        """ping waits a second for the last answer, and a host may be held up for longer: up to three runs."""
        self.assertIn(expected, scenario.until_good(lambda: self.run_on(host, "ping", *words, status=None),
                                                    lambda said: expected in said))

    def mac(self, host):
        return json.loads(self.run_on(host, "ip", "-j", "link", "show", "quoit0"))[0]["address"]

    def assert_good(self, *hosts):
        for host in self.status():
            self.assertEqual((host["malformed_frames"], host["starts"]), (0, 1))

    def write_file(self, mb):
        """A file of random bytes, and its digest."""
        digest, block = hashlib.sha256(), os.urandom(1 << 20)
        with open(self.path("file"), "wb") as file:
            for number in range(mb):
                piece = number.to_bytes(8, "little") + block
                file.write(piece)
                digest.update(piece)
        return digest.hexdigest()


class Basics(Programs):
    @needs("ping")
    def test_ping(self):
        self.ring("up", "--hosts", 5)
        for host, options, expected in ((1, "-c 3 -i 0.01", "3 received"), (2, "-c 3 -i 0.01 -s 65000", "3 received"),
                                        (3, "-c 200 -i 0.002", "200 received"), (4, "-c 2 -i 0.01 -M do -s 1472", "2 received")):
            self.ping(expected, 0, *options.split(), self.address(host))
        self.assertIn("message too long", self.run_on(0, "ping", "-c1", "-M", "do", "-s", 1473, self.address(1), status=1))
        self.assertIn("0 received", self.run_on(0, "ping", "-c1", "-W1", "10.77.0.77", status=1))
        self.assert_good()

    @needs("ping", "ip")
    def test_ipv6(self):
        """Addresses of their own, neighbours found by multicast, large packets in fragments."""
        self.ring("up", "--hosts", 4)
        for host in range(4):
            self.run_on(host, "ip", "-6", "addr", "add", f"fd77::{host + 1}/64", "dev", "quoit0", "nodad")
        for host in (1, 2, 3):
            self.ping("2 received", 0, "-6", "-c2", "-i0.01", "-s", 30000, f"fd77::{host + 1}")
            found = json.loads(self.run_on(0, "ip", "-6", "-j", "neigh", "show", "to", f"fd77::{host + 1}"))
            self.assertEqual(found[0]["lladdr"], self.mac(host))

        def has_all(): # ping ends with the first answer to its last packet, while other hosts are about to answer
            said = self.run_on(0, "ping", "-6", "-c2", "-i0.2", "-I", "fd77::1", "ff02::1%quoit0", status=None)
            return {int(number) for number in re.findall(r"from \S*?fd77::(\d)", said)} - {1} == {2, 3, 4}
        self.wait_for_ring("all answer", has_all)

    def iperf3(self, dest, options):
        server = self.begin_on(dest, "iperf3", "-s", "-1", "--forceflush", ready="listening")
        end = json.loads(self.run_on(0, "iperf3", "-J", "-c", self.address(dest), *options.split()))["end"]
        self.finish(server)
        return end

    @needs("iperf3")
    def test_iperf3(self):
        """TCP one way, back, several streams, both ways at once; UDP small and large, in order."""
        self.ring("up", "--hosts", 4)
        held = 0  # iperf3 ends when all is sent, and does not count what the sockets still hold as received
        for end_of in ("rmem", "wmem"):
            with open(f"/proc/sys/net/ipv4/tcp_{end_of}", encoding="ascii") as file:
                held += int(file.read().split()[2])
        for dest, options in ((1, "-n 100M"), (2, "-n 100M -R"), (1, "-n 25M -P 4"), (2, "-n 50M --bidir"), (3, "-n 20M -N -l 100"),
                              (1, "-u -b 50M -l 1400 -n 2M"), (2, "-u -b 20M -l 60000 -n 2M -R")): # a socket holds two or three
            # A receiver of UDP that is held up for a tenth of a second loses most of it.
            end = scenario.until_good(lambda: self.iperf3(dest, options),
                                      lambda end: "-u" not in options or end["sum"]["lost_percent"] < 50)
            with self.subTest(options=options):
                if "-u" in options:
                    self.assertLess(end["sum"]["lost_percent"], 50)
                    self.assertEqual(sum(stream["udp"]["out_of_order"] for stream in end["streams"]), 0)
                else:
                    asked = int(re.search(r"-n (\d+)M", options)[1]) << 20
                    ways = ("", "_bidir_reverse") if "bidir" in options else ("",)  # it ends when one way has sent all
                    sent, received = ([end[f"sum_{what}{way}"]["bytes"] for way in ways] for what in ("sent", "received"))
                    self.assertGreaterEqual(max(sent), asked)
                    self.assertGreater(max(received), max(0, asked - held))
                    self.assertGreater(min(received), 0)
        self.assert_good()

    @needs("ip")
    def test_frames(self):
        """Raw frames of 1 byte to 64 KB, with and without a tag: whole, in order, none lost while there is room."""
        self.ring("up", "--hosts", 3, "--mtu", 65000)
        for dest, tag in ((1, 0), (2, 0), (1, 1)):
            for _ in range(scenario.RUNS_MAX): # a frame that finds no room for a second is dropped: a host was held up
                taker = self.begin_here(dest, "take_frames", 400, 64900, tag, ready="ready")
                sender = self.begin_here(0, "send_frames", self.mac(dest), 400, 64900, tag)
                self.assertEqual(self.finish(sender), "sent\n")
                came, wrong = map(int, self.finish(taker).split())
                self.assertEqual(wrong, 0)
                if came == 400:
                    break
            self.assertEqual(came, 400)
        self.assert_good()

    @needs("iperf3")
    def test_queues_and_dma(self):
        """Several flows on several queues keep their order; large frames by DMA, small ones by copy."""
        self.ring("up", "--hosts", 3, "--queues", 2, "--dma-bytes", "8K")
        for dest, options in ((1, "-n 50M -P 4"), (2, "-u -b 20M -l 60000 -n 2M -P 4")):
            end = self.iperf3(dest, options)
            self.assertEqual(sum(stream["udp"]["out_of_order"] for stream in end["streams"] if "udp" in stream), 0)
        host = self.status()[0]
        self.assertGreater(host["dma_frames"], 100)
        self.assertLess(host["dma_frames"], host["sent_frames"])
        self.assert_good()
        refused = self.ring("up", "--queues", 3, "--dma-bytes", 0, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--dma-bytes allows 1 or 2 queues", refused.stderr)

    def test_everybody(self):
        """Broadcast and multicast reach each of the others once, also past a dead link."""
        self.ring("up", "--hosts", 5)
        for kind, link in (("all", None), ("group", None), ("all", 2), ("group", 2)):
            if link is not None:
                self.ring("cut", link)
                self.wait_for_ring("both ends see it", lambda: self.status()[link]["right"]["state"] != "up" and
                              self.status()[link + 1]["left"]["state"] != "up")
                self.wait_for_ring("host 0 knows it", lambda: self.heard(kind, 1, 5) == [[0]] * 4)
            self.assertEqual(self.heard(kind, 50), [list(range(50))] * 4)
            if link is not None:
                self.ring("mend", link)
                self.wait_for_ring("both ends have it back", lambda: self.status_of_links() == {"up"}) # the next turn cuts it again

    def heard(self, kind, count, *limit):
        """What hosts 1 to 4 hear of what host 0 says."""
        ears = [self.begin_here(host, "hear", kind, count, *limit, ready="ready") for host in (1, 2, 3, 4)]
        self.finish(self.begin_here(0, "say", kind, count))
        return [json.loads(self.finish(ear)) for ear in ears]

    def captured(self, is_over):
        """What the capture has by now, and the lengths of its segments."""
        said = subprocess.run(["tcpdump", "-nvv", "-r", self.path("pcap")], capture_output=True, text=True, check=is_over).stdout
        return said, [int(length) for length in re.findall(r"Flags .* length (\d+)", said)]

    @needs("tcpdump")
    def test_tcpdump(self):
        """What a capture shows: without offload every checksum; with it, segments of a length that fits them."""
        for offload in ("no", "yes"):
            self.ring("up", "--hosts", 2, "--offload", offload)
            capture = self.begin_on(1, "tcpdump", "-i", "quoit0", "-w", self.path("pcap"), "-U", "-B", 16384, "-Z", "root", ready="listening on")
            self.transfer(0, 1, 20)
            # Its bytes are more than those of the stream, and tcpdump takes no more packets when it is told to end.
            self.wait_for_ring("the capture is whole", lambda: sum(self.captured(False)[1]) >= 20 * 65536)
            capture.terminate()
            capture.communicate(timeout=LIMIT_S)
            self.children.remove(capture)
            said, lengths = self.captured(True)
            self.assertGreater(said.count("10.77.0.1."), 20)
            self.assertGreaterEqual(sum(lengths), 20 * 65536)
            self.assertNotRegex(said, r"\bbad\b|truncated|\[\|")
            if offload == "no":
                self.assertNotIn("incorrect", said)
                self.assertLessEqual(max(lengths), 1460)
            else:
                self.assertGreater(max(lengths), 10000)
            self.ring("down")

    @needs("ip")
    def test_statistics(self):
        """The kernel's counters are those of the ring, but for the headers of the segments that it counts one by one."""
        self.ring("up", "--hosts", 3)
        self.transfer(0, 1, 50)
        kernel = json.loads(self.run_on(1, "ip", "-s", "-j", "link", "show", "quoit0"))[0]["stats64"]
        ours = self.status()[1]
        self.assertGreaterEqual(kernel["rx"]["bytes"], 50 * 65536)
        self.assertAlmostEqual(kernel["rx"]["bytes"], ours["received_bytes"], delta=10000)
        self.assertAlmostEqual(kernel["rx"]["packets"], ours["received_frames"], delta=20)
        self.assertAlmostEqual(kernel["tx"]["packets"], ours["sent_frames"], delta=20)
        self.assertEqual(kernel["rx"]["errors"] + kernel["tx"]["errors"], 0)

    def test_idle(self):
        """A ring without traffic leaves the processor alone, also after there was some."""
        self.ring("up", "--hosts", 5)
        self.transfer(0, 2, 20)
        time.sleep(0.5)
        self.assert_idle([host["pid"] for host in self.status()], IDLE_SHARE, IDLE_S)

    @needs_root
    @needs("ip", "ping")
    def test_route(self):
        """Host 1 routes into a network with a smaller MTU: large packets are refused with the MTU, and TCP learns it; segments
        that leave the ring are cut and get checksums."""
        self.ring("up", "--hosts", 3)
        pid = self.status()[2]["pid"]
        for host, words in ((1, f"ip link add out mtu 1400 type veth peer name in netns {pid}"), (1, "ip addr add 10.99.0.1/24 dev out"),
                            (1, "ip link set out up"), (2, "ip addr add 10.99.0.2/24 dev in"), (2, "ip link set in mtu 1400 up"),
                            (1, "sysctl -qw net.ipv4.ip_forward=1"), (0, "ip route add 10.99.0.0/24 via 10.77.0.2"),
                            (2, "ip route add 10.77.0.1/32 via 10.99.0.1")):
            self.run_on(host, *words.split())
        # Without offload between these two, so that it is the host that must cut and sum.
        said = self.run_on(0, "ping", "-c2", "-i0.05", "-W3", "-M", "do", "-s", 1450, "10.99.0.2", status=1)
        self.assertIn("mtu", said.lower().replace("= ", "="))
        self.assertIn("1400", said)
        self.assertIn("1 received", self.run_on(0, "ping", "-c1", "-M", "do", "-s", 1372, "10.99.0.2"))
        if shutil.which("tracepath"):
            self.assertIn("pmtu 1400", self.run_on(0, "tracepath", "-n", "10.99.0.2"))
        self.address = lambda host: "10.99.0.2"
        self.transfer(0, 2, 100)


class Services(Programs):
    @needs_root
    @needs("busybox", "ip", "ping")
    def test_dhcp(self):
        """A host without an address gets one from a server two hops away, by broadcast, and can be reached by it."""
        self.ring("up", "--hosts", 4)
        with open(self.path("server"), "w", encoding="ascii") as file:
            file.write("start 10.77.0.100\nend 10.77.0.100\ninterface quoit0\noption subnet 255.255.255.0\noption lease 600\n"
                       f"lease_file {self.path('leases')}\npidfile {self.path('pid')}\nauto_time 0\n")
        with open(self.path("leases"), "w", encoding="ascii"), open(self.path("take"), "w", encoding="ascii") as file:
            file.write('#!/bin/sh\n[ "$1" = bound ] && ip addr add $ip/$mask dev $interface\nexit 0\n')
        os.chmod(self.path("take"), 0o700)
        os.chmod(self.folder, 0o700)
        self.run_on(2, "ip", "-4", "addr", "flush", "dev", "quoit0")
        self.begin_on(0, "busybox", "udhcpd", "-f", self.path("server"), ready="started")
        said = self.run_on(2, "busybox", "udhcpc", "-f", "-q", "-n", "-t", 10, "-i", "quoit0", "-s", self.path("take"), status=None)
        self.assertIn("10.77.0.100", said)
        self.assertIn("10.77.0.100/24", self.run_on(2, "ip", "-4", "addr", "show", "dev", "quoit0"))
        self.ping("2 received", 1, "-c2", "-i0.01", "10.77.0.100")
        self.assert_good()

    @needs("NPtcp")
    def test_netpipe(self):
        """Its test of integrity: messages of 1 byte to 64 KB there and back."""
        self.ring("up", "--hosts", 3)
        words = ["NPtcp", "-i", "-u", 65536, "-o", self.path("np")]
        server = self.begin_on(2, *words)
        client = [*words, "-h", self.address(2)]
        end = time.monotonic() + LIMIT_S
        while "Cannot Connect" in (said := self.run_on(0, *client, status=None)) and time.monotonic() < end:
            time.sleep(0.1) # the server says nothing when it listens
        self.assertGreater(said.count("Integrity check passed"), 20, said)
        self.assertNotIn("fail", said.lower())
        self.finish(server)
        self.assert_good()

    @needs("qperf")
    def test_qperf(self):
        """Rate and latency of TCP and UDP are measured, and none is nothing."""
        self.ring("up", "--hosts", 3)
        self.begin_on(1, "qperf")
        said = self.run_on(0, "qperf", "-t", 1, "-ws", 30, "-u", self.address(1), "tcp_bw", "tcp_lat", "udp_lat")
        self.assertEqual(len(re.findall(r"(bw|latency) += +[\d,.]*[1-9][\d,.]*", said)), 3, said)
        self.assert_good()

    @needs_root
    @needs("ip", "ping")
    def test_smaller_mtu(self):
        """Host 1 has a smaller MTU: what it passes on is refused with that MTU, the source learns it, and TCP keeps to it."""
        self.ring("up", "--hosts", 3)
        for host, words in ((1, "ip link set quoit0 mtu 1300"), (1, "sysctl -qw net.ipv4.ip_forward=1"),
                            (1, "sysctl -qw net.ipv4.conf.all.send_redirects=0"), (1, "sysctl -qw net.ipv4.conf.quoit0.send_redirects=0"),
                            (0, "ip route add 10.77.0.3/32 via 10.77.0.2"), (2, "ip route add 10.77.0.1/32 via 10.77.0.2")):
            self.run_on(host, *words.split())
        self.ping("1 received", 0, "-c1", "-M", "do", "-s", 1272, self.address(1))
        self.assertIn("message too long", self.run_on(1, "ping", "-c1", "-M", "do", "-s", 1273, self.address(0), status=1))
        said = self.run_on(0, "ping", "-c2", "-i0.05", "-W3", "-M", "do", "-s", 1400, self.address(2), status=1)
        self.assertRegex(said, r"mtu ?= ?1300")
        self.assertIn("mtu 1300", self.run_on(0, "ip", "route", "get", self.address(2)))
        self.ping("1 received", 0, "-c1", "-M", "do", "-s", 1272, self.address(2))
        self.transfer(0, 2, 50)
        self.transfer(0, 1, 20)


class Shed(Programs):
    """Traffic that may be lost, and nothing of it without being counted."""
    SECONDS_OF_QUIET = 0.5

    def tune(self, host, hosts):
        """No frames but those of the test: no IPv6, and neighbours that need not be asked."""
        self.run_on(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        for other in range(hosts):
            if other != host:
                self.run_on(host, "ip", "neigh", "replace", self.address(other), "lladdr", self.macs[other], "dev", "quoit0", "nud",
                            "permanent")

    def taken(self, hosts):
        """Frames that the kernels gave to their devices, and those that the kernels dropped before or behind them."""
        links = [json.loads(self.run_on(host, "ip", "-s", "-j", "link", "show", "quoit0"))[0]["stats64"] for host in range(hosts)]
        return sum(link["tx"]["packets"] for link in links), sum(link["tx"]["dropped"] + link["rx"]["dropped"] for link in links)

    def rest(self, hosts):
        """Until links are up and the counters stand still: what is to come has come."""
        looks = [None]

        def is_still():
            looks.append((self.sums(), self.taken(hosts)))
            time.sleep(self.SECONDS_OF_QUIET)
            return looks[-1] == looks[-2] and self.status_of_links() == {"up"}
        self.wait_for_ring("the counters stand still", is_still)

    def sums(self):
        hosts = self.status()
        return {name: sum(host[name] for host in hosts) for name in hosts[0] if name.endswith("_frames")}

    @needs_root
    @needs("ip")
    def test_every_frame_is_accounted_for(self):
        self.shed(hosts=3, count=400)

    def shed(self, hosts, count):
        seed = int(os.environ.get("QUOIT_SEED", time.time_ns() % 10**9))
        print(f"replay with QUOIT_SEED={seed}")
        chance = random.Random(seed)
        self.ring("up", "--hosts", hosts, "--mtu", 65000)
        self.macs = [self.mac(host) for host in range(hosts)]
        for host in range(hosts):
            self.tune(host, hosts)
        self.rest(hosts)
        first, (first_taken, first_dropped) = self.sums(), self.taken(hosts)
        ears = {(kind, host): self.begin_frames(host, "gather", kind, 64900, self.SECONDS_OF_QUIET, ready="ready", stdin=subprocess.PIPE)
                for kind in ("raw", "udp") for host in range(hosts)}
        mouths = [(kind, self.begin_frames(host, "shed", kind, (self.macs if kind == "raw" else [self.address(h) for h in range(hosts)])
                                         [(host + 1 + chance.randrange(hosts - 1)) % hosts], count, 64900, seed + host))
                  for kind in ("raw", "udp") for host in range(hosts)]
        cuts = 0
        while cuts < 2 or any(mouth.poll() is None for _, mouth in mouths):
            link = chance.randrange(hosts)
            self.ring("cut", link)
            time.sleep(0.02 + 0.1 * chance.random())
            self.ring("mend", link)
            time.sleep(0.05 + 0.2 * chance.random())
            cuts += 1
        sent = {"raw": 0, "udp": 0}
        for kind, mouth in mouths:
            sent[kind] += int(self.finish(mouth))
        self.rest(hosts)
        came, wrong, dropped = {"raw": 0, "udp": 0}, 0, 0
        for (kind, _), ear in ears.items():
            ear.stdin.write("over\n")
            ear.stdin.flush()
        for (kind, _), ear in ears.items():
            counts = [int(word) for word in self.finish(ear).split()]
            came[kind] += counts[0]
            wrong += counts[1]
            dropped += counts[2]
        sums, (taken, kernel_dropped) = self.sums(), self.taken(hosts)
        now = {name: sums[name] - first[name] for name in sums}
        taken -= first_taken
        kernel_dropped -= first_dropped
        vanished = now["link_out_frames"] - now["link_in_frames"]
        told = now["lost_frames"] + now["refused_frames"] + vanished
        report = (sent, came, wrong, dropped, taken, kernel_dropped, now, seed)
        self.assertEqual(wrong, 0, report)
        self.assertGreaterEqual(vanished, 0, report)
        self.assertEqual(now["malformed_frames"], 0, report)
        self.assertEqual(taken, now["received_frames"] + told, report) # of the devices
        self.assertEqual(sum(sent.values()), sum(came.values()) + dropped + told + kernel_dropped, report) # of programs
        self.assertGreater(came["raw"] + came["udp"], 0.8 * (sent["raw"] + sent["udp"] - kernel_dropped), report)


class ShedLong(Shed):
    def test_every_frame_is_accounted_for(self):
        self.shed(hosts=5, count=5000)


class Files(Programs):
    """Longer ones."""
    SIZE_MB = 1024

    def test_http(self):
        self.fetch(self.SIZE_MB)

    def fetch(self, size_mb):
        digest = self.write_file(size_mb)
        self.ring("up", "--hosts", 4)
        self.begin_on(2, sys.executable, "-u", "-m", "http.server", "--bind", self.address(2), PORT, cwd=self.folder, ready="Serving")
        url = f"http://{self.address(2)}:{PORT}/file"
        getters = (("curl", "curl -sf"), ("wget", "wget -qO-"),
                   (sys.executable, f"{sys.executable} -c 'import sys,urllib.request as u,shutil as s;s.copyfileobj("
                                    "u.urlopen(sys.argv[1]),sys.stdout.buffer)'"))
        getter = next(line for name, line in getters if shutil.which(name))
        self.assertEqual(self.run_on(0, "sh", "-c", f"{getter} {url} | sha256sum").split()[0], digest)

    @needs_root
    @needs("ssh", "ssh-keygen")
    def test_ssh(self):
        """A login by key, its output and status, and a file through it by its digest."""
        server = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if not server:
            self.skipTest("not installed: sshd")
        os.makedirs("/run/sshd", exist_ok=True)
        os.chmod(self.folder, 0o700)
        for name in ("host", "own"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        shutil.copy(self.path("own.pub"), self.path("allowed"))
        self.ring("up", "--hosts", 3)
        self.begin_on(1, server, "-D", "-e", "-f", "/dev/null", "-p", PORT, "-h", self.path("host"), "-o", "StrictModes no", "-o",
                      f"AuthorizedKeysFile {self.path('allowed')}", "-o", "UsePAM no", "-o", "PidFile none", "-o",
                      "PermitRootLogin yes", ready="listening on")
        ssh = ["ssh", "-q", "-F", "/dev/null", "-p", PORT, "-i", self.path("own"), "-o", "StrictHostKeyChecking no", "-o",
               "UserKnownHostsFile /dev/null", "-o", "BatchMode yes", f"root@{self.address(1)}"]
        said = self.run_on(0, *ssh, "ip -4 -o addr show quoit0; exit 7", status=7)
        self.assertIn(self.address(1), said)
        digest = self.write_file(200)
        with open(self.path("file"), "rb") as file:
            self.assertEqual(self.run_on(0, *ssh, "sha256sum", stdin=file).split()[0], digest)

    @needs_root
    @needs("mpiexec.mpich", "nsenter")
    @unittest.skipUnless(scenario.has_mpi("mpicc.mpich"), "no mpicc.mpich, or no header of its MPI")
    def test_mpich(self):
        """A job of MPICH over sockets on all hosts, each process a host of its own to it."""
        program, launcher = self.path("exchange"), self.path("launcher")
        subprocess.run(["mpicc.mpich", "-O1", "-o", program, os.path.join(HERE, "exchange_mpi.c")], check=True)
        self.ring("up", "--hosts", 5)
        pids = {self.address(host["host"]): host["pid"] for host in self.status()}
        with open(launcher, "w", encoding="ascii") as file: # as ssh: options, the host, the command in several words. UCX reads /sys, which
            # is that of host 0, where all this starts
            file.write("#!/bin/sh\nwhile :; do case $1 in -*) shift;; *) break;; esac; done\ncase $1 in\n")
            file.writelines(f"{address}) pid={pid};;\n" for address, pid in pids.items())
            file.write("esac\nshift\nexec nsenter --net=/proc/$pid/ns/net unshare -m sh -c \"mount -t sysfs sysfs /sys 2>/dev/null; $*\"\n")
        os.chmod(launcher, 0o700)
        before = self.status()
        said = self.run_on(0, "mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", launcher, "-iface", "quoit0", "-hosts",
                           ",".join(pids), "-ppn", 1, "-n", 5, program, env=os.environ | SOCKETS)
        self.assertEqual(said, "5 processes, nothing wrong\n")
        for host, was in zip(self.status(), before):
            self.assertGreater(host["sent_bytes"] - was["sent_bytes"], 8 << 20)


class Short(Files):
    """The same with a smaller file."""
    SIZE_MB = 256
    test_ssh = test_mpich = None


if __name__ == "__main__":
    here = {one.__name__: one for one in (send_frames, take_frames, hear, say)}
    if len(sys.argv) > 1 and sys.argv[1] in here:
        here[sys.argv[1]](*sys.argv[2:])
    else:
        unittest.main()
