# SPDX-License-Identifier: BSD-3-Clause
"""Aim: where a job ends while its PEs wait, in whatever they wait, the message names the line of each in the program in Python, and
not one of the package. Method: programs whose PEs wait for what never comes, each in a line that a comment marks, in jobs on one
host, on a ring and over a network; and one under another launcher."""
import os
import re
import shutil
import subprocess
import tempfile

import package
import scenario

FORMS = ([], ["--hosts", 2], ["--network", "tcp", "--hosts", 2])
# PE 0 in a barrier, 1 for elements, 2 for a lock, 3 in a collective.
EACH = """
import quoit
values, lock = quoit.zeros(2, int), quoit.Lock()
if quoit.my_pe() == 3:
    lock.acquire()
quoit.barrier()
if quoit.my_pe() == 0:
    quoit.barrier()  # of PE 0
elif quoit.my_pe() == 1:
    values.wait("==", 7)  # of PE 1
elif quoit.my_pe() == 2:
    with lock:  # of PE 2
        pass
else:
    quoit.sum(1)  # of PE 3
"""
# PE 0 in a thread that is not the first, PE 1 in a lock of shared pages: in a function that a loop of Python's own library calls.
DEEP = """
import functools
import threading
import quoit
from quoit import dsm
lock = dsm.Lock()
def take(none, each):
    each.acquire()  # of PE 1
if quoit.my_pe() == 0:
    lock.acquire()
quoit.barrier()
if quoit.my_pe() == 0:
    waits = threading.Thread(target=lambda:
        quoit.barrier())  # of PE 0
    waits.start()
    waits.join()
else:
    functools.reduce(take, [lock], None)
"""
COMPUTES = """
import quoit
quoit.barrier()
if quoit.my_pe() == 1:
    while True: pass  # of PE 1
quoit.barrier()  # of PE 0
"""
# The last one has left, by the barrier of the others.
LEFT = """
import quoit
values = quoit.zeros(2, int)
if quoit.my_pe() != quoit.n_pes() - 1:
    quoit.barrier()
    values.wait("==", 7)  # of PE 0
"""
LOCK_KEPT = """
import quoit
lock = quoit.Lock()
if quoit.my_pe() == 1:
    lock.acquire()
quoit.barrier()
if quoit.my_pe() == 0:
    lock.acquire()  # of PE 0
"""


class Waiting(package.Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="quoit-python-")
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "program.py")

    def write(self, text):
        """The places by PE: "program.py:8" as a pattern."""
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(text)
        return [rf"program\.py:{text[:at.start()].count(chr(10)) + 1}"
                for at in sorted(re.finditer(r"# of PE (\d)", text), key=lambda each: each[1])]

    def time_out(self, text, pes, words):
        places = self.write(text)
        for form in FORMS:
            with self.subTest(form=form):
                result = self.run_out(6, [each.format(place) for each, place in zip(words, places)], *form, "-n", pes,
                                      package.PYTHON, self.program, env=package.ENVIRONMENT)
                self.assertIn("Q0206", result.err)

    def test_each(self):
        self.time_out(EACH, 4, (r"PE 0 was waiting in shmem_barrier_all \({}\)\n",
                                r"PE 1 was waiting in shmem_int64_wait_until\w* \({}\) for 2 objects, of which heap \+ \w+ is 0 \(wanted: == 7\)",
                                r"PE 2 was waiting in shmem_set_lock \({}\) for lock heap .*, which PE 3 holds",
                                r"PE 3 was waiting in shmem_team_sync \({}\)\n"))

    def test_shared_pages_and_threads(self):
        self.time_out(DEEP, 2, (r"PE 0 was waiting in shmem_barrier_all \({}\)\n", r"PE 1 was waiting in shmem_\w+ \({}\)"))

    def test_one_computes(self):
        self.time_out(COMPUTES, 2, (r"PE 0 was waiting in shmem_barrier_all \({}\)\n", r"PE 1 was running \({}\)\n"))

    def test_one_has_left(self):
        place = self.write(LEFT)[0]
        for form in FORMS:
            for pes in (2, 4):
                with self.subTest(form=form, pes=pes):
                    result = self.run_job(*form, "-n", pes, package.PYTHON, self.program, env=package.ENVIRONMENT)
                    self.assertEqual(result.status, 1, result)
                    who = "PE 0 was" if pes == 2 else "PEs 0-2 were"
                    self.assertRegex(result.err, rf"Q0209\]\n  {who} waiting in shmem_int64_wait_until\w* \({place}\) for 2 objects")

    def test_one_has_left_with_a_lock(self):
        place = self.write(LOCK_KEPT)[0]
        for form in FORMS:
            with self.subTest(form=form):
                result = self.run_job(*form, "-n", 4, package.PYTHON, self.program, env=package.ENVIRONMENT)
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.err, rf"Q0242\]\n  PE 0 was waiting in shmem_set_lock \({place}\) for lock")
                self.assertNotRegex(result.err, r"(?<!program)\.py:", "of those in shmem_finalize nothing of the package is named")

    def test_another_launcher(self):
        launcher = shutil.which("mpiexec.hydra")
        if not launcher:
            self.skipTest("no mpiexec.hydra on this machine (hydra, or mpich)")
        for text, words in ((LEFT, r"Q0209\]\n.*PE 0 was waiting in shmem_int64_wait_until\w* \({}\)"),
                            (LOCK_KEPT, r"Q0242\]\n.*PE 0 was waiting in shmem_set_lock \({}\)")):
            place = self.write(text)[0]
            ended = subprocess.run([launcher, "-n", "2", package.PYTHON, self.program], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, timeout=scenario.LIMIT_S,
                                   env=scenario.environment(self.mark, **package.ENVIRONMENT))
            self.assertNotEqual(ended.returncode, 0)
            self.assertRegex(ended.stderr, words.format(place))


if __name__ == "__main__":
    package.main()
