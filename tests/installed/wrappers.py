# SPDX-License-Identifier: BSD-3-Clause
"""Aim: oshcc and oshc++ do what their manual says, from an installed copy and from the build tree. Method: build and run
programs with them; under sanitizers too."""
import os
import subprocess
import unittest

import installed
import scenario
from programs import CXX

CONFORMANCE = os.path.join(installed.SOURCE, "tests", "conformance")
STATIC = ("rma", "coll", "memory", "p2p")


class Wrappers(installed.Case):
    def test_build_and_run(self):
        self.bring(installed.GREET)
        self.write("hello.cc", CXX)
        self.command("oshcc", "-Wall", "-Wextra", "-O1", "greet.c", "-o", "hello")
        self.check_hello("./hello")
        self.command("oshcc", "-c", "greet.c", "-o", "hello.o")
        self.command("oshcc", "hello.o", "-o", "hello2")
        self.check_hello("./hello2")
        self.command("oshc++", "-Wall", "-Wextra", "hello.cc", "-o", "hello3")
        self.check_hello("./hello3")

    def test_build_tree(self):
        """Programs of the tree that is being developed, which has the shape of an installed copy."""
        wrapper, program = os.path.join(scenario.BIN, "oshcc"), os.path.join(self.work, "hello")
        done = subprocess.run([wrapper, installed.GREET, "-o", program], capture_output=True, text=True,
                              env=scenario.environment(self.mark), timeout=scenario.LIMIT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        job = self.run_job("-n", 2, program)
        self.assertEqual(sorted(job.out.splitlines()), installed.HELLO_2)

    @unittest.skipIf(installed.SANITIZE, "a sanitizer takes the signal")
    @unittest.skipIf(installed.needs("addr2line"), "no addr2line")
    def test_lines_of_a_folder_with_a_space(self):
        os.mkdir(os.path.join(self.work, "a b"))
        self.write("a b/fall over.c", "#include <shmem.h>\nint main(void)\n{\n    shmem_init();\n"
                                      "    *(volatile int *)0 = 1;\n}\n")
        self.command("oshcc", "-g", "a b/fall over.c", "-o", "a b/fall over")
        job = self.run_command("oshrun", "./a b/fall over")
        self.assertEqual(job.returncode, 139, job)
        self.assertIn("at main() fall over.c:5", job.stderr)

    def test_show(self):
        self.bring(installed.GREET)
        shown = self.command("oshcc", "-show", "a.c", "-o", "x y").split()
        self.assertIn(f"-I{self.prefix}/include", shown)
        self.assertIn("-lshmem", shown)
        self.assertIn("a.c -o 'x y' -L", " ".join(shown))
        self.assertNotIn("-lshmem", self.command("oshcc", "-show", "-c", "a.c").split())
        compile_flags = self.command("oshcc", "--showme:compile").split()
        link_flags = self.command("oshcc", "--showme:link").split()
        self.assertEqual(compile_flags[0], f"-I{self.prefix}/include")
        self.assertEqual(link_flags[-2:], ["-lshmem", "-lm"])
        self.assertEqual(self.command("oshcc", "-show", "a.c", env={"OSHCC": "my cc"}).split()[:2], ["my", "cc"])
        self.assertEqual(self.command("oshcc", "-show", "a.c", env={"CC": "tcc"}).split()[0], "tcc")
        self.assertNotEqual(self.command("oshcc", "-show", "a.c", env={"CC": "oshcc"}).split()[0], "oshcc")
        self.command("cc", *compile_flags, "greet.c", "-o", "hello", *link_flags)
        self.check_hello("./hello")

    def test_mathematics(self):
        """A program that calls sqrt and names no libraries, as the specification's examples do."""
        self.write("root.c", "#include <math.h>\n#include <shmem.h>\nint main(int c, char **v)\n{\n    shmem_init();\n"
                             "    return sqrt(c + 3.0) != 2.0 || !v;\n}\n")
        for compiler in ("oshcc", "oshc++"):
            self.command(compiler, "-x", "c", "root.c", "-x", "none", "-o", "root")
            self.command("oshrun", "-n", 2, "./root")

    @unittest.skipIf(installed.SANITIZE, "a sanitizer needs its shared library")
    @unittest.skipUnless(installed.find_static_libc(), "no libc.a")
    def test_static(self):
        """-static links the library and everything below it; such a program runs like others on a ring."""
        self.bring(os.path.join(CONFORMANCE, "check.h"))
        for program in STATIC:
            source = self.bring(os.path.join(CONFORMANCE, f"{program}.c"))
            self.command("oshcc", "-static", source, "-o", program)
            done = self.run_command("oshrun", "--hosts", 3, "-n", 5, f"./{program}")
            self.assertEqual(done.returncode, 0, done)
            self.assertIn(f"{program}: ok on 5 PEs", done.stdout)
        self.command("oshrun", "--check", "-n", 3, "./rma")

    def test_old_library_name(self):
        self.bring(installed.GREET)
        flags = self.command("oshcc", "--showme:compile").split()
        link = [flag.replace("-lshmem", "-lsma") for flag in self.command("oshcc", "--showme:link").split()]
        self.command("cc", *flags, "greet.c", "-o", "hello", *link)
        self.check_hello("./hello")


if __name__ == "__main__":
    installed.main()
