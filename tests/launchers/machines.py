# SPDX-License-Identifier: BSD-3-Clause
"""Aim: jobs over several machines by oshrun's agents: output, input, signals, statuses and reports are as on one; whatever ends
(a PE, an agent, oshrun, a cable) ends the job within the limit, names the machine, and leaves nothing anywhere.

Method: Agents runs all agents on this machine, by a --rsh that ignores the name. Hosts makes machines of network namespaces
joined by a bridge (as root), with a remote shell of its own in each, whose connections a cut cable cuts too; the stress
program checks every byte."""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scenario"))
import scenario
from scenario import greetings
from namespaces import RSH, Namespaces, ip

GREET, MISBEHAVE, BUSY = (scenario.program("scenario_" + name) for name in ("greet", "misbehave", "busy"))
QUOIT = os.path.join(scenario.BIN, "quoit")
START_RATIO = 30  # of 64 PEs on 4 hosts to as many on one, where 10 is usual
LIMIT_S = 3
LIMIT = ("--network-limit", f"{LIMIT_S}s")
SHORT = ("--network-limit", "1s")


def has_network():
    found = subprocess.run([QUOIT, "info", "networks"], capture_output=True, text=True, timeout=scenario.LIMIT_S, check=False)
    return "taken" in found.stdout


HAS_NETWORK = unittest.skipUnless(has_network(), "no network driver finds a network here: quoit info networks")


def lines(text):
    return sorted(text.split("\n")[:-1])


def agents(mark):
    """The processes that do the agents' work, not their guards."""
    found = []
    for pid in scenario.processes(mark):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().split(b"\0")[1:2] == [b"--agent"] and scenario.name_of(pid) == "quoit-job":
                    found.append(pid)
        except OSError:
            pass
    return sorted(found)


class Machines(scenario.Case):
    @classmethod
    def script(cls, text):
        """A remote shell in the class's folder."""
        path = os.path.join(cls.folder, f"rsh{random.getrandbits(64):x}")
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
        return path

    def busy(self, *options, **how):
        job = self.start(*self.options, *options, BUSY, **how)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        return job

    def agent_of(self, name):
        """Where the remote shell of the test puts the name of a machine into HOSTNAME."""
        for pid in agents(self.mark):
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"HOSTNAME={name}".encode() in file.read().split(b"\0"):
                    return pid
        self.fail(f"{name} has no agent")

    def end_of(self, job, status, words, limit_s=0):
        begin = time.monotonic()
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertLess(time.monotonic() - begin, limit_s + scenario.LATE_S)
        self.assertEqual(job.returncode, status, err.decode())
        self.assertRegex(err.decode(), words)
        self.assert_nothing_left()

    @staticmethod
    def hold(agent):
        """Stops the process that does the agent's work, until it is continued."""
        os.kill(agent, signal.SIGSTOP)
        return agent

    def freeze(self, job, victim, names):
        """Stops an agent, of a job with SHORT, until that has ended: where the network reaches the machine, after five times that."""
        os.kill(victim, signal.SIGSTOP)
        begin = time.monotonic()
        _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertGreater(time.monotonic() - begin, 4)
        self.assertRegex(err.decode(), rf"(?m)^oshrun: ({names}) was lost: nothing came from it for [\d.]+ s")
        scenario.send(victim, signal.SIGCONT)  # unless its shell was killed, and it with that


class Kills:
    """Tests that a job has by one agent for each machine, and by a tree of them."""

    def test_killed_oshrun(self):
        """Its first process, whose end the others tell; and the one that runs the job, of which the agents hear no more. No agent
        descends from oshrun, whose guard would end it."""
        address = "127." + ".".join(str(random.randint(1, 254)) for _ in range(3))
        server = subprocess.Popen([sys.executable, "-B", RSH, "serve", address], stdout=subprocess.PIPE, text=True)
        self.addCleanup(Namespaces.end, server)
        server.stdout.readline()
        rsh = self.script(f'shift; exec {sys.executable} -B {RSH} {address} "$@"')
        for is_first in (True, False):
            with self.subTest(is_first=is_first):
                job = self.busy("--rsh", rsh)
                runner = next(pid for pid in self.pids_of("quoit-job") if pid not in agents(self.mark))
                os.kill(job.pid if is_first else runner, signal.SIGKILL)
                job.communicate(timeout=scenario.LIMIT_S)
                self.assert_nothing_left()


class Options(scenario.Case):
    def hostfile(self, text):
        path = os.path.join(tempfile.mkdtemp(), "hosts")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        with open(path, "w") as file:
            file.write(text)
        return path

    def places(self, *options):
        result = self.run_job("--dry-run", *options, GREET)
        self.assertEqual(result.status, 0, result)
        return [line.split()[2] for line in result.out.splitlines()]

    def test_places(self):
        self.assertEqual(self.places("--host", "a,b"), ["a", "b"])
        self.assertEqual(self.places("--host", "a,b", "-n", 5), list("aaabb"))
        self.assertEqual(self.places("--host", "a:3,b:1"), list("aaab"))
        self.assertEqual(self.places("-H", "a:3,b:2", "-n", 4), list("aaab"))
        self.assertEqual(self.places("--host", "a:1,b:2", "-n", 5), list("aabbb"))
        self.assertEqual(self.places("--host", "a:3,b", "-n", 2), list("aa"))
        self.assertEqual(self.places("--host", "b,a,b"), list("bba"))
        self.assertEqual(self.places("--host", "fe80::1"), ["fe80::1"])
        self.assertEqual(self.places("--host", "[fd00::14]:2,me@[fd00::15],[fd00::14]"), ["fd00::14"] * 3 + ["me@fd00::15"])

    def test_hostfile(self):
        path = self.hostfile("# ours\n\na slots=2 max_slots=4  # two\n  me@b:1\r\nc\n")
        self.assertEqual(self.places("--hostfile", path), ["a", "a", "me@b", "c"])
        self.assertEqual(self.places("-machinefile", path, "--host", "z"), ["z", "a", "a", "me@b", "c"])

    def test_allocations(self):
        def places(nodes, tasks, *options):
            env = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes}
            if tasks:
                env["SLURM_TASKS_PER_NODE"] = tasks
            result = self.run_job("--dry-run", *options, GREET, env=env)
            self.assertEqual(result.status, 0, result)
            return [line.split()[2] for line in result.out.splitlines()]

        self.assertEqual(places("n[09-11]", "2(x2),1"), ["n09", "n09", "n10", "n10", "n11"])
        self.assertEqual(places("a,b[1,3-4]-ib,c", None), ["a", "b1-ib", "b3-ib", "b4-ib", "c"])
        self.assertEqual(places("n[1-2]", "1(x2)", "--host", "z"), ["z"])
        self.assertEqual(places("n[1-2]", "4(x2)", "--hosts", 2), ["host0", "host1"])
        self.assertEqual(places("n1", "4"), ["n1"] * 4) # the shell of salloc may run elsewhere
        self.assertEqual(places("n1", "4", "-n", 2), ["n1"] * 2)
        self.assertEqual(places(os.uname().nodename, "3"), ["host0"] * 3)
        self.assertEqual(places(os.uname().nodename, "3", "-n", 1), ["host0"])
        path = self.hostfile("m1\nm1\nm2\n")
        result = self.run_job("--dry-run", GREET, env={"PBS_JOBID": "1", "PBS_NODEFILE": path})
        self.assertEqual([line.split()[2] for line in result.out.splitlines()], ["m1", "m1", "m2"])
        for variables in ({"OAR_JOB_ID": "7", "OAR_NODEFILE": path}, {"OAR_JOB_ID": "7", "OAR_NODE_FILE": path}):
            result = self.run_job("--dry-run", GREET, env=variables)
            self.assertEqual([line.split()[2] for line in result.out.splitlines()], ["m1", "m1", "m2"])
        path = self.hostfile("n1.cluster 2 all.q@n1.cluster UNDEFINED\nn2.cluster 1 all.q@n2.cluster 0,0:0,1\n"
                             "n1.cluster 1 long.q@n1.cluster <NULL>\n")
        result = self.run_job("--dry-run", GREET, env={"JOB_ID": "7", "PE_HOSTFILE": path})
        self.assertEqual([line.split()[2] for line in result.out.splitlines()], ["n1.cluster"] * 3 + ["n2.cluster"], result)
        for text, words in (("n1\n", 'there are no slots behind "n1"'), ("n1 0 q x\n", 'slots must be 1..1023, not "0"'),
                            ("\n", "names no host")):
            result = self.run_job("--dry-run", GREET, env={"JOB_ID": "7", "PE_HOSTFILE": self.hostfile(text)})
            self.assertEqual(result.status, 2, result)
            self.assertRegex(result.err, f"oshrun: PE_HOSTFILE: .*{words}.*; --host names the machines")
        for nodes in ("n[1", "n[]", "n[2-1]", "n[x]", "n[1-2]m[3]", "n[1-99999]", "n[1-2", "["):
            result = self.run_job("--dry-run", GREET, env={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes})
            self.assertEqual(result.status, 2, f"{nodes} {result}")
            self.assertIn("SLURM_JOB_NODELIST: ", result.err)

    def test_bad_lines_are_named(self):
        for text, where, words in (("a\nb slots=x\n", 2, 'slots must be 1..1023, not "x"'),
                                   ("a slots=0\n", 1, 'slots must be 1..1023, not "0"'),
                                   ("# a\nb cores 2\n", 2, '"cores" is not understood; a line is: name slots=N'),
                                   ("-oProxyCommand=x\n", 1, '"-oProxyCommand=x" is no name of a host'),
                                   ("m\x1b[2J\n", 1, '"m?[2J" is no name of a host'),
                                   ("a\n" + "b" * 2000 + "\n", 2, "the line is longer than"),
                                   ("a:1024\n", 1, "slots must be 1..1023")):
            path = self.hostfile(text)
            result = self.run_job("--hostfile", path, GREET)
            self.assertEqual(result.status, 2, result)
            self.assertIn(f"oshrun: --hostfile: {path}:{where}: {words}", result.err)
        for options, words in ((("--hostfile", "/nowhere"), "/nowhere: No such file"),
                               (("--hostfile", "/"), "/: Is a directory"),
                               (("--hostfile", self.hostfile("a\0\nb\n")), ":1: the line has a zero byte"),
                               (("--hostfile", self.hostfile("#\n")), "names no host"),
                               (("--host", "a,,b"), '--host a,,b: "" is no name of a host'),
                               (("--host", "[fd00::1]2"), '"[fd00::1]2": behind ] there may be :SLOTS, and no more'),
                               (("--host", "[]"), '"" is no name of a host'),
                               (("--host", "[fd00::1]:x"), 'slots must be 1..1023, not "x"'),
                               (("--host", "a,b", "--network-device", "10.1.0.0/33"), '--network-device: "10.1.0.0/33" is no subnet'),
                               (("--host", "a,b", "--network-ports", "9-1"), '--network-ports: "9-1" is no port'),
                               (("--host", "a", "--hosts", 2), "--hosts is for the hosts of one machine"),
                               (("--host", "a,b", "--network", "ring"), "--network ring joins the hosts of one machine")):
            result = self.run_job(*options, GREET)
            self.assertEqual(result.status, 2, result)
            self.assertIn(words, result.err)

    def test_agent_is_not_for_users(self):
        for text in ("", "hello\n", "quoit-agent 00\n"):
            result = self.run_job("--agent", text_in=text)
            self.assertEqual((result.status, result.out), (2, ""), result)
            self.assertIn("oshrun starts its agents itself", result.err)
        result = self.run_job("--agent", text_in="quoit-agent " + "0f" * 16 + " 0.0.0\n")
        self.assertRegex(result.out, r"^quoit-agent (0f){16} \d+\.\d+\.\d+:\d+-\d+ /\S+/oshrun\n$")


@HAS_NETWORK
class Agents(Kills, Machines):
    """Both names are this machine."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.options = ("--host", "east:2,west:1", "--rsh", cls.script('shift; exec "$@"'))

    def test_greetings(self):
        result = self.run_job(*self.options, GREET)
        self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(3), ""), result)
        result = self.run_job(*self.options, "--tag", "-n", 1, GREET, ":", "-n", 2, GREET)
        self.assertEqual(lines(result.out),
                         ["[PE 0 east] hello from PE 0 of 3", "[PE 1 east] hello from PE 1 of 3",
                          "[PE 2 west] hello from PE 2 of 3"], result)

    def test_ssh(self):
        """It joins the words of its command by blanks, for a shell: the path of oshrun may have any characters."""
        place = os.path.join(self.folder, "it's a \"place\" $HOME")
        os.makedirs(os.path.join(place, "bin"))
        oshrun = shutil.copy(scenario.OSHRUN, os.path.join(place, "bin"))
        os.symlink(os.path.join(os.path.dirname(os.path.realpath(scenario.BIN)), "lib"), os.path.join(place, "lib"))
        os.rename(self.script('shift 4; exec sh -c "$*"'), os.path.join(self.folder, "ssh"))
        result = subprocess.run([oshrun, "--host", "east:2,west:1", GREET], capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=scenario.LIMIT_S, check=False,
                                env=scenario.environment(self.mark, PATH=f"{self.folder}:{os.environ['PATH']}"))
        self.assertEqual((result.returncode, lines(result.stdout), result.stderr), (0, greetings(3), ""), result)

    def test_allocations(self):
        """OAR's and Grid Engine's own remote shells start the agents, but not that of this machine, whose name may have a domain
        there; --rsh is used before them. Both are scripts of ours: oarsh gives its words to a shell, as ssh does."""
        own = os.uname().nodename
        own = own.split(".")[0] if "." in own else own + ".cluster"
        place = os.path.join(self.folder, "batch")
        used, bin_ = os.path.join(place, "used"), os.path.join(place, "bin")
        os.makedirs(bin_)
        for name, check in (("oarsh", ""), ("qrsh", "[ \"$1\" = -inherit ] || exit 8; shift; ")):
            os.rename(self.script(f'{check}echo {name} "$1" >>{used}; shift; exec sh -c "$*"'), os.path.join(bin_, name))
        hosts = {"east": 2, own: 1, "west": 1}
        path = {"PATH": f"{bin_}:{os.environ['PATH']}"}
        with open(os.path.join(place, "oar"), "w") as file:
            file.writelines(f"{host}\n" * count for host, count in hosts.items())
        with open(os.path.join(place, "grid"), "w") as file:
            file.writelines(f"{host} {count} all.q@{host} UNDEFINED\n" for host, count in hosts.items())
        of_oar = {"OAR_JOB_ID": "7", "OAR_NODEFILE": os.path.join(place, "oar")}
        of_grid = {"JOB_ID": "7", "PE_HOSTFILE": os.path.join(place, "grid")}
        other = self.script(f'echo other "$1" >>{used}; shift; exec "$@"')
        for variables, options, starts in ((of_oar, (), ["oarsh east", "oarsh west"]),
                                           (of_grid, (), ["qrsh east", "qrsh west"]),
                                           (of_grid, ("--rsh", other), sorted(f"other {host}" for host in hosts))):
            with self.subTest(starts=starts):
                open(used, "w").close()
                result = self.run_job(*options, "--tag", GREET, env={**variables, **path})
                self.assertEqual((result.status, result.err), (0, ""), result)
                self.assertEqual(lines(result.out), sorted(f"[PE {i} {host}] hello from PE {i} of 4"
                                                           for i, host in enumerate(("east", "east", own, "west"))))
                with open(used) as file:
                    self.assertEqual(lines(file.read()), starts)

    def test_this_machine_needs_no_shell(self):
        result = self.run_job("--host", "localhost:2", GREET)
        self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(2), ""), result)

    def test_a_login_that_prints(self):
        result = self.run_job("--host", "east,west", "--rsh", self.script('echo "Welcome! quoit-agent 00"; shift; exec "$@"'),
                              GREET)
        self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(2), ""), result)

    def test_environment_and_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_job(*self.options, "-x", "WORD=some words", "sh", "-c", 'echo "$WORD,$(pwd)"', cwd=folder)
        self.assertEqual(lines(result.out), [f"some words,{folder}"] * 3, result)

    def test_much_output_and_input(self):
        text = "".join(f"{i}\n" for i in range(150000))
        result = self.run_job(*self.options, "sh", "-c", "cat; seq 0 149999 >&2; exit 0", text_in=text)
        self.assertEqual((result.status, len(result.out)), (0, len(text)))
        self.assertEqual(result.out, text)
        self.assertEqual(lines(result.err), sorted(text.split("\n")[:-1] * 3))

    def test_a_slow_reader_loses_nothing(self):
        job = self.start(*self.options, "sh", "-c", "seq 0 199999")
        time.sleep(1)
        out, _ = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out.count(b"\n")), (0, 600000))

    def test_a_slow_shell_splits_no_line(self):
        """West's lines come in parts that end within a line, with long pauses; east prints meanwhile."""
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as relay:
            self.addCleanup(os.unlink, relay.name)
            relay.write("import os, time\ndone = pauses = 0\nwhile data := os.read(0, 10000):\n    os.write(1, data)\n"
                        "    done += len(data)\n    if done > 60000 * (pauses + 1) and pauses < 4:\n"
                        "        pauses += 1\n        time.sleep(1.3)\n")
        rsh = self.script(f'host=$1; shift; if [ "$host" = west ]; then "$@" | {sys.executable} {relay.name}; else exec "$@"; fi')
        result = self.run_job("--host", "east,west", "--rsh", rsh, "-n", 1, "sh", "-c",
                              "for i in $(seq 100 199); do echo $i; sleep 0.06; done", ":", "-n", 1, "seq", 10000000, 10050000)
        wanted = sorted(map(str, [*range(100, 200), *range(10000000, 10050001)]))
        self.assertEqual((result.status, lines(result.out) == wanted, len(lines(result.out))), (0, True, len(wanted)))

    def test_ends(self):
        for deed, argument, status, words in (("exit", 3, 3, "PE 2 on west exited with status 3 .*Q0202"),
                                              ("_exit", 0, 1, "PE 2 on west ended with status 0, .*Q0203"),
                                              ("null", 0, 139, r"PE 2 on west was killed by SIGSEGV .*\n  at solve.. misbehave.c"),
                                              ("global-exit", 5, 5, "^$"),
                                              ("abort", 0, 134, "PE 2 on west was killed by SIGABRT"),
                                              ("bad-pe", 0, 1, "PE 2: shmem_.*\n.*misbehave.c"),
                                              ("finalize", 0, 1, "PE 2 on west left the job by shmem_finalize.*Q0209")):
            if deed == "null" and scenario.SANITIZE:
                continue  # it takes the signal
            with self.subTest(deed=deed):
                result = self.run_soon(*self.options, *LIMIT, MISBEHAVE, 2, deed, argument, until=words, soon_s=scenario.LATE_S)
                self.assertEqual(result.status, status, result)

    def test_a_pe_without_its_socket_goes_on_after_finalize(self):
        """Its words are in its record, which its agent alone can read."""
        result = self.run_job(*self.options, *LIMIT, MISBEHAVE, 0, "linger", LIMIT_S + 2)
        self.assertEqual((result.status, result.err), (0, ""), result)

    def test_timeout_says_where_each_pe_is(self):
        self.run_out(3, (r"PEs 0,1 were waiting in shmem_barrier_all \(misbehave.c:\d+\)",
                         r"PE 2 was waiting in shmem_.*wait_until \(misbehave.c:\d+\) for flag != 0, which is 0"),
                     *self.options, MISBEHAVE, 2, "flag", 0)

    def test_a_folder_of_the_machines_alone(self):
        """--wdir is where the PEs run; this oshrun does not see it, nor a program in it."""
        folder = self.folder + "/data of the machines"
        make = self.script(f"mkdir -p '{folder}'; cp {GREET} '{folder}/'$$ && mv '{folder}/'$$ '{folder}/a.out'\nshift; exec \"$@\"")
        for program, expected in (("./a.out", greetings(3)), ("pwd", [folder] * 3), (GREET, greetings(3))):
            shutil.rmtree(folder, ignore_errors=True)
            result = self.run_job("--host", "east:2,west:1", "--rsh", make, "--wdir", folder, program)
            self.assertEqual((result.status, lines(result.out), result.err), (0, expected, ""), result)
        self.assertIn("--wdir /nowhere: No such file ", self.run_job(*self.options, "--wdir", "/nowhere", "pwd").err)

    def test_programs_that_cannot_run(self):
        self.assertEqual(self.run_job(*self.options, "/etc/passwd").status, 126)
        result = self.run_job("--host", "east,west", "--rsh", self.script('[ $1 = west ] && exit 9; shift; exec "$@"'), GREET)
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, "cannot start the agent on west: the connection ended, status 9 of the remote shell .*Q0225")
        result = self.run_job("--host", "east,west", "--link-timeout", "1s", "--rsh", "sleep 99;", GREET)
        self.assertRegex(result.err, r"for the agent on (east|west), .* 1\.0 s: .*Q0132\][^$]*on (east|west): it did not answer within 6.0 s")
        slow = self.run_job("--host", "east,west", "--link-timeout", "1s", "--rsh", self.script('sleep 3; shift; exec "$@"'), GREET)
        self.assertEqual((slow.status, lines(slow.out), slow.err.count("[Q0132]")), (0, greetings(2), 2), slow)

    def test_signals(self):
        job = self.busy()
        job.send_signal(signal.SIGINT)
        self.end_of(job, 130, "ended by SIGINT")

    def test_stopped_and_continued(self):
        """Ctrl-Z, for longer than the limit of silence."""
        job = self.busy(*LIMIT)
        job.send_signal(signal.SIGTSTP)
        time.sleep(2 * LIMIT_S)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGTERM)
        self.end_of(job, 143, "ended by SIGTERM")

    def test_killed_agent(self):
        job = self.busy()
        os.kill(agents(self.mark)[1], signal.SIGKILL)
        self.end_of(job, 1, r"(east|west) was lost: the connection ended, status 137 of the remote shell +\[Q0225\]")

    def test_frozen_agent(self):
        job = self.busy(*SHORT)
        self.freeze(job, agents(self.mark)[0], "east|west")

    def test_killed_proxy(self):
        job = self.busy()
        proxies = self.pids_of("quoit-proxy")
        os.kill(proxies[1], signal.SIGKILL)
        self.end_of(job, 1, r"the proxy of (east|west) has died of SIGKILL.*Q0205")

    def test_proxies_of_no_use(self):
        """They are started before the PEs call shmem_init, and may die before; a program that does not call it needs none."""
        options = (*self.options, "sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.05; done', os.path.join(self.folder, self.mark))
        for deed in ("kill", "end"):
            job = self.start(*options)
            end = time.monotonic() + scenario.LIMIT_S
            while len(proxies := self.pids_of("quoit-proxy")) < 2:
                self.assertLess(time.monotonic(), end, "there are no proxies")
                time.sleep(0.05)
            if deed == "kill":
                os.kill(proxies[1], signal.SIGKILL)
                self.end_of(job, 1, r"the proxy of (east|west) has died of SIGKILL.*Q0205")
            else:
                os.close(os.open(options[-1], os.O_CREAT))
                self.end_of(job, 0, "^$")

    def test_a_proxy_that_does_not_end(self):
        """oshrun says so, also when it is always late, and its agent had noticed before."""
        rsh = self.script('unset LD_PRELOAD; shift; exec "$@"')
        # oshrun begins anew without what is preloaded, but once.
        late = {"LD_PRELOAD": scenario.program("liblaunchers_late.so"), "QUOIT_OF_PES_LD_PRELOAD": ""}
        for env in ({}, late):
            if env and scenario.SANITIZE:
                continue  # it wants to be the first library
            job = self.start("--host", "east:2,west:1", "--rsh", rsh, MISBEHAVE, -2, "again", 3, env=env)
            for _ in range(3):
                self.assertEqual(job.stdout.readline(), b"finalized\n")
            os.kill(self.pids_of("quoit-proxy")[0], signal.SIGSTOP)
            self.end_of(job, 0, r"warning: the proxy of (east|west) did not end .* was killed \[Q0229\]", 2)

    def test_killed_pe(self):
        job = self.busy()
        victims = self.pids_of("scenario_busy")
        os.kill(victims[1], signal.SIGKILL)
        self.end_of(job, 137, r"PE \d on (east|west) was killed by SIGKILL")


@HAS_NETWORK
class Tree(Kills, Machines):
    """Seven names of this machine in three levels: oshrun starts the agents of m0 and m1, m0's those of m2 and m4, m1's those of m3
    and m5, and m2's that of m6. Each agent has the name of its machine in HOSTNAME, which belongs to the machine."""

    NAMES = [f"m{i}" for i in range(7)]
    EDGES = ["head m0", "head m1", "m0 m2", "m0 m4", "m1 m3", "m1 m5", "m2 m6"]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.rsh = cls.script(f'echo "$HOSTNAME $1" >>{cls.folder}/edges\n[ -e {cls.folder}/closed-$1 ] && exit 9\n'
                             'export HOSTNAME="$1"\nshift\nexec "$@"')
        cls.options = cls.of(2)

    @classmethod
    def of(cls, fan_out):
        return ("--host", ",".join(cls.NAMES), "--fan-out", fan_out, "--rsh", cls.rsh)

    def edges_of(self, fan_out):
        """Who started whom, in a job that has to succeed."""
        path = os.path.join(self.folder, "edges")
        open(path, "w").close()
        result = self.run_job(*self.of(fan_out), "--tag", GREET, env={"HOSTNAME": "head"})
        self.assertEqual((result.status, result.err), (0, ""), result)
        self.assertEqual(lines(result.out), sorted(f"[PE {i} m{i}] hello from PE {i} of 7" for i in range(7)))
        with open(path) as file:
            return lines(file.read())

    def test_shapes(self):
        self.assertEqual(self.edges_of(2), self.EDGES)
        self.assertEqual(self.edges_of(7), [f"head {name}" for name in self.NAMES])
        self.assertEqual(self.edges_of(1), sorted(f"{above} {name}" for above, name in zip(["head", *self.NAMES], self.NAMES)))

    def test_this_machine_is_started_by_oshrun(self):
        """The name means another machine elsewhere."""
        path = os.path.join(self.folder, "ssh")
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nshift 3\nexec {self.rsh} "$1" sh -c "$2 $3"\n')
        os.chmod(path, 0o755)
        edges = os.path.join(self.folder, "edges")
        open(edges, "w").close()
        result = self.run_job("--host", "m0,m1,localhost", "--fan-out", 1, GREET,
                              env={"HOSTNAME": "head", "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(3), ""), result)
        with open(edges) as file:
            self.assertEqual(lines(file.read()), ["head m0", "m0 m1"])

    def test_much_output_and_input(self):
        """Of all machines at once, through agents that must hold it back, for a reader that is late."""
        text = "".join(f"{i}\n" for i in range(100000))
        with tempfile.TemporaryFile("w+") as given:
            given.write(text)
            given.seek(0)
            job = self.start(*self.options, "sh", "-c", "cat; seq 100000 199999", stdin=given)
            time.sleep(1)
            out, err = job.communicate(timeout=scenario.LIMIT_S)
        wanted = sorted(text.splitlines() + [str(i) for i in range(100000, 200000)] * 7)
        self.assertEqual((job.returncode, err), (0, b""))
        self.assertTrue(sorted(out.decode().splitlines()) == wanted, len(out))

    def test_ends_of_a_leaf(self):
        for deed, argument, status, words in (("exit", 3, 3, "PE 6 on m6 exited with status 3 .*Q0202"),
                                              ("global-exit", 5, 5, "^$"),
                                              ("abort", 0, 134, "PE 6 on m6 was killed by SIGABRT")):
            with self.subTest(deed=deed):
                result = self.run_soon(*self.options, MISBEHAVE, 6, deed, argument, until=words, soon_s=scenario.LATE_S)
                self.assertEqual(result.status, status, result)

    def test_timeout_says_where_each_pe_is(self):
        self.run_out(3, (r"PEs 0-5 were waiting in shmem_barrier_all \(misbehave.c:\d+\)",
                         r"PE 6 was waiting in shmem_.*wait_until \(misbehave.c:\d+\) for flag != 0, which is 0"),
                     *self.options, MISBEHAVE, 6, "flag", 0)

    def test_killed_agents(self):
        """An inner one, whose death takes others along, and a leaf, of which its neighbour tells."""
        for name in ("m0", "m2", "m6"):
            with self.subTest(name=name):
                job = self.busy()
                os.kill(self.agent_of(name), signal.SIGKILL)
                self.end_of(job, 1, rf"(?m)^oshrun: {name} was lost: the connection ended, status 137 of the remote shell +\[Q0225\]")

    def test_frozen_agents(self):
        for name in ("m0", "m6"):
            with self.subTest(name=name):
                job = self.busy(*SHORT)
                self.freeze(job, self.agent_of(name), name)
                self.assert_nothing_left()

    def test_a_leaf_that_cannot_be_started(self):
        path = os.path.join(self.folder, "closed-m6")
        open(path, "w").close()
        result = self.run_job(*self.options, GREET)
        os.unlink(path)
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, "cannot start the agent on m6: the connection ended, status 9 of the remote shell .*Q0225")

    def test_signals_and_stops(self):
        """Ctrl-Z for longer than the limit of silence, then SIGTERM to PEs of all levels."""
        job = self.busy(*LIMIT)
        job.send_signal(signal.SIGTSTP)
        time.sleep(LIMIT_S + 1)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGTERM)
        self.end_of(job, 143, "ended by SIGTERM")


class Looks:
    """quoit top: the last PE of the job waits for a flag, all others in a barrier."""

    CALLS = ("shmem_barrier_all", "shmem_long_wait_until")

    def inside(self, host):
        """Words before a command that is to run on the machine of that host."""
        del host
        return ()

    def top(self, *arguments, host=0, **how):
        return subprocess.run([*self.inside(host), QUOIT, "top", *map(str, arguments)], capture_output=True, text=True,
                              timeout=scenario.LIMIT_S, env=scenario.environment(self.mark), check=False, **how)

    def look(self, pid, **how):
        """None: there is nothing to see yet."""
        result = self.top("--once", "--json", "--interval", "50ms", pid, **how)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return json.loads(result.stdout) if result.returncode == 0 else None

    @staticmethod
    def answers(look):
        return [row["answers"] for row in look["machines"]]

    def waiting(self, *options, pes=4, **how):
        """A job in which all PEs have come to where they stay, and a look at it then."""
        job = self.start(*options, MISBEHAVE, pes - 1, "flag", **how)
        calls = [self.CALLS[pe == pes - 1] for pe in range(pes)]
        looks = [None]

        def all_stay():
            looks.append(self.look(job.pid))
            return all(look and [pe.get("call") for pe in look["PEs"]] == calls for look in looks[-2:]) and all(
                b["waiting_s"] > a["waiting_s"] for a, b in zip(looks[-2]["PEs"], looks[-1]["PEs"]))

        self.wait_for(all_stay, "all PEs to wait")
        return job, looks[-1]

    def finish(self, job):
        job.kill()
        job.communicate(timeout=scenario.LIMIT_S)
        self.assert_nothing_left()

    def check_whole(self, look, job, names, hosts):
        """The whole job, with the host of each PE."""
        self.assertEqual((look["job"], look["program"], look["hosts"], look["pes"], look["whole"], look["links"]),
                         (job.pid, "scenario_misbehave", len(names), len(hosts), True, []))
        self.assertEqual([(row["host"], row["name"], row["answers"]) for row in look["machines"]],
                         [(i, name, True) for i, name in enumerate(names)])
        self.assertEqual([row["host"] for row in look["network"]], list(range(len(names))))
        self.assertGreater(sum(row["messages"] + row["puts"] for row in look["network"]), 0)
        self.assertEqual([(pe["pe"], pe["host"], pe["state"]) for pe in look["PEs"]],
                         [(pe, host, "waiting") for pe, host in enumerate(hosts)])
        self.assertEqual([pe["for"] for pe in look["PEs"]], [""] * (len(hosts) - 1) + ["flag != 0, which is 0"])
        self.assertEqual({pe["pid"] for pe in look["PEs"]}, set(self.pids_of("scenario_misbeh")))

    def check_part(self, job, host, pes, name, machine):
        """What the agent of a host shows on its machine, by the process that the remote shell started there."""
        own = set(self.pids_of("oshrun")) - {job.pid}
        looks = [look for look in (self.look(pid, host=machine) for pid in own) if look]
        look = next(look for look in looks if look["machines"][0]["host"] == host)
        self.assertEqual((look["whole"], look["machines"]), (False, [{"host": host, "name": name, "answers": True}]))
        self.assertEqual([row["host"] for row in look["network"]], [host])
        self.assertEqual([(pe["pe"], pe["host"], pe["state"]) for pe in look["PEs"]], [(pe, host, "waiting") for pe in pes])
        self.assertEqual(look["PEs"][-1]["for"], "flag != 0, which is 0")


@HAS_NETWORK
class Top(Looks, Machines):
    """Three names of this machine: three agents."""

    NAMES = ["east", "middle", "west"]
    HOSTS_OF_PES = [0, 0, 1, 2]

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        os.chmod(cls.folder, 0o755)  # a job of another user runs the shell in it
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        rsh = cls.script('export HOSTNAME="$1"\nshift\nexec "$@"')
        cls.options = ("--host", "east:2,middle:1,west:1", "--rsh", rsh)

    def test_whole_and_parts(self):
        job, look = self.waiting(*self.options)
        self.check_whole(look, job, self.NAMES, self.HOSTS_OF_PES)
        self.check_part(job, 2, [3], "west", 0)
        listed = [row for row in json.loads(self.top("--list", "--json").stdout) if row["program"] == "scenario_misbehave"]
        self.assertIn((job.pid, 3, 4, True), [(row["job"], row["hosts"], row["pes"], row["whole"]) for row in listed])
        parts = set(self.pids_of("oshrun")) - {job.pid}
        self.assertEqual(len(parts), 3)
        self.assertEqual({row["job"] for row in listed} & parts, set(), "parts are listed beside the whole")
        text = self.top("--once", "--interval", "50ms", job.pid).stdout
        self.assertRegex(text, r"(?m)^quoit top  job \d+  scenario_misbehave  4 PEs on 3 hosts ")
        self.assertRegex(text, r"(?m)^   3  west +\d+  waiting  shmem_long_wait_until +[\d.]+ s  for flag != 0, which is 0$")
        self.assertRegex(text, r"(?m)^middle +\d+ ")
        self.finish(job)

    def test_frozen_agent(self):
        """It is shown as such, the others as ever, and it comes back; the job goes on."""
        job, _ = self.waiting(*self.options)
        held = self.hold(self.agent_of("middle"))
        look = self.look(job.pid)
        text = self.top("--once", "--interval", "50ms", job.pid).stdout
        os.kill(held, signal.SIGCONT)
        self.assertEqual(self.answers(look), [True, False, True])
        self.assertEqual([(pe["state"], pe.get("call")) for pe in look["PEs"]],
                         [("waiting", self.CALLS[0])] * 2 + [("unknown", None), ("waiting", self.CALLS[1])])
        self.assertEqual([row["host"] for row in look["network"]], [0, 2])
        self.assertRegex(text, r"(?m)^middle +does not answer$")
        self.assertRegex(text, r"(?m)^   2  middle +0  unknown *$")
        self.wait_for(lambda: all(self.answers(self.look(job.pid))), "the agent to answer again")
        self.assertIsNone(job.poll())
        self.finish(job)

    def socket_of_oshrun(self):
        """The abstract name that the process of oshrun which runs the job listens on."""
        runner = next(pid for pid in self.pids_of("quoit-job") if pid not in agents(self.mark))
        inodes = set()
        for fd in os.listdir(f"/proc/{runner}/fd"):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{runner}/fd/{fd}"))
            inodes |= {found[1]} if found else set()
        with open("/proc/net/unix") as file:
            names = {row[7] for row in map(str.split, file) if len(row) == 8 and row[6] in inodes}
        self.assertEqual(len(names), 1)
        return names.pop().replace("@", "\0")

    @staticmethod
    def asks(name, *messages):
        """What is received at that socket, as this user; b"": nothing, and the connection was closed."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asked:
            asked.settimeout(scenario.LIMIT_S)
            asked.connect(name)
            try:
                for message in messages:
                    asked.send(message)
                return asked.recv(64)
            except (BrokenPipeError, ConnectionResetError):
                return b""

    @unittest.skipUnless(os.geteuid() == 0, "only root can start a job of somebody else")
    def test_other_users(self):
        """A job of nobody's: root sees it; another user gets nothing, neither by quoit top nor at the socket."""
        nobody = 65534
        job, look = self.waiting(*self.options, user=nobody, group=nobody, extra_groups=[], cwd="/")
        self.check_whole(look, job, self.NAMES, self.HOSTS_OF_PES)
        name, question = self.socket_of_oshrun(), (0x51756F6974746F70).to_bytes(8, sys.byteorder)
        refused = self.top("--once", job.pid, user=nobody + 1)
        self.assertEqual(len(self.asks(name, question)), 8)
        for messages in ((b"x",), (b"\0" * 8,), (question + b"\0",)):
            self.assertEqual(self.asks(name, *messages), b"", messages)
        os.seteuid(nobody + 1)
        try:
            got = self.asks(name, question)
        finally:
            os.seteuid(0)
        self.assertEqual((refused.returncode, refused.stdout, got), (1, "", b""))
        self.assertTrue(self.look(job.pid)["whole"])
        self.assertIsNone(job.poll())
        self.finish(job)

    def test_killed_oshrun(self):
        """While quoit top waits for what a frozen agent does not answer, and for an oshrun that is itself frozen."""
        for who in ("agent", "oshrun"):
            with self.subTest(who=who):
                job, _ = self.waiting(*self.options)
                runners = [pid for pid in self.pids_of("quoit-job") if pid not in agents(self.mark)]
                held = self.hold(self.agent_of("east") if who == "agent" else runners[0])
                watcher = subprocess.Popen([QUOIT, "top", "--json", "--interval", "1ms", str(job.pid)], text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=scenario.environment(self.mark))
                seen = [False, True, True] if who == "agent" else [False] * 3
                self.wait_for(lambda: self.answers(json.loads(watcher.stdout.readline())) == seen, "quoit top to miss them")
                job.kill()
                out, err = watcher.communicate(timeout=scenario.LIMIT_S)
                scenario.send(held, signal.SIGCONT)
                self.assertEqual(watcher.returncode, 0)
                self.assertIn(f"quoit top: job {job.pid} has ended", err)
                after = [self.answers(json.loads(line)) for line in out.splitlines()]
                if who == "agent":
                    self.assertEqual(after, [seen] * len(after), "a job that is to end was shown")
                job.communicate(timeout=scenario.LIMIT_S)
                self.assert_nothing_left()


class Apart(Namespaces):
    """Machines that are namespaces; oshrun runs in the first one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rsh = ("--rsh", f"{sys.executable} -B {RSH}")
        cls.options = cls.on(2)

    @classmethod
    def on(cls, count, per_machine=0):
        """`count` machines; with as many PEs on each, if that is not 0."""
        slots = f":{per_machine}" if per_machine else ""
        return ("--host", ",".join(address + slots for address in cls.addresses[:count]), *cls.rsh)

    def start(self, *arguments, env=None, **how):
        how.setdefault("stdin", subprocess.DEVNULL)
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return scenario.Job(["ip", "netns", "exec", self.names[0], scenario.OSHRUN, *map(str, arguments)],
                            env=scenario.environment(self.mark, **(env or {})), **how)


@HAS_NETWORK
class Hosts(Looks, Apart, Machines):
    def test_greetings(self):
        for hosts, pes in ((1, 2), (2, 2), (4, 6)):
            result = self.run_job(*self.on(hosts), "-n", pes, GREET)
            self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(pes), ""), result)

    def test_start_of_many(self):
        """64 PEs on 4 hosts, and on one; the lines say how long it took, by each driver. The remote shell is none, since that of
        the tests, a Python program on each host, takes longer than everything else."""
        def alone():
            return min(self.run_job("-n", 64, GREET).seconds for _ in range(3))
        before_s = alone()
        for driver in ("tcp", "ofi", "ucx"):
            seconds = []
            for _ in range(3):
                result = self.run_job("--host", ",".join(self.addresses[:4]), "--rsh", self.entering(),
                                      "--network", driver, "-n", 64, GREET)
                if "[Q0222]" in result.err:
                    break
                self.assertEqual((result.status, lines(result.out), result.err), (0, greetings(64), ""), result)
                seconds.append(result.seconds)
            if seconds:
                after_s = alone()
                print(f"64 PEs on 4 hosts, {driver}: {min(seconds):.2f} s; on one: {before_s:.2f} s, and {after_s:.2f} s after it",
                      file=sys.stderr)
                self.assertLess(min(seconds), START_RATIO * max(before_s, after_s)) # the machine may do more than before
                before_s = after_s

    def inside(self, host):
        return ("ip", "netns", "exec", self.names[host])

    def test_top(self):
        job, look = self.waiting("--host", ",".join(f"{a}:{n}" for a, n in zip(self.addresses, (2, 1, 1))), *self.rsh)
        self.check_whole(look, job, self.addresses[:3], [0, 0, 1, 2])
        self.check_part(job, 2, [3], self.addresses[2], 2)
        self.finish(job)

    def test_conformance(self):
        for name in ("coll", "again", "memory", "order", "signal", "amo"):
            with self.subTest(name=name):
                result = self.run_job(*self.on(3), "-n", 5, "--timeout", "100s", os.path.join(scenario.BIN, "conformance_" + name))
                self.assertEqual(result.status, 0, result)

    def test_stress(self):
        """Every byte checked; once over a cable that carries 100 Mbit/s."""
        for rate in (None, "100mbit"):
            if rate and not self.slow_down(1, rate):
                continue
            with self.subTest(rate=rate):
                result = self.run_job("--host", ",".join(f"{a}:{n}" for a, n in zip(self.addresses, (1, 3, 2))), *self.rsh,
                                      "--timeout", "100s", os.path.join(scenario.BIN, "mix"), "--seconds", 3, "--seed", 7)
                self.assertEqual(result.status, 0, result)
        subprocess.run(["ip", "netns", "exec", self.switch, "tc", "qdisc", "delete", "dev", "port1", "root"],
                       capture_output=True, check=False)

    def test_link_local_addresses(self):
        """Hosts without any other address: for oshrun their names mean nothing, only for the remote shell."""
        for host in (0, 1):
            found = ["tentative"]  # until no other host has said that it has the address
            while "tentative" in found:
                found = subprocess.run([*self.inside(host), "ip", "-6", "address", "show", "dev", "eth0", "scope", "link"],
                                       capture_output=True, text=True, check=True).stdout.split()
            if "link" not in found:
                self.skipTest("there is no IPv6")
            words = (self.addresses[host] + "/24", "dev", "eth0")
            ip("-n", self.names[host], "address", "delete", *words)
            self.addCleanup(ip, "-n", self.names[host], "address", "add", *words)
        for program in (("mix", "--seconds", 1), ("conformance_coll",)):
            with self.subTest(program=program):
                result = self.run_job("--host", ",".join(self.addresses[:2]), "--rsh", self.entering(), "--network", "tcp",
                                      "-n", 4, "--timeout", "60s", os.path.join(scenario.BIN, program[0]), *program[1:])
                self.assertEqual(result.status, 0, result)

    def test_cut_cable(self):
        job = self.busy(*LIMIT)
        self.plug(1, "down")
        self.addCleanup(self.plug, 1, "up")
        self.end_of(job, 1, self.addresses[1] + rf" was lost: nothing came from it for {LIMIT_S}\.\d s.*Q0225", LIMIT_S)

    def test_cable_out_for_a_while(self):
        """One line says so, one that the host is back, and the job goes on."""
        told = []

        def has(code):
            while scenario.has_output(job.stderr) and (data := os.read(job.stderr.fileno(), 65536)):
                told.append(data.decode())
            return code in "".join(told) or job.poll() is not None

        job = self.busy()
        self.plug(1, "down")
        self.addCleanup(self.plug, 1, "up")
        self.wait_for(lambda: has("[Q0317]"), "the line")
        time.sleep(2)
        self.plug(1, "up")
        self.wait_for(lambda: has("[Q0318]"), "the host")
        self.assertIsNone(job.poll(), told)
        name = re.escape(self.addresses[1])
        self.assertRegex("".join(told), rf"\Aoshrun: nothing has come from .*{name} for [\d.]+ s; the job waits for it, up to --network-limit "
                                        rf"\(60 s\) \[Q0317\]\noshrun: {name} is back after [\d.]+ s \[Q0318\]\n\Z")
        job.send_signal(signal.SIGTERM)
        self.end_of(job, 143, "ended by SIGTERM")

    def test_cut_between_others(self):
        """oshrun's own host stays; it has no PEs."""
        job = self.start("--host", ",".join(self.addresses[1:3]), *self.rsh, *LIMIT, "-n", 4, BUSY)
        self.assertEqual(job.stdout.readline(), b"begun\n")
        self.plug(2, "down")
        self.addCleanup(self.plug, 2, "up")
        self.end_of(job, 1, self.addresses[2] + rf" was lost: nothing came from it for {LIMIT_S}\.\d s", LIMIT_S)

    def test_random_kills(self):
        seed = int(os.environ.get("MACHINES_SEED", random.getrandbits(32)))
        chance = random.Random(seed)
        print(f"MACHINES_SEED={seed}", file=sys.stderr)
        for _ in range(5):
            job = self.start(*self.on(3), *LIMIT, "-n", 6, BUSY)
            self.assertEqual(job.stdout.readline(), b"begun\n")
            time.sleep(chance.random() / 2)
            what = chance.choice(("scenario_busy", "quoit-proxy", "agent", "oshrun"))
            if what == "oshrun":
                victims = [job.pid]
            elif what == "agent":
                victims = agents(self.mark)
            else:
                victims = self.pids_of(what)
            with self.subTest(what=what, seed=seed):
                os.kill(chance.choice(victims), signal.SIGKILL)
                begin = time.monotonic()
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertLess(time.monotonic() - begin, LIMIT_S + scenario.LATE_S)
                self.assertNotEqual(job.returncode, 0)
                if what != "oshrun":
                    self.assertIn("10.99.0.", err.decode())
                self.assert_nothing_left()


if __name__ == "__main__":
    scenario.main(4)
