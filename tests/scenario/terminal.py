# SPDX-License-Identifier: BSD-3-Clause
"""Aim: programs that use the terminal run under oshrun as under a shell: PE 0 reads it, changes its modes, receives
Ctrl-C and Ctrl-Z; the others run without it and are not stopped. Method: oshrun as the
leader of a session on a pseudo terminal, keys written to the other end, and the text that appears there."""
import os
import pty
import select
import signal
import sys
import time

import scenario

READ = 'read x </dev/tty && echo "got $x"'


class Terminal(scenario.Case):
    """Without tests."""
    def setUp(self):
        super().setUp()
        self.seen = b""

    def open(self, *arguments):
        """oshrun on its own pseudo terminal."""
        self.open_program(scenario.OSHRUN, *arguments)

    def open_program(self, path, *arguments, **variables):
        environment = scenario.environment(self.mark, **variables)
        try:
            self.pid, self.keys = pty.fork()
        except OSError as problem:
            self.skipTest(f"no pseudo terminal: {problem}")
        if self.pid == 0:
            os.execve(path, [path, *map(str, arguments)], environment)
        self.addCleanup(os.close, self.keys)

    def type(self, text):
        os.write(self.keys, text.encode())

    def expect(self, words):
        end = time.monotonic() + scenario.LATE_S
        while words.encode() not in self.seen:
            ready, _, _ = select.select([self.keys], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.give_up(f"{words!r} does not appear")
            try:
                self.seen += os.read(self.keys, 4096)
            except OSError:
                self.give_up(f"{words!r} did not appear before the end")
        self.seen = self.seen[self.seen.index(words.encode()) + len(words):]

    def give_up(self, why):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.fail(f"{why} after {self.seen!r}")

    def status(self):
        """That of oshrun; what it prints meanwhile is kept."""
        end = time.monotonic() + scenario.LATE_S
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if select.select([self.keys], [], [], 0.01)[0]:
                try:
                    self.seen += os.read(self.keys, 4096)
                except OSError:
                    pass
        self.give_up("oshrun does not end")


class Keys(Terminal):
    def test_pe_0_reads_the_terminal(self):
        self.open("-n", 3, "sh", "-c", f"{READ} || echo none")
        self.expect("none")
        self.expect("none")
        self.type("hello\n")
        self.expect("got hello")
        self.assertEqual(self.status(), 0)

    def test_standard_input_is_the_terminal(self):
        self.open("-n", 2, "sh", "-c", "read x && echo got $x || echo none")
        self.expect("none")
        self.type("hello\n")
        self.expect("got hello")
        self.assertEqual(self.status(), 0)

    def test_modes(self):
        self.open("-n", 2, "sh", "-c", "stty -echo </dev/tty && echo changed; stty sane </dev/tty")
        self.expect("changed")
        self.assertIn(self.status(), (0, 1, 2))

    def test_shell(self):
        self.open("-n", 1, "bash", "--norc", "-i")
        self.type("echo $((6 * 7))\n")
        self.expect("\n42")
        self.type("exit 3\n")
        self.assertEqual(self.status(), 3)

    def test_interrupt_key(self):
        self.open("-n", 2, "sh", "-c", "echo ready; exec sleep 100")
        self.expect("ready")
        self.expect("ready")
        self.type("\x03")
        self.assertEqual(self.status(), 130)
        # From the PE that has the terminal: the key ends it, and the job ends as if oshrun had received it.
        self.seen = b""
        self.open("-n", 2, sys.executable, "-c", "import signal, sys, time\nsignal.signal(signal.SIGINT, "
                  "signal.SIG_DFL)\nprint(sys.stdin.readline(), flush=True)\ntime.sleep(100)")
        self.type("hello\n")
        self.expect("hello")
        self.expect("hello")
        self.type("\x03")
        self.assertEqual(self.status(), 130)

    def test_stop_key(self):
        """On a terminal without a shell, whose keys stop the PEs alone; with one: stopping.py."""
        self.open("-n", 2, "sh", "-c", f"{READ}; {READ}; {READ}; sleep 1")
        self.type("one\n")
        self.expect("got one")
        time.sleep(0.2)
        self.type("\x1a")
        self.wait_for(lambda: {scenario.state_of(pid) for pid in scenario.processes(self.mark)
                               if scenario.name_of(pid) == "sh"} <= {"T", ""}, "the PEs to stop")
        os.kill(self.pid, signal.SIGCONT)
        self.type("two\n")
        self.expect("got two")
        self.type("three\n")
        self.expect("got three")
        self.status()

    def test_modes_come_back(self):
        """A PE that dies with the terminal in raw mode leaves it restored."""
        self.open("-n", 1, "sh", "-c", "stty raw -echo </dev/tty; kill -9 $$")
        self.assertEqual(self.status(), 137)


if __name__ == "__main__":
    scenario.main()
