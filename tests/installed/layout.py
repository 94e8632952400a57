# SPDX-License-Identifier: BSD-3-Clause
"""Aim: an installed copy is whole by itself and can be moved: every ELF file in it finds ours that it needs by its own
RUNPATH, no file holds a path of the source, the build or the first place, and a user builds and runs a program of each
language there, of dsm.h alone too. Method: readelf and a search through every byte of the copy (debug information, which
names sources by intent, is stripped first); programs built with the wrappers and pkg-config."""
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest

import installed
from programs import C11, CXX, DSM, DSM_2

OURS = re.compile(r"^lib(shmem|qdsm|sma|quoit)")


class Files(installed.Case):
    def test_libraries_are_found(self):
        for prefix in self.prefixes():
            found = 0
            for path in installed.elf_files(prefix):
                needed, places = installed.dynamic(path)
                for place in places:
                    self.assertTrue(place.startswith("$ORIGIN"), (path, place))
                folders = [place.replace("$ORIGIN", os.path.dirname(path)) for place in places]
                for name in filter(OURS.match, needed):
                    found += 1
                    self.assertTrue(any(os.path.exists(os.path.join(folder, name)) for folder in folders),
                                    f"{path} needs {name}, and looks for it in {places}")
            self.assertGreaterEqual(found, 2)  # libqdsm and the program of quoit perf

    def test_no_path_of_where_it_was_made(self):
        places = {os.path.realpath(path) for path in (installed.SOURCE, installed.BUILD)} | {self.copies.first}
        pattern = re.compile(rb"(?<![\w./-])(" + b"|".join(re.escape(os.fsencode(p)) for p in places) + rb")(?![\w-])")
        stripped, seen = os.path.join(self.work, "stripped"), 0
        for folder, _, names in os.walk(self.prefix):
            for path in (os.path.join(folder, name) for name in names):
                with open(path, "rb") as file:
                    content = file.read()
                if content.startswith((b"\x7fELF", b"!<arch>")):
                    subprocess.run(["objcopy", "--strip-debug", path, stripped], check=True)
                    with open(stripped, "rb") as file:
                        content = file.read()
                found = pattern.search(content)
                self.assertIsNone(found, f"{path} holds {found and found[0]}")
                seen += 1
        self.assertGreater(seen, 50)

    def test_links_lead_within(self):
        for folder, _, names in os.walk(self.prefix):
            for path in (os.path.join(folder, name) for name in names):
                if os.path.islink(path):
                    self.assertFalse(os.path.isabs(os.readlink(path)), path)
                    self.assertTrue(os.path.exists(path), path)

    def test_both_trees_are_hidden(self):
        if self.copies.hidden.problem:
            self.skipTest(self.copies.hidden.problem)
        self.assertEqual(self.command("ls", "-A", installed.SOURCE), "")
        self.assertNotEqual(self.run_command("ls", os.path.join(installed.BUILD, "bin")).returncode, 0)

    def test_unit_of_systemd(self):
        with open(os.path.join(self.find("quoit-ring.service"), "quoit-ring.service"), encoding="utf-8") as file:
            self.assertEqual(re.findall("^Exec(?:Start|Stop)=(.*)$", file.read(), re.M), ["quoit ring join", "quoit ring down"])


@unittest.skipIf(installed.SANITIZE, "wrappers.py builds with the wrappers under sanitizers")
class Programs(installed.Case):
    def test_languages(self):
        self.bring(installed.GREET)
        self.write("hello.cc", CXX)
        self.write("generic.c", C11)
        for _ in self.prefixes():
            self.command("oshcc", "-Wall", "-Wextra", "greet.c", "-o", "hello")
            self.check_hello("./hello")
            self.check_hello("./hello", "--network", "tcp", "--hosts", 2)
            self.command("oshc++", "-Wall", "-Wextra", "hello.cc", "-o", "hello")
            self.check_hello("./hello")
            self.command("oshcc", "-std=c11", "-Wall", "-Wextra", "generic.c", "-o", "generic")
            self.assertEqual(self.command("oshrun", "-n", 3, "--hosts", 3, "./generic"), "3 PEs of generic\n")

    def test_shared_pages_alone(self):
        self.write("pages.c", DSM)
        for _ in self.prefixes():
            for how in ("-Wl,--as-needed", "-Wl,--no-as-needed"):
                self.command("oshcc", how, "pages.c", "-lqdsm", "-o", "pages")
                self.assertEqual(self.command("oshrun", "-n", 2, "./pages"), DSM_2)
            self.assertEqual(self.command("oshrun", "-n", 2, "--hosts", 2, "./pages"), DSM_2)

    @unittest.skipIf(installed.needs("pkg-config"), "no pkg-config")
    def test_pkg_config(self):
        self.bring(installed.GREET)
        self.write("pages.c", DSM)
        for prefix in self.prefixes():
            env = {"PKG_CONFIG_PATH": self.find("openshmem.pc")}
            for package, source, expected in (("openshmem", "greet.c", "".join(f"{line}\n" for line in installed.HELLO_2)),
                                              ("qdsm", "pages.c", DSM_2)):
                flags = shlex.split(self.command("pkg-config", "--cflags", "--libs", package, env=env))
                self.assertIn(os.path.realpath(f"{prefix}/include"), [os.path.realpath(f[2:]) for f in flags if f[:2] == "-I"])
                self.command("cc", "-Wl,--as-needed", source, *flags, "-o", "program")
                out = self.command("oshrun", "-n", 2, "./program")
                self.assertEqual(sorted(out.splitlines()), sorted(expected.splitlines()))

    def test_python(self):
        for prefix in self.prefixes():
            if installed.python_problem(prefix):
                self.skipTest(installed.python_problem(prefix))
            env = {"PYTHONPATH": json.loads(self.command("quoit", "info", "--json"))["version"]["python package"]}
            self.assertEqual(os.path.realpath(env["PYTHONPATH"]), os.path.dirname(os.path.realpath(self.find("_core.abi3.so"))))
            examples = os.path.join(json.loads(self.command("quoit", "info", "--json"))["version"]["examples"], "python")
            self.assertEqual(os.path.realpath(examples), os.path.realpath(os.path.join(prefix, "share", "quoit", "examples", "python")))
            self.assertIn("pagerank.ipynb", os.listdir(os.path.join(examples, "notebooks")))
            for words in (["-m", "quoit.run", "--hosts", 2, "-n", 2, os.path.join(examples, "heat.py"), "20", "9"],
                          [os.path.join(examples, "pi.py"), "2000"]):
                self.assertIn("verified\n", self.command("python3", *words, env=env))

    @unittest.skipUnless(installed.find_static_libc(), "no libc.a")
    def test_static(self):
        self.bring(installed.GREET)
        self.write("pages.c", DSM)
        for _ in self.prefixes():
            self.command("oshcc", "-static", "greet.c", "-o", "hello")
            self.command("oshcc", "-static", "pages.c", "-lqdsm", "-o", "pages")
            for program in ("hello", "pages"):
                self.assertEqual(installed.dynamic(os.path.join(self.work, program))[0], [])
            for options in ((), ("--hosts", 2)):
                self.check_hello("./hello", *options)
                self.assertEqual(self.command("oshrun", "-n", 2, *options, "./pages"), DSM_2)


if __name__ == "__main__":
    installed.main()
