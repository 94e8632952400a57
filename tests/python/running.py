# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit.run, python -m quoit.run and %%quoit start jobs as docs/python.md says: results in order of PEs, one exception for
those of any PE, output in order, an interrupt that ends the job, and nothing left behind. Method: scripts as users write them,
each a process of its own; what they print is compared."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import package
import scenario

HEAD = """
import os, sys, time
import quoit
"""
RESULTS = HEAD + """
class Point:
    def __init__(self, x): self.x = x
    def twice(self): return Point(2 * self.x)
FACTOR = 5
def helper(x): return x * FACTOR
def factorial(n): return 1 if n < 2 else n * factorial(n - 1)
def work(a, b=1):
    me = quoit.my_pe()
    return helper(me) + a + b, factorial(5), Point(me).twice()
if __name__ == "__main__":
    assert "numpy" not in sys.modules, "quoit.run needs no numpy"
    for form in ({"pes": 3}, {"pes": 3, "hosts": 3}, {"pes": 2, "hosts": 2, "network": "tcp"}, {"pes": 1, "check": True}):
        found = quoit.run(work, 10, b=3, **form)
        assert [each[:2] for each in found] == [(13 + 5 * pe, 120) for pe in range(form["pes"])], found
        assert [each[2].x for each in found] == [2 * pe for pe in range(form["pes"])] and type(found[0][2]) is Point
    scale = 7
    local = lambda x: quoit.sum(quoit.my_pe() * scale + x).item()
    assert quoit.run(local, 1, pes=2) == [9, 9]
    import json
    assert quoit.run(json.loads, "[1, 2]", pes=2) == [[1, 2]] * 2
    print("right")
"""
OUTPUT = HEAD + """
def speak():
    for pe in reversed(range(quoit.n_pes())):
        if quoit.my_pe() == pe:
            print("line one of", pe, flush=True)
            print("error of", pe, file=sys.stderr, flush=True)
            print("line two of", pe, flush=True)
        quoit.barrier()
quoit.run(speak, pes=3, output=sys.argv[1])
"""
ERRORS = HEAD + """
def one():
    if quoit.my_pe() == 1:
        raise KeyError("missing")
    quoit.barrier()
def every():
    quoit.zeros(3).on(quoit.n_pes())
class Odd(Exception):
    def __init__(self, a, b): super().__init__(f"{a} {b}")
def odd(): raise Odd(1, 2)
def ends(): sys.exit(3) if quoit.my_pe() == 0 else quoit.barrier()
def dies(): os.kill(os.getpid(), 9) if quoit.my_pe() == 1 else quoit.barrier()
def stuck(): quoit.barrier() if quoit.my_pe() else time.sleep(1000)
def unsent(): return open("/dev/null")
def fails(function, **options):
    try:
        quoit.run(function, pes=2, **options)
    except quoit.RunError as error:
        return error
    raise AssertionError(function)
found = fails(one)
assert str(found).startswith("PE 1 of 2: KeyError: 'missing'") and 'raise KeyError("missing")' in str(found), found
assert type(found.__cause__) is KeyError and list(found.errors) == [1] and found.status == 1 and "in one" in str(found)
found = fails(every)
assert "pe is 2, but the job has 2 PEs (0..1)" in str(found) and set(found.errors) <= {0, 1}, found
assert "Odd: 1 2" in str(fails(odd))
found = fails(ends)
assert type(found.errors[0]) is SystemExit, found
found = fails(dies)
assert found.status == 137 and "Q0201" in str(found) and not found.errors, found
found = fails(stuck, timeout=3)
assert found.status == 124 and "Q0206" in found.messages, found
assert "cannot be sent back" in str(fails(unsent))
for kind, text, call in ((ValueError, "pes is 0", lambda: quoit.run(one, pes=0)),
                         (ValueError, "each of the 3 hosts", lambda: quoit.run(one, hosts=3)),
                         (ValueError, "'order' or 'live'", lambda: quoit.run(one, output="x")),
                         (TypeError, "cannot be sent to the PEs", lambda: quoit.run(one, sys.stdout)),
                         (quoit.RunError, "Q0210", lambda: quoit.run(one, options=["--no-such"]))):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
assert quoit.run(quoit.my_pe, pes=2) == [0, 1]
print("right")
"""
INTERRUPTED = HEAD + """
def forever():
    if quoit.my_pe() == 0:  # nothing else is written, which would find the pipe closed
        print("running", flush=True)
    while True:
        time.sleep(1000)
try:
    quoit.run(forever, pes=2)
except KeyboardInterrupt:
    print("interrupted")
"""
PROGRAM = HEAD + """
import module_beside
total = quoit.sum(module_beside.VALUE)
if quoit.my_pe() == 0:
    print(total, quoit.n_pes(), sys.argv[1:], __name__)
"""
OF_GPUS = """
import sys
import numpy as np
import nvshmem.core
from beside import Device
nvshmem.core.init(device=Device(), initializer_method="mpi")
me, pes = nvshmem.core.my_pe(), nvshmem.core.n_pes()
x = nvshmem.core.array((2,), dtype="int64")
x[:] = me
nvshmem.core.reduce(nvshmem.core.Teams.TEAM_WORLD, x, x, "sum", stream=Device().create_stream())
if me == 0:
    print(x.tolist(), pes, sys.argv[1:], __name__)
nvshmem.core.free_array(x)
nvshmem.core.finalize()
"""
NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
import quoit
shell = InteractiveShell()
def cell(text):
    found = shell.run_cell(text)
    found.raise_error()
    return found.result
cell("%load_ext quoit")
assert cell("%%quoit -n 2\\nme = quoit.my_pe()\\nquoit.sum(me)") == [1, 1], "as in docs/python.md: nothing was imported"
cell("import quoit\\nstep = 10\\ndef tenfold(x): return x * step")
assert cell("%%quoit -n 3\\nme = quoit.my_pe()\\ndef shown(): return tenfold(me)\\nquoit.barrier()\\nshown()") == [0, 10, 20]
assert cell("%%quoit -n 2 --hosts 2 --to kept\\nint(quoit.sum(1))") is None and shell.user_ns["kept"] == [2, 2]
assert cell("quoit.run(lambda: tenfold(quoit.my_pe()), pes=2)") == [0, 10]
cell("def fails(x):\\n    return [x][5]")
try:
    cell("quoit.run(fails, 1, pes=2)")
except quoit.RunError as error:
    assert "return [x][5]" in str(error), error
else:
    raise AssertionError
assert "UsageError" in str(type(shell.run_cell("%%quoit -n two\\n1").error_in_exec))
try:
    cell("%%quoit -n 2\\nx = 1\\nraise ValueError('of a cell')")
except quoit.RunError as error:
    assert "raise ValueError('of a cell')" in str(error) and "of a cell" in str(error.__cause__), error
else:
    raise AssertionError
print("right")
"""


class Running(package.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory(prefix="quoit-python-")
        self.addCleanup(self.folder.cleanup)

    def script(self, text, name="script.py"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def check(self, text, *arguments):
        ended = self.run_python(self.script(text), *arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended

    def test_results(self):
        self.assertEqual(self.check(RESULTS).stdout, "right\n")

    def test_without_numpy(self):
        """One line that says what is missing."""
        ended = self.run_python("-c", "import sys; sys.modules['numpy'] = None; import quoit; quoit.zeros(1)")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"ImportError: quoit\.zeros needs numpy, which \S+ does not have: pip install numpy\n$")

    def test_errors(self):
        self.assertEqual(self.check(ERRORS).stdout, "right\n")

    def test_output_in_order(self):
        ended = self.check(OUTPUT, "order")
        self.assertEqual(ended.stdout, "".join(f"line {word} of {pe}\n" for pe in range(3) for word in ("one", "two")))
        self.assertEqual(ended.stderr, "".join(f"error of {pe}\n" for pe in range(3)))
        ended = self.check(OUTPUT, "live")
        expected = [f"[PE {pe}] line {word} of {pe}" for pe in range(3) for word in ("one", "two")]
        self.assertEqual(sorted(ended.stdout.splitlines()), expected)

    def start_endless(self):
        """A script whose job runs until something ends it."""
        process = subprocess.Popen([package.PYTHON, self.script(INTERRUPTED)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True,
                                   env=scenario.environment(self.mark, TMPDIR=self.folder.name, **package.ENVIRONMENT))
        self.assertEqual(process.stdout.readline(), "running\n")
        return process

    def test_interrupt(self):
        process = self.start_endless()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(out.splitlines()[-1], "interrupted")

    def test_killed(self):
        process = self.start_endless()
        process.kill()
        process.communicate(timeout=scenario.LIMIT_S)
        self.assert_nothing_left()
        self.assertEqual(os.listdir(self.folder.name), ["script.py"])

    def test_module(self):
        program = self.script(PROGRAM)
        self.script("VALUE = 4", "module_beside.py")
        ended = self.run_python("-m", "quoit.run", "-n", 3, "--hosts", 3, program, "-n", "word")
        self.assertEqual((ended.returncode, ended.stdout), (0, "12 3 ['-n', 'word'] __main__\n"), ended.stderr)
        ended = self.run_python("-m", "quoit.run", "-n", 2, "-m", "script", cwd=self.folder.name)
        self.assertEqual((ended.returncode, ended.stdout), (0, "8 2 [] __main__\n"), ended.stderr)
        ended = self.run_python("-m", "quoit.run", "-n", 2, "missing.py")
        self.assertEqual((ended.returncode, ended.stderr), (127, "quoit.run: there is no file missing.py\n"))
        self.assertEqual(self.run_python("-m", "quoit.run", "-n", 2).returncode, 2)
        ended = self.run_python("-c", "import quoit.run, sys; print(quoit.run is sys.modules['quoit.run'], callable(quoit.run))")
        self.assertEqual(ended.stdout, "True True\n", ended.stderr)

    def test_nvshmem(self):
        """A program of the module nvshmem.core, with the name as it is."""
        self.script("from nvshmem.core import Device", "beside.py")
        program = self.script(OF_GPUS)
        ended = self.run_python("-m", "quoit.run", "-n", 3, "--hosts", 3, "-m", "quoit.nvshmem", program, "-n", "word")
        self.assertEqual((ended.returncode, ended.stdout), (0, "[3, 3] 3 ['-n', 'word'] __main__\n"), ended.stderr)
        ended = self.run_python("-m", "quoit.nvshmem", "missing.py")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("usage: python -m quoit.run -n 4 -m quoit.nvshmem", ended.stderr)

    def test_alone(self):
        """Without a launcher: a job of one PE; what it does not free is reported, with its line."""
        ended = self.check(HEAD + "a = quoit.zeros((2, 3))\nprint(quoit.sum(a + 1).sum(), quoit.n_pes())")
        self.assertEqual(ended.stdout, "6.0 1\n")
        place = os.path.join(self.folder.name, "script.py:4")
        self.assertIn(f"not freed:\n  zeros: float64 (2, 3), allocated at {place}", ended.stderr)
        ended = self.check(HEAD + "with quoit.zeros(3) as a: pass\nquoit.finalize()\n"
                           "try: quoit.zeros(1)\nexcept RuntimeError as e: print(e)")
        self.assertIn("was finalized", ended.stdout)
        self.assertEqual(ended.stderr, "")

    def test_shared_pages_end(self):
        """By the end of the program, by finalize, and by an error of one PE, which others do not wait for."""
        ended = self.check(HEAD + "a = quoit.dsm.zeros(3)\na[1] = 2\nprint(a.sum())")
        self.assertEqual(ended.stdout, "2.0\n")
        place = os.path.join(self.folder.name, "script.py:4")
        self.assertIn(f"not freed:\n  dsm.zeros: float64 (3,), allocated at {place}", ended.stderr)
        program = self.script(HEAD + "with quoit.dsm.zeros(3): pass\nquoit.finalize()\n"
                              "try: quoit.dsm.zeros(1)\nexcept RuntimeError as e: print(e)")
        ended = self.run_python("-m", "quoit.run", "-n", 2, "--hosts", 2, program, env={"DSM_STATS": "json"})
        self.assertEqual((ended.returncode, ended.stdout.count("was finalized")), (0, 2), ended.stderr)
        self.assertEqual(ended.stderr.count("wall_ns"), 2, "libqdsm was finalized on each PE")
        program = self.script(HEAD + "a = quoit.dsm.zeros(3)\nquoit.my_pe() == 1 and sys.exit(7)\nquoit.dsm.barrier()")
        self.assertEqual(self.run_python("-m", "quoit.run", "-n", 2, program).returncode, 7)

    def test_import_loads_nothing(self):
        ended = self.run_python("-c", "import sys, quoit\n"
                                "print([name for name in sys.modules if name.startswith(('numpy', 'ctypes', 'quoit.'))])")
        self.assertEqual(ended.stdout, "[]\n", ended.stderr)

    def test_exception_on_all(self):
        """Each traceback is in one piece."""
        program = self.script(HEAD + """
def deep(levels):
    if levels == 0:
        raise ValueError("of all")
    deep(levels - 1)
quoit.barrier()
deep(100)
""")
        ended = self.run_python("-m", "quoit.run", "-n", 4, program)
        self.assertEqual(ended.returncode, 1)
        place = f'  File "{program}", line '
        pieces = re.findall(r"^PE (\d): Traceback \(most recent call last\):\n((?: .*\n)+)ValueError: of all$", ended.stderr, re.M)
        self.assertIn(str(len(pieces)), "1234", "all that came before the job was ended")
        self.assertEqual(ended.stderr.count("Traceback"), len(pieces), ended.stderr)
        for _, lines in pieces:
            self.assertEqual(lines.count(place), 5, ended.stderr)
            self.assertIn("[Previous line repeated 97 more times]", lines)

    @unittest.skipIf(sys.version_info < (3, 10), "an AttributeError has neither object nor name")
    def test_ordinary_arrays_taken_for_symmetric_ones(self):
        """The error of numpy is followed by what is meant; that of another attribute is not."""
        program = self.script(HEAD + """
import numpy as np
array = quoit.zeros(3) + 1
def wrong(name):
    return getattr(np.zeros(3), name)
if __name__ == "__main__":
    try:
        wrong(sys.argv[1])
    except AttributeError:
        if len(sys.argv) == 2:
            raise
    for name in sys.argv[2:]:
        quoit.run(wrong, name, pes=2)
""")
        for words, count in ((("-n", 2, program, "on"), None), (("-n", 2, program, "nothing"), 0),
                             (("-n", 1, program, "on", "wait"), 1), (("-n", 1, program, "on", "nothing"), 0)):
            ended = self.run_python("-m", "quoit.run", *words)
            self.assertEqual(ended.returncode, 1, ended.stderr)
            told = ended.stderr.count("quoit: this array is an ordinary one of numpy")
            self.assertEqual(told, ended.stderr.count("PE ") and ended.stderr.count(": Traceback") if count is None else count,
                             ended.stderr)

    def test_small_heap(self):
        """The workspace is as small as the heap needs it, and arrays that have no room are refused on all PEs."""
        program = self.script(HEAD + """
import numpy as np
values = np.arange(100000.0) + quoit.my_pe()
assert (quoit.sum(values) == np.arange(100000.0) * 2 + 1).all()
try:
    quoit.zeros(100000)
except MemoryError as error:
    assert "float64 (100000,)" in str(error), error
    print("right")
""")
        ended = self.run_python("-m", "quoit.run", "-n", 2, "--symmetric-size", "512K", program)
        self.assertEqual((ended.returncode, ended.stdout), (0, "right\n" * 2), ended.stderr)

    def test_exit_status(self):
        program = self.script(HEAD + "quoit.barrier()\nquoit.my_pe() == 1 and sys.exit(7)\nquoit.barrier()")
        self.assertEqual(self.run_python("-m", "quoit.run", "-n", 2, program).returncode, 7)
        program = self.script(HEAD + "quoit.barrier()\nquoit.my_pe() == 1 and quoit.global_exit(9)\nquoit.barrier()")
        self.assertEqual(self.run_python("-m", "quoit.run", "-n", 2, program).returncode, 9)

    def test_notebook(self):
        if self.run_python("-c", "import IPython").returncode != 0:
            self.skipTest(f"{package.PYTHON} has no IPython (python3-ipython)")
        ended = self.run_python("-c", NOTEBOOK, env={"IPYTHONDIR": self.folder.name})
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(ended.stdout.splitlines()[-1], "right")


if __name__ == "__main__":
    package.main()
