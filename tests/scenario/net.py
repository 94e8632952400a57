# SPDX-License-Identifier: BSD-3-Clause
"""Aim: `quoit ring` makes hosts that stay, on which any network program works; links may be cut, hosts killed, and nothing is
left behind; jobs have shares of the same links. Method: rings of this user, with programs of this file as clients and servers
on the hosts: TCP and UDP of random bytes, every one checked; jobs of the stress program; processes killed by number, and the machine
looked at afterwards."""
import fcntl
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import scenario
from frames import chunk

QUOIT = os.path.join(scenario.BIN, "quoit")
GARBAGE = scenario.program("scenario_garbage")
BUSY = scenario.program("scenario_busy")
LIMIT_S = scenario.LIMIT_S
# A sanitizer wants to be loaded before anything else.
forked_only = unittest.skipIf(scenario.SANITIZE, "the calls of the keeper cannot be replaced")
IDLE_LOOKS = 3             # a thread that does not sleep is seen in each; other work of the machine seldom
PORT = 7000
OTHER_UID = 65534
HEAD = "=5I20s"            # of each message: src/share/head.h
RING_MAGIC, SHARE_MAGIC = 0x51520001, 0x51530002
RING_STATUS, RING_DOWN = 1, 2
REQUEST_S = 2.1            # that a keeper waits for a request, and more
SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFHWADDR, IFF_RUNNING = 0x8913, 0x8915, 0x8927, 0x40


def serve_tcp(address):
    """Prints the digest of what comes over one connection."""
    server = socket.create_server((address, PORT))
    print("ready", flush=True)
    connection, _ = server.accept()
    digest = hashlib.sha256()
    while data := connection.recv(1 << 20):
        digest.update(data)
    print(digest.hexdigest())


def send_tcp(address, seed, least):
    """So many chunks at least, and until the input ends; prints how many."""
    connection = socket.create_connection((address, PORT), timeout=LIMIT_S)
    at = 0
    while at < int(least) or not select.select([sys.stdin], [], [], 0)[0]:
        connection.sendall(chunk(seed, at))
        at += 1
        time.sleep(0.002 if at < int(least) else 0.02)
    print(at)


def serve_udp(address):
    """Sends each datagram back."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, PORT))
    print("ready", flush=True)
    while True:
        data, peer = server.recvfrom(65535)
        server.sendto(data, peer)


def ask_udp(address, seed):
    """Datagrams of all kinds of sizes, each sent until it comes back whole."""
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.settimeout(0.2)
    for at, size in enumerate((0, 1, 17, 1471, 1472, 1473, 9000, 40000, 65000)):
        data = (chunk(seed, at) * 2)[:size]
        for _ in range(50):
            client.sendto(data, (address, PORT))
            try:
                if client.recv(65535) == data:
                    break
            except TimeoutError:
                pass
        else:
            sys.exit(f"a datagram of {size} bytes never came back")


def keep_other(name, kind):
    """A keeper of another build: `newer` says a head, `older` an answer without one, `oldest` nothing. `strict` is a newer one
    that has not waited for the request of the first that calls."""
    ears = []
    for what in ("quoit-ring", "quoit-share"):
        ear = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ear.bind(f"\0{what}-{os.geteuid()}-{name}")
        ear.listen(8)
        ears.append(ear)
    print("ready", flush=True)
    while True:
        ear = ears[0] if ears[0] in (ready := select.select(ears, [], [])[0]) else ready[0]
        peer, _ = ear.accept()
        if kind == "strict":
            time.sleep(REQUEST_S)
            peer.close()
            kind = "newer"
            continue
        request = peer.recv(100000)
        if not request: # it looked whether anybody listens
            peer.close()
            continue
        magic, _, _, asked, _, _ = struct.unpack_from(HEAD, request)
        if kind == "newer":
            peer.send(struct.pack(HEAD, magic, 7, 4711, asked, 0, b"99.1\033") + bytes(100))
        elif kind == "older":
            peer.send(bytes(3000))
        peer.close()
        if kind == "newer" and magic == RING_MAGIC and asked == RING_DOWN:
            return


def look():
    """MAC address of the device, and 1 if it has a carrier."""
    anything = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = struct.pack("16s24x", b"quoit0")
    flags = struct.unpack_from("H", fcntl.ioctl(anything, SIOCGIFFLAGS, request), 16)[0]
    mac = fcntl.ioctl(anything, SIOCGIFHWADDR, request)[18:24]
    print(mac.hex(":"), int(flags & IFF_RUNNING != 0))


def where():
    """Name and address of the host that this runs on."""
    anything = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = fcntl.ioctl(anything, SIOCGIFADDR, struct.pack("16s24x", b"quoit0"))
    print(socket.gethostname(), socket.inet_ntoa(request[20:24]))


class Ring(scenario.Case):
    def setUp(self):
        super().setUp()
        self.name = f"test{os.getpid()}-{self._testMethodName[5:20]}"
        self.children = []

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.communicate()
        self.ring("down", check=False)
        super().tearDown()

    def ring(self, *words, check=True, env=None):
        result = subprocess.run([QUOIT, "ring", words[0], "--ring", self.name, *map(str, words[1:])],
                                capture_output=True, text=True, timeout=LIMIT_S, env=env)
        if words[0] == "up" and ("Q0601" in result.stderr or "Q0602" in result.stderr):
            self.skipTest(result.stderr.strip())
        if check:
            self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def forked(self, trouble):
        """An environment in which a keeper's fork() has this trouble (forked.c), and the file that says when."""
        scenario.need_steps()
        folder = tempfile.mkdtemp(prefix="quoit-net-")
        self.addCleanup(shutil.rmtree, folder)
        env = scenario.environment(self.mark, TEST_LD_PRELOAD=scenario.program("libscenario_forked.so"), SCENARIO_FORKED=folder)
        return env, pathlib.Path(folder, trouble)

    def status(self):
        return json.loads(self.ring("status", "--json").stdout)["hosts"]

    def keeper(self):
        """The process that owns the ring: the parent of its hosts."""
        with open(f"/proc/{self.status()[0]['pid']}/stat") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])

    def jobs_now(self):
        return json.loads(self.ring("status", "--json").stdout)["jobs"]

    def status_of_links(self):
        return {host[side]["state"] for host in self.status() for side in ("left", "right")}

    def on(self, host, *words, stdin=subprocess.DEVNULL):
        """This file's function on a host, as a process."""
        child = subprocess.Popen([QUOIT, "ring", "exec", "--ring", self.name, str(host), "--", sys.executable, __file__,
                                  *map(str, words)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.children.append(child)
        return child

    def serve(self, host, kind):
        child = self.on(host, kind, self.address(host))
        self.assertEqual(child.stdout.readline(), "ready\n", child)
        return child

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def finish(self, child):
        out, error = child.communicate(timeout=LIMIT_S)
        self.children.remove(child)
        self.assertEqual(child.returncode, 0, error)
        return out

    def wait_until(self, what, condition):
        end = time.monotonic() + scenario.LATE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def wait_for_ring(self, what, condition):
        end = time.monotonic() + scenario.LATE_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}: {self.status()}")
            time.sleep(0.02)

    def transfer(self, source, dest, least, meanwhile=None):
        """A stream over TCP, compared by its digest; it lasts as long as `meanwhile` does."""
        server = self.serve(dest, "serve_tcp")
        client = self.on(source, "send_tcp", self.address(dest), self.name, least,
                         stdin=subprocess.PIPE if meanwhile else subprocess.DEVNULL)
        if meanwhile:
            meanwhile()
            self.assertIsNone(client.poll())
        digest = hashlib.sha256()
        for at in range(int(self.finish(client))):
            digest.update(chunk(self.name, at))
        self.assertEqual(self.finish(server).strip(), digest.hexdigest())

    def assert_idle(self, pids, most, seconds):
        """None of the processes takes more than this part of a processor."""
        def used_ns(pid):
            total = 0
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                    total += int(file.read().split()[0])
            return total
        seen = []
        while len(seen) < IDLE_LOOKS and (not seen or seen[-1] >= most):
            before, begin = [used_ns(pid) for pid in pids], time.monotonic()
            time.sleep(seconds)
            passed_ns = 1e9 * (time.monotonic() - begin)
            seen.append(max((used_ns(pid) - first) / passed_ns for pid, first in zip(pids, before)))
        self.assertLess(seen[-1], most, seen)


class Net(Ring):
    def test_traffic(self):
        self.assertRegex(self.ring("doctor").stdout, r"^the ring .* does not exist: quoit ring up .*\nnothing on this machine "
                         r"keeps it from being started\n$")
        self.ring("up", "--hosts", 4)
        self.assertEqual(self.ring("doctor").stdout, "nothing is wrong\n")
        self.assertIn(self.name, self.ring("list").stdout.split())
        for host in range(1, 4):
            server = self.serve(host, "serve_udp")
            self.finish(self.on(0, "ask_udp", self.address(host), host))
            server.kill()
        self.transfer(3, 1, 100)
        hosts = self.status()
        self.assertGreater(hosts[0]["forwarded_frames"] + hosts[2]["forwarded_frames"], 100)
        self.assertEqual([host["malformed_frames"] + host["refused_frames"] for host in hosts], [0] * 4)
        self.assertRegex(self.finish(self.on(2, "look")), r"^02:(\w\w:){4}02 1\n$")

    def test_without_offload(self):
        self.ring("up", "--hosts", 2, "--mtu", 9000, "--offload", "no")
        self.transfer(0, 1, 50)

    def test_cut_links(self):
        self.ring("up", "--hosts", 5)

        def cut_them():
            for link in (0, 1, 2, 3, 4, 0, 1):
                self.ring("cut", link)
                time.sleep(0.05)
                self.ring("mend", link)
                time.sleep(0.1)
        self.transfer(0, 2, 600, cut_them)
        self.assertEqual(self.ring("doctor", check=False).stdout.count("went down"), 0)
        self.ring("cut", 4)
        self.ring("cut", 0)
        self.wait_for_ring("no carrier", lambda: self.finish(self.on(0, "look")).endswith(" 0\n"))
        self.ring("mend", 0)
        self.wait_for_ring("one link is dead", lambda: self.ring("doctor", check=False).stdout.count("if it was cut") == 1)
        self.assertIn(f"quoit ring mend --ring {self.name} 4", self.ring("doctor", check=False).stdout)
        self.wait_for_ring("carrier again", lambda: self.finish(self.on(0, "look")).endswith(" 1\n"))
        self.transfer(0, 3, 20)

    def test_keeper_of_another_build(self):
        """Each command says both builds, and `down` ends the ring."""
        version = re.escape(subprocess.run([QUOIT, "--version"], capture_output=True, text=True, check=True).stdout.split()[1])
        for kind, other in (("newer", r"99\.1\? \(messages 7\.4711\)"), ("older", "an older one"), ("oldest", "an older one")):
            with self.subTest(kind=kind):
                keeper = subprocess.Popen([sys.executable, __file__, "keep_other", self.name, kind], stdout=subprocess.PIPE, text=True)
                self.children.append(keeper)
                self.assertEqual(keeper.stdout.readline(), "ready\n")
                for words in (["status"], ["exec", 0, "--", "true"], ["shell", 0], ["cut", 0], ["doctor"]):
                    result = self.ring(*words, check=False)
                    self.assertEqual(result.returncode, 1, result)
                    self.assertRegex(result.stderr, rf"^quoit ring: the ring \"{self.name}\" is kept by another build of Quoit: {other}, "
                                     rf"and this is {version} \(messages \d+\.\d+\); .*quoit ring down --ring {self.name} \[Q0605\]\n$")
                job = self.run_job("--ring", self.name, BUSY, 1)
                self.assertEqual(job.status, 2, job)
                self.assertRegex(job.err, rf"of another build of Quoit: {other}, and this program is of {version} .*\[Q0605\]")
                result = self.ring("down")
                self.assertEqual("was told to end" in result.stderr, kind != "newer", result)
                self.assertEqual(keeper.wait(timeout=LIMIT_S), 0 if kind == "newer" else -signal.SIGTERM)
                self.assertIn("there is no ring", self.ring("status", check=False).stderr)

    def test_caller_that_is_held_up(self):
        """The keeper has closed the connection when the request comes: the caller asks again."""
        keeper = subprocess.Popen([sys.executable, __file__, "keep_other", self.name, "strict"], stdout=subprocess.PIPE, text=True)
        self.children.append(keeper)
        self.assertEqual(keeper.stdout.readline(), "ready\n")
        result = self.ring("status", check=False)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("99.1?", result.stderr)
        self.ring("down")

    def test_caller_of_another_build(self):
        """It gets the build of the ring in the head, and its DOWN is obeyed."""
        self.ring("up", "--hosts", 2)
        before = self.status()

        def say(what, magic, kind, size):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            one.settimeout(LIMIT_S)
            one.connect(f"\0{what}-{os.geteuid()}-{self.name}")
            one.send(struct.pack(HEAD, magic, 7, 40, kind, 0, b"99.1") + bytes(size))
            said = one.recv(100000)
            one.close()
            return said
        for what, magic, size in (("quoit-ring", RING_MAGIC, 0), ("quoit-ring", RING_MAGIC, 5000), ("quoit-share", SHARE_MAGIC, 0),
                                  ("quoit-share", SHARE_MAGIC, 5000)):
            said = say(what, magic, RING_STATUS, size)
            self.assertEqual((len(said), struct.unpack(HEAD, said)[0]), (struct.calcsize(HEAD), magic))
        self.assertEqual(say("quoit-ring", 0x12345678, RING_DOWN, 0), b"")
        self.assertEqual([host["pid"] for host in self.status()], [host["pid"] for host in before])
        self.assertEqual(len(say("quoit-ring", RING_MAGIC, RING_DOWN, 0)), struct.calcsize(HEAD))
        self.assertIn("there is no ring", self.ring("status", check=False).stderr)

    def test_devices_in_sys(self):
        """A command and a PE on a host see its devices, this machine keeps its own, and the groups of processes stay visible."""
        self.ring("up", "--hosts", 2)
        mine = sorted(os.listdir("/sys/class/net"))
        groups = bool(os.listdir("/sys/fs/cgroup"))
        result = self.ring("exec", 1, "--", "sh", "-c", "ls /sys/class/net; ls /sys/fs/cgroup | grep -q . && echo groups; true")
        if "Q0606" in result.stderr:
            self.skipTest(result.stderr.strip())
        self.assertEqual((sorted(result.stdout.split()), result.stderr), (["groups"] * groups + ["lo", "quoit0"], ""))
        job = self.run_job("--ring", self.name, "--on", "0", "ls", "/sys/class/net")
        self.assertEqual((job.status, sorted(job.out.split())), (0, ["lo", "quoit0"]), job)
        self.assertEqual(sorted(os.listdir("/sys/class/net")), mine)

    def test_killed_host_begins_anew(self):
        self.ring("up", "--hosts", 3)
        before = self.status()
        os.kill(before[1]["pid"], signal.SIGKILL)
        self.wait_for_ring("host 1 is back", lambda: (lambda host: host["starts"] == 2 and host["ready"])(self.status()[1]))
        self.wait_for_ring("its links are up", lambda: self.status_of_links() == {"up"})
        self.transfer(0, 1, 20)
        self.assertEqual([host["starts"] for host in self.status()], [1, 2, 1])
        found = self.ring("doctor", check=False)
        self.assertEqual(found.returncode, 1)
        self.assertIn("host 1 was started 2 times", found.stdout)

    def test_descriptors(self):
        """The soft limit is not the keeper's; a caller for whom it has no descriptor does not keep it busy."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (30, limits[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        self.ring("up", "--hosts", 12) # with 12 wires, links and memories each
        keeper = self.keeper()
        before = resource.prlimit(keeper, resource.RLIMIT_NOFILE, (3, limits[1]))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
            caller.connect(f"\0quoit-ring-{os.geteuid()}-{self.name}")
            self.assert_idle([keeper], 0.1, 0.5)
            resource.prlimit(keeper, resource.RLIMIT_NOFILE, before)
        self.assertEqual(len(self.status()), 12)

    @forked_only
    def test_no_process_for_a_host(self):
        """At the start the ring says so, and signals no other process; later it tries again until there is one."""
        env, refuse = self.forked("refuse")
        refuse.touch()
        result = self.ring("up", "--hosts", 2, check=False, env=env)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^.*cannot start host0: Resource temporarily unavailable \[Q0603\]\n$")
        refuse.unlink()
        self.ring("up", "--hosts", 2, env=env)
        refuse.touch()
        os.kill(self.status()[1]["pid"], signal.SIGKILL)
        self.wait_for_ring("host 1 has ended", lambda: self.status()[1]["pid"] == 0)
        tried = refuse.stat().st_size # once for the keeper's guard, perhaps, which it makes when the ring is up
        self.wait_for_ring("it was tried again", lambda: refuse.stat().st_size >= tried + 2)
        self.assertEqual([(host["pid"] != 0, host["starts"]) for host in self.status()], [(True, 1), (False, 1)])
        refuse.unlink()
        self.wait_for_ring("host 1 is back", lambda: (lambda host: host["starts"] == 2 and host["ready"])(self.status()[1]))

    @forked_only
    def test_keeper_dies_before_its_hosts_have_begun(self):
        env, stop = self.forked("stop")
        stop.touch()
        caller = subprocess.Popen([QUOIT, "ring", "up", "--ring", self.name, "--hosts", "2"], env=env, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.children.append(caller)
        hosts = set()
        while len(hosts) < 2 and caller.poll() is None:
            family = set(self.pids_of("quoit-ring"))
            hosts = {pid for pid in family if scenario.state_of(pid) == "T"}
        (keeper,) = family - hosts
        os.kill(keeper, signal.SIGKILL)
        self.wait_until("the keeper has died", lambda: scenario.state_of(keeper) in ("", "Z"))
        for pid in hosts:
            os.kill(pid, signal.SIGCONT)
        self.wait_until("its hosts have ended", lambda: not self.pids_of("quoit-ring", "quoit-host"))
        _, error = caller.communicate(timeout=LIMIT_S)
        self.assertEqual(caller.returncode, 1, error)
        self.assertRegex(error, rf"the keeper of the ring \"{self.name}\" ended before the ring was up: .*\[Q0603\]")

    def test_jobs_beside_each_other(self):
        """Two jobs and a stream over TCP through links that are cut; and jobs that are killed."""
        self.ring("up", "--hosts", 3)
        endless = self.start("--ring", self.name, "--link-limit", "20s", "-n", 3, BUSY)
        self.assertEqual(endless.stdout.readline(), b"begun\n")
        self.assertEqual([(job["program"], job["uid"]) for job in self.jobs_now()], [("scenario_busy", os.geteuid())])
        job = self.start("--ring", self.name, "--link-limit", "20s", "-n", 6, BUSY, 60)

        def cut_them():
            for link in (0, 2, 1):
                self.ring("cut", link)
                time.sleep(0.05)
                self.ring("mend", link)
                time.sleep(0.1)
        self.transfer(0, 2, 60, cut_them)
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out), (0, b"begun\n"), err)
        for _ in range(3):
            victim = self.start("--ring", self.name, "-n", 3, BUSY)
            self.assertEqual(victim.stdout.readline(), b"begun\n")
            victim.kill()
            victim.communicate(timeout=scenario.LIMIT_S)
            self.assertIsNone(endless.poll())
        self.assertEqual({host[side]["outages"] for host in self.status() for side in ("left", "right")}, {1})
        endless.send_signal(signal.SIGTERM)
        endless.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(self.run_job("--ring", self.name, "-n", 3, BUSY, 3).status, 0)

    @unittest.skipUnless(os.geteuid() == 0, "needs two users")
    def test_jobs_of_another_user(self):
        for jobs, expected in (("own", 2), ("all", 0)):
            self.ring("up", "--hosts", 3, "--jobs", jobs)
            try:
                job = self.start("--ring", f"root:{self.name}", "-n", 3, BUSY, 3, user=65534, group=65534,
                                 extra_groups=[], cwd="/")
            except PermissionError as problem:
                self.skipTest(str(problem)) # the other user may not read the build
            out, err = job.communicate(timeout=LIMIT_S)
            self.assertEqual(job.returncode, expected, err)
            self.assertEqual(b"only its user and root run jobs" in err, jobs == "own", err)
            self.ring("down")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare") and shutil.which("setpriv"), "needs root, unshare and setpriv")
    def test_root_and_the_ring_of_another_user(self):
        """Root controls it as its user does: USER:NAME; a third user does not."""
        folder = tempfile.mkdtemp(prefix="quoit-net-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        os.chmod(folder, 0o755)
        given = f"{OTHER_UID}:{self.name}"
        other = ["setpriv", "--reuid", str(OTHER_UID), "--regid", str(OTHER_UID), "--clear-groups"]
        tun = f"mknod {folder}/tun c 10 200 && chmod 666 {folder}/tun && mount --bind {folder}/tun /dev/net/tun"
        made = subprocess.run(["unshare", "-m", "sh", "-c", f'{tun} && exec "$@"', "sh", *other, QUOIT, "ring", "up", "--ring", self.name,
                               "--hosts", "3"], capture_output=True, text=True, timeout=LIMIT_S)
        if made.returncode: # no user namespaces or no device here, or the other user may not read the build
            self.skipTest(made.stderr.strip())

        def root(*words, status=0, ring=given, before=()):
            result = subprocess.run([*before, QUOIT, "ring", words[0], "--ring", ring, *map(str, words[1:])], capture_output=True,
                                    text=True, timeout=LIMIT_S)
            self.assertEqual(result.returncode, status, result)
            return result.stdout + result.stderr
        try:
            self.assertEqual(len(json.loads(root("status", "--json"))["hosts"]), 3)
            self.assertIn("there is no ring", root("status", ring=self.name, status=1))
            self.assertIn(self.name, subprocess.run([QUOIT, "ring", "list"], capture_output=True, text=True).stdout)
            said = root("exec", 1, "--", "sh", "-c", "hostname; id -u; cat /proc/self/uid_map")
            self.assertEqual(said.split(), ["host1", "0", "0", str(OTHER_UID), "1"])
            if shutil.which("ping"):
                self.assertIn("1 received", root("exec", 0, "--", "ping", "-c1", "10.77.0.2"))
            root("cut", 0)
            self.wait_until("the link is down", lambda: f"quoit ring mend --ring {given} 0" in
                            subprocess.run([QUOIT, "ring", "doctor", "--ring", given], capture_output=True, text=True).stdout)
            root("mend", 0)
            look = subprocess.run([QUOIT, "top", "--ring", given, "--once", "--json", "--interval", "50ms"], capture_output=True, text=True)
            self.assertEqual(len(json.loads(look.stdout)["hosts"]), 3, look)
            self.assertEqual(self.run_job("--ring", given, "-n", 3, BUSY, 3).status, 0)
            third = ["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups"]
            for words in (["status"], ["exec", 0, "--", "true"], ["down"]):
                self.assertIn("only its user and root control the ring", root(*words, before=third, status=1))
            self.assertIn("of the user who runs it", root("up", status=2))
            guest = subprocess.Popen([QUOIT, "ring", "exec", "--ring", given, "0", "--", "sleep", "100"])
            self.wait_until("the guest runs", lambda: scenario.name_of(guest.pid) == "sleep")
            root("down")
            self.assertEqual(guest.wait(timeout=LIMIT_S), -signal.SIGKILL)
            self.assertIn("there is no ring", root("status", status=1))
        finally:
            subprocess.run([QUOIT, "ring", "down", "--ring", given], capture_output=True)

    def test_jobs_of_one_user(self):
        self.ring("up", "--hosts", 2, "--user-jobs", 2)
        jobs = [self.start("--ring", self.name, BUSY) for _ in range(2)]
        self.assertEqual([job.stdout.readline() for job in jobs], [b"begun\n"] * 2)
        third = self.run_job("--ring", self.name, BUSY, 3)
        self.assertEqual(third.status, 1)
        self.assertIn("as many of your jobs run there as one user may have", third.err)
        jobs[0].terminate()
        jobs[0].communicate(timeout=LIMIT_S)
        self.wait_for_ring("its job has gone", lambda: len(self.jobs_now()) == 1)  # its output ends before its connection
        self.assertEqual(self.run_job("--ring", self.name, BUSY, 3).status, 0)
        jobs[1].terminate()
        jobs[1].communicate(timeout=LIMIT_S)

    def test_eight_jobs_at_once(self):
        self.ring("up", "--hosts", 3)
        jobs = [self.start("--ring", self.name, "-n", 3, BUSY, 2) for _ in range(8)]
        for job in jobs:
            out, err = job.communicate(timeout=LIMIT_S)
            self.assertEqual((job.returncode, out, err), (0, b"begun\n", b""))

    def test_job_on_its_hosts(self):
        """PEs see the device and the name of their host; --on; PEs on a ring that ends."""
        self.ring("up", "--hosts", 5)
        where = [sys.executable, __file__, "where"]
        result = self.run_job("--ring", self.name, "--tag", "-n", 6, *where)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(sorted(result.out.splitlines()), sorted(
            f"[PE {pe} host{host}] host{host} {self.address(host)}" for pe, host in enumerate((0, 0, 1, 2, 3, 4))))
        result = self.run_job("--ring", self.name, "--tag", "--on", "3,1", *where)
        self.assertEqual(sorted(result.out.splitlines()),
                         [f"[PE 0 host1] host1 {self.address(1)}", f"[PE 1 host3] host3 {self.address(3)}"], result)
        result = self.run_job("--ring", self.name, "--on", "1,3", "-n", 5, BUSY, 20)
        self.assertEqual((result.status, result.out), (0, "begun\n"), result)
        self.assertEqual(self.run_job("--ring", self.name, "--on", "5", "true").status, 2)
        for end in ("down", "kill"):
            job = self.start("--ring", self.name, "--on", "0,2", BUSY)
            self.assertEqual(job.stdout.readline(), b"begun\n")
            if end == "down":
                self.ring("down")
            else:
                os.kill(self.keeper(), signal.SIGKILL)
            out, err = job.communicate(timeout=scenario.LATE_S)
            self.assertEqual((job.returncode, err.count(b"\n")), (1, 1), err)
            self.assertIn(f"the ring {self.name} has ended".encode(), err)
            if end == "down":
                self.ring("up", "--hosts", 3)

    def test_top(self):
        """quoit top --ring: links, jobs and Ethernet together."""
        def top(*words):
            return subprocess.run([QUOIT, "top", "--ring", self.name, *words], capture_output=True, text=True,
                                  timeout=LIMIT_S)
        self.assertEqual((top("--once").returncode, top("--once", "1").returncode), (1, 2))
        self.ring("up", "--hosts", 3)
        job = self.start("--ring", self.name, "-n", 3, BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        looks = []

        def is_seen():
            looks.append(json.loads(top("--once", "--json", "--interval", "200ms").stdout))
            return (looks[-1]["hosts"][0]["sent_bytes_per_s"] > 1e6 and looks[-1]["hosts"][1]["received_bytes_per_s"] > 1e6 and
                    all(row["job_bytes_per_s"] > 1e4 and row["job_messages_per_s"] > 0 for row in looks[-1]["links"]))
        self.transfer(0, 1, 300, lambda: self.wait_until("the stream and the job are seen", is_seen))
        look = looks[-1]
        self.assertEqual([(row["link"], row["from"], row["to"], row["state"]) for row in look["links"]],
                         [(0, 0, 1, "up"), (0, 1, 0, "up"), (1, 1, 2, "up"), (1, 2, 1, "up"), (2, 2, 0, "up"), (2, 0, 2, "up")])
        self.assertEqual([(row["program"], row["uid"], row["pes"]) for row in look["jobs"]],
                         [("scenario_busy", os.geteuid(), 3)])
        self.assertAlmostEqual(look["jobs"][0]["bytes_per_s"], sum(row["job_bytes_per_s"] for row in look["links"]), delta=1)
        self.ring("cut", 1)
        self.wait_for_ring("link 1 is down", lambda: self.status()[1]["right"]["state"] != "up")
        text = top("--once", "--interval", "50ms").stdout
        self.assertRegex(text, r"(?m)^ +1  host1 -> host2 +(?!up)\w+ ")
        self.assertRegex(text, r"(?m)^ +1  scenario_busy .* 3 +[\d.]+ \w*B/s$")
        watcher = subprocess.Popen([QUOIT, "top", "--ring", self.name, "--json", "--interval", "50ms"], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.children.append(watcher)
        watcher.stdout.readline()
        self.ring("down")
        job.communicate(timeout=LIMIT_S)
        _, err = watcher.communicate(timeout=LIMIT_S)
        self.children.remove(watcher)
        self.assertEqual((watcher.returncode, "any more" in err), (1, True), err)

    @unittest.skipUnless(shutil.which("unshare") and shutil.which("setpriv"), "needs unshare and setpriv")
    def test_without_namespaces(self):
        """A user who may make none is told so, and what to do."""
        script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
        result = subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", QUOIT, "ring", "up", "--ring",
                                 self.name], capture_output=True, text=True, timeout=LIMIT_S)
        if "Q06" not in result.stderr:
            self.skipTest(f"no user namespaces to try it in: {result.stderr}")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("cannot make a network namespace", result.stderr)
        self.assertIn("[Q0602]", result.stderr)

    def test_idle_ring(self):
        """Without traffic a host takes less than 0.5 % of a processor, the keeper too."""
        self.ring("up", "--hosts", 3)
        time.sleep(1.5) # the kernel announces its IPv6 addresses at first
        self.assert_idle([host["pid"] for host in self.status()] + [self.keeper()], 0.005, 2)

    def test_what_belongs_to_the_ring(self):
        self.ring("up", "--hosts", 3)
        for words, expected in ((["--ring", self.name, "--hosts", 3], "--hosts belongs to the ring"),
                                (["--ring", self.name, "--link-rate", "1G"], "--link-rate belongs to the ring"),
                                (["--ring", self.name, "-n", 2], "a ring of 3 hosts wants a PE on each host"),
                                (["--ring", self.name, "--network", "auto"], "is a ring of links"),
                                (["--ring", "none-of-these"], "there is no ring none-of-these")):
            result = self.run_job(*words, BUSY, 1)
            self.assertEqual((result.status, result.out), (2, ""))
            self.assertIn(expected, result.err)

    def test_nothing_is_left(self):
        self.ring("up", "--hosts", 3)
        pids = [host["pid"] for host in self.status()]
        guest = self.on(1, "serve_udp", self.address(1))
        guest.stdout.readline()
        self.ring("down")
        guest.communicate(timeout=LIMIT_S)
        self.assertEqual(guest.returncode, -signal.SIGKILL)
        self.children.remove(guest)
        self.assertFalse([pid for pid in pids if os.path.exists(f"/proc/{pid}")])
        self.ring("up", "--hosts", 3) # the keeper dies this time
        pids = [host["pid"] for host in self.status()]
        os.kill(self.keeper(), signal.SIGKILL)
        end = time.monotonic() + LIMIT_S
        while any(os.path.exists(f"/proc/{pid}") for pid in pids):
            self.assertLess(time.monotonic(), end, "hosts live on")
            time.sleep(0.02)
        self.assertNotIn(self.name, self.ring("list").stdout.split())
        self.assertIn("there is no ring", self.ring("status", check=False).stderr)

    def test_bad_usage(self):
        for words, expected in ((["up", "--hosts", 1], "2 to 64"), (["up", "--hosts"], "needs a value"),
                                (["up", "--subnet", "10.0.0.1/24"], "no bit set"), (["up", "--mtu", 70000], "65000"),
                                (["up", "--subnet", "10.0.0.0/30"], "addresses for 2 hosts"), (["up", "--wrong"], "no option"),
                                (["up", "--user-jobs", 0], "1 to 31"), (["up", "--user-jobs", 32], "1 to 31"),
                                (["up", "--ethernet-share", 100], "1 to 99 percent"), (["up", "--ethernet-share", 0], "1 to 99"),
                                (["exec", 0], "behind --"), (["exec", "x", "--", "ls"], "number of a host"),
                                (["cut"], "number of a link"), (["sideways"], "there is no \"sideways\""),
                                (["status", "--hosts", 3], "belongs to"), (["up", "--subnet", "127.0.0.0/8"], "network of hosts"),
                                (["up", "--subnet", "224.0.0.0/24"], "network of hosts"),
                                (["up", "--ethernet-share", 50], "a part of --link-rate"), (["down", "lab"], "takes no \"lab\""),
                                (["shell", 0, "--", "ls"], "takes no command"), (["up", "--json"], "--json belongs to")):
            result = self.ring(*words, check=False)
            self.assertEqual(result.returncode, 2, words)
            self.assertIn(expected, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.ring("up", "--hosts", 2)
        again = self.ring("up", "--hosts", 2, check=False)
        self.assertEqual((again.returncode, again.stdout), (1, ""))
        self.assertIn("is up already", again.stderr)
        self.assertEqual(self.ring("cut", 2, check=False).returncode, 2)
        self.assertEqual(self.ring("exec", 5, "--", "ls", check=False).returncode, 2)
        self.assertEqual(self.ring("exec", 0, "--", "sh", "-c", "exit 7", check=False).returncode, 7)
        self.assertEqual(self.ring("exec", 0, "--", "/no/such", check=False).returncode, 127)


class Join(Ring):
    """What needs no bridge: the rest runs in virtual machines (tests/vm)."""

    def join(self, config, *words):
        with tempfile.NamedTemporaryFile("w", suffix="ring.conf") as file:
            file.write(config)
            file.flush()
            return self.ring("join", "--config", file.name, *words, check=False)

    def test_bad_usage(self):
        for config, words, expected in (
                ("", [], "join needs --host"), ("host = 1\n", [], "join needs --hosts"),
                ("host = 3\nhosts = 3\n", [], "0 to 2"), ("host = 1\nhosts = 1\n", [], "ring.conf:2: hosts \"1\""),
                ("# the first\n\n host=x # no number\n", [], "ring.conf:3: host \"x\": allowed is 0 to 63"),
                ("hosts 3\n", [], "a line is: option = value"), ("jobs = all\n", [], "no option \"jobs\""),
                ("config = a\n", [], "no option \"config\""), ("left = " + "x" * 600 + "\n", [], "longer than"),
                ("host = 0\nhosts = 2\nleft = /dev/ntb1\n", [], "both /dev/ntb1"),
                ("host = 0\nhosts = 3\nsubnet = 10.0.0.0/30\n", [], "addresses for 2 hosts"),
                ("host = 0\n", ["--jobs", "all"], "belongs to: quoit ring up")):
            result = self.join(config, *words)
            self.assertEqual((result.returncode, result.stdout), (2, ""), config)
            self.assertIn(expected, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("No such file", self.ring("join", "--config", "/no/such", check=False).stderr)
        self.assertIn("belongs to: quoit ring join", self.ring("up", "--left", "x", check=False).stderr)

    def test_without_a_port(self):
        result = self.join("host = 2\nhosts = 3\nleft = /no/port\n", "--host", 1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("host 1 of 3, 10.77.0.2, left /no/port, right /dev/ntb1", result.stdout)
        self.assertRegex(result.stderr, r"cannot open the left port /no/port: No such file.*load the chip.*\[Q0604\]")
        self.assertIn("there is no ring", self.ring("status", check=False).stderr)


class Bridges(scenario.Case):
    """Jobs over bridges, as far as there are none; agents of two machines that are this one."""
    RSH = """sh -c 'shift; eval "$*"' -"""

    def test_without_a_bridge(self):
        for words, status, expected in (
                (["--bridges", "x"], 2, "two ports"), (["--bridges", "/no/port,/dev/null"], 1, "port /no/port of --bridges"),
                (["--network", "ring", "--bridges", "/dev/null,/no/port"], 1, "port /no/port of --bridges"),
                (["--bridges", "/dev/null,/dev/null"], 1, "linux port: opening the device")):
            result = self.run_job("--driver", "linux", "--host", "a,b", "--rsh", self.RSH, *words, "-n", 2, BUSY)
            self.assertEqual(result.status, status, result)
            self.assertIn(expected, result.err)
        self.assert_nothing_left()

    def machines(self, host, left, right):
        """A ring of three machines, as far as oshrun can ask for it. Its name."""
        name = f"machines-{os.getpid()}-{host}-{os.path.basename(left)[:5]}"
        server = subprocess.Popen([scenario.program("scenario_machines"), name, str(host), "3", left, right],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.assertEqual(server.stdout.readline(), "answers\n")
        return name

    def test_ring_of_machines(self):
        """Which machines a job has, and what is said about ports that are not there, no ports, or whole ones."""
        name = self.machines(1, "/no/port0", "/no/port1")
        result = self.run_job("--ring", name, "--bridges", "/no/port0.1,/no/port1.1", "-n", 4, "--dry-run", "true")
        self.assertEqual(result.status, 0, result)
        self.assertEqual([line.split()[2] for line in result.out.splitlines()], ["10.77.0.1"] * 2 + ["localhost", "10.77.0.3"])
        result = self.run_job("--ring", name, "--bridges", "/no/port0.1,/no/port1.1", "--rsh", self.RSH, BUSY)
        self.assertEqual(result.status, 1, result)
        self.assertIn("port /no/port0.1 of --bridges", result.err)
        for words, expected in ((["-n", 3], "has the ports /no/port0 and /no/port1 for itself"),
                                (["--bridges", "a,b", "-n", 2], "on the 3 machines of a ring of bridges"),
                                (["--host", "a,b"], "--ring names the hosts"), (["--hosts", 3], "--hosts belongs to the ring"),
                                (["--driver", "emulated"], "--driver belongs to the ring"), (["--on", 1], "--on is for"),
                                (["--weight", 5], "whose rate nobody divides"),
                                (["--bridges", "a,b", "--network", "auto"], "is a ring of links, and --network auto has none"),
                                (["--bridges", "a,b", "--rings", 2], "--rings is for hosts that oshrun joins")):
            result = self.run_job("--ring", name, *words, "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(expected, result.err)
        with tempfile.TemporaryDirectory() as folder:
            left, right = os.path.join(folder, "port0.2"), os.path.join(folder, "port1.2")
            for path in (left[:-2], right[:-2]):
                open(path, "w").close()
            result = self.run_job("--ring", self.machines(0, left, right), "true")
            self.assertEqual(result.status, 2, result)
            self.assertIn(f"cannot open the ports {left[:-2]} and {right[:-2]}", result.err)
        result = self.run_job("--ring", self.machines(0, "/dev/a\x1b[31m", "/dev/b"), "true")
        self.assertIn("is of another build", result.err)
        self.assert_nothing_left()


class Jobs(Ring):
    def jobs(self, count, *words, seconds=2):
        """So many jobs of the stress program at once, every byte of which is checked."""
        mix = os.path.join(scenario.BIN, "mix")
        if not os.path.exists(mix):
            self.skipTest("no library, so no jobs")
        begun = []
        for number in range(count):
            job = subprocess.Popen([scenario.OSHRUN, "--ring", self.name, *map(str, words), "--link-limit", "20s", "--timeout",
                                    f"{LIMIT_S}s", mix, "--seconds", str(seconds), "--seed", str(number)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, env=scenario.environment(self.mark))
            begun.append(job)
            self.children.append(job)
        return begun

    def test_jobs_beside_ethernet(self):
        """Three jobs and a stream of TCP; links are cut, and a job is killed."""
        self.ring("up", "--hosts", 3)
        jobs = self.jobs(4, "-n", 3, "--slots", 2, "--chunk", "1K")

        def trouble():
            time.sleep(0.5)
            jobs[0].kill()
            for link in range(3):
                self.ring("cut", link)
                time.sleep(0.1)
                self.ring("mend", link)
                time.sleep(0.1)
        self.transfer(0, 1, 200, trouble)
        for job in jobs[1:]:
            self.finish(job)
        self.children.remove(jobs[0])
        jobs[0].communicate()
        self.transfer(2, 1, 20)
        self.assertEqual([host["starts"] for host in self.status()], [1] * 3)

    def test_eight_jobs(self):
        self.ring("up", "--hosts", 5)
        for job in self.jobs(8, "-n", 5):
            self.finish(job)

    def test_jobs_killed_at_random(self):
        """Three jobs check every byte and a stream of TCP goes on while links are cut and processes of other jobs killed."""
        seed = int(os.environ.get("QUOIT_SEED", time.time_ns() % 10**9))
        print(f"replay with QUOIT_SEED={seed}")
        chance = random.Random(seed)
        self.ring("up", "--hosts", 5)
        lasting = self.jobs(3, "-n", 5, seconds=8)

        def trouble():
            end = time.monotonic() + 8
            while time.monotonic() < end:
                victim = self.start("--ring", self.name, "--on", "1,3", "-n", 4, BUSY)
                link = chance.randrange(5)
                self.ring("cut", link)
                time.sleep(chance.uniform(0, 0.2))
                self.ring("mend", link)
                time.sleep(chance.uniform(0, 0.6))
                mine = [pid for pid in scenario.processes(self.mark) if self.is_below(pid, victim.pid)]
                if mine:
                    scenario.send(chance.choice(mine), signal.SIGKILL)
                if chance.randrange(2):
                    victim.kill()
                try:
                    victim.communicate(timeout=scenario.SOON_S)
                except subprocess.TimeoutExpired:
                    victim.terminate() # the process that was killed was none of the job any more
                    victim.communicate(timeout=LIMIT_S)
        self.transfer(0, 2, 400, trouble)
        for job in lasting:
            self.finish(job)
        self.wait_for_ring("only the jobs that were killed have gone", lambda: self.jobs_now() == [])
        self.assertEqual([host["starts"] for host in self.status()], [1] * 5)

    @staticmethod
    def is_below(pid, ancestor):
        while pid > 1 and pid != ancestor:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    pid = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                return False
        return pid == ancestor

    def test_garbage(self):
        """A job that writes garbage into what it shares with its proxies and its links ends alone, with a message; another
        job and a stream of TCP go on, and the next job finds a sound ring."""
        seed = int(os.environ.get("QUOIT_SEED", time.time_ns() % 10**9))
        print(f"replay with QUOIT_SEED={seed}")
        self.ring("up", "--hosts", 3)
        other = self.jobs(1, "-n", 3, seconds=8)[0]

        def spoil():
            for turn, what in enumerate(("memory", "links", "memory", "links")):
                result = self.run_job("--ring", self.name, "-n", 3, "--symmetric-size", "16M", "--link-limit", "1s", "--timeout", "20s",
                                      GARBAGE, turn % 3, seed + turn, what)
                self.assertRegex(result.out, r"^[1-9]\d* ranges\n", result)
                self.assertTrue(result.status == 0 or re.search(r"\[Q0\d+\]", result.err), result)
                self.assertLess(result.seconds, 20 + scenario.LATE_S)
        self.transfer(0, 1, 300, spoil)
        self.finish(other)
        self.assertEqual([host["starts"] for host in self.status()], [1] * 3)
        self.finish(self.jobs(1, "-n", 3)[0])
        self.assertEqual(self.status_of_links(), {"up"})

    def test_job_on_a_ring_that_ends(self):
        self.ring("up", "--hosts", 3)
        jobs = self.jobs(1, "-n", 3, "--link-limit", "1s", seconds=LIMIT_S)
        time.sleep(0.5)
        self.ring("down")
        out, _ = jobs[0].communicate(timeout=LIMIT_S)
        self.children.remove(jobs[0])
        self.assertNotEqual(jobs[0].returncode, 0, out)


if __name__ == "__main__":
    here = {one.__name__: one for one in (serve_tcp, send_tcp, serve_udp, ask_udp, look, where, keep_other)}
    if len(sys.argv) > 1 and sys.argv[1] in here:
        here[sys.argv[1]](*sys.argv[2:])
    else:
        unittest.main()
