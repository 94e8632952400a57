# SPDX-License-Identifier: BSD-3-Clause
"""Aim: parts of a ring that stays die, stop or come back, one or several at once, and nothing is left of what was theirs; rings do
not see each other. Method: the rings and programs of net.py; processes of the ring killed or stopped by number."""
import hashlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import frames
import scenario
from frames import chunk
from net import LIMIT_S, QUOIT, Ring


OF_A_RING = ("quoit-ring", "quoit-host", "quoit-guard", "quoit")
SIGNALS = int(os.environ.get("TROUBLE_SIGNALS", 12))


class Trouble(Ring):
    def test_half_of_it_reboots(self):
        """Hosts killed at once begin anew without what ran there; the others' programs go on; a stopped host is named."""
        self.ring("up", "--hosts", 5)
        guests = [self.serve(host, "serve_udp") for host in range(5)]
        before = self.status()
        for host in (0, 2, 3):
            os.kill(before[host]["pid"], signal.SIGKILL)
        self.wait_for_ring("they are back", lambda: [(host["starts"], host["ready"]) for host in self.status()] ==
                      [(2, True), (1, True), (2, True), (2, True), (1, True)])
        self.wait_for_ring("the links are up", lambda: self.status_of_links() == {"up"})
        for host in (0, 2, 3):
            self.assertEqual(guests[host].wait(timeout=LIMIT_S), -signal.SIGKILL)
        self.assertEqual([guests[host].poll() for host in (1, 4)], [None, None])
        found = self.ring("doctor", check=False).stdout
        self.assertEqual(found.count("its process was killed"), 3, found)
        self.transfer(0, 3, 10)
        self.finish(self.on(2, "ask_udp", self.address(1), 1))
        os.kill(self.status()[4]["pid"], signal.SIGSTOP)
        self.wait_for_ring("the stopped host is named", # it stops when its threads have taken the signal
                      lambda: f"kill -CONT {before[4]['pid']}" in self.ring("doctor", check=False).stdout)
        os.kill(before[4]["pid"], signal.SIGCONT)
        self.ring("down")
        self.assertEqual([guests[host].wait(timeout=LIMIT_S) for host in (1, 4)], [-signal.SIGKILL] * 2)

    def test_stopped_keeper(self):
        """Each command names it and says how it goes on, however many have asked before; then it does. `down` ends it stopped."""
        self.ring("up", "--hosts", 2)
        keeper, hosts = self.keeper(), self.status()
        os.kill(keeper, signal.SIGSTOP)
        try:
            asked = [subprocess.Popen([QUOIT, "ring", "status", "--ring", self.name], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) for _ in range(12)]
            texts = [child.communicate(timeout=LIMIT_S)[1] for child in asked]
            for words in (["status", "--json"], ["exec", "0", "--", "true"], ["cut", 0], ["doctor"]):
                result = self.ring(*words, check=False)
                self.assertEqual(result.returncode, 1, result)
                texts.append(result.stderr + result.stdout)
        finally:
            os.kill(keeper, signal.SIGCONT)
        for text in texts:
            self.assertRegex(text, rf"the keeper of the ring \"{self.name}\" \(process {keeper}\) does not answer: it is stopped by a "
                                   rf"signal .*\n  kill -CONT {keeper} +\[Q0245\]\n$")
        self.assertEqual([host["pid"] for host in self.status()], [host["pid"] for host in hosts])
        os.kill(keeper, signal.SIGSTOP)
        self.assertIn(f"process {keeper}, which keeps the ring", self.ring("down").stderr)
        self.assertIn("there is no ring", self.ring("status", check=False).stderr)

    def up_at_step(self, action):
        """`ring up`, in which a process meets an action at a step (base/step.h)."""
        scenario.need_steps()
        up = subprocess.Popen([QUOIT, "ring", "up", "--ring", self.name, "--hosts", "3"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=scenario.environment(self.mark, TEST_STEP=action))
        self.children.append(up)
        return up

    def up_when_the_name_is_free(self, hosts):
        """After a keeper that ends by itself, when its command has been killed."""
        self.wait_until("the name is free", lambda: "is up already" not in self.ring("up", "--hosts", hosts, check=False).stderr)

    def first_line(self, child):
        self.assertTrue(select.select([child.stderr], [], [], scenario.LATE_S)[0], "it waits in silence")
        line = child.stderr.readline()
        if "Q0601" in line or "Q0602" in line:
            self.skipTest(line.strip())
        return line

    def test_stopped_in_the_start(self):
        """Who is stopped while a ring starts is named, with the cure; and then it comes up."""
        for step, who in (("keeper.begin", "the keeper"), ("keeper.start", "the keeper"), ("keeper.ready", "the keeper"),
                          ("ringhost1.begin", "host1")):
            with self.subTest(step=step):
                up = self.up_at_step(f"{step}=stop")
                line = self.first_line(up)
                named = re.fullmatch(rf"quoit ring: still waiting for {who} of the ring \"{self.name}\" \(process (\d+)\), after \d+ s: "
                                     r"it is stopped by a signal \(SIGCONT continues it\)\n", line)
                self.assertTrue(named, line)
                self.assertEqual(up.stderr.readline(), f"  kill -CONT {named[1]} [Q0246]\n")
                os.kill(int(named[1]), signal.SIGCONT)
                rest = up.communicate(timeout=LIMIT_S)[1]
                self.assertEqual((up.returncode, rest), (0, ""))
                self.transfer(0, 1, 5)
                self.ring("down")

    def test_end_in_the_start(self):
        """Who is killed or hangs while a ring starts is named, and nothing is left of the ring."""
        for action, words in (("keeper.begin=kill", "the keeper .* ended before the ring was up"),
                              ("keeper.ready=kill", "the keeper .* ended before the ring was up"),
                              ("ringhost1.begin=kill", "host1 was ended by signal 9 before the ring .* was up"),
                              ("keeper.start=hang", r"the keeper of the ring .* \(process \d+\) could run, but did nothing for 12 s"),
                              ("ringhost.begin=hang", r"does not come up: 3 of its hosts could run, but did nothing for 12 s")):
            with self.subTest(action=action):
                up = self.up_at_step(action)
                error = self.first_line(up) + up.communicate(timeout=LIMIT_S)[1]
                self.assertEqual(up.returncode, 1, error)
                self.assertRegex(error, words + r".*\[Q0603\]")
                self.wait_until("all have ended", lambda: not self.pids_of(*OF_A_RING))

    def test_terminated_in_the_start(self):
        """SIGTERM, which a host and a keeper take as the word to end, is reported, too."""
        for who, words in (("host1", "host1 was ended by signal 15 before"), ("the keeper", "ended by a signal to its keeper before")):
            with self.subTest(who=who):
                up = self.up_at_step("ringhost1.begin=stop")
                host = int(re.search(r"process (\d+)", self.first_line(up))[1])
                if who == "host1":
                    os.kill(host, signal.SIGTERM)
                    os.kill(host, signal.SIGCONT)
                else:
                    os.kill(scenario.parent_of(host), signal.SIGTERM)
                error = up.communicate(timeout=LIMIT_S)[1]
                self.assertEqual(up.returncode, 1, error)
                self.assertRegex(error, words + r".*\[Q0603\]")
                self.wait_until("all have ended", lambda: not self.pids_of(*OF_A_RING))

    def test_command_that_ends_in_the_start(self):
        """A keeper that still waits for its hosts ends with the command that started it, also by Ctrl-C while the keeper is
        stopped."""
        for step, number in (("ringhost1.begin", signal.SIGKILL), ("ringhost1.begin", signal.SIGINT), ("keeper.begin", signal.SIGINT),
                             ("keeper.ready", signal.SIGTERM)):
            with self.subTest(step=step, number=number):
                up = self.up_at_step(f"{step}=stop")
                self.first_line(up)
                up.send_signal(number)
                self.assertEqual(up.wait(timeout=LIMIT_S), -number)
                if number == signal.SIGKILL:
                    self.up_when_the_name_is_free(2)
                else:
                    self.ring("up", "--hosts", 2)
                self.ring("down")
                self.wait_until("all have ended", lambda: not self.pids_of(*OF_A_RING))

    def test_signals_at_random(self):
        """A process of a ring, or a command of it, gets a signal at a random instant of its start or end; one that is stopped
        goes on later, or the user gives up. The command ends, with 0 or a reason, and nothing is left of the ring."""
        seed = int(os.environ.get("TROUBLE_SEED", random.SystemRandom().randrange(1 << 32)))
        print("TROUBLE_SEED", seed, file=sys.stderr)
        draw = random.Random(seed)
        self.ring("up", "--hosts", 2)
        self.ring("down")
        for _ in range(SIGNALS):
            phase, hosts = draw.choice(("up", "up", "down")), draw.choice((2, 3, 9))
            kind = draw.choice(("KILL", "TERM", "STOP", "STOP for ever"))
            delay_s, stopped_s = draw.uniform(0, 0.15), draw.uniform(0, 3)
            with self.subTest(phase=phase, kind=kind, hosts=hosts, delay_s=delay_s, stopped_s=stopped_s):
                if phase == "down":
                    self.up_when_the_name_is_free(hosts)
                words = ["up", "--hosts", str(hosts)] if phase == "up" else ["down"]
                command = subprocess.Popen([QUOIT, "ring", *words, "--ring", self.name], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, text=True, env=scenario.environment(self.mark))
                self.children.append(command)
                time.sleep(delay_s)
                struck = draw.choice(self.pids_of(*OF_A_RING) or [command.pid])
                self.strike(struck, kind, stopped_s, command)
                error = command.communicate(timeout=LIMIT_S)[1]
                self.assertTrue(command.returncode <= 0 or error, f"status {command.returncode} without a word")
                last = self.ring("down", check=False)
                self.assertTrue(last.returncode == 0 or "there is no ring" in last.stderr, last)
                self.wait_until("all have ended", lambda: not self.pids_of(*OF_A_RING))

    def strike(self, pid, kind, stopped_s, command):
        number = signal.SIGSTOP if kind.startswith("STOP") else getattr(signal, "SIG" + kind)
        if not scenario.send(pid, number) or number != signal.SIGSTOP:
            return
        time.sleep(stopped_s)
        if kind == "STOP":
            scenario.send(pid, signal.SIGCONT)
        else: # of a command that is stopped itself, or waits for one that is
            scenario.send(command.pid, signal.SIGKILL if pid == command.pid else signal.SIGINT)

    def test_top_of_a_stopped_keeper(self):
        """It names the keeper and goes on with it."""
        self.ring("up", "--hosts", 2)
        keeper = self.keeper()
        for options in ([], ["--json"]):
            os.kill(keeper, signal.SIGSTOP)
            top = subprocess.Popen([QUOIT, "top", "--ring", self.name, "--once", *options], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=scenario.environment(self.mark))
            self.children.append(top)
            line = self.first_line(top) + top.stderr.readline()
            os.kill(keeper, signal.SIGCONT)
            self.assertRegex(line, rf"still waiting for the keeper of the ring \"{self.name}\" \(process {keeper}\), after \d+ s: "
                                   rf"it is stopped by a signal .*\n  kill -CONT {keeper} \[Q0246\]\n$")
            out, rest = top.communicate(timeout=LIMIT_S)
            self.assertEqual((top.returncode, rest), (0, ""), out)
            self.assertIn(self.name, out)

    @unittest.skipIf(scenario.SANITIZE, "a sanitizer wants to be the first library")
    def test_tool_of_the_command(self):
        """What the user preloads into `ring up`, and what that has open, is in no process of the ring."""
        held, open_end = os.pipe()
        env = scenario.environment(self.mark, LD_PRELOAD=scenario.program("libscenario_tool.so"))
        up = subprocess.run([QUOIT, "ring", "up", "--ring", self.name, "--hosts", "2"], env=env, capture_output=True, text=True,
                            timeout=LIMIT_S, pass_fds=[open_end])
        if "Q0601" in up.stderr or "Q0602" in up.stderr:
            self.skipTest(up.stderr.strip())
        self.assertEqual((up.returncode, up.stderr), (0, ""))
        os.close(open_end)
        self.assertEqual(os.read(held, 1), b"")
        os.close(held)
        names = ("quoit-ring", "quoit-host", "quoit-guard")
        self.wait_for(lambda: len(self.pids_of(*names)) == 4, "the keeper, its guard and two hosts")
        for pid in self.pids_of(*names):
            with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
                self.assertNotIn("libscenario_tool", file.read())
        self.transfer(0, 1, 10)

    def test_keeper_and_hosts_at_once(self):
        """What ran on a host that died together with the keeper ends too, and a host that is stopped does not keep the name."""
        self.ring("up", "--hosts", 3)
        keeper, hosts = self.keeper(), self.status()
        guests = [self.serve(host, "serve_udp") for host in (0, 1)]
        os.kill(hosts[2]["pid"], signal.SIGSTOP)
        self.wait_until("it is stopped", lambda: scenario.state_of(hosts[2]["pid"]) == "T")
        for pid in (keeper, hosts[1]["pid"]):
            os.kill(pid, signal.SIGKILL)
        for guest in guests:
            self.assertEqual(guest.wait(timeout=LIMIT_S), -signal.SIGKILL)
        self.wait_until("its hosts have ended", lambda: all(scenario.state_of(host["pid"]) in ("", "Z") for host in hosts))
        self.ring("up", "--hosts", 3)
        self.transfer(0, 1, 5)

    def test_programs_that_fork(self):
        """Nothing is left of a host that ends while programs start others there, nor of one with a network of its own."""
        for end in ("down", "kill"):
            self.ring("up", "--hosts", 2)
            guest = subprocess.Popen([QUOIT, "ring", "exec", "--ring", self.name, "0", "--", "sh", "-c", "unshare -n sleep 99 & while :; do sleep 99 & done"],
                                     env=scenario.environment(self.mark), stderr=subprocess.DEVNULL)
            self.wait_until("it forks", lambda: len(self.pids_of("sleep")) > 20)
            if end == "down":
                self.ring("down")
            else:
                os.kill(self.status()[0]["pid"], signal.SIGKILL)
            self.assertEqual(guest.wait(timeout=LIMIT_S), -signal.SIGKILL)
            self.wait_until("all have ended", lambda: not self.pids_of("sleep", "sh"))

    def test_host_that_starts_with_a_dead_link(self):
        self.ring("up", "--hosts", 3)
        self.ring("cut", 0)
        os.kill(self.status()[0]["pid"], signal.SIGKILL)
        self.wait_for_ring("host 0 is back", lambda: (lambda host: host["starts"] == 2 and host["ready"] and host["left"]["state"] == "up")(
            self.status()[0]))
        self.transfer(0, 1, 10)
        self.ring("mend", 0)
        self.wait_for_ring("its links are up", lambda: self.status_of_links() == {"up"})

    def test_job_that_begins_with_a_dead_link(self):
        """It begins at once, goes the other way, and goes on while the link comes back and another is cut."""
        self.ring("up", "--hosts", 3)
        self.ring("cut", 1)
        whole = os.path.join(scenario.BIN, "mix")
        if not os.path.exists(whole):
            self.skipTest("no library, so no jobs")
        words = ("--ring", self.name, "--link-timeout", "1h", "--link-limit", "20s", "-n", 4, whole, "--seconds")
        result = self.run_job(*words, 0.5)
        self.assertEqual(result.status, 0, result)
        refused = self.run_job("--barrier", "papers", *words, 0.5)
        self.assertEqual(refused.status, 1, refused)
        self.assertIn("a link of it is cut", refused.err)
        job = self.start(*words, 2)
        self.wait_for_ring("it is there", lambda: len(json.loads(self.ring("status", "--json").stdout)["jobs"]) == 1)
        self.ring("mend", 1)
        self.wait_for_ring("all links are up", lambda: self.status_of_links() == {"up"})
        self.ring("cut", 0)
        out, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 0, out + err)

    def test_host_that_is_cut_off(self):
        """What is sent to it does not hold up what is for others."""
        self.ring("up", "--hosts", 4)
        server = self.serve(1, "serve_udp")
        lost = self.status()[0]["lost_frames"]
        shouter = subprocess.Popen([QUOIT, "ring", "exec", "--ring", self.name, "0", "--", sys.executable, frames.__file__, "shed", "udp",
                                    self.address(2), "1000000", "100", "1"], stdout=subprocess.DEVNULL)
        self.children.append(shouter)
        self.wait_for_ring("host 2 is spoken to", lambda: self.status()[2]["received_frames"] > 10)
        for link in (1, 2):
            self.ring("cut", link)
        self.wait_for_ring("its frames are lost at once", lambda: self.status()[0]["lost_frames"] > lost + 50)
        self.finish(self.on(0, "ask_udp", self.address(1), 1))
        server.kill()

    def test_what_the_caller_leaves_to_it(self):
        """Closed streams, SIGCHLD ignored, and a pipe, of which the ring keeps none."""
        there, here = os.pipe()
        subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", QUOIT, "ring", "up", "--ring", self.name, "--hosts", "3"], check=True,
                       timeout=LIMIT_S, pass_fds=[here], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        os.close(here)
        self.assertTrue(select.select([there], [], [], scenario.LATE_S)[0])
        os.close(there)
        os.kill(self.status()[1]["pid"], signal.SIGKILL)
        self.wait_for_ring("host 1 is back", lambda: (lambda host: host["starts"] == 2 and host["ready"])(self.status()[1]))
        self.transfer(0, 1, 5)

    def test_keeper_that_is_silent(self):
        self.ring("up", "--hosts", 2)
        keeper = self.keeper()
        guest = self.serve(1, "serve_udp")
        os.kill(keeper, signal.SIGSTOP)
        self.wait_until("the silent keeper is named", # it stops when its threads have taken the signal
                        lambda: f"(process {keeper}) does not answer: it is stopped" in self.ring("doctor", check=False).stdout)
        self.assertIn("was killed", self.ring("down").stderr)
        self.assertEqual(guest.wait(timeout=LIMIT_S), -signal.SIGKILL)
        self.assertIn("there is no ring", self.ring("status", check=False).stderr)

    def test_rings_side_by_side(self):
        """The same network on both, and the same ports: they do not see each other."""
        first, second = self.name, self.name + "2"
        digests = []
        for self.name in (first, second):
            self.ring("up", "--hosts", 2)
        try:
            servers = []
            for self.name in (first, second):
                servers.append(self.serve(1, "serve_tcp"))
            for self.name in (first, second):
                self.finish(self.on(0, "send_tcp", self.address(1), self.name, 20))
            digests = [self.finish(server).strip() for server in servers]
            self.assertLessEqual({first, second}, set(self.ring("list").stdout.split()))
            self.ring("down")
            self.name = first
            self.assertNotIn(second, self.ring("list").stdout.split())
            self.transfer(0, 1, 5)
        finally:
            for self.name in (second, first):
                self.ring("down", check=False)
        expected = []
        for name in (first, second):
            digest = hashlib.sha256()
            for at in range(20):
                digest.update(chunk(name, at))
            expected.append(digest.hexdigest())
        self.assertEqual(digests, expected)


if __name__ == "__main__":
    unittest.main()
