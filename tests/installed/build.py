# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whatever a user's build does with an installed copy gives a program that runs: each compiler with each linker, with
--as-needed and without; link-time optimization, static-pie; CMake by the package and by oshcc as its compiler, Meson; each
network. Method: one program of shmem.h and one of dsm.h alone, built each way in a copy with a blank in its path or in one
that was moved, run on two PEs, and the output compared."""
import json
import os
import re
import tempfile
import unittest

import installed
from programs import CXX, DSM, DSM_2

LINKERS = ("bfd", "gold", "lld", "mold")
COMPILERS = ("gcc", "clang")


class Linkers(installed.Case):
    def build_both(self, *flags, env=None):
        self.command("oshcc", *flags, "greet.c", "-o", "hello", env=env)
        self.command("oshcc", *flags, "pages.c", "-lqdsm", "-o", "pages", env=env)
        self.check_hello("./hello")
        self.assertEqual(self.command("oshrun", "-n", 2, "./pages"), DSM_2)

    def test_compilers_and_linkers(self):
        self.bring(installed.GREET)
        self.write("pages.c", DSM)
        tried = 0
        for compiler in COMPILERS:
            for linker in LINKERS:
                if installed.needs(compiler, f"ld.{linker}"):
                    continue
                for how in ("--as-needed", "--no-as-needed"):
                    with self.subTest(compiler=compiler, linker=linker, how=how):
                        self.prefix = (self.copies.blank, self.copies.moved)[tried % 2]
                        self.build_both(f"-fuse-ld={linker}", f"-Wl,{how}", env={"OSHCC": compiler})
                        tried += 1
        self.assertGreater(tried, 0)

    def test_link_time_optimization(self):
        self.bring(installed.GREET)
        self.write("pages.c", DSM)
        for compiler in COMPILERS:
            linker = {"gcc": "ld.bfd", "clang": "ld.lld"}[compiler]
            if not installed.needs(compiler, linker):
                with self.subTest(compiler=compiler):
                    self.build_both("-O2", "-flto", f"-fuse-ld={linker[3:]}", env={"OSHCC": compiler})

    @unittest.skipUnless(installed.find_static_libc(), "no libc.a")
    def test_static_pie(self):
        self.bring(installed.GREET)
        for _ in self.prefixes():
            self.command("oshcc", "-static-pie", "greet.c", "-o", "hello")
            self.assertEqual(installed.dynamic(os.path.join(self.work, "hello"))[0], [])
            self.check_hello("./hello")
            self.check_hello("./hello", "--hosts", 2)


class Systems(installed.Case):
    def project(self, find):
        """A project in C, C++ and with shared pages; `find` says where OpenSHMEM comes from."""
        self.bring(installed.GREET)
        self.write("hello.cc", CXX)
        self.write("pages.c", DSM)
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.16)\nproject(t C CXX)\n" + find)

    def configure(self, *options):
        """A fresh folder with the project, configured."""
        folder = tempfile.mkdtemp(prefix="out-", dir=self.work)
        self.command("cmake", "-G", "Ninja", "-S", ".", "-B", folder, *options)
        return folder

    def run_project(self, *options):
        folder = self.configure(*options)
        self.command("cmake", "--build", folder)
        self.check_hello(f"{folder}/hello")
        self.check_hello(f"{folder}/hello_cxx")
        self.assertEqual(self.command("oshrun", "-n", 2, f"{folder}/pages"), DSM_2)

    def test_cmake_package(self):
        self.project("find_package(OpenSHMEM 1.6 REQUIRED COMPONENTS C CXX dsm)\n"
                     "add_executable(hello greet.c)\ntarget_link_libraries(hello OpenSHMEM::C)\n"
                     "add_executable(hello_cxx hello.cc)\ntarget_link_libraries(hello_cxx OpenSHMEM::CXX)\n"
                     "add_executable(pages pages.c)\ntarget_link_libraries(pages OpenSHMEM::dsm)\n"
                     "find_package(OpenSHMEM 1.6 QUIET COMPONENTS Fortran)\n"
                     "if(OpenSHMEM_FOUND)\n  message(FATAL_ERROR \"there is no Fortran\")\nendif()\n")
        for prefix in self.prefixes():
            for flag in ("-Wl,--as-needed", "-Wl,--no-as-needed"):
                self.run_project(f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_EXE_LINKER_FLAGS={flag}")

    def test_wrapper_as_the_compiler_of_cmake(self):
        """CMAKE_C_COMPILER=oshcc, as for a project that knows nothing of OpenSHMEM; the compile commands that it writes are
        those that clangd reads (test_editor)."""
        self.project("add_executable(hello greet.c)\nadd_executable(hello_cxx hello.cc)\n"
                     "add_executable(pages pages.c)\ntarget_link_libraries(pages qdsm)\n")
        for _ in self.prefixes():
            self.run_project("-DCMAKE_C_COMPILER=oshcc", "-DCMAKE_CXX_COMPILER=oshc++")

    @unittest.skipIf(installed.needs("clangd"), "no clangd")
    def test_editor(self):
        """clangd finds shmem.h if it may ask the wrapper, as oshcc(1) says."""
        self.project("add_executable(hello greet.c)\n")
        for prefix in self.prefixes():
            folder = self.configure("-DCMAKE_C_COMPILER=oshcc", "-DCMAKE_CXX_COMPILER=oshc++",
                                    "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
            with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as file:
                self.assertIn(f"{prefix}/bin/oshcc", json.load(file)[0]["command"].replace("\\", ""))
            checked = self.run_command("clangd", f"--query-driver={prefix}/bin/osh*", f"--compile-commands-dir={folder}",
                                       "--check=greet.c")
            self.assertEqual(checked.returncode, 0, checked.stderr)
            self.assertNotRegex(checked.stderr, r"shmem\.h' file not found")
            self.assertRegex(checked.stderr, "All checks completed, 0 errors")

    @unittest.skipIf(installed.needs("meson", "pkg-config"), installed.needs("meson", "pkg-config"))
    def test_meson(self):
        self.bring(installed.GREET)
        self.write("pages.c", DSM)
        self.write("meson.build", "project('t', 'c')\n"
                   "executable('hello', 'greet.c', dependencies: dependency('openshmem'))\n"
                   "executable('pages', 'pages.c', dependencies: dependency('qdsm'))\n")
        for prefix in self.prefixes():
            folder = os.path.basename(os.path.dirname(prefix)).replace(" ", "-")
            self.command("meson", "setup", folder, env={"PKG_CONFIG_PATH": self.find("openshmem.pc")})
            self.command("meson", "compile", "-C", folder)
            self.check_hello(f"{folder}/hello")
            self.assertEqual(self.command("oshrun", "-n", 2, f"{folder}/pages"), DSM_2)


class Networks(installed.Case):
    def test_networks(self):
        """Each network that the copy has: its own and the plugins."""
        self.bring(installed.GREET)
        plugins = re.findall(r"libquoit-net-(\w+)\.so", " ".join(os.listdir(self.find_plugins()))) if self.find_plugins() else []
        for prefix in self.prefixes():
            self.command("oshcc", "greet.c", "-o", "hello")
            for network in ("tcp", *(name for name in plugins if name != "shuffle")):
                with self.subTest(prefix=prefix, network=network):
                    out = self.command("oshrun", "--network", network, "--hosts", 3, "-n", 3, "./hello")
                    self.assertEqual(sorted(out.splitlines()), [f"hello from PE {pe} of 3" for pe in range(3)])

    def find_plugins(self):
        for folder, _, files in os.walk(self.prefix):
            if any(name.startswith("libquoit-net-") for name in files):
                return folder
        return ""


if __name__ == "__main__":
    installed.main()
