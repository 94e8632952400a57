# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a library of wrappers in front of the program, as tools have it, sees each call of the program, and no other: every routine
has a pshmem_ twin that does the work, and the library calls no routine by a name that is wrapped.
Method: such a library is made of the names that libshmem exports, all of them: each counts its call, and goes on in the twin with
the arguments as they are. What it counts of known.c must be what that calls."""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import scenario

KNOWN = scenario.program("trace_known")
LIBRARY = os.environ["WRAPPER_LIBRARY"]
COMPILER = os.environ["WRAPPER_COMPILER"]
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((visibility("hidden"))) long counts[%d];
static const char *const names[] = {%s};
__asm__(".text\\n" %s);
__attribute__((destructor)) static void write_counts(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%%s/counts.%%d", getenv("WRAPPER_FOLDER"), (int)getpid());
    FILE *out = fopen(path, "w");
    for (size_t i = 0; out && i < sizeof names / sizeof names[0]; i++)
        if (counts[i])
            fprintf(out, "%%s %%ld\\n", names[i], counts[i]);
    if (out)
        fclose(out);
}
"""
WRAPPER = r'".globl {0}\n.type {0}, @function\n{0}: lock incq counts+{1}(%rip)\njmp *p{0}@GOTPCREL(%rip)\n"'


def routines():
    """The exported shmem_ functions, and all exported names."""
    text = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = [(line.split()[-1].split("@")[0], line.split()[-2]) for line in text.splitlines()]
    return sorted({name for name, kind in found if kind in "TWi" and re.match("shmemx?_", name)}), {name for name, _ in found}


@unittest.skipUnless(platform.machine() == "x86_64" and shutil.which("nm"), "the wrappers are written for x86-64; no nm")
class Wrapped(scenario.Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()
        super().tearDown()

    def wrap(self):
        names, exported = routines()
        self.assertGreater(len(names), 1000)
        wrapped = [name for name in names if "p" + name in exported]
        self.assertEqual([name for name in names if name.startswith("shmem_") and name not in wrapped], [])
        source, library = (os.path.join(self.folder.name, name) for name in ("wrapper.c", "libwrapper.so"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(SOURCE % (len(wrapped), ",".join(f'"{name}"' for name in wrapped),
                                 "\n".join(WRAPPER.format(name, 8 * i) for i, name in enumerate(wrapped))))
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, source, LIBRARY,
                        "-Wl,-rpath," + os.path.dirname(LIBRARY)], check=True)
        return library

    def counts(self, library, *arguments):
        """What each PE called."""
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_job(*arguments, env={"LD_PRELOAD": library, "WRAPPER_FOLDER": folder})
            self.assertEqual((result.status, result.out, result.err), (0, "", ""))
            found = []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found.append({line.split()[0]: int(line.split()[1]) for line in file})
            return found

    def test_every_call_is_seen_once(self):
        library, rounds = self.wrap(), 7
        for shape in (("-n", 3), ("--hosts", 3, "-n", 3), ("--hosts", 2, "--network", "tcp", "-n", 3), ("--check", "-n", 3)):
            with self.subTest(shape=shape):
                pes = 3
                all_of = {"shmem_init": 1, "shmem_finalize": 1, "shmem_calloc": 1, "shmem_free": 1, "shmem_barrier_all": 2}
                works = dict.fromkeys(("shmem_putmem", "shmem_getmem", "shmem_quiet", "shmem_long_atomic_fetch_add"),
                                      rounds * (pes - 1))
                model = [{**all_of, **works, "shmem_my_pe": rounds, "shmem_n_pes": rounds * pes},
                         *[{**all_of, "shmem_my_pe": 1}] * (pes - 1)]
                self.assertCountEqual(self.counts(library, *shape, KNOWN, rounds, 3000), model)


if __name__ == "__main__":
    scenario.main()
