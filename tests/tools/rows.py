# SPDX-License-Identifier: BSD-3-Clause
"""A row of the suite of foreign tools, and the ways in which a job runs under it.

A row is a class derived from Row: what the tool needs, how work.c is built for it and started under it, what the last PE does
wrong, the status of the job then, and in check() the proof that the tool did its work. Each row runs in each way."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "scenario"), os.path.join(HERE, "..", "launchers")]
import scenario
from pmi_server import Server

SOURCE = os.path.join(HERE, "work.c")
OSHCC = os.path.join(scenario.BIN, "oshcc")
LIBRARIES = os.environ["TOOLS_LIBRARIES"]
LIBSHMEM = os.path.join(os.path.dirname(scenario.BIN), "lib", "libshmem.so")
IN_SLURM = "TOOLS_IN_SLURM" in os.environ
# Name, PEs, and what oshrun is started with; the other launchers are not oshrun.
WAYS = {"host": (2, ["-n", 2]), "ring": (3, ["--hosts", 3, "-n", 3]), "tcp": (2, ["--network", "tcp", "--hosts", 2, "-n", 2]),
        "pmi": (2, None), "srun": (2, None)}


def planted(deed):
    """The line of work.c that does it."""
    with open(SOURCE) as file:
        return next(number for number, line in enumerate(file, 1) if f"/* planted: {deed} */" in line)


def library(name):
    """The path of a library made from tests/tools/libraries."""
    return os.path.join(LIBRARIES, f"libtools_{name}.so")


def can_preload(name):
    found = subprocess.run(["true"], env={**os.environ, "LD_PRELOAD": name}, capture_output=True, text=True, check=False)
    return "cannot be preloaded" not in found.stderr


def shell(script):
    """Words that run `script` in a shell, in which "$@" is the program; $$ is its pid when it execs that."""
    return ["sh", "-c", script, "sh"]


class Row(scenario.Case):
    """Attributes of the class are the columns of the table."""

    NEEDS = ()       # programs
    PRELOADS = ()    # libraries that the dynamic linker finds, in front of the launcher
    PACKAGE = ""     # which has them
    COMPILER = ""    # that oshcc calls: its default
    FLAGS = ()       # of a program of its own
    WRAPPER = ()     # words before the program
    OPTIONS = ()     # of oshrun
    ENVIRONMENT = {} # of the launcher and of all that it starts; {folder} is where files go
    DEED = ""        # of the last PE
    STATUS = 0       # of the job then
    QUICK = "host"   # the way that a newcomer runs, or None
    NOT = {}         # ways in which the tool cannot run: reason
    LIMIT_S = scenario.LIMIT_S

    @classmethod
    def setUpClass(cls):
        missing = [name for name in (*cls.NEEDS, *filter(None, [cls.COMPILER])) if not shutil.which(name)]
        missing += [name for name in cls.PRELOADS if not can_preload(name)]
        if missing:
            raise unittest.SkipTest(f"no {' and no '.join(missing)} ({cls.PACKAGE or 'its package'})")
        cls.program = scenario.program("tools_work")
        if cls.COMPILER or cls.FLAGS:
            cls.builds = tempfile.mkdtemp(dir="/var/tmp")  # the hosts of slurm.sh have a /tmp of their own
            cls.addClassCleanup(shutil.rmtree, cls.builds)
            cls.program = os.path.join(cls.builds, "work")
            cls.build()

    @classmethod
    def build(cls):
        built = subprocess.run([OSHCC, *cls.FLAGS, "-o", cls.program, SOURCE], capture_output=True, text=True, check=False,
                               cwd=cls.builds, env=scenario.environment("", **({"OSHCC": cls.COMPILER} if cls.COMPILER else {})))
        if built.returncode != 0:
            cls.unbuilt(built.stderr)

    @classmethod
    def unbuilt(cls, error):
        """A compiler without the library that the flags need is a missing tool; all else is a defect."""
        missing = re.search(r"cannot find (?:-l)?(\S+)|cannot open (\S*clang_rt\S+)", error)
        if missing:
            raise unittest.SkipTest(f"{cls.COMPILER} has no {missing[1] or missing[2]} ({cls.PACKAGE})")
        raise AssertionError(error)

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def environment(self):
        more = {name: value.replace("{folder}", self.folder) for name, value in self.ENVIRONMENT.items()}
        if self.PRELOADS:
            more["LD_PRELOAD"] = ":".join(self.PRELOADS)
        return scenario.environment(self.mark, **more)

    def words(self, way):
        """The command of a PE."""
        wrapper = [str(word).replace("{folder}", self.folder) for word in self.WRAPPER]
        return [*wrapper, self.program, *filter(None, [self.DEED])]

    def command(self, way):
        """Of the job, for the ways that have one command."""
        if way == "srun":
            return ["srun", "-N2", "-n2", "--mpi=pmi2", *self.words(way)]
        return [scenario.OSHRUN, *map(str, WAYS[way][1]), *map(str, self.OPTIONS), *self.words(way)]

    def run_job(self, way):
        if way == "pmi":
            begin = time.monotonic()
            server = Server([["env", "-C", self.folder, *self.words(way)]] * 2, version=2, env=self.environment())
            result = server.run(self.LIMIT_S)
            self.assertIsNotNone(result, "the job hangs")
            statuses, out, err = result
            # A PE that was killed has no status of its own; a shell's is 128 and the signal
            status = next((status if status >= 0 else 128 - status for status in reversed(statuses) if status), 0)
            return scenario.Result(status, out, err, time.monotonic() - begin)
        return self.finish(subprocess.Popen(self.command(way), env=self.environment(), cwd=self.folder, text=True,
                                            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE))

    def finish(self, job):
        begin = time.monotonic()
        try:
            out, err = job.communicate(timeout=self.LIMIT_S)
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = job.communicate()
            self.fail(f"the job hangs: {job.args}\n{out}\n{err}")
        err = re.sub(r"^(srun|slurmstepd-\S+): .*\n", "", err, flags=re.M)  # may come between two lines of a report
        return scenario.Result(job.returncode, out, err, time.monotonic() - begin)

    def run_under(self, way):
        if way in self.NOT:
            self.skipTest(self.NOT[way])
        if way != "srun" and IN_SLURM or way == "srun" and not IN_SLURM:
            self.skipTest("in a Slurm" if IN_SLURM else "run by tools.slurm")
        result = self.run_job(way)
        self.assertEqual(result.status, self.STATUS, result)
        pes = WAYS[way][0]
        right = re.findall(r"^PE (\d+) of (\d+): right$", result.out, re.M)
        wrong = re.findall(r"^PE .*wrong.*$", result.out + result.err, re.M)
        self.assertEqual(wrong, [], result)
        if self.STATUS == 0:
            self.assertEqual(sorted(right), [(str(pe), str(pes)) for pe in range(pes)], result)
        self.check(result, pes)

    def check(self, result, pes):
        """That the tool did its work."""
        raise NotImplementedError

    def text_of(self, *command):
        """What a command that reads the tool's files prints."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", check=False,
                              cwd=self.folder, timeout=self.LIMIT_S)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout

    def files(self, pattern, count):
        """At least so many, which the tool left in the folder."""
        found = sorted(glob.glob(os.path.join(self.folder, pattern)))
        self.assertGreaterEqual(len(found), count, (pattern, os.listdir(self.folder)))
        return found

    def assert_files(self, pattern, count, content):
        """Each of those files has the content."""
        for file in self.files(pattern, count):
            with open(file) as text:
                self.assertRegex(text.read(), content)

    def assert_one_names(self, texts, pattern):
        """One of the tool's reports, that of the PE that did the deed, names it."""
        texts = list(texts)
        self.assertEqual(len([text for text in texts if re.search(pattern, text)]), 1, (pattern, texts))


def add_way(way):
    def test(self):
        self.run_under(way)
    test.__doc__ = None
    setattr(Row, "test_" + way, test)


for each in WAYS:
    add_way(each)
