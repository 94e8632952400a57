# SPDX-License-Identifier: BSD-3-Clause
"""What is put around the program, or into every process of the job: wrappers, libraries in front, Python, plugins."""
import os
import re
import subprocess
import sys

from rows import HERE, LIBSHMEM, WAYS, Row, library, planted, shell

BY_CTYPES = os.path.join(HERE, "by_ctypes.py")


class Wrapped(Row):
    """Programs that start the program, by exec or as a child, and return its status."""
    DEED, STATUS, QUICK = "crash", 139, None

    def check(self, result, pes):
        self.assertRegex(result.out + result.err, rf"crash\(\) work\.c:{planted('crash')}")


def wrapper(name, *words, package="coreutils", **more):
    return type(name, (Wrapped,), {"WRAPPER": words, "NEEDS": words[:1], "PACKAGE": package, "__module__": __name__, **more})


WRAPPERS = [
    wrapper("Nice", "nice", "-n", "5"), wrapper("Timeout", "timeout", "300"), wrapper("Stdbuf", "stdbuf", "-oL"),
    wrapper("Nohup", "nohup"), wrapper("Taskset", "taskset", "1", package="util-linux"),
    wrapper("Ionice", "ionice", "-c3", package="util-linux"),
    wrapper("Prlimit", "prlimit", "--nofile=512", package="util-linux"),
    wrapper("Numactl", "numactl", "--localalloc", package="numactl"), wrapper("ShellExec", *shell('exec "$@"')),
    wrapper("ShellChild", *shell('"$@"; exit $?'), QUICK="ring"),
]


class Setsid(Wrapped):
    """Of a child that was killed it gives no status that could be understood."""
    WRAPPER, NEEDS, PACKAGE = ("setsid", "-w"), ("setsid",), "util-linux"
    DEED, STATUS = "", 0

    def check(self, result, pes):
        self.assertEqual(result.err, "", result)


class Time(Wrapped):
    WRAPPER = ("/usr/bin/time", "-v")
    NEEDS, PACKAGE = WRAPPER[:1], "time"

    def check(self, result, pes):
        super().check(result, pes)
        self.assertIn("Command terminated by signal 11", result.err)


class Fakeroot(Wrapped):
    WRAPPER, NEEDS, PACKAGE = ("fakeroot",), ("fakeroot",), "fakeroot"


class Subprocess(Wrapped):
    """Python's subprocess closes all descriptors but three; Go, Java and sudo do so too."""
    WRAPPER = (sys.executable, "-c", "import subprocess, sys; status = subprocess.run(sys.argv[1:]).returncode; "
                                     "sys.exit(status if status >= 0 else 128 - status)")
    QUICK = "tcp"
    NOT = {"pmi": "the launcher's PMI is a descriptor", "srun": "the launcher's PMI is a descriptor"}


class Preloaded(Row):
    """A library in front of oshrun, which passes it on to the PEs."""
    ENVIRONMENT = {"TOOLS_REPORT": "1"}
    REPORT = ""

    def check(self, result, pes):
        self.assertGreaterEqual(len(re.findall(self.REPORT, result.err)), pes, result)
        self.assertNotIn("no longer the tool's", result.err)


class Descriptors(Preloaded):
    PRELOADS, REPORT, QUICK = (library("descriptors"),), r"descriptors: from \d+ on", "tcp"


class PreloadedThread(Preloaded):
    PRELOADS, REPORT, QUICK = (library("thread"),), r"thread: \d+ turns", "ring"


class Forks(Preloaded):
    PRELOADS, REPORT, QUICK = (library("forks"),), r"forks: \d+ here", "ring"


class Handler(Preloaded):
    """The tool's handler of crashes, which was there first, stays."""
    PRELOADS, DEED, STATUS = (library("handler"),), "crash", 139

    def check(self, result, pes):
        self.assertEqual(result.err.count("handler: the program crashes\n"), 1, result)


class Audit(Preloaded):
    ENVIRONMENT = {"LD_AUDIT": library("audit")}
    REPORT = "audit: shmem_init is bound"


class Ctypes(Row):
    """Python loads the library, which is not in its own program."""
    SCRIPT = ()

    def words(self, way):
        return [sys.executable, BY_CTYPES, LIBSHMEM, *self.SCRIPT]

    def check(self, result, pes):
        self.assertEqual(result.err, "", result)
        self.assertEqual(result.out.count("closed"), pes if self.SCRIPT else 0)


class CtypesClosed(Ctypes):
    SCRIPT = ("close",)


class Plugin(Row):
    """The program is a plugin of another one, which knows nothing of OpenSHMEM."""
    FLAGS = ("-g", "-O1", "-shared", "-fPIC", "-Dmain=work_main")
    HOST = os.path.join(HERE, "plugin.c")
    CLOSE = "keep"

    @classmethod
    def build(cls):
        super().build()
        built = subprocess.run(["cc", "-g", cls.HOST, "-o", os.path.join(cls.builds, "host"), "-ldl"], capture_output=True,
                               text=True, check=False)
        assert built.returncode == 0, built.stderr

    def words(self, way):
        return [os.path.join(self.builds, "host"), self.program, self.CLOSE]

    def check(self, result, pes):
        self.assertEqual(result.err, "", result)
        self.assertEqual(result.out.count("closed"), pes if self.CLOSE == "close" else 0)


class PluginClosed(Plugin):
    """It unloads it, and with it the library, before it ends."""
    CLOSE = "close"


ROWS = WRAPPERS + [Setsid, Time, Fakeroot, Subprocess, Descriptors, PreloadedThread, Forks, Handler, Audit, Ctypes, CtypesClosed,
                   Plugin, PluginClosed]
