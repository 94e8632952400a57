# SPDX-License-Identifier: BSD-3-Clause
"""Tools that follow a process from outside: tracers, profilers, debuggers."""
import os
import re
import resource
import subprocess
import unittest

from rows import Row, planted, shell


class Strace(Row):
    QUICK = None
    NEEDS, PACKAGE = ("strace",), "strace"
    WRAPPER = shell('exec strace -f -o "{folder}/trace.$$" "$@"')

    def check(self, result, pes):
        self.assert_files("trace.*", pes, r"(?s)execve\(.*exit_group\(0[ )].*exited with 0")


class StraceAll(Row):
    """The launcher and everything below it."""
    QUICK = "ring"
    NEEDS, PACKAGE = ("strace",), "strace"
    NOT = dict.fromkeys(("pmi", "srun"), "the launcher is not oshrun")

    def command(self, way):
        return ["strace", "-f", "-o", os.path.join(self.folder, "trace"), *super().command(way)]

    def check(self, result, pes):
        with open(self.files("trace", 1)[0]) as text:
            trace = text.read()
        self.assertEqual(len(re.findall(rf'execve\("{self.program}"', trace)), pes)
        self.assertRegex(trace, r"exited with 0 \+\+\+\n*$")


class Ltrace(Row):
    NEEDS, PACKAGE = ("ltrace",), "ltrace"
    WRAPPER = shell('exec ltrace -e "shmem_putmem+shmem_finalize" -o "{folder}/trace.$$" "$@"')

    def check(self, result, pes):
        self.assert_files("trace.*", pes, r"(?s)shmem_putmem\(.*shmem_finalize\(.*exited \(status 0\)")


class PerfStat(Row):
    NEEDS, PACKAGE = ("perf",), "linux-perf"
    WRAPPER = shell('exec perf stat -o "{folder}/stat.$$" -- "$@"')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        tried = subprocess.run(["perf", "stat", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
        if tried.returncode != 0:
            raise unittest.SkipTest("perf_event_open is not allowed here: " + tried.stderr.strip()[:100])

    def check(self, result, pes):
        self.assert_files("stat.*", pes, r"[1-9]\S* +msec task-clock")


class PerfRecord(PerfStat):
    QUICK = None
    WRAPPER = shell('exec perf record -q -F 997 -g -o "{folder}/record.$$" -- "$@" 2>/dev/null')
    DEED = "busy"

    def check(self, result, pes):
        texts = [self.text_of("perf", "report", "--stdio", "--no-children", "-g", "none", "-i", file)
                 for file in self.files("record.*", pes)]
        self.assert_one_names(texts, r"\d%.*\] busy")


class Gdb(Row):
    """A program that gdb starts stops at a line, and goes on."""
    NEEDS, PACKAGE = ("gdb",), "gdb"
    WRAPPER = ("gdb", "-batch", "-nx", "-ex", f"break work.c:{planted('leak')}", "-ex", "run", "-ex", "backtrace", "-ex",
               "continue", "-ex", "quit $_exitcode", "--args")
    DEED = "leak"

    def check(self, result, pes):
        self.assertEqual(len(re.findall(r"Breakpoint 1(?:\.1)?, leak \(", result.out)), 1, result)
        # Lines of the other PEs' debuggers may stand between.
        frames = "\n".join(re.findall(r"(?m)^#\d .*$", result.out))
        self.assertRegex(frames, r"#0  leak \(bytes=.*54321\) at .*\n(#\d .*\n)*#\d .*\bmain \(")


class GdbServer(Gdb):
    """Its program writes to standard error, since standard output is the debugger's."""
    NEEDS, PACKAGE = ("gdb", "gdbserver"), "gdbserver"
    QUICK = None
    WRAPPER = shell('exec gdb -batch -nx -ex "target remote | gdbserver - $*" -ex "break leak" -ex continue -ex backtrace '
                    '-ex continue -ex "quit \\$_exitcode" "$1" 2>&1')


class GdbAttach(Row):
    """gdb comes to a PE that runs, prints where it is, releases it and leaves."""
    QUICK = "ring"
    NEEDS, PACKAGE = ("gdb",), "gdb"
    DEED = "wait"
    NOT = {"pmi": "its output is read when the job has ended"}

    def finish(self, job):
        head = ""
        while not (found := re.search(r"PE \d waits, process (\d+)\n", head)):
            line = job.stdout.readline()
            if not line:
                self.fail(f"the job ended: {head} {job.communicate()[1]}")
            head += line
        self.seen = self.text_of("gdb", "-batch", "-nx", "-p", found[1], "-ex", "backtrace", "-ex", "set var is_released = 1",
                                 "-ex", "detach")
        result = super().finish(job)
        result.out = head + result.out
        return result

    def check(self, result, pes):
        self.assertRegex(self.seen, rf"await_debugger \(me=.*{pes - 1}\) at .*work\.c:\d+\n(#\d .*\n)*#\d .*\bmain \(")


class GdbCore(Row):
    QUICK = None
    NEEDS, PACKAGE = ("gdb",), "gdb"
    WRAPPER = shell('ulimit -c unlimited; exec "$@"')
    DEED, STATUS = "crash", 139

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open("/proc/sys/kernel/core_pattern") as file:
            pattern = file.read().strip()
        if "/" in pattern or "|" in pattern:
            raise unittest.SkipTest(f"core files do not go to the working directory here: core_pattern is {pattern}")
        if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            raise unittest.SkipTest("the hard limit of core files is too small")

    def check(self, result, pes):
        text = self.text_of("gdb", "-batch", "-nx", "-ex", "backtrace", self.program, self.files("core*", 1)[0])
        self.assertRegex(text, rf"#0  crash \(nowhere=.*0x0\) at .*work\.c:{planted('crash')}\n(.*\n)*#\d .*\bmain \(")


ROWS = [Strace, StraceAll, Ltrace, PerfStat, PerfRecord, Gdb, GdbServer, GdbAttach, GdbCore]
