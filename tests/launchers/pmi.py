# SPDX-License-Identifier: BSD-3-Clause
"""Aim: programs form one job under a launcher with PMI, and end as they would under oshrun, whatever the launcher does
or does not do; a launcher that talks nonsense is told, and nothing hangs. Method: conformance programs, and programs
that misbehave, under a PMI server of our own, which ends no process, and lies where a test wants it to; processes killed
at random instants."""
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "scenario"))
import scenario
from pmi_server import Server

GREET, MISBEHAVE = scenario.program("scenario_greet"), scenario.program("scenario_misbehave")
CONFORMANCE = os.environ["LAUNCHERS_CONFORMANCE"]
SEED = int(os.environ.get("LAUNCHERS_SEED", random.SystemRandom().randrange(1 << 32)))
QUOIT_EXCHANGE_RANKS_MAX = 65536
GREET_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario", "greet.c")
# A program with code before and after main(), which nobody but its PEs may run.
OWN_CODE = """#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
static void end(void) { dprintf(2, "ended\\n"); }
__attribute__((constructor(101))) static void begin(void)
{
    dprintf(2, "begun\\n");
    atexit(end);
}
int main(int argc, char **argv)
{
    shmem_init();
    printf("PE %d of %d %s.\\n", shmem_my_pe(), shmem_n_pes(), argc > 1 ? argv[1] : "");
    shmem_finalize();
    return 0;
}
"""
AGENT_STEPS = (".begin", "0.start", "0.layout", "0.go")
SLOW = 4 if scenario.SANITIZE else 1
BUSY = scenario.program("scenario_busy")


class Pmi(scenario.Case):
    def launch(self, *commands, env=None, each_step=None, **how):
        server = Server([[str(word) for word in command] for command in commands],
                        env=scenario.environment(self.mark, **(env or {})), **how)
        begin = time.monotonic()
        result = server.run(scenario.LIMIT_S, each_step)
        self.assertIsNotNone(result, f"the job hangs: {commands}")
        server.seconds = time.monotonic() - begin
        return server, *result

    def assert_greetings(self, count, result):
        _, statuses, out, err = result
        self.assertEqual((statuses, err), ([0] * count, ""), out)
        self.assertEqual(sorted(out.split("\n")[:-1]), sorted(f"hello from PE {i} of {count}" for i in range(count)))

    def test_closed_streams(self):
        """The lowest numbers of descriptors are free then, and are what the start opens."""
        for closed in ("<&-", "<&- 2>&-"):
            with self.subTest(closed=closed):
                self.assert_greetings(3, self.launch(*[["sh", "-c", f'exec "$0" {closed}', GREET]] * 3))

    def test_no_room_for_what_the_agent_must_know(self):
        limited = ["sh", "-c", 'trap "" XFSZ && ulimit -f 0 && exec "$0"', GREET]
        _, statuses, out, err = self.launch(limited, limited)
        self.assertEqual((statuses, out), ([1, 1], ""), err)
        self.assertRegex(err, r"^quoit: cannot start the agent of this host, .*: File too large \[Q0239\]\n$")

    def test_versions(self):
        for count in (1, 2, 5):
            for how in ({"version": 1}, {"version": 2}, {"version": 1, "port": True}, {"version": 2, "port": True}):
                with self.subTest(count=count, how=how):
                    result = self.launch(*[[GREET]] * count, **how)
                    self.assert_greetings(count, result)
                    self.assertEqual((result[0].closed, result[0].aborts), (count, []))
        self.assert_greetings(2, self.launch([GREET], [GREET], version=0, env={"QUOIT_LAUNCHER": "pmi2"}))

    def test_the_launcher_is_left_after_the_start(self):
        """Each PE has ended its talk with the launcher while the program goes on, which ends only when all have."""
        for version in (1, 2):
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "rounds")

                def end(server):
                    if server.closed == 3 and not os.path.exists(path + ".end"):
                        os.close(os.open(path + ".end", os.O_CREAT))
                _, statuses, out, err = self.launch(*[[BUSY, "until", path]] * 3, version=version, each_step=end)
                self.assertEqual((statuses, out, err), ([0] * 3, "begun\n", ""))

    def test_conformance(self):
        for name in ("rma", "order", "p2p", "memory", "coll", "teams", "again", "lock", "library_data"):
            with self.subTest(program=name):
                _, statuses, out, err = self.launch(*[[os.path.join(CONFORMANCE, "conformance_" + name)]] * 3)
                self.assertEqual(statuses, [0] * 3, out + err)

    def test_variables(self):
        env = {"SHMEM_SYMETRIC_SIZE": "1M", "SHMEM_SYMMETRIC_SIZE": "8M"}
        _, statuses, _, err = self.launch([GREET], [GREET], [GREET], env=env)
        self.assertEqual((statuses, err.count("SHMEM_SYMETRIC_SIZE")), ([0] * 3, 1), err)
        _, statuses, _, err = self.launch([GREET], [GREET], env={"QUOIT_CHECK": "maybe"})
        self.assertEqual((statuses, err.count("QUOIT_CHECK")), ([2] * 2, 1), err)
        env = {"QUOIT_TIMEOUT": "9s", "QUOIT_LINK_RATE": "1G", "QUOIT_PATH": "memcpy"}
        _, statuses, _, err = self.launch([GREET], [GREET], [GREET], env=env)
        self.assertEqual((statuses, err.count("\n")), ([0] * 3, 1), err)
        self.assertRegex(err, "warning: (QUOIT_TIMEOUT, QUOIT_LINK_RATE|QUOIT_LINK_RATE, QUOIT_TIMEOUT) have no effect.*Q0313")
        _, statuses, out, err = self.launch([GREET], [GREET], env={"QUOIT_LAUNCHER": "none"})
        self.assertEqual((statuses, out), ([0] * 2, "hello from PE 0 of 1\n" * 2), err)
        _, statuses, _, err = self.launch([GREET], [GREET], env={"QUOIT_LAUNCHER": "pmi3"})
        self.assertEqual((statuses, err.count("QUOIT_LAUNCHER is \"pmi3\"")), ([1] * 2, 1), err)

    def test_a_launcher_that_begins_once(self):
        """As srun --mpi=pmi2, which does not answer the "init" of OpenSHMEM behind that of MPI."""
        begun = set()

        def lie(_, rank, request, answer):
            if request["cmd"] != "init":
                return answer
            is_first = rank not in begun
            begun.add(rank)
            return answer if is_first else None
        self.assert_greetings(3, self.launch(*[[scenario.program("launchers_begun")]] * 3, lie=lie))

    def test_answers_in_pieces(self):
        """As Hydra's proxy sends them; a PE that closes its connection before the last piece is killed with its job."""
        for version in (1, 2):
            closed = []

            def lie(server, rank, request, answer):
                for byte in answer[:-1]:
                    server.answer(rank, bytes([byte]))
                if request["cmd"] == "finalize" and select.select([server.connection(rank).sock], [], [], 0.3)[0]:
                    closed.append(rank)
                return answer[-1:]
            with self.subTest(version=version):
                self.assert_greetings(3, self.launch(*[[GREET]] * 3, version=version, lie=lie))
                self.assertEqual(closed, [])

    def test_program_started_by_a_pe(self):
        """It has inherited the variables, but not the descriptor: it is a job of its own."""
        for port in (False, True):
            _, statuses, out, err = self.launch(*[[scenario.program("launchers_parent"), GREET]] * 2, port=port)
            self.assertEqual((statuses, out), ([0] * 2, "hello from PE 0 of 1\n" * 2), err)

    def test_launcher_started_by_a_pe(self):
        """Its processes are one job, though they have inherited the variables and some have a rank of the outer job."""
        for port, inner_port in ((False, False), (False, True), (True, False), (True, True)):
            command = (f"{sys.executable} -B -c 'import sys; sys.path[:0] = {json.dumps(sys.path[:2])}; import pmi_server; "
                       f"result = pmi_server.Server([[\"{GREET}\"]] * 2, port={inner_port}).run({scenario.LIMIT_S // 4}); print(*result[1:]); "
                       f"sys.exit(any(result[0]))'")
            with self.subTest(port=port, inner_port=inner_port):
                _, statuses, out, err = self.launch(*[[scenario.program("launchers_parent"), command]] * 2, port=port)
                self.assertEqual((statuses, err, out.count("PE 0 of 2"), out.count("PE 1 of 2")), ([0] * 2, "", 2, 2), out)

    @scenario.each(0, 1)
    def test_statuses(self, who):
        """All PEs end with the status of the one that failed, within a second, and one line says which it was."""
        for deed, argument, status, own, words in (
                ("exit", 3, 3, 3, rf"PE {who} on \S+ exited with status 3 .*Q0202"),
                ("_exit", 3, 1, 3, rf"PE {who} on \S+ ended before shmem_finalize.*Q0203"),
                ("kill", 9, 1, -9, rf"PE {who} on \S+ ended before shmem_finalize.*Q0203"),
                ("null", 0, 139, -11, rf"PE {who} on \S+ was killed by SIGSEGV .address 0x0. +.Q0201.\n  at solve.. misbehave.c"),
                ("global-exit", 5, 5, 5, None), ("global-exit", 0, 0, 0, None),
                ("bad-pe", 0, 1, 1, f"PE {who}: shmem_long_p: pe is 1000.*Q0104"),
                ("exit-late", 4, 4, 4, rf"PE {who} on \S+ exited with status 4 .*Q0202"),
                ("finalize", 6, 1, 6, rf"PE {who} on \S+ left the job .*Q0209")):
            with self.subTest(who=who, deed=deed):
                # A PE that is held up before it can obey is killed.
                server, statuses, _, err = scenario.until_good(lambda: self.launch(*[[MISBEHAVE, who, deed, argument]] * 3),
                                                               lambda done: done[1][2] != -signal.SIGKILL)
                if not (scenario.SANITIZE and deed in ("null",)):
                    self.assertRegex(err, words or "^$")
                    self.assertEqual(statuses[2], status, err)
                    self.assertIn(statuses[who], (own, 1) if deed == "finalize" else (own,), err)
                self.assertLessEqual(err.count("quoit: PE"), 1, err)
                self.assertLess(server.seconds, scenario.LATE_S)

    def test_status_after_finalize(self):
        _, statuses, _, err = self.launch(*[[MISBEHAVE, 1, "return", 7]] * 3)
        self.assertEqual((statuses, err), ([0, 7, 0], ""))

    def test_one_leaves_with_a_lock(self):
        _, statuses, _, err = self.launch(*[[MISBEHAVE, -1, "keep", 1]] * 3)
        self.assertRegex(err, r"^quoit: PE 1 on \S+ left the job by .* with a lock for which others wait +.Q0242.\n"
                         r"(  PEs? [02,]+ (was|were) waiting in shmem_set_lock.* for lock held_lock, .*\n)+  the job was ended, status 1\n\Z")
        self.assertTrue(all(statuses), statuses)

    def test_kills_at_random(self):
        chance = random.Random(SEED)
        for run in range(12):
            victims = chance.sample(range(4), chance.choice((1, 1, 2)))
            at = time.monotonic() + chance.random() * 0.08 * SLOW
            with self.subTest(seed=SEED, run=run, victims=victims):
                is_killed = []

                def kill(server):
                    if not is_killed and time.monotonic() > at:
                        is_killed.append(True)
                        for victim in victims:
                            server.processes[victim].kill()
                        # Before the fence only the launcher can know: this one then ends the others.
                        if server.fences == 0:
                            for process in server.processes:
                                process.kill()

                server, statuses, _, err = self.launch(*[[MISBEHAVE, 0, "sleep", 60]] * 4, each_step=kill)
                self.assertTrue(all(status != 0 for status in statuses), (statuses, err))
                self.assertLess(server.seconds, scenario.LATE_S)

    def test_killed_after_the_fence(self):
        """Before it has come to the agent, or to the lowest PE's name. The launcher waits for PE 1 after PE 0."""
        for victim in (0, 1):
            with self.subTest(victim=victim):
                is_killed = []

                def kill(server):
                    if server.fences and not is_killed:
                        is_killed.append(True)
                        server.processes[victim].kill()

                def lie(server, rank, request, answer):
                    """The answer of the fence does not come to the victim."""
                    return None if rank == victim and request["cmd"] == "barrier_in" else answer

                server, statuses, _, err = self.launch(*[[MISBEHAVE, 0, "sleep", 60]] * 3, each_step=kill, lie=lie)
                if victim == 1:
                    self.assertEqual((statuses[0], err.count("PE 1 ended during shmem_init")), (1, 1), err)
                else:  # PEs of other hosts would wait
                    self.assertTrue(server.aborts, err)
                self.assertTrue(all(status != 0 for status in statuses), err)
                self.assertLess(server.seconds, scenario.LATE_S)

    def test_stopped_pe(self):
        """A PE that cannot obey is killed."""
        is_done = []

        def act(server):
            if not is_done and scenario.has_output(server.processes[0].stdout):
                is_done.append(True)
                server.processes[2].send_signal(signal.SIGSTOP)
                server.processes[1].kill()

        server, statuses, _, err = self.launch(*[[BUSY]] * 3, each_step=act)
        self.assertEqual(statuses, [1, -9, -9], err)
        self.assertLess(server.seconds, scenario.LATE_S)

    def at_step(self, rank, step, action, **how):
        """Three PEs, one of which does that at a step of its start or end (base/step.h)."""
        scenario.need_steps()
        commands = [[GREET]] * 3
        commands[rank] = ["env", f"TEST_STEP=pe.{step}={action}", GREET]
        return self.launch(*commands, **how)

    @scenario.each(0, 2)
    def test_killed_at_each_step(self, rank):
        """All end, whichever dies; before GO the agent names it. After the last barrier the others may have ended with success."""
        for step in ("layout", "ready", "go", "leaving", "finalized", "end"):
            with self.subTest(rank=rank, step=step):
                _, statuses, _, err = self.at_step(rank, step, "kill", env={"QUOIT_LINK_TIMEOUT": "1h"})
                self.assertEqual(statuses[rank], -9, err)
                others = statuses[:rank] + statuses[rank + 1:]
                if step != "finalized":
                    self.assertEqual([status != 0 for status in others], [step != "end"] * 2, err)
                if step in ("layout", "ready"):
                    self.assertRegex(err, rf"PE {rank} ended during shmem_init.*\[Q0312\]")
                self.assert_nothing_left()

    def of_agent(self, step, action, command=(GREET,), **how):
        """Three PEs, whose agent does that at a step."""
        self.at_step(0, "none", "kill")  # or skip
        result = self.launch(*[command] * 3, env={"TEST_STEP": f"agent{step}={action}", "QUOIT_LINK_TIMEOUT": "1s"}, **how)
        self.assert_nothing_left()
        return result

    def agent(self):
        return next((pid for pid in scenario.processes(self.mark) if scenario.name_of(pid) == "quoit-agent"), None)

    def test_agent_killed_at_each_step(self):
        for step in AGENT_STEPS:
            with self.subTest(step=step):
                server, statuses, _, err = self.of_agent(step, "kill")
                self.assertTrue(all(statuses), err)
                self.assertRegex(err, r"quoit: the agent of host \S+ ended before its PEs; the job was ended \[Q0240\]")
                self.assertLess(server.seconds, scenario.LATE_S)

    def test_agent_stopped_at_each_step(self):
        """It is reported, and the job goes on with it."""
        for step in (".begin", "0.start", "0.layout", "0.go", "0.end"):
            def act(server, step=step):
                pid = self.agent()
                is_reported = scenario.has_output(server.processes[0].stderr) or step == "0.end"
                if pid and is_reported and scenario.state_of(pid) == "T":
                    os.kill(pid, signal.SIGCONT)

            with self.subTest(step=step):
                _, statuses, out, err = self.of_agent(step, "stop", each_step=act)
                self.assertEqual(statuses, [0] * 3, err)
                self.assertEqual(len(out.split("\n")), 4, out)
                if step != "0.end":
                    self.assertRegex(err, r"waiting for the agent of PE 0's host \(process \d+\), which does not answer .*: it is stopped .*\[Q0237\]")
                self.assertNotIn("Q0241", err)

    def test_agent_that_is_stopped_does_not_outlive_its_pes(self):
        for step in (".begin", "0.start", "0.layout", "0.go", "0.finalized"):
            stopped = []

            def act(server, stopped=stopped):
                pid = self.agent()
                if stopped or not pid or scenario.state_of(pid) != "T":
                    return
                stopped.append(pid)
                for process in server.processes:
                    process.kill()
                try:
                    self.wait_for(lambda: scenario.state_of(pid) in ("", "Z"), "the agent to end", scenario.LATE_S)
                finally:
                    scenario.send(pid, signal.SIGKILL)  # it holds the PEs' standard error

            with self.subTest(step=step):
                self.of_agent(step, "stop", each_step=act)
                self.assertTrue(stopped)

    def test_agent_hangs(self):
        for step in (".begin", "0.go"):
            with self.subTest(step=step):
                _, statuses, _, err = self.of_agent(step, "hang")
                self.assertTrue(all(statuses), err)
                self.assertRegex(err, r"the agent of PE 0's host \(process \d+\) hangs: .*\[Q0241\]")
                self.assertNotIn("Q0240", err)

    def test_agent_of_running_pes(self):
        """Killed: all end. Stopped: it is reported, and when it goes on it sees who has died meanwhile."""
        for number in (signal.SIGKILL, signal.SIGSTOP):
            is_done = []

            def act(server, number=number, is_done=is_done):
                if not is_done and scenario.has_output(server.processes[0].stdout):
                    is_done.append(self.agent())
                    os.kill(is_done[0], number)
                elif len(is_done) == 1 and number == signal.SIGSTOP and scenario.has_output(server.processes[0].stderr):
                    server.processes[1].kill()
                    is_done.append(os.kill(is_done[0], signal.SIGCONT))

            with self.subTest(number=number):
                _, statuses, _, err = self.launch(*[[BUSY]] * 3, each_step=act, env={"QUOIT_LINK_TIMEOUT": "1s"})
                self.assertEqual(statuses, [1, 1 if number == signal.SIGKILL else -9, 1], err)
                self.assertRegex(err, "ended before its PEs.*Q0240" if number == signal.SIGKILL else r"PE 1 on \S+ ended .*Q0203")
                self.assert_nothing_left()

    def build(self, folder, *flags, source=GREET_SOURCE):
        """A program, alone in that folder, which leads to no installation."""
        program = os.path.join(folder, "program")
        built = subprocess.run([os.path.join(scenario.BIN, "oshcc"), *flags, "-o", program, source],
                               capture_output=True, text=True, check=False)
        self.assertEqual((built.returncode, built.stderr), (0, ""))
        return program

    @unittest.skipIf(scenario.SANITIZE, "the library of a sanitizer cannot be linked statically")
    def test_static(self):
        """A program that is linked statically needs no file of an installation: it is its own agent. None of its own code runs
        there, and what it is started with reaches its main()."""
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "own.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(OWN_CODE)
            for how in ("-static", "-static-pie"):
                program = self.build(folder, how, source=source)
                for arguments in ((), ("--host-agent",), ("--proxy",)):
                    with self.subTest(how=how, arguments=arguments):
                        _, statuses, out, err = self.launch(*[[program, *arguments]] * 3, env={"PATH": "/usr/bin:/bin"})
                        self.assertEqual((statuses, sorted(err.splitlines())), ([0] * 3, ["begun"] * 3 + ["ended"] * 3), out)
                        self.assertEqual(sorted(out.splitlines()), [f"PE {i} of 3 {' '.join(arguments)}." for i in range(3)])
                self.assert_nothing_left()

    @unittest.skipIf(scenario.SANITIZE, "the library of a sanitizer cannot be linked statically")
    def test_static_under_its_own_name(self):
        """Who starts a program as it executes itself, but without its socket, gets the reason."""
        with tempfile.TemporaryDirectory() as folder:
            program = self.build(folder, "-static")
            for option in ("--host-agent", "--proxy"):
                done = subprocess.run(["quoit-in-program", option], executable=program, capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"^quoit: " + option + r" is for programs of Quoit, .* \[Q0210\]\n$")

    def test_no_oshrun(self):
        """A library that has left its installation, or has libshmem.a within it: it is named, and PATH helps, but not another
        project's oshrun in it."""
        with tempfile.TemporaryDirectory() as folder:
            program = self.build(folder)
            library = shutil.copy(os.path.join(os.path.dirname(scenario.BIN), "lib", "libshmem.so.1"), folder)
            os.symlink(shutil.which("false"), os.path.join(folder, "oshrun"))
            self.check_no_oshrun(folder, library, program)
            if scenario.SANITIZE:
                return
            library = os.path.join(folder, "libgreet.so")
            for words in (["-shared", "-fPIC", "-Dmain=greet", GREET_SOURCE, "-l:libshmem.a", "-o", library],
                          ["-x", "c", "-", "-L", folder, "-lgreet", "-o", program]):
                subprocess.run([os.path.join(scenario.BIN, "oshcc"), "-Wl,--as-needed", *words], check=True, text=True,
                               input="int greet(void);\nint main(void)\n{\n    return greet();\n}\n")
            self.check_no_oshrun(folder, library, program)

    def check_no_oshrun(self, folder, library, program):
        env = {"LD_LIBRARY_PATH": folder, "PATH": f"{folder}:/usr/bin:/bin"}
        _, statuses, _, err = self.launch(*[[program]] * 2, env=env)
        self.assertTrue(all(statuses), err)
        self.assertIn(f"cannot start the agent of this host: there is no oshrun of Quoit beside {library}, nor in PATH: ", err)
        self.assertIn("[Q0239]", err)
        env["PATH"] += f":{scenario.BIN}"
        self.assert_greetings(2, self.launch(*[[program]] * 2, env=env))

    def test_hangs_at_start(self):
        _, statuses, _, err = self.at_step(2, "layout", "hang", env={"QUOIT_LINK_TIMEOUT": "1s"})
        self.assertTrue(all(statuses), err)
        self.assertRegex(err, r"quoit: still waiting for PE 2 on \S+ \(process \d+\), which has not come through shmem_init after \d+ s: it sleeps +\[Q0237\]")
        self.assertRegex(err, r"quoit: PE 2 on \S+ \(process \d+\) has not come through shmem_init after \d+ s; it could run, .*\[Q0238\]")

    def test_stopped_at_start(self):
        """It is reported, and the job goes on with it."""
        for rank, step in ((2, "layout"), (1, "ready")):
            def act(server, rank=rank):
                pid = server.processes[rank].pid
                if scenario.has_output(server.processes[0].stderr) and scenario.state_of(pid) == "T":
                    os.kill(pid, signal.SIGCONT)

            _, statuses, out, err = self.at_step(rank, step, "stop", each_step=act, env={"QUOIT_LINK_TIMEOUT": "1s"})
            self.assertEqual(statuses, [0] * 3, err)
            self.assertEqual(len(out.split("\n")), 4, out)
            self.assertRegex(err, rf"still waiting for PE {rank} on \S+ \(process \d+\), which has not come through shmem_init after \d+ s: it is stopped")
            self.assertNotIn("Q0238", err)

    def test_killed_lowest_pe(self):
        """Launchers name the process that they see end first: all others go on for a while, whichever of them reports."""
        killed_at, ended_at = [], []

        def act(server):
            if not killed_at and scenario.has_output(server.processes[0].stdout):
                killed_at.append(time.monotonic())
                server.processes[0].kill()
            if killed_at and not ended_at and any(process.poll() is not None for process in server.processes[1:]):
                ended_at.append(time.monotonic())

        server, statuses, _, err = self.launch(*[[BUSY]] * 4, each_step=act)
        self.assertEqual(statuses, [-9, 1, 1, 1], err)
        self.assertGreaterEqual((ended_at or [time.monotonic()])[0] - killed_at[0], 0.2)
        self.assertLess(server.seconds, scenario.LATE_S)

    def test_several_hosts(self):
        """Namespaces without a network: the hosts see that they are several, and cannot join."""
        net = ["unshare", "-n"]
        if subprocess.run(net + ["true"], capture_output=True).returncode != 0:
            self.skipTest("only root may make namespaces")

        def end_all(server):
            if server.aborts:
                for process in server.processes:
                    process.kill()

        _, statuses, out, err = self.launch([GREET], [*net, GREET], [*net, GREET], each_step=end_all)
        self.assertEqual((all(statuses), out), (True, ""), err)
        self.assertRegex(err, r"\[Q0(222|315)\]")

    def test_other_versions(self):
        for value, words in (("quoit,0.0.0.0,m,h,1.1,-,0.0.0.0", "version 0.0.0.0, which version"),
                             ("quoit,9.8.7:7-8,m,h,1.1,-,0.0.0.0", "version 9.8.7, which version"),
                             ("quoit,-,m,h,1.1,-,0.0.0.0", "version unknown, which version"), ("libfabric://x", "not of this version"),
                             ("quoit", "not of this version"), ("q" * 200, "not of this version")):
            def lie(server, rank, request, answer):
                is_other = request["cmd"] == "get" and request["key"] == "quoit-1"
                return f"cmd=get_result rc=0 value={value}\n".encode() if is_other else answer

            with self.subTest(value=value):
                _, statuses, out, err = self.launch([GREET], [GREET], lie=lie)
                self.assertEqual((statuses[0], out), (1, ""), err)
                self.assertRegex(err, words + r".*\[Q0311\]")

    @scenario.each(1, 2)
    def test_lies(self, version):
        """One kind of nonsense at a time, in answer to each request of PE 0."""
        lies = [b"", b"\n", b"cmd=\n", b"x" * 5000, b"cmd=other rc=0\n", b"\0\xff\x80;;;===\n", b"     0", b"9999999", b"-1    cmd=",
                b"    30cmd=kvs-get-response;rc=1;err=x", b"cmd=get_result rc=1 value=\n",
                b"cmd=get_result rc=0 value=" + b"v" * 2000 + b"\n"]
        requests = {1: ("init", "get_my_kvsname", "put", "barrier_in", "get"),
                    2: ("init", "fullinit", "kvs-put", "kvs-fence", "kvs-get")}
        for wanted in requests[version]:
            for nonsense in lies:
                def lie(server, rank, request, answer):
                    if rank != 0 or request["cmd"] != wanted:
                        return answer
                    server.is_over = True
                    return nonsense

                def end(server):
                    """As a launcher does: it ends what waits for a process that has failed."""
                    ended = server.processes[0].poll() is not None
                    if ended and server.processes[1].poll() is None and len(server.waiting) == 1:
                        server.processes[1].kill()
                    if getattr(server, "is_over", False) and not ended:
                        server.end_pe(0)

                with self.subTest(version=version, request=wanted, nonsense=nonsense[:40]):
                    _, statuses, out, err = self.launch([GREET], [GREET], version=version, lie=lie, each_step=end)
                    self.assertEqual((statuses[0], out), (1, ""), err)
                    self.assertRegex(err, r"\[Q03(09|11)\]")

    def test_wrong_numbers(self):
        for env in ({"PMI_RANK": "7"}, {"PMI_SIZE": "0"}, {"PMI_SIZE": str(QUOIT_EXCHANGE_RANKS_MAX + 1)}, {"PMI_RANK": "x"}, {"PMI_RANK": "-1"}):
            with self.subTest(env=env):
                _, statuses, out, err = self.launch(["env", *[f"{k}={v}" for k, v in env.items()], GREET])
                self.assertEqual((statuses, out), ([1], ""), err)
                self.assertIn("[Q0309]", err)

    def test_second_program(self):
        _, statuses, out, err = self.launch(*[["sh", "-c", f"{GREET} && {GREET}"]] * 2)
        self.assertEqual(statuses, [1, 1], err)
        self.assertEqual(out.count("hello"), 2)
        self.assertIn("second OpenSHMEM or MPI program", err)


if __name__ == "__main__":
    print("seed", SEED, file=sys.stderr)
    scenario.main(8)
