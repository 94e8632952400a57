# SPDX-License-Identifier: BSD-3-Clause
"""Aim: other launchers start one job over several hosts: PEs find their host and each other however they are placed, every
byte is right, and whatever ends (a PE, a proxy, a host, a cable) ends the job within the limit, with a line that names it.

Method: hosts are network namespaces (namespaces.py). Pmi: a PMI server of our own, which ends no process, as srun without -K;
Hydra: mpiexec.hydra starts its proxies by a remote shell of our own. srun is real.py's."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
import scenario
from machines import greetings, has_network, lines
from namespaces import RSH, Namespaces, ip
from pmi_server import Server

GREET, MISBEHAVE, BUSY = (scenario.program("scenario_" + name) for name in ("greet", "misbehave", "busy"))
MIX = os.path.join(scenario.BIN, "mix")
LIMIT_S = 3
SOON_S = LIMIT_S + scenario.LATE_S + (15 if scenario.SANITIZE else 0)  # a start with networks, and an end

SHELL = """#!/bin/sh
# A remote shell as Hydra calls it: options, host, words for a shell.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
exec %s -B %s "$host" sh -c "$*"
"""


@unittest.skipUnless(has_network(), "no network driver finds a network here: quoit info networks")
@unittest.skipUnless(shutil.which("mpiexec.hydra"), "no mpiexec.hydra (mpich)")
class Hydra(Namespaces, scenario.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.shell = os.path.join(cls.folder, "shell")
        with open(cls.shell, "w") as file:
            file.write(SHELL % (sys.executable, RSH))
        os.chmod(cls.shell, 0o755)

    def words(self, per_host, count):
        return ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", self.shell, "-hosts", ",".join(self.addresses[:3]), "-ppn",
                per_host, "-n", count]

    def launch(self, per_host, count, *command):
        words = [*self.words(per_host, count), *command]
        begin = time.monotonic()
        result = subprocess.run(["ip", "netns", "exec", self.names[0], *map(str, words)], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, errors="replace", timeout=scenario.LIMIT_S, check=False,
                                env=scenario.environment(self.mark))
        self.assert_nothing_left()
        return scenario.Result(result.returncode, result.stdout, result.stderr, time.monotonic() - begin)

    def test_places(self):
        """Blocks, and in turns, where PE numbers are not Hydra's ranks."""
        for per_host, count in ((2, 6), (3, 7), (1, 5)):
            with self.subTest(per_host=per_host, count=count):
                result = self.launch(per_host, count, GREET)
                self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(count), ""), result)

    def test_conformance(self):
        for name in ("coll", "again"):
            result = self.launch(2, 6, os.path.join(scenario.BIN, "conformance_" + name))
            self.assertEqual(result.status, 0, result)

    def test_ends(self):
        for deed, argument, status, words in (("exit", 3, 3, r"PE 4 on \S+ exited with status 3 .*Q0202"), ("global-exit", 5, 5, "^"),
                                              ("bad-pe", 0, 1, "PE 4: .*Q0104"), ("_exit", 0, 1, r"PE 4 on \S+ ended .*Q0203")):
            with self.subTest(deed=deed):
                result = self.launch(2, 6, MISBEHAVE, 4, deed, argument)
                self.assertEqual(result.status, status, result)
                self.assertRegex(result.out + result.err, words)


def end_all(server):
    """As launchers do, whom a PE asks for that before all have met."""
    if server.aborts:
        for process in server.processes:
            process.kill()


@unittest.skipUnless(has_network(), "no network driver finds a network here: quoit info networks")
class Pmi(Namespaces, scenario.Case):
    def launch(self, hosts, *command, env=None, each_step=None, **how):
        """A PE on each of `hosts`, numbers of namespaces."""
        commands = [["ip", "netns", "exec", self.names[host], *map(str, command)] for host in hosts]
        server = Server(commands, env=scenario.environment(self.mark, **(env or {})), **how)
        begin = time.monotonic()
        result = server.run(scenario.LIMIT_S, each_step)
        self.assertIsNotNone(result, f"the job hangs: {hosts} {command}")
        server.seconds = time.monotonic() - begin
        self.assert_nothing_left()
        return server, *result

    def check_greetings(self, hosts, version):
        with self.subTest(hosts=hosts, version=version):
            _, statuses, out, err = self.launch(hosts, GREET, version=version)
            self.assertEqual((statuses, err), ([0] * len(hosts), ""), out)
            self.assertEqual(lines(out), greetings(len(hosts)))

    def test_proxies_at_each_step(self):
        """The proxy of a host dies, or hangs, at a step of the start (base/step.h): a line names its host, or the one that has
        waited for it."""
        for action, words in (("kill", r"the proxy of host \S+ ended; .*Q0315|for another host to join .*Q0221|was lost: .*Q0315"),
                              ("hang", r"the proxy of host \S+ .* does not serve its host after .*Q0238|for another host to join .*Q0221")):
            for step in ("start", "contact", "ready"):
                if (action, step) == ("hang", "ready"):
                    continue  # its host has an address, and hears of nobody that is late
                with self.subTest(action=action, step=step):
                    _, statuses, _, err = self.launch((0, 1), GREET, env={"TEST_STEP": f"proxy1.{step}={action}",
                                                                         "QUOIT_LINK_TIMEOUT": "2s"})
                    self.assertTrue(all(statuses), err)
                    self.assertRegex(err, words)

    def test_agents_at_each_step(self):
        """The agent of a host dies at a step: a line names its host, and those of both hosts end."""
        for step in ("start", "layout", "go"):
            with self.subTest(step=step):
                _, statuses, _, err = self.launch((0, 1, 1), GREET, env={"TEST_STEP": f"agent1.{step}=kill",
                                                                        "QUOIT_LINK_TIMEOUT": "2s"}, each_step=end_all)
                self.assertTrue(all(statuses), err)
                self.assertRegex(err, r"the agent of host \S+ ended before its PEs; .*Q0240")

    def test_greeting(self):
        self.check_greetings((1, 0, 1, 0), 2)

    @unittest.skipIf(scenario.SANITIZE, "the library of a sanitizer cannot be linked statically")
    def test_static(self):
        """A program that is linked statically is agent and proxy of its host, too; of networks it has TCP alone."""
        program = os.path.join(tempfile.mkdtemp(), "program")
        self.addCleanup(shutil.rmtree, os.path.dirname(program))
        subprocess.run([os.path.join(scenario.BIN, "oshcc"), "-static", "-o", program, os.path.join(HERE, "..", "scenario", "greet.c")],
                       check=True)
        away = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        _, statuses, out, err = self.launch((0, 1, 1, 2), program, env=away)
        self.assertEqual((statuses, err, lines(out)), ([0] * 4, "", greetings(4)))
        _, statuses, _, err = self.launch((0, 1), program, env={**away, "QUOIT_NETWORK": "ofi"}, each_step=end_all)
        self.assertTrue(all(statuses), err)
        self.assertRegex(err, r"the program is linked statically, and can use the network tcp alone: ofi needs .* \[Q0222\]")

    def test_greetings(self):
        for hosts in ((0, 1), (0, 0, 1), (0, 1, 0, 1), (2, 0, 1, 1, 0, 3, 2)):
            for version in (1, 2):
                self.check_greetings(hosts, version)

    def asked_on(self, hosts, version):
        """How many values each PE reads, in order, for each host."""
        asked = [0] * len(hosts)

        def count(server, rank, request, answer):
            asked[rank] += request["cmd"] in ("get", "kvs-get") and request["key"].count("-") == 1
            return answer

        _, statuses, out, err = self.launch(hosts, GREET, version=version, lie=count)
        self.assertEqual((statuses, err), ([0] * len(hosts), ""), out)
        return [sorted(asked[rank] for rank in range(len(hosts)) if hosts[rank] == host) for host in range(3)]

    def test_few_ask_for_all(self):
        """On each host its lowest PE, which needs them, and the first that comes read the values of all; others that of rank 0."""
        for hosts in ((0,) * 5 + (1,) * 5 + (2,) * 5, (0, 1, 2) * 5):
            for version in (1, 2):
                with self.subTest(hosts=hosts, version=version):
                    # A PE that comes a quarter of a second after the others of its host reads them itself.
                    asked = scenario.until_good(lambda: self.asked_on(hosts, version),
                                                lambda asked: all(of_host[:3] == [1] * 3 for of_host in asked))
                    for of_host in asked:
                        self.assertEqual(of_host[:3], [1] * 3, asked)
                        self.assertLessEqual(of_host[4], 2 * len(hosts), asked)

    def test_short_jobs(self):
        """Hosts that end at about the same time: none waits for the word of one that has gone."""
        for run in range(12):
            with self.subTest(run=run):
                _, statuses, out, err = self.launch((2, 0, 1, 1, 0, 3, 2), GREET)
                self.assertEqual((statuses, err), ([0] * 7, ""), out)

    def test_conformance(self):
        for name in ("coll", "again", "memory", "order", "signal", "amo", "library_data"):
            with self.subTest(name=name):
                _, statuses, out, err = self.launch((0, 1, 2, 0, 1), os.path.join(scenario.BIN, "conformance_" + name))
                self.assertEqual(statuses, [0] * 5, out + err)

    def test_every_byte(self):
        """Meanwhile the proxies get what launchers send to all processes of a host."""
        signalled = []

        def signal_proxies(server):
            if server.closed == 6 and not signalled:
                signalled.extend(self.proxies())
                for pid in signalled:
                    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
                        os.kill(pid, number)

        _, statuses, out, err = self.launch((0, 1, 1, 2, 0, 1), MIX, "--seconds", 3, "--seed", 7, each_step=signal_proxies)
        self.assertEqual((statuses, len(signalled)), ([0] * 6, 3), out + err)

    def test_ends(self):
        """All PEs end with the status of the one that failed, where it is known, and one line says which it was."""
        for who in (1, 2):
            for deed, argument, status, words in (
                    ("exit", 3, 3, rf"PE {who} on \S+ exited with status 3 .*Q0202"), ("_exit", 3, 1, rf"PE {who} on \S+ ended before .*Q0203"),
                    ("kill", 9, 1, rf"PE {who} on \S+ ended before shmem_finalize.*Q0203"),
                    ("null", 0, 139, rf"PE {who} on \S+ was killed by SIGSEGV .*Q0201"),
                    ("global-exit", 5, 5, "^$"), ("global-exit", 0, 0, "^$"), ("bad-pe", 0, 1, f"PE {who}: .*Q0104")):
                if deed == "null" and scenario.SANITIZE:
                    continue  # it takes the signal
                with self.subTest(who=who, deed=deed):
                    # A PE that is held up before it can obey is killed.
                    server, statuses, _, err = scenario.until_good(
                        lambda: self.launch((0, 0, 1, 1), MISBEHAVE, who, deed, argument),
                        lambda done: -signal.SIGKILL not in (s for pe, s in enumerate(done[1]) if pe != who))
                    self.assertRegex(err, words)
                    self.assertEqual(err.count("[Q"), 0 if deed == "global-exit" else 1, err)
                    self.assertEqual([s for pe, s in enumerate(statuses) if pe != who], [status] * 3, err)
                    self.assertLess(server.seconds, SOON_S)

    def kill_one(self, find, hosts=(0, 1, 2, 0, 1, 2), after_s=0.0, has_begun=lambda server: scenario.has_output(
            server.processes[0].stdout)):
        """The processes that find() gives lose one by SIGKILL when all have begun."""
        begun = []

        def act(server):
            if not begun and has_begun(server):
                begun.append(time.monotonic())
            if begun and begun[0] and time.monotonic() - begun[0] > after_s:
                begun[0] = 0
                find(server)

        server, statuses, _, err = self.launch(hosts, BUSY, env={"QUOIT_NETWORK_LIMIT": f"{LIMIT_S}s"}, each_step=act)
        self.assertEqual(begun, [0])
        self.assertTrue(all(status != 0 for status in statuses), (statuses, err))
        self.assertLess(server.seconds, SOON_S)
        return err

    def proxies(self):
        return self.pids_of("quoit-proxy")

    def test_killed_proxy(self):
        err = self.kill_one(lambda server: os.kill(self.proxies()[-1], signal.SIGKILL))
        self.assertRegex(err, "the proxy of host .* ended.*Q0315|host .* with the PEs .* was lost.*Q0315")

    def test_stopped_proxy(self):
        """For several times the limit: its machine answers, so all wait for it, one line names its host, and one when it is back.
        Then the job goes on, until something else ends it."""
        steps, told = [], []

        def read(server):
            for process in server.processes:
                while scenario.has_output(process.stderr) and (data := os.read(process.stderr.fileno(), 65536)):
                    told.append(data.decode(errors="replace"))
            return "".join(told)

        def act(server):
            err = read(server)
            if not steps and scenario.has_output(server.processes[0].stdout):
                steps.extend((self.proxies()[0], time.monotonic()))
                os.kill(steps[0], signal.SIGSTOP)
            elif len(steps) == 2 and "[Q0317]" in err and time.monotonic() - steps[1] > 3:
                steps.append([process.poll() for process in server.processes])
                os.kill(steps[0], signal.SIGCONT)
            elif len(steps) == 3 and "[Q0318]" in err:
                steps.append(os.kill(self.proxies()[-1], signal.SIGKILL))

        _, statuses, _, _ = self.launch((0, 1, 2, 0, 1, 2), BUSY, env={"QUOIT_NETWORK_LIMIT": "1s"}, each_step=act)
        err = "".join(told)
        self.assertEqual(steps[2:], [[None] * 6, None], err)
        self.assertTrue(all(status != 0 for status in statuses), (statuses, err))
        self.assertRegex(err, r"quoit: nothing has come from host \S+ for [\d.]+ s, but its machine answers; the job waits for it \[Q0317\]\n")
        self.assertRegex(err, r"quoit: host \S+ is back after [\d.]+ s \[Q0318\]\n")

    def test_killed_host(self):
        """All PEs of a host at once, the lowest first."""
        def kill(server):
            for rank in (1, 4):
                server.processes[rank].kill()

        self.assertRegex(self.kill_one(kill), r"PE [23] on \S+ ended before shmem_finalize.*Q0203|Q0315")

    def proxy_of(self, server, rank):
        net = os.readlink(f"/proc/{server.processes[rank].pid}/ns/net")
        return [pid for pid in self.proxies() if os.readlink(f"/proc/{pid}/ns/net") == net][0]

    def test_lowest_without_socket(self):
        """It cannot say that it has finalized, but leaves it in its record, and goes on for long: the others do not wait for its
        end, nor do those of another host."""
        for lowest in (0, 2):
            def kill(server, lowest=lowest):
                others = [process for pe, process in enumerate(server.processes) if pe != lowest]
                if all(process.poll() is not None for process in others) and server.processes[lowest].poll() is None:
                    server.processes[lowest].kill()

            with self.subTest(lowest=lowest):
                server, statuses, _, err = self.launch((0, 0, 1, 1), MISBEHAVE, lowest, "linger", 2 * scenario.LATE_S, each_step=kill)
                self.assertEqual((statuses, err), ([-signal.SIGKILL * (pe == lowest) for pe in range(4)], ""))
                self.assertLess(server.seconds, SOON_S)

    def test_lost_after_finalize(self):
        """PE 0 waits in another shmem_init for PE 1, whose host goes: that ends PE 0. Had it not waited, none would mind."""
        for victim, statuses in (("proxy", [1, 1]), ("PE", [1, -signal.SIGKILL])):
            begun = []

            def kill(server):
                if not all(scenario.has_output(process.stdout) for process in server.processes): # finalized
                    return
                begun.append(time.monotonic())
                if begun[0] and begun[-1] - begun[0] > 0.7:
                    begun[0] = 0
                    os.kill(self.proxy_of(server, 1) if victim == "proxy" else server.processes[1].pid, signal.SIGKILL)

            with self.subTest(victim=victim):
                server, ends, _, err = self.launch((0, 1), MISBEHAVE, 0, "again", 60, each_step=kill)
                self.assertEqual(ends, statuses, err)
                self.assertRegex(err, "the PEs of host .* ended without shmem_init, in which others waited .*Q0204")
                self.assertLess(server.seconds, SOON_S)

    def test_cut_cable(self):
        self.addCleanup(self.plug, 2, "up")
        err = self.kill_one(lambda server: self.plug(2, "down"))
        self.assertRegex(err, r"host .*, with the PEs 4\.\.5, was lost.*Q0315")

    def test_kills_at_random(self):
        seed = int(os.environ.get("LAUNCHERS_SEED", random.SystemRandom().randrange(1 << 32)))
        chance = random.Random(seed)
        print(f"LAUNCHERS_SEED={seed}", file=sys.stderr)
        for run in range(6):
            def kill(server):
                victims = [p.pid for p in server.processes] + self.proxies()
                os.kill(chance.choice(victims), signal.SIGKILL)

            with self.subTest(seed=seed, run=run):
                err = self.kill_one(kill, after_s=chance.random() / 2, has_begun=lambda server: server.closed == 6)
                self.assertRegex(err, r"\[Q0(203|315)\]")

    def test_killed_during_start(self):
        """The launcher ends all then; nothing stays."""
        for victim in (0, 1, 3):
            for fences in (1, 2):
                def kill(server):
                    if server.fences >= fences and server.processes[victim].poll() is None:
                        server.processes[victim].kill()
                    if any(process.poll() not in (None, 0) for process in server.processes) or server.aborts:
                        for process in server.processes:
                            process.kill()

                with self.subTest(victim=victim, fences=fences):
                    server, statuses, _, err = self.launch((0, 0, 1, 1), MISBEHAVE, 0, "sleep", 60, each_step=kill)
                    self.assertTrue(all(status != 0 for status in statuses), (statuses, err))
                    self.assertLess(server.seconds, SOON_S)

    def test_late_host(self):
        """Host 1 learns the addresses long after host 0, which has not heard of it until then."""
        late = []

        def keep(server, rank, request, answer):
            if rank == 1 and request["cmd"] == "get" and request["key"].count("-") == 2 and not late:
                late.append((time.monotonic(), answer))
                return None
            return answer

        def bring(server):
            if late and late[0] and time.monotonic() - late[0][0] > 3 * LIMIT_S:
                server.answer(1, late[0][1])
                late[0] = None

        _, statuses, out, err = self.launch((0, 1), GREET, env={"QUOIT_NETWORK_LIMIT": f"{LIMIT_S}s", "QUOIT_LINK_TIMEOUT": "60s"},
                                            lie=keep, each_step=bring)
        self.assertEqual((statuses, err, late), ([0, 0], "", [None]), out)
        self.assertEqual(lines(out), greetings(2))

    def test_stopped_host_during_start(self):
        """It stops behind the first fence: the others wait for it in the second, where no heartbeat is heard yet."""
        def stop(server, rank, request, answer):
            if rank == 0 and request["cmd"] == "barrier_in" and server.fences == 0:
                os.kill(server.processes[2].pid, signal.SIGSTOP)
            return answer

        def end(server):
            if all(process.poll() is not None for process in server.processes[:2]):
                server.processes[2].kill()

        server, statuses, out, err = self.launch((0, 0, 1), GREET, env={"QUOIT_LINK_TIMEOUT": f"{LIMIT_S}s"}, lie=stop,
                                                 each_step=end)
        self.assertEqual((statuses, out), ([1, 1, -signal.SIGKILL], ""), err)
        waits = r"(quoit: still waiting for the agent of PE 0's host .*\[Q0237\]\n)*"  # after as many seconds as the limit has
        self.assertRegex(err, r"\A" + waits + r"quoit: host .* has waited [\d.]+ s for another host to join the network.*Q0221\]\n"
                         + waits + r"\Z")
        self.assertLess(server.seconds, SOON_S)

    def test_suspended_while_it_waits_for_contacts(self):
        """All processes are stopped for longer than the limit, one host before it has joined: no time of it counts."""
        limit_s, wait_s = 10, 13
        stopped, since = [], []

        def stop(server, rank, request, answer):
            if rank == 2 and request["cmd"] == "barrier_in" and server.fences == 0:
                os.kill(server.processes[2].pid, signal.SIGSTOP)
            return answer

        def suspend(server):
            waits = server.fences == 1 and any(connection.rank == 0 for connection, _ in server.waiting) # for the contacts
            if waits and not since:
                stopped.extend(scenario.processes(self.mark))
                for pid in stopped:
                    scenario.send(pid, signal.SIGSTOP)
                since.append(time.monotonic())
            if stopped and time.monotonic() - since[0] > wait_s:
                for pid in sorted(stopped):
                    scenario.send(pid, signal.SIGCONT)
                stopped.clear()

        _, statuses, out, err = self.launch((0, 0, 1), GREET, each_step=suspend, lie=stop,
                                            env={"QUOIT_LINK_TIMEOUT": f"{limit_s}s", "QUOIT_NETWORK_LIMIT": f"{4 * wait_s}s"})
        self.assertEqual((statuses, lines(out), bool(since)), ([0, 0, 0], greetings(3), True), err)

    def test_late_pe(self):
        """PE 1 calls shmem_init long after PE 0, which says that it waits, once, and goes on."""
        late = []

        def stop_and_go(server):
            if not late:
                os.kill(server.processes[1].pid, signal.SIGSTOP)
                late.append(time.monotonic())
            elif late[0] and time.monotonic() - late[0] > LIMIT_S:
                os.kill(server.processes[1].pid, signal.SIGCONT)
                late[0] = None

        _, statuses, out, err = self.launch((0, 1), GREET, env={"QUOIT_LINK_TIMEOUT": "1s"}, each_step=stop_and_go)
        self.assertEqual((statuses, late), ([0, 0], [None]), err)
        self.assertRegex(err, r"\A.*warning: PE 0 has waited 1\.0 s in shmem_init .*Q0316\]\n\Z")
        self.assertEqual(lines(out), greetings(2))

    def test_schedules_of_pe_0(self):
        """All PEs take the table of PE 0's user, for the hosts that the launcher has chosen; that of the other host is not read."""
        quoit = os.path.join(scenario.BIN, "quoit")
        with tempfile.TemporaryDirectory() as folder:
            env = {"XDG_CONFIG_HOME": folder}
            told = json.loads(subprocess.run([quoit, "info", "schedules", "--json", "--hosts", "2", "--network", "auto"], text=True,
                                             capture_output=True, env=scenario.environment(self.mark, **env), check=True).stdout)["schedules"]
            os.mkdir(os.path.dirname(told["file"]))
            with open(told["file"], "w", encoding="ascii") as file:
                file.write(f"quoit schedules 1\nhosts 2\nnetwork auto\ndigest {told['digest']}\nbroadcast" + 10 * " tree" + "\nreduce" +
                           10 * " halving" + "\nexchange" + 10 * " dissemination" + "\n")
            conformance = os.path.join(scenario.BIN, "conformance_coll")
            _, statuses, out, err = self.launch((0, 0, 1, 1), conformance, env={**env, "SHMEM_INFO": "1"})
        self.assertEqual((statuses, err), ([0] * 4, ""), out)
        self.assertRegex(out, r"why +tuned, in file\n  broadcast all sizes +tree\n  reduce all sizes +halving\n"
                              r"  exchange all sizes +dissemination\n")

    def test_versions_that_differ(self):
        def lie(server, rank, request, answer):
            is_other = request["cmd"] == "get" and request["key"] == "quoit-2"
            return re.sub(b"quoit,[^,]*", b"quoit,9.8.7:7-8", answer, count=1) if is_other else answer

        _, statuses, out, err = self.launch((0, 0, 1, 1), GREET, lie=lie)
        self.assertEqual((all(statuses), out, err.count("[Q0311]")), (True, "", 1), err)
        self.assertRegex(err, r"PE 2 on \S+ has Quoit of version 9\.8\.7, which version \d+\.\d+\.\d+ of PE 0 \(/.*\) does not")

    def test_no_network(self):
        """The driver's words come out, and the job ends."""
        server, statuses, out, err = self.launch((0, 1), GREET, env={"QUOIT_NETWORK_DEVICE": "nowhere0"},
                                                 each_step=self.end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, r"nowhere0.*\[Q0222\]")

    def test_loopback_alone(self):
        """Host 1 finds no other device: it is said at once, not that a host was lost."""
        ip("-n", self.names[1], "link", "set", "eth0", "down")
        self.addCleanup(ip, "-n", self.names[1], "link", "set", "eth0", "up")
        server, statuses, out, err = self.launch((0, 1), GREET, each_step=self.end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, r"host \d cannot join the network: .*: host 1 has lo 127\.0\.0\.1/8.*, and host 0 has eth0 .*\[Q0128\]")
        self.assertNotIn("was lost", err)
        self.assertLess(server.seconds, SOON_S)

    def test_one_address_everywhere(self):
        """A storage network, or one of machines' controllers, though ssh seems to have come there: all hosts take the other one,
        drivers that have opened this one, too."""
        self.add_cards(["192.168.1.1/24"] * 2)
        first = {"SSH_CONNECTION": "192.168.1.9 4711 192.168.1.1 22"}
        for driver, devices in (("tcp", ""), ("tcp", "^172.16.0.0/12,^lo"), ("tcp", "ens1,10.99.0.0/16"), ("ucx", ""), ("ucx", "^ens1"), ("ofi", ""), ("ofi", "10.99.0.0/16")):
            if not any(one["usable"] for one in self.networks("--network", driver)):
                continue
            with self.subTest(driver=driver, devices=devices):
                _, statuses, out, err = self.launch((0, 0, 1), GREET, env={**first, "QUOIT_NETWORK": driver, "QUOIT_NETWORK_DEVICE": devices})
                self.assertEqual((statuses, lines(out), err), ([0] * 3, greetings(3), ""))
        _, statuses, out, err = self.launch((0, 1), GREET, env={**first, "QUOIT_NETWORK": "tcp", "SHMEM_INFO": "1"})
        self.assertEqual((statuses, err), ([0] * 2, ""), out)
        self.assertRegex(out, r"(?m)^  network +tcp tcp, this host is called at eth0 10\.99\.0\.10/24 port \d+$")
        _, statuses, out, err = self.launch((0, 1), GREET, env={**first, "QUOIT_NETWORK": "tcp", "QUOIT_NETWORK_DEVICE": "ens1"},
                                            each_step=self.end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, r"hosts 0 and 1 have the same address, ens1 192\.168\.1\.1/24, .*\[Q0129\]")

    @staticmethod
    def networks(*options):
        return json.loads(subprocess.run([os.path.join(scenario.BIN, "quoit"), "info", "networks", "--json", *options],
                                         capture_output=True, timeout=scenario.LIMIT_S, check=True).stdout)["networks"]

    def test_ports(self):
        """The one port that is allowed is taken, of each driver; where it is not free, a line names it."""
        port = random.randint(20000, 29999)
        env = {"QUOIT_NETWORK_PORTS": str(port), "QUOIT_NETWORK_DIRECT": "no", "QUOIT_LINK_TIMEOUT": "60s"}
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)

        def ports():
            listed = subprocess.run(["ip", "netns", "exec", self.names[0], "cat", "/proc/net/tcp"], capture_output=True, text=True,
                                    check=True).stdout.splitlines()[1:]
            return [int(line.split()[1].split(":")[1], 16) for line in listed if line.split()[3] == "0A"]

        for driver in ("tcp", "ucx", "ofi"):
            if not any(one["usable"] for one in self.networks("--network", driver)):
                continue
            with self.subTest(driver=driver):
                path = os.path.join(folder, driver)

                def look(server):
                    if not os.path.exists(path + ".end") and port in ports():
                        open(path + ".end", "w").close()

                _, statuses, out, err = self.launch((0, 1), BUSY, "until", path, env={**env, "QUOIT_NETWORK": driver}, each_step=look)
                self.assertEqual((statuses, err), ([0] * 2, ""), out)
        holder = subprocess.Popen(["ip", "netns", "exec", self.names[0], sys.executable, "-c", "import socket, sys\n"
                                   f"s = socket.create_server(('{self.addresses[0]}', {port}))\nprint('on', flush=True)\nsys.stdin.read()"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.communicate)
        self.assertEqual(holder.stdout.readline(), "on\n")
        _, statuses, out, err = self.launch((0, 1), GREET, env={**env, "QUOIT_NETWORK": "tcp", "QUOIT_NETWORK_DEVICE": "10.99.0.0/24"},
                                            each_step=self.end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, rf"no port of --network-ports {port}-{port} is left to listen on eth0 10\.99\.0\.10/24: "
                              r"Address already in use \[Q0222\]")

    def test_dropped_and_refused(self):
        """What is sent to the other host gets lost, as a firewall has it, or there is no way to it: device, address and port are
        named, and why."""
        for spoil, reason in ((self.lose_packets, r"connect timed out: does a firewall drop it\? \[Q0130\]"),
                              (self.cut_route, r"No route to host \[Q0130\]")):
            undo = [spoil(0, 1), spoil(1, 0)]
            _, statuses, out, err = self.launch((0, 1), GREET, env={"QUOIT_NETWORK": "tcp", "QUOIT_LINK_TIMEOUT": "4s", "QUOIT_NETWORK_LIMIT": "4s"},
                                                each_step=self.end_all)
            for act in undo:
                act()
            self.assertEqual((all(statuses), out), (True, ""), err)
            self.assertRegex(err, r"host (0 does not reach host 1 from eth0 10\.99\.0\.10/24 to 10\.99\.0\.11|"
                                  r"1 does not reach host 0 from eth0 10\.99\.0\.11/24 to 10\.99\.0\.10) port \d+: " + reason)

    def test_large_packets_get_lost(self):
        """What is larger than a link on the way takes does not arrive, and nobody reports it: the job goes on with smaller packets, by
        proxies, PEs' own ends and their sockets, and says so once."""
        if not self.lose_large_packets(0, 1):
            self.skipTest("ip sets no gso_max_segs")
        for direct in ("no", "yes"):
            with self.subTest(direct=direct):
                _, statuses, out, err = self.launch((0, 1, 1), MIX, "--seconds", 2, "--seed", 7,
                                                    env={"QUOIT_NETWORK": "tcp", "QUOIT_NETWORK_DIRECT": direct}, each_step=self.end_all)
                self.assertEqual(statuses, [0] * 3, out + err)
                self.assertRegex(err, r"\A\S+: host (0 .* carry 1440 bytes: on the way to host 1|1 .* carry 1440 bytes: on the way to host 0) "
                                      r"those of 89\d\d get lost, .*\[Q0133\]\n\Z")

    def test_link_local_alone(self):
        """One host has no IPv4: what all have are addresses of one link, of which each host has its own number."""
        for host in (0, 1):
            end = time.monotonic() + scenario.LIMIT_S
            while time.monotonic() < end:
                listed = subprocess.run(["ip", "-n", self.names[host], "-6", "-oneline", "address", "show", "dev", "eth0", "scope", "link"],
                                        capture_output=True, text=True, check=False).stdout
                if "tentative" not in listed:
                    break
            if "fe80" not in listed:
                self.skipTest("no IPv6 here")
        ip("-n", self.names[1], "address", "delete", self.addresses[1] + "/24", "dev", "eth0")
        self.addCleanup(ip, "-n", self.names[1], "address", "add", self.addresses[1] + "/24", "dev", "eth0")
        _, statuses, out, err = self.launch((0, 0, 1, 1), BUSY, 20, env={"QUOIT_NETWORK": "tcp", "QUOIT_NETWORK_DIRECT": "yes"})
        self.assertEqual((statuses, err), ([0] * 4, ""), out)

    def test_one_host_has_no_ucx(self):
        """Its library is no library there: both drivers are named, and how to choose one for all."""
        told = json.loads(subprocess.run([os.path.join(scenario.BIN, "quoit"), "info", "networks", "--json"], capture_output=True,
                                         timeout=scenario.LIMIT_S, check=True).stdout)
        if not told["auto"].startswith("ucx") or {one["driver"] for one in told["networks"] if one["usable"]} != {"ofi", "ucx"}:
            self.skipTest("UCX does not come first here, or libfabric is not here")
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "libucp.so.0"), "w") as file:
                file.write("nothing")
            program = ("sh", "-c", f'[ "$PMI_RANK" = 0 ] || export LD_LIBRARY_PATH={folder}; exec {GREET}')
            server, statuses, out, err = self.launch((0, 1), *program, each_step=self.end_all)
            self.assertEqual((all(statuses), out), (True, ""), err)
            self.assertRegex(err, r"host 1 cannot join the network: it takes ofi tcp\S*, and host 0 takes ucx tcp; .*Q0222|"
                                  r"host 0 cannot join the network: it takes ucx tcp, and host 1 takes ofi tcp\S*; .*Q0222")
            self.assertNotIn("was lost", err)
            self.assertLess(server.seconds, SOON_S)
    def test_hosts_that_differ(self):
        """One takes another driver: both are named, and how to choose one for all."""
        told = json.loads(subprocess.run([os.path.join(scenario.BIN, "quoit"), "info", "networks", "--json"], capture_output=True,
                                         timeout=scenario.LIMIT_S, check=True).stdout)
        if not told["auto"].startswith("tcp") or not any(one["driver"] == "ofi" and one["usable"] for one in told["networks"]):
            self.skipTest("tcp does not come first here, or libfabric is not here")
        program = ("sh", "-c", f'[ "$PMI_RANK" = 0 ] || export QUOIT_NETWORK=ofi; exec {GREET}')
        server, statuses, out, err = self.launch((0, 1), *program, each_step=self.end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, r"host 1 cannot join the network: it takes ofi tcp\S*, and host 0 takes tcp tcp; .*Q0222|"
                              r"host 0 cannot join the network: it takes tcp tcp, and host 1 takes ofi tcp\S*; .*Q0222")
        self.assertNotIn("was lost", err)
        self.assertLess(server.seconds, SOON_S)
        *_, statuses, out, err = self.launch((0, 1), *program, env={"QUOIT_NETWORK": "ofi"})
        self.assertEqual((statuses, lines(out), err), ([0, 0], greetings(2), ""))

    @staticmethod
    def end_all(server):
        """As a launcher does that is asked for it."""
        if server.aborts:
            for process in server.processes:
                process.kill()


if __name__ == "__main__":
    scenario.main(6)
