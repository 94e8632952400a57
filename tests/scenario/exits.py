# SPDX-License-Identifier: BSD-3-Clause
"""Aim: shmem_global_exit ends the other PEs at once and the caller as exit does: what it registered with atexit runs, static
objects are destroyed, C and C++ streams are flushed; the status is right, and nothing hangs, from wherever a PE calls.
Method: a C++ program that calls from main, a thread, a signal handler, an exit handler, a destructor, twice, on several PEs at
once; its exit handlers use the library, wait for ever, crash, are stopped. On one host, a ring, a network, and under a PMI
server of our own."""
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import scenario

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "launchers"))
from pmi_server import Server

EXITS = scenario.program("scenario_exits")
PMI = "a PMI server"
AGENTS = ("--host", "east:2,west:1", "--network", "tcp", "-n", 3) # on this machine, by a --rsh that ignores the name
SHAPES = (("-n", 4), ("--hosts", 3, "-n", 3), ("--network", "tcp", "--hosts", 2, "-n", 4), AGENTS, PMI)
PE_COUNT = {shape: 4 if shape is PMI else shape[-1] for shape in SHAPES}
LIMIT_S = 30 # QUOIT_EXIT_LIMIT_NS


class Case(scenario.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.rsh = os.path.join(folder, "rsh")
        with open(cls.rsh, "w") as file:
            file.write('#!/bin/sh\nshift\nexec sh -c "$*"\n')
        os.chmod(cls.rsh, 0o755)

    def leave(self, shape, how, status, caller):
        """The result, and what each PE has left in its file, and in that of a stream of C."""
        with tempfile.TemporaryDirectory() as folder:
            words = [EXITS, how, str(status), str(caller), folder]
            if shape is PMI:
                server = Server([words] * PE_COUNT[shape], env=scenario.environment(self.mark))
                result = server.run(scenario.LIMIT_S)
                self.assertIsNotNone(result, "the job hangs")
                statuses, out, err = result
                self.assertEqual(len(set(statuses)), 1, statuses)
                result = scenario.Result(statuses[0], out, err, 0)
            else:
                result = self.run_job(*(("--rsh", self.rsh) if shape is AGENTS else ()), *shape, *words)
            return result, *([self.content(folder, f"{pe}{suffix}") for pe in range(PE_COUNT[shape])] for suffix in ("", ".c"))

    def content(self, folder, name):
        with open(os.path.join(folder, name)) as file:
            return file.read()

    def assert_left(self, shape, how, status, caller, err="", also=()):
        with self.subTest(shape=shape, how=how, status=status, caller=caller):
            result, files, files_of_c = self.leave(shape, how, status, caller)
            self.assertEqual(result.status, status & 0xff, result)
            self.assertRegex(result.err, f"^{err}$", result)
            left = [pe for pe in range(len(files)) if files[pe]]
            for pe in left:
                self.assertEqual((files[pe], files_of_c[pe]), (f"PE {pe} wrote this",) * 2)
            if caller < 0:
                self.assertNotEqual(left, [], result)
            else:
                self.assertEqual(left, [caller], result)
            for pe in left:
                for words in ("in std::cout", "atexit ran", *also):
                    self.assertEqual(result.out.count(f"PE {pe}: {words}\n"), 1, result)


class Exits(Case):
    def test_from_anywhere(self):
        for number, shape in enumerate(SHAPES):
            for place, how in enumerate(("main", "thread", "signal", "handler", "destructor", "twice", "threads")):
                self.assert_left(shape, how, (0, 3, 300)[(number + place) % 3], place % PE_COUNT[shape])

    def test_from_several(self):
        for shape in SHAPES:
            self.assert_left(shape, "main", 7, -1)

    def test_handlers_that_use_the_library(self):
        for shape in SHAPES:
            self.assert_left(shape, "library", 5, 1, also=("the library let the handler go on",))

    def test_handlers_that_go_wrong(self):
        """The status stays what it was; what went wrong is reported."""
        for shape in SHAPES:
            with self.subTest(shape=shape):
                result, *_ = self.leave(shape, "misuse", 4, 1)
                self.assertEqual(result.status, 4, result)
                self.assertEqual(len(re.findall(r"shmem_int_p: pe is 1000.*\[Q0104\]", result.err)), 1, result)
                if shape is not PMI and not scenario.SANITIZE: # which take the signal
                    result, *_ = self.leave(shape, "crash", 4, 1)
                    self.assertEqual(result.status, 4, result)
                    self.assertRegex(result.err, r"PE 1 on \S+ was killed by SIGSEGV.*\[Q0201\](?s:.*)exit handlers")

    def test_under_a_shell(self):
        """What a script does after the program is not waited for."""
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_soon("-n", 2, "sh", "-c", f"'{EXITS}' main 6 1 '{folder}'; sleep 100")
        self.assertEqual(result.status, 6, result)


class Waits(Case):
    """For the limit of the handlers, which wait without using the processor, in all jobs at once."""

    def test_handlers_that_wait(self):
        cases = [(shape, how) for shape in SHAPES for how in ("never", "barrier")] + [(SHAPES[0], "stop")]
        with ThreadPoolExecutor(len(cases)) as pool:
            results = list(pool.map(lambda case: self.leave(*case, 4, 0), cases))
        for (shape, how), (result, _, files_of_c) in zip(cases, results):
            with self.subTest(shape=shape, how=how):
                words = rf"quoit: PE 0: its exit handlers have run for {LIMIT_S} s"
                if how == "stop":
                    words = "oshrun: PE 0 on host0 did not end after shmem_global_exit"
                self.assertEqual(result.status, 4, result)
                self.assertRegex(result.err, rf"^{words}.*\[Q0127\]\n$")
                self.assertIn("PE 0: in std::cout\n", result.out)
                self.assertEqual(files_of_c[0], "PE 0 wrote this") # which was flushed before the handlers


if __name__ == "__main__":
    scenario.main()
