# SPDX-License-Identifier: BSD-3-Clause
"""An installed copy used as its users do: programs of C, C++ and Python built and run on one host, a ring and a network,
shared pages, static programs, pkg-config, the manual. `wrap` is what runs commands there: as another user, or in a
chroot."""
import json
import os
import subprocess
import sys

from common import ROOT, Problem

sys.path.insert(0, os.path.join(ROOT, "tests", "installed"))
from programs import DSM  # noqa: E402

GREET = """#include <shmem.h>
#include <stdio.h>
int main(void)
{
    static int from = -1;
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_int_p(&from, me, (me + 1) % n);
    shmem_barrier_all();
    printf("PE %d of %d got a word from PE %d\\n", me, n, from);
    shmem_finalize();
    return 0;
}
"""
PYTHON = """import numpy
import quoit
a = quoit.zeros(2)
a.on((quoit.my_pe() + 1) % quoit.n_pes())[0] = quoit.my_pe() + 1
quoit.barrier()
total = int(numpy.sum(quoit.sum(a)))
if quoit.my_pe() == 0:
    print("sum over", quoit.n_pes(), "PEs is", total)
a.free()
"""


PROJECT = """cmake_minimum_required(VERSION 3.16)
project(users C CXX)
find_package(OpenSHMEM REQUIRED COMPONENTS C dsm)
add_executable(greet ../greet.c)
target_link_libraries(greet PRIVATE OpenSHMEM::C)
add_executable(pages ../pages.c)
target_link_libraries(pages PRIVATE OpenSHMEM::dsm)
if(NOT EXISTS ${OpenSHMEM_LAUNCHER})
  message(FATAL_ERROR "no launcher ${OpenSHMEM_LAUNCHER}")
endif()
"""


class Check:
    """`work` is a folder that the commands see as `seen`. names: of the programs, such as oshcc.quoit."""

    def __init__(self, version, work, path, wrap=(), seen=None, names=("oshcc", "oshc++", "oshrun"), env=None):
        self.version, self.work, self.wrap, self.seen = version, work, list(wrap), seen or work
        self.cc, self.cxx, self.run = names
        self.env = {"PATH": path, "HOME": self.seen, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        self.passed = []
        os.makedirs(work, exist_ok=True)
        os.chmod(work, 0o777)
        for name, text in (("greet.c", GREET), ("greet.cc", GREET), ("pages.c", DSM), ("sum.py", PYTHON)):
            with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                file.write(text)

    def try_command(self, *words):
        return subprocess.run([*self.wrap, "env", "-i", *(f"{name}={value}" for name, value in self.env.items()), "sh", "-c",
                               'cd "$1" && shift && exec "$@"', "sh", self.seen, *(str(word) for word in words)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
                              stdin=subprocess.DEVNULL)

    def command(self, *words):
        done = self.try_command(*words)
        if done.returncode != 0:
            raise Problem(f"{' '.join(str(word) for word in words)}: status {done.returncode}\n{done.stdout}")
        return done.stdout

    def expect(self, expected, *words):
        found = sorted(self.command(*words).splitlines())
        if found != sorted(expected):
            raise Problem(f"{' '.join(str(word) for word in words)}: printed {found}, expected {sorted(expected)}")

    def greetings(self, count):
        return [f"PE {pe} of {count} got a word from PE {(pe - 1) % count}" for pe in range(count)]

    def greeting(self):
        self.command(self.cc, "greet.c", "-o", "greet")
        for options in ((), ("--hosts", 3), ("--hosts", 3, "--network", "tcp")):
            self.expect(self.greetings(3), self.run, "-n", 3, *options, "./greet")
        self.passed.append("C")

    def programs(self):
        self.greeting()
        self.command(self.cxx, "greet.cc", "-o", "greet_cxx")
        self.expect(self.greetings(3), self.run, "-n", 3, "./greet_cxx")
        self.command(self.cc, "pages.c", "-lqdsm", "-o", "pages")
        self.expect(["sum of 2 PEs is 15"], self.run, "-n", 2, "--hosts", 2, "./pages")
        self.passed.append("C++, shared pages")

    def networks(self):
        """Plugins whose libraries this machine has."""
        parts = self.parts()
        for name in [part.split()[1] for part in parts if part.startswith("network ")]:
            done = self.try_command(self.run, "-n", 2, "--hosts", 2, "--network", name, "./greet")
            if done.returncode == 0:
                self.passed.append(f"--network {name}")
            elif "cannot open shared object" not in done.stdout:
                raise Problem(f"--network {name}: {done.stdout}")

    def static(self):
        libc = self.command("cc", "-print-file-name=libc.a").strip()
        if not os.path.isabs(libc):
            return
        self.command(self.cc, "-static", "greet.c", "-o", "static")
        self.expect(self.greetings(2), self.run, "-n", 2, "--hosts", 2, "./static")
        self.passed.append("-static")

    def linkers(self):
        """By the library's path alone too, as CMake links."""
        folder = self.command(self.cc, "--showme:link").split()[0][2:]
        for linker in ("bfd", "gold", "lld", "mold"):
            if self.try_command("sh", "-c", f"command -v ld.{linker}").returncode != 0:
                continue
            self.command(self.cc, f"-fuse-ld={linker}", "greet.c", "-o", "greet_ld")
            self.command("cc", f"-fuse-ld={linker}", *self.command(self.cc, "--showme:compile").split(), "greet.c",
                         f"{folder}/libshmem.so.1", f"-Wl,-rpath,{folder}", "-o", "greet_path")
            for program in ("./greet_ld", "./greet_path"):
                self.expect(self.greetings(2), self.run, "-n", 2, program)
            self.passed.append(f"ld.{linker}")

    def cmake(self, prefix):
        if self.try_command("sh", "-c", "command -v cmake").returncode != 0:
            return
        self.command("sh", "-c", f"rm -rf project; mkdir project; cat >project/CMakeLists.txt <<'END'\n{PROJECT}END")
        self.command("cmake", "-S", "project", "-B", "project/build", f"-DCMAKE_PREFIX_PATH={prefix}")
        self.command("cmake", "--build", "project/build")
        self.expect(self.greetings(2), self.run, "-n", 2, "project/build/greet")
        self.expect(["sum of 2 PEs is 15"], self.run, "-n", 2, "project/build/pages")
        self.passed.append("CMake")

    def pkg_config(self, folder):
        if self.try_command("sh", "-c", "command -v pkg-config").returncode != 0:
            return
        flags = self.command("env", f"PKG_CONFIG_PATH={folder}", "pkg-config", "--cflags", "--libs", "openshmem").split()
        self.command("cc", "greet.c", *flags, "-o", "greet_pc")
        self.expect(self.greetings(2), self.run, "-n", 2, "./greet_pc")
        self.passed.append("pkg-config")

    def parts(self):
        return json.loads(self.command("quoit", "info", "--json"))["parts"]

    def versions(self, least):
        parts = self.parts()
        wrong = {name: part for name, part in parts.items() if not part.startswith(f"{self.version}, ") and "in PATH" not in name}
        if wrong or len(parts) < least:
            raise Problem(f"quoit info: {parts}, but all are of {self.version}, and at least {least}")
        self.passed.append(f"{len(parts)} parts of version {self.version}")

    def manual(self, *names):
        for name in names:
            done = self.try_command("man", "-w", name)
            if done.returncode == 127:
                return
            if done.returncode != 0:
                raise Problem(f"man {name}: {done.stdout}")
        self.passed.append("the manual")

    def python(self, interpreter, env=None):
        """With numpy, where this machine has it."""
        if self.try_command(interpreter, "-c", "import numpy").returncode != 0:
            self.passed.append("no numpy: Python not tried")
            return
        words = ["env", *(f"{name}={value}" for name, value in (env or {}).items()), interpreter]
        self.expect(["sum over 3 PEs is 6"], *words, "-m", "quoit.run", "-n", 3, "--hosts", 3, "sum.py")
        self.passed.append("Python")


def as_nobody():
    """A user without rights, where this one has them."""
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []


def report(check, what):
    print(f"package: {what}: {', '.join(check.passed)}", file=sys.stderr, flush=True)
