# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a profile names the lines of a program in Python that call, in whatever function and file, with the right counts and bytes,
and not those of the package; rows of C stand beside them; a program of many files loses no call. Method: programs whose calls by
line are known, a comment naming each; calls and bytes of each row are compared with a model, on one host and on a ring."""
import json
import os
import tempfile

import package

ROUNDS = 7
MAIN = """
import ctypes
import functools
import numpy as np
import quoit
from quoit import _core
from beside import fetch, send
me, n = quoit.my_pe(), quoit.n_pes()
right = (me + 1) % n
a = quoit.zeros(64, np.int64)
c = ctypes.CDLL(_core.library())
for i in range({rounds}):
    a.on(right)[me] = i  # put
    a.on(right)[8:20] = np.full(12, i)  # slice
    functools.reduce(lambda none, at: send(a, right, at), range(3), None)
    assert fetch(a, me) is not None
    if me == 0:
        a.on(right)[0] = 1; a.on(right)[1] = 2  # two
    c.shmem_fence()
    quoit.barrier()  # barrier
quoit.quiet()  # quiet
"""
BESIDE = """
def fetch(a, pe):
    return a.on(pe)[3]  # get

def send(a, pe, at):
    a.on(pe)[at::2] = 5  # strided
"""
SHARED = """
import quoit
from quoit import dsm
lock = dsm.Lock()
for i in range({rounds}):
    lock.acquire()  # acquire
    lock.release()  # release
    dsm.barrier()  # barrier
"""
FILES = 90
MANY = """
import importlib
import quoit
a = quoit.zeros(4, int)
for i in range({files}):
    importlib.import_module(f"many{{i}}").put(a)
"""
ONE = "def put(a):\n    for i in range(2):\n        a.on(0)[i] = 1\n"


class Profiled(package.Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="quoit-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "job.json")

    def write(self, name, text):
        """The lines by the word of their comments: "main.py:8"."""
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)
        return {line.split("# ")[1]: f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1) if "# " in line}

    def profile(self, *arguments):
        """(routine, line, PE): (calls, bytes)"""
        result = self.run_job("--profile", self.path, *arguments, package.PYTHON, os.path.join(self.folder, "main.py"),
                              env=package.ENVIRONMENT)
        self.assertEqual(result.status, 0, result)
        with open(self.path, encoding="utf-8") as file:
            self.found = json.load(file)
        return {(row["routine"], row["line"], pe["pe"]): (pe["calls"], pe["bytes"])
                for row in self.found["rows"] for pe in row["pes"]}, result.err

    def test_lines(self):
        at = {**self.write("main.py", MAIN.format(rounds=ROUNDS)), **self.write("beside.py", BESIDE)}
        for pes, form in ((3, ()), (4, ("--hosts", 2))):
            with self.subTest(form=form):
                calls, summary = self.profile("-n", pes, *form)
                expected = {}
                for pe in range(pes):
                    expected["shmem_ctx_uint64_p", at["put"], pe] = (ROUNDS, 8 * ROUNDS)
                    expected["shmem_ctx_putmem", at["slice"], pe] = (ROUNDS, 12 * 8 * ROUNDS)
                    expected["shmem_ctx_uint64_g", at["get"], pe] = (ROUNDS, 8 * ROUNDS)
                    expected["shmem_ctx_ibput64", at["strided"], pe] = (3 * ROUNDS, 8 * (32 + 32 + 31) * ROUNDS)
                    expected["shmem_barrier_all", at["barrier"], pe] = (ROUNDS, 0)
                    expected["shmem_ctx_quiet", at["quiet"], pe] = (1, 0)
                expected["shmem_ctx_uint64_p", at["two"], 0] = (2 * ROUNDS, 16 * ROUNDS)
                marked = {key: value for key, value in calls.items() if key[1] in at.values()}
                self.assertEqual(marked, expected)
                self.assertIn(f"shmem_barrier_all ({at['barrier']})", summary)
                for routine, line, _ in calls:
                    self.assertNotRegex(line, r"^_\w+\.py", "a line of the package")
                    self.assertTrue(routine != "shmem_fence" or ".py" not in line, line)
                self.assertEqual([calls[key] for key in calls if key[0] == "shmem_fence"], [(ROUNDS, 0)] * pes)
                files = {row["object"] for row in self.found["rows"] if row["line"].startswith("beside.py")}
                self.assertEqual(files, {os.path.join(self.folder, "beside.py")})

    def test_shared_pages(self):
        at = self.write("main.py", SHARED.format(rounds=ROUNDS))
        calls, _ = self.profile("-n", 3)
        marked = {key: value[0] for key, value in calls.items() if key[1] in at.values()}
        self.assertEqual(marked, {(routine, at[word], pe): ROUNDS for pe in range(3) for routine, word in (
            ("dsm_lock", "acquire"), ("dsm_unlock", "release"), ("dsm_barrier_all", "barrier"))})

    def test_many_files(self):
        self.write("main.py", MANY.format(files=FILES))
        for i in range(FILES):
            self.write(f"many{i}.py", ONE)
        calls, _ = self.profile("-n", 1)
        own = {line: count for (routine, line, _), count in calls.items() if routine == "shmem_ctx_uint64_p"}
        other = own.pop("(other)")
        self.assertEqual(own, {f"many{i}.py:3": (2, 16) for i in range(len(own))})
        self.assertEqual(other, (2 * (FILES - len(own)), 16 * (FILES - len(own))))
        self.assertGreater(len(own), 50)


if __name__ == "__main__":
    package.main()
