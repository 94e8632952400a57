# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of the installed copy: it is installed once into a folder that is then moved, once into one with a
blank in its path, and used where neither the source nor the build tree can be seen.

Commands run in a mount namespace in which both trees are empty, and a network namespace of their own, so that the rings
they make meet no others; without rights in a user namespace. Where the kernel refuses that, they run without, and
Hidden.problem says why. Their environment is made anew: nothing in it leads to the build tree."""
import atexit
import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario  # noqa: E402  (its folder is known now)

SOURCE = os.environ["SCENARIO_SOURCE"]
BUILD = os.environ["SCENARIO_BUILD"]
SANITIZE = scenario.SANITIZE
GREET = os.path.join(SOURCE, "tests", "scenario", "greet.c")
HELLO_2 = ["hello from PE 0 of 2", "hello from PE 1 of 2"]
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
KEPT = ("ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR")
LIMIT_S = 300

ENTERED = """
for folder; do mount -t tmpfs -o mode=755 tmpfs "$folder" || exit 1; done
ip link set lo up 2>/dev/null
echo ready
exec cat
"""


class Hidden:
    """Namespaces in which some folders are empty, held by a process of their own."""

    def __init__(self, folders):
        self.problem, self.prefix = "", []
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        if not shutil.which("unshare") or not shutil.which("nsenter"):
            self.holder, self.problem = None, "no unshare and nsenter (util-linux)"
            return
        # unshare does not fork: the process that is started is the one whose namespaces are entered.
        self.holder = subprocess.Popen(["unshare", *user, "--mount", "--net", "sh", "-c", ENTERED, "sh", *folders],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.problem = "no namespaces for this user: " + self.holder.communicate()[1].strip()
            self.holder = None
            return
        kinds = ["--mount", "--net"] + (["--user", "--preserve-credentials"] if user else [])
        self.prefix = ["nsenter", "--target", str(self.holder.pid), *kinds, "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh"]

    def words(self, folder, command):
        """The command in these namespaces and the folder."""
        return [*self.prefix, folder, *command] if self.prefix else command

    def close(self):
        if self.holder:
            self.holder.communicate()  # the end of its input is the end of cat


class Copies:
    """What is installed: `moved` is $HOME/quoit, as in README.md, `blank` has a blank in its path."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quoit-installed-")
        self.home = os.path.join(self.folder.name, "home")
        self.first = os.path.join(self.folder.name, "first")
        self.moved = os.path.join(self.home, "quoit")
        self.blank = os.path.join(self.folder.name, "a blank", "quoit")
        os.mkdir(self.home)
        for where in (self.first, self.blank):
            subprocess.run(["cmake", "--install", BUILD, "--prefix", where], check=True, stdout=subprocess.DEVNULL)
        shutil.move(self.first, self.moved)
        inside = os.path.realpath(BUILD).startswith(os.path.realpath(SOURCE) + os.sep)
        self.hidden = Hidden([SOURCE] if inside else [SOURCE, BUILD])

    @contextlib.contextmanager
    def gone(self):
        """Meanwhile there is neither."""
        away = os.path.join(self.folder.name, "away")
        os.mkdir(away)
        for i, where in enumerate((self.moved, self.blank)):
            os.rename(where, os.path.join(away, str(i)))
        try:
            yield
        finally:
            for i, where in enumerate((self.moved, self.blank)):
                os.rename(os.path.join(away, str(i)), where)
            os.rmdir(away)

    def close(self):
        self.hidden.close()
        self.folder.cleanup()


@functools.cache
def copies():
    """Those of this process, for all its tests; they go with it."""
    made = Copies()
    atexit.register(made.close)
    return made


class Case(scenario.Case):
    """A fresh folder for each test, and commands that see an installed copy alone."""

    @classmethod
    def setUpClass(cls):
        cls.copies = copies()

    def setUp(self):
        super().setUp()
        self.prefix = self.copies.moved
        self.work = tempfile.mkdtemp(dir=self.copies.folder.name)

    def prefixes(self):
        """Each copy in turn, as the one that commands use."""
        for self.prefix in (self.copies.blank, self.copies.moved):
            yield self.prefix

    def environment(self, **more):
        made = {name: os.environ[name] for name in KEPT if name in os.environ}
        made.update(PATH=f"{self.prefix}/bin:{SYSTEM_PATH}", HOME=self.copies.home, SCENARIO_MARK=self.mark, NO_COLOR="1",
                    LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
        made.update(more)
        return made

    def run_command(self, *words, env=None, text_in=None, limit=LIMIT_S):
        """The ended process; its working folder is that of the test."""
        return subprocess.run(self.copies.hidden.words(self.work, [str(word) for word in words]), capture_output=True,
                              text=True, cwd=self.work, timeout=limit, env=self.environment(**(env or {})), input=text_in,
                              stdin=subprocess.DEVNULL if text_in is None else None)

    def command(self, *words, status=0, **how):
        """The output of a command that ends with the status and writes nothing to standard error."""
        done = self.run_command(*words, **how)
        self.assertEqual((done.returncode, done.stderr), (status, ""), (self.prefix, words, done.stdout))
        return done.stdout

    def shell(self, text, **how):
        return self.command("sh", "-c", text, **how)

    def write(self, name, text):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def bring(self, path):
        """Copies a file of the source tree into the test's folder, where it can be seen."""
        return os.path.basename(shutil.copy(path, self.work))

    def find(self, name):
        """The folder of a file in the copy."""
        for folder, _, files in os.walk(self.prefix):
            if name in files:
                return folder
        return self.fail(f"{name} is not installed")

    def skip_without_matplotlib(self):
        if not has_matplotlib():
            self.skipTest("no matplotlib")

    def ring_problem(self):
        """Why this user cannot make a ring that stays on this machine, such as no /dev/net/tun; "": it can."""
        up = self.run_command("quoit", "ring", "up", "--hosts", 2, "--ring", "trial")
        if up.returncode == 0:
            self.command("quoit", "ring", "down", "--ring", "trial")
            return ""
        self.assertRegex(up.stderr, r"\[Q060[12]\]")
        return up.stderr.strip().splitlines()[0]

    def check_hello(self, program, *options):
        out = self.command("oshrun", "-n", 2, *options, program)
        self.assertEqual(sorted(out.splitlines()), HELLO_2)


def needs(*tools):
    """Why a test cannot run for want of tools; "": it can."""
    missing = [tool for tool in tools if not shutil.which(tool, path=SYSTEM_PATH)]
    return f"no {' and no '.join(missing)}" if missing else ""


def python_problem(prefix):
    """Why Python programs of the package quoit cannot run; "": they can."""
    found = subprocess.run([os.path.join(prefix, "bin", "quoit"), "info", "--json"], capture_output=True, text=True, check=True).stdout
    if "python package" not in json.loads(found)["version"]:
        return "the Python package was not built (no python3-dev)"
    has_numpy = subprocess.run(["python3", "-c", "import numpy"], capture_output=True, check=False, env={"PATH": SYSTEM_PATH})
    return "no python3-numpy" if has_numpy.returncode != 0 else ""


def has_matplotlib():
    """Of the Python that quoit finds."""
    words = ["env", f"PATH={SYSTEM_PATH}", "python3", "-c", "import matplotlib"]
    return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0


def find_static_libc():
    name = subprocess.run(["cc", "-print-file-name=libc.a"], capture_output=True, text=True, check=True).stdout.strip()
    return os.path.isabs(name)


def elf_files(prefix):
    """Every ELF file below a folder, links left out."""
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    if file.read(4) == b"\x7fELF":
                        yield path


def dynamic(path):
    """What an ELF file needs, and where it says that it is: (names, folders)."""
    shown = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", shown)
    places = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", shown)
    return needed, [place for one in places for place in one.split(":")]


def quoted(words):
    return " ".join(shlex.quote(str(word)) for word in words)


main = scenario.main
