# SPDX-License-Identifier: BSD-3-Clause
"""Aim: oshrun --debugger runs the PEs of its list, and no others, under a command: one PE with the whole terminal, several
without; what waits in a debugger is waited for, Ctrl-C interrupts the debugged program, the end of the debugger is that of its
PE, and the end of the job that of all debuggers. quoit panes gives each a pane of tmux as its terminal. Method: scripts in place
of debuggers, then gdb, gdbserver and lldb, on a pseudo terminal, in a tmux, or with commands that are given beforehand."""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import unittest

import scenario
from terminal import READ, Terminal

PROGRAM = scenario.program("scenario_debugged")
GDB = ["-batch", "-nx", "-iex", "set style enabled off", "-iex", "set debuginfod enabled off"]
UNDER = "sh -c 'echo under $QUOIT_PE; exec \"$@\"' tool"


def need(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    is_possible = not missing and not scenario.SANITIZE
    return unittest.skipUnless(is_possible, f"no {', '.join(missing)}" if missing else "a sanitizer and a debugger trace alike")


def quoted(words):
    return " ".join(f"'{word}'" for word in words)


def free_ports(count):
    """The first of so many that nobody uses now."""
    for first in range(21000 + os.getpid() % 1000 * 8, 60000, count):
        holders = [socket.socket() for _ in range(count)]
        try:
            for i, holder in enumerate(holders):
                holder.bind(("127.0.0.1", first + i))
            return first
        except OSError:
            continue
        finally:
            for holder in holders:
                holder.close()
    raise OSError("no ports are free")


class Lists(Terminal):
    """With scripts in place of debuggers."""
    def test_one_has_the_terminal(self):
        """The debugged PE has the whole terminal; the others run as usual."""
        tool = "sh -c '[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo whole $2; " + READ + "; exec \"$@\"' tool"
        for pes, pe in ((2, ""), (3, "2:"), (3, "1-1,1:"), (1, "all:")):
            self.seen = b""
            self.open("-n", pes, "--debugger", pe + tool, "sh", "-c", "echo $1 ran", "sh", "program")
            self.expect("whole")
            self.type("go\n")
            self.expect("got go")
            if pes == 2:
                self.expect("program ran")
            self.assertEqual(self.status(), 0)

    def test_several_have_none(self):
        self.open("-n", 3, "--debugger", "1-2:sh -c '[ -t 1 ] && echo terminal || echo none; exec \"$@\"' tool", "true")
        self.expect("none")
        self.expect("none")
        self.assertEqual(self.status(), 0)

    def test_lists(self):
        for text, under in (("all", range(8)), ("0,2,5-7", (0, 2, 5, 6, 7)), ("3-4,4,3", (3, 4)), ("7", (7,)), ("0-7", range(8))):
            result = self.run_job("-n", 8, "--debugger", f"{text}:{UNDER}", "sh", "-c", "echo program $QUOIT_PE")
            wanted = [f"under {pe}" for pe in under] + [f"program {pe}" for pe in range(8)]
            self.assertEqual((result.status, sorted(result.out.splitlines())), (0, sorted(wanted)), (text, result))

    def test_command_with_a_colon(self):
        result = self.run_job("-n", 2, "--debugger", "1:echo localhost:$((2000 + QUOIT_PE))", "true", "x")
        self.assertRegex(result.out, r"^localhost:2001 .*true x\n$")
        result = self.run_job("-n", 2, "--debugger", "echo localhost:$((2000 + QUOIT_PE))", "true")
        self.assertRegex(result.out, r"^localhost:2000 .*true\n$")

    def test_bad_lists(self):
        for text, problem in (("3:gdb", "no PE 3 in the job"), ("0,2-9:gdb", "no PE 9 in the job"), ("2-1:gdb", "PEs as in"),
                              ("0-:gdb", "PEs as in"), ("-2:gdb", "PEs as in"), ("1,,2:gdb", "PEs as in"), (",:gdb", "PEs as in"),
                              ("99999999999999999999:gdb", "PEs as in"), ("all:", "command is missing"), ("0: ", "command is missing")):
            result = self.run_job("-n", 3, "--debugger", text, "true")
            self.assertEqual((result.status, len(result.err.splitlines())), (2, 1), result)
            self.assertIn(problem, result.err)

    def test_several_machines(self):
        with tempfile.TemporaryDirectory() as folder:
            rsh = os.path.join(folder, "rsh")
            with open(rsh, "w") as file:
                file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
            os.chmod(rsh, 0o755)
            machines = ("--host", "east:2,west:2", "--rsh", rsh, "--network", "tcp", "-n", 4)
            result = self.run_job(*machines, "--debugger", "1-2:" + UNDER, scenario.program("scenario_greet"))
            self.assertEqual((result.status, sorted(result.out.splitlines())),
                             (0, ["hello from PE %d of 4" % pe for pe in range(4)] + ["under 1", "under 2"]), result)
            result = self.run_job(*machines, "--debugger", "3:sh -c 'cat; exec \"$@\"' tool", "true", text_in="typed\n")
            self.assertEqual((result.status, result.out), (0, "typed\n"), result)

    def test_status(self):
        result = self.run_job("-n", 3, "--debugger", "1-2:sh -c 'exit $((6 + QUOIT_PE))' tool", "sleep", "100")
        self.assertIn(result.status, (7, 8), result)
        result = self.run_job("-n", 3, "--debugger", "1-2:sh -c 'kill -11 $$' tool", "sleep", "100")
        self.assertEqual(result.status, 139, result)

    def test_users_take_their_time(self):
        """A PE in a debugger that has not called shmem_init is not reported as late; one without is."""
        slow = "sh -c 'sleep 6; exec \"$@\"' tool"
        job = ("--link-timeout", "1s", "-n", 2)
        result = self.run_job(*job, "--debugger", "1:" + slow, scenario.program("scenario_greet"))
        self.assertEqual((result.status, result.err), (0, ""), result)
        result = self.run_job(*job, "sh", "-c", "[ $QUOIT_PE = 0 ] || sleep 6; exec \"$1\"", "sh", scenario.program("scenario_greet"))
        self.assertIn("[Q0237]", result.err)

    def test_end_of_the_job(self):
        """Debuggers that would stay are ended with the job: tearDown() looks for them."""
        stays = "sh -c 'sleep 1000; true' tool"
        result = self.run_job("-n", 3, "--timeout", "1s", "--debugger", "all:" + stays, "true")
        self.assertEqual(result.status, 124, result)
        result = self.run_job("-n", 3, "--debugger", "1-2:setsid -w " + stays, "sh", "-c", "exit 9")
        self.assertEqual(result.status, 9, result)


class Debuggers(Terminal):
    """With those that are installed."""
    @need("gdb")
    def test_gdb(self):
        """Breakpoints, and Ctrl-C, which stops the program alone."""
        self.open("-n", 2, "--debugger", "gdb -q -nx -iex 'set style enabled off' -iex 'set pagination off' -iex 'set debuginfod enabled off' --args",
                  PROGRAM, 0)
        self.expect("(gdb)")
        self.type("break shmem_finalize\nrun\n")
        self.expect("PE 0 waits")
        self.type("\x03")
        self.expect("SIGINT")
        self.expect("(gdb)")
        self.type("bt\n")
        self.expect("await_debugger (")
        self.type("set var is_released = 1\ncontinue\n")
        self.expect("Breakpoint 1, ")
        self.expect("(gdb)")
        self.type("continue\n")
        self.expect("exited normally")
        self.expect("(gdb)")
        self.type("quit\n")
        self.assertEqual(self.status(), 0)

    @need("gdb")
    def test_gdb_ended(self):
        """By the job, while it waits for commands, and by its user in the middle of the program."""
        self.open("-n", 2, "--timeout", "4s", "--debugger", "gdb -q -nx --args", PROGRAM)
        self.expect("(gdb)")
        self.assertEqual(self.status(), 124)
        self.seen = b""
        self.open("-n", 2, "--debugger", "gdb -q -nx -iex 'set confirm off' --args", PROGRAM, 0)
        self.expect("(gdb)")
        self.type("break shmem_barrier_all\nrun\n")
        self.expect("PE 0 waits")
        self.type("\x03")
        self.expect("SIGINT")
        self.expect("(gdb)")
        self.type("quit\n")
        self.assertEqual(self.status(), 1)

    @need("gdb")
    def test_gdb_for_several(self):
        commands = ["-ex", "break await_debugger", "-ex", "run", "-ex", "print me", "-ex", "set var is_released = 1", "-ex", "continue"]
        result = self.run_job("-n", 4, "--debugger", f"0,2-3:gdb {quoted(GDB + commands)} --args", PROGRAM, 0, 2, 3)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(sorted(re.findall(r"\$1 = (\d)", result.out)), ["0", "2", "3"], result)
        self.assertEqual(sorted(re.findall(r"PE (\d) goes on", result.out)), ["0", "1", "2", "3"], result)

    @need("gdb", "gdbserver")
    def test_gdbserver(self):
        """A port for each PE, to which a gdb of its own connects, as VS Code does."""
        port = free_ports(2)
        job = self.start("-n", 2, "--debugger", f"all:gdbserver --once localhost:$(({port} + QUOIT_PE))", PROGRAM, 0, 1)
        debuggers = []
        for pe in range(2): # both at once: shmem_init waits for all PEs
            commands = [f"target remote localhost:{port + pe}", "break await_debugger", "continue", "print me",
                        "set var is_released = 1", "delete", "continue" if pe else "detach"]
            words = [word for command in commands for word in ("-ex", command)]
            debuggers.append(scenario.Job(["gdb", *GDB, "-iex", "set tcp auto-retry on", *words, PROGRAM], stdout=-1, stderr=-2))
        for pe, debugger in enumerate(debuggers):
            seen = debugger.communicate(timeout=scenario.LIMIT_S)[0].decode(errors="replace")
            self.assertIn(f"$1 = {pe}\n", seen)
        out, err = (text.decode(errors="replace") for text in job.communicate(timeout=scenario.LIMIT_S))
        self.assertEqual(job.returncode, 0, (out, err))
        self.assertEqual(sorted(re.findall(r"PE (\d) goes on", out)), ["0", "1"], (out, err))

    @need("lldb")
    def test_lldb(self):
        commands = ["breakpoint set --name await_debugger", "run", "expression me", "expression is_released = 1", "continue"]
        words = quoted(word for command in commands for word in ("-o", command))
        result = self.run_job("-n", 3, "--debugger", f"1-2:lldb --batch --no-lldbinit {words} --", PROGRAM, 1, 2)
        self.assertEqual(result.status, 0, result)
        self.assertEqual(sorted(re.findall(r"\(int\) \$0 = (\d)", result.out)), ["1", "2"], result)
        self.assertEqual(sorted(re.findall(r"PE (\d) goes on", result.out)), ["0", "1", "2"], result)


class Panes(scenario.Case):
    """In a tmux of the test's own, whose first pane is the terminal of oshrun."""
    def setUp(self):
        super().setUp()
        if not shutil.which("tmux"):
            self.skipTest("no tmux")
        self.folder = tempfile.mkdtemp()
        self.socket = os.path.join(self.folder, "tmux")
        self.log = os.path.join(self.folder, "log")

    def leave(self):
        self.tmux("kill-server")
        self.wait_for(lambda: not self.pids_of("tmux: server"), "tmux to end")

    def tearDown(self):
        self.leave()
        shutil.rmtree(self.folder)
        super().tearDown()

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *words], capture_output=True, text=True,
                              env=scenario.environment(self.mark, PATH=f"{scenario.BIN}:{os.environ['PATH']}", TERM="screen")).stdout

    def begin(self, *arguments, columns=160, lines=50):
        """oshrun in the first pane; its output and status go to the log, then the pane stays."""
        command = shlex.join([scenario.OSHRUN, *map(str, arguments)])
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"{command} >{self.log} 2>&1; echo status $? >>{self.log}; exec sleep 1000")

    def panes(self):
        """Those of PEs, as tmux has them: [id, window, title]."""
        lines = self.tmux("list-panes", "-a", "-F", "#{pane_id} #{window_id} #{pane_title}").splitlines()
        return [line.split(" ", 2) for line in lines if " PE " in line]

    def await_panes(self, pes):
        wanted = [f"PE {pe}" for pe in pes]
        self.wait_for(lambda: [pane[2] for pane in self.panes()] == wanted or self.ended(), f"panes {wanted}")
        self.assertEqual([pane[2] for pane in self.panes()], wanted, self.told())
        return [pane[0] for pane in self.panes()]

    def told(self):
        try:
            with open(self.log) as file:
                return file.read()
        except OSError:
            return ""

    def ended(self):
        return re.search(r"^status (\d+)$", self.told(), re.M)

    def await_end(self, status):
        self.wait_for(self.ended, "the end of the job")
        self.assertEqual(self.ended()[1], str(status), self.told())
        self.wait_for(lambda: not self.panes(), "the panes to close")

    def await_text(self, pane, words):
        self.wait_for(lambda: words in self.tmux("capture-pane", "-p", "-t", pane), f"{words!r} in pane {pane}")

    def test_terminals(self):
        """Of its own, with its keys; the panes are in the order of the PEs."""
        shell = ("sh -c 'tty; echo is PE $QUOIT_PE; trap \"echo interrupted\" INT; while :; do read x; echo got $x; "
                 "[ \"$x\" = leave ] && exit 0; done'")
        self.begin("-n", 6, "--debugger", f"0,2-5:quoit panes {shell} tool", "true")
        panes = self.await_panes((0, 2, 3, 4, 5))
        for pane, pe in zip(panes, (0, 2, 3, 4, 5)):
            self.await_text(pane, f"is PE {pe}")
            tty = self.tmux("display-message", "-p", "-t", pane, "#{pane_tty}").strip()
            self.assertIn(tty + "\n", self.tmux("capture-pane", "-p", "-t", pane))
        self.tmux("send-keys", "-t", panes[1], "C-c")
        self.await_text(panes[1], "interrupted")
        for pane in panes:
            self.tmux("send-keys", "-t", pane, "one", "Enter")
        for pane in panes:
            self.await_text(pane, "got one")
            self.tmux("send-keys", "-t", pane, "leave", "Enter")
        self.await_end(0)
        self.assertEqual(self.told(), "status 0\n")

    def test_more_than_a_window_has_room_for(self):
        self.begin("-n", 24, "--debugger", "all:quoit panes sh -c 'exec cat' tool", "true", columns=40, lines=10)
        self.wait_for(lambda: len(self.panes()) == 24 or self.ended(), "24 panes")
        self.assertEqual(sorted(int(pane[2][3:]) for pane in self.panes()), list(range(24)), self.told())
        self.assertGreater(len({pane[1] for pane in self.panes()}), 1)
        self.assertEqual(self.told(), "")
        self.tmux("send-keys", "-t", self.panes()[3][0], "C-c")
        self.await_end(130)

    def test_ends(self):
        """Of one debugger, by status and signal; of the job by time, by another PE, and by a pane that is closed."""
        stays = "1-2:quoit panes sh -c 'exec cat' tool"
        for status, words, deed in ((7, ("0-1:quoit panes sh -c 'exit $((7 * QUOIT_PE))'",), None),
                                    (139, ("1-2:quoit panes sh -c 'kill -11 $$'",), None),
                                    (124, (stays, "--timeout", "3s"), None), (9, (stays,), None), (129, (stays,), "kill-pane")):
            self.begin("-n", 3, "--debugger", *words, "sh", "-c", "sleep 2; exit 9" if status == 9 else "sleep 1000")
            if deed:
                self.tmux(deed, "-t", self.await_panes((1, 2))[0])
            self.await_end(status)
            self.leave()
            os.remove(self.log)

    @need("gdb")
    def test_gdb(self):
        self.begin("-n", 3, "--debugger", "1-2:quoit panes gdb -q -nx -iex 'set debuginfod enabled off' --args", PROGRAM, 1, 2)
        panes = self.await_panes((1, 2))
        for pane in panes:
            self.await_text(pane, "(gdb)")
            self.tmux("send-keys", "-t", pane, "run", "Enter")
        for pane, pe in zip(panes, (1, 2)):
            self.await_text(pane, f"PE {pe} waits")
        self.tmux("send-keys", "-t", panes[1], "C-c")
        self.await_text(panes[1], "SIGINT")
        self.tmux("send-keys", "-t", panes[0], "C-c")
        self.await_text(panes[0], "SIGINT")
        for pane in panes:
            self.tmux("send-keys", "-t", pane, "set var is_released = 1", "Enter", "continue", "Enter")
        for pane in panes:
            self.await_text(pane, "exited normally")
            self.tmux("send-keys", "-t", pane, "quit", "Enter")
        self.await_end(0)

    def test_without(self):
        for env, problem in (({"TMUX": ""}, "no tmux around oshrun: type tmux"),
                             ({"TMUX": "/nowhere/tmux,1,0"}, "is not on this machine"), ({"PATH": "/nowhere"}, "tmux is not installed")):
            quoit = os.path.join(scenario.BIN, "quoit")
            result = self.run_job("-n", 2, "--debugger", f"1:{quoit} panes /bin/true", "/bin/true", env={"TMUX": "/tmp/x,1,0", **env})
            self.assertEqual(result.status, 1, result)
            self.assertIn(problem, result.err)
        done = subprocess.run([quoit, "panes", "gdb"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "no PE of oshrun" in done.stderr), (2, True), done)


class Editor(scenario.Case):
    """examples/vscode: its files name each other, and its commands work."""
    FOLDER = os.path.join(os.environ["SCENARIO_SOURCE"], "examples")

    def setUp(self):
        super().setUp()
        port = free_ports(4)
        self.files = {}
        for name in ("tasks", "launch"):
            with open(os.path.join(self.FOLDER, "vscode", name + ".json")) as file:
                text = re.sub(r"(localhost:(?:\$\(\()?)(200\d)", lambda found: found[1] + str(port + int(found[2]) - 2000), file.read())
                self.files[name] = json.loads(text)
        self.tasks = {task["label"]: task for task in self.files["tasks"]["tasks"]}
        self.configurations = {each["name"]: each for each in self.files["launch"]["configurations"]}

    def test_names(self):
        self.assertEqual(len(self.tasks), len(self.files["tasks"]["tasks"]))
        for each in [*self.configurations.values(), *self.files["launch"]["compounds"]]:
            self.assertIn(each.get("preLaunchTask", "build"), self.tasks)
            self.assertLessEqual(set(each.get("configurations", [])), set(self.configurations))
        for task in self.tasks.values():
            self.assertIn(task.get("dependsOn", "build"), self.tasks)

    def words(self, label, folder):
        task = self.tasks[label]
        values = {"file": os.path.join(self.FOLDER, "hello.c"), "fileDirname": folder, "fileBasenameNoExtension": "hello"}
        return [os.path.join(scenario.BIN, task["command"]),
                *(re.sub(r"\$\{(\w+)\}", lambda found: values[found[1]], word) for word in task["args"])]

    def debug(self, label, names, folder):
        """The task, then a gdb for each configuration, as the editor starts them."""
        job = scenario.Job(self.words(label, folder), env=scenario.environment(self.mark), stdin=-3, stdout=-1, stderr=-2)
        debuggers = [scenario.Job(["gdb", *GDB, "-iex", "set tcp auto-retry on", "-ex",
                                   "target remote " + self.configurations[name]["miDebuggerServerAddress"], "-ex", "break main", "-ex",
                                   "continue", "-ex", "continue", os.path.join(folder, "hello")], stdin=-3, stdout=-1, stderr=-2)
                     for name in names]
        for debugger in debuggers:
            self.assertIn(b"Breakpoint 1, main", debugger.communicate(timeout=scenario.LIMIT_S)[0])
        out = job.communicate(timeout=scenario.LIMIT_S)[0].decode(errors="replace")
        self.assertEqual(job.returncode, 0, out)
        self.assertRegex(out, self.tasks[label]["problemMatcher"]["background"]["beginsPattern"].replace("^", "(?m)^"))
        self.assertRegex(out, self.tasks[label]["problemMatcher"]["background"]["endsPattern"].replace("^", "(?m)^"))

    @need("gdb", "gdbserver")
    def test_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(self.words("build", folder), check=True, timeout=scenario.LIMIT_S)
            compound = self.files["launch"]["compounds"][0]
            self.debug(compound["preLaunchTask"], compound["configurations"], folder)
            single = [each for each in self.configurations.values() if "preLaunchTask" in each]
            self.debug(single[0]["preLaunchTask"], [single[0]["name"]], folder)


if __name__ == "__main__":
    scenario.main()
