# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whatever a user's build does with an installed copy gives a program that runs: each compiler with each linker, with
--as-needed and without; link-time optimization, static and static-pie; CMake by the package and by oshcc as its compiler,
Meson; each network. Method: one program of shmem.h and one of dsm.h alone, built each way in a copy with a blank in its path or
in one that was moved, run on two PEs, and the output compared; of static programs every byte of shared memory."""
import json
import os
import re
import shlex
import tempfile
import unittest

import installed
from programs import CXX, DSM, DSM_2, DSM_BYTES, dsm_bytes

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
class Static(installed.Case):
    """-static and -static-pie, in C and C++, of shmem.h and of dsm.h; by the wrappers, pkg-config, CMake and Meson."""
    HOW = ("-static", "-static-pie")

    def check_pages(self, program, *options, **variables):
        """Every byte that each of three PEs sees in shared memory."""
        self.command("oshrun", "-n", 3, *options, program, "seen", env={"DSM_MEMORY": "8M", **variables})
        for pe in range(3):
            with open(os.path.join(self.work, f"seen.{pe}"), "rb") as file:
                self.assertEqual(file.read(), dsm_bytes(), (program, options, variables, pe))
            os.unlink(file.name)

    def check_is_static(self, program):
        self.assertEqual(installed.dynamic(os.path.join(self.work, program))[0], [])

    def test_programs(self):
        self.bring(installed.GREET)
        self.write("hello.cc", CXX)
        for _ in self.prefixes():
            for how in self.HOW:
                for compiler, source in (("oshcc", "greet.c"), ("oshc++", "hello.cc")):
                    self.command(compiler, how, source, "-o", "hello")
                    self.check_is_static("hello")
                    self.check_hello("./hello")
                    self.check_hello("./hello", "--hosts", 2)

    @unittest.skipIf(installed.needs("mpiexec.hydra"), "no mpiexec.hydra (mpich)")
    def test_alone(self):
        """Under another launcher, when the installation has gone: the program is all that its hosts need. By each compiler and
        linker, and with what may drop or reorder what is in it."""
        self.bring(installed.GREET)
        ways = [(compiler, "-static", *more) for compiler in COMPILERS
                for more in (("-flto", "-fuse-ld=" + ("bfd" if compiler == "gcc" else "lld")),
                             *((f"-fuse-ld={linker}", "-Wl,--gc-sections") for linker in LINKERS))]
        ways += [("gcc", "-static-pie"), ("clang", "-static-pie", "-fuse-ld=lld", "-Wl,--icf=all"), ("gcc", "-l:libshmem.a", "-Wl,--as-needed")]
        built = []
        for compiler, *flags in ways:
            linker = next((flag[9:] for flag in flags if flag.startswith("-fuse-ld=")), "bfd")
            if installed.needs(compiler, f"ld.{linker}"):
                continue
            self.prefix = (self.copies.blank, self.copies.moved)[len(built) % 2]
            name = f"hello{len(built)}"
            self.command("oshcc", "-ffunction-sections", "greet.c", *flags, "-o", name, env={"OSHCC": compiler})
            self.assertFalse([lib for lib in installed.dynamic(os.path.join(self.work, name))[0] if "shmem" in lib], flags)
            built.append((compiler, *flags, name))
        with self.copies.gone():
            for *how, name in built:
                with self.subTest(how=how):
                    out = self.command("mpiexec.hydra", "-n", 2, f"./{name}", env={"PATH": installed.SYSTEM_PATH})
                    self.assertEqual(sorted(out.splitlines()), installed.HELLO_2)

    def test_pages(self):
        """Faults are served by each detector; none is a symbol or a constructor of a shared library."""
        for name in ("pages.c", "pages.cc"):
            self.write(name, DSM_BYTES)
        for _ in self.prefixes():
            for how in self.HOW:
                for compiler, source in (("oshcc", "pages.c"), ("oshc++", "pages.cc")):
                    self.command(compiler, how, source, "-lqdsm", "-o", "pages")
                    self.check_is_static("pages")
                    self.check_pages("./pages")
                    self.check_pages("./pages", "--hosts", 3)
                for detect in ("async", "wp", "segv"):
                    self.check_pages("./pages", DSM_PROTOCOL="newgendsm", DSM_DETECT=detect)
                for protocol in ("async", "ardmar", "draw"):
                    self.check_pages("./pages", DSM_PROTOCOL=protocol)

    def test_trace_of_pages(self):
        """The slices of libqdsm, which refers to a routine of libshmem.a that nothing else needs."""
        self.write("pages.c", DSM_BYTES)
        self.command("oshcc", "-static", "pages.c", "-lqdsm", "-o", "pages")
        self.check_pages("./pages", "--trace", "job.pftrace", DSM_PROTOCOL="newgendsm")
        with open(os.path.join(self.work, "job.pftrace"), "rb") as file:
            trace = file.read()
        for name in (b"dsm read fault", b"dsm write fault", b"dsm fetch"):
            self.assertTrue(name in trace, name)

    def test_own_state_is_not_copied(self):
        """What fork-style programs copy at a creation are variables of the C library and of Quoit here."""
        self.write("create.c", "#include <dsm.h>\nextern char __data_start, _end;\nstatic void work(void) {}\n"
                   "int main(void)\n{\n    dsm_workers_begin();\n    dsm_workers_run(work, 2, &__data_start, &_end);\n}\n")
        self.command("oshcc", "create.c", "-lqdsm", "-o", "create")
        self.command("oshrun", "-n", 2, "./create")
        self.command("oshcc", "-static", "create.c", "-lqdsm", "-o", "create")
        job = self.run_command("oshrun", "-n", 2, "./create")
        self.assertEqual(job.returncode, 1, job)
        self.assertRegex(job.stderr, r"dsm_workers_run: the globals from 0x\w+ to 0x\w+ include those of libqdsm")

    @unittest.skipIf(installed.needs("pkg-config"), "no pkg-config")
    def test_pkg_config(self):
        self.write("pages.c", DSM_BYTES)
        for how in self.HOW:
            flags = shlex.split(self.command("pkg-config", "--static", "--define-variable=rpath=", "--cflags", "--libs", "qdsm",
                                             env={"PKG_CONFIG_PATH": self.find("qdsm.pc")}))
            self.command("cc", how, "pages.c", *flags, "-o", "pages")
            self.check_is_static("pages")
            self.check_pages("./pages")

    def test_cmake_package(self):
        """Also a program of archives that is linked as others are."""
        self.bring(installed.GREET)
        self.write("pages.c", DSM_BYTES)
        self.write("hello.cc", CXX)
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.16)\nproject(t C CXX)\n"
                   "find_package(OpenSHMEM 1.6 REQUIRED COMPONENTS C CXX dsm)\n"
                   "add_executable(hello greet.c)\ntarget_link_libraries(hello OpenSHMEM::C_static -static)\n"
                   "add_executable(hello_cxx hello.cc)\ntarget_link_libraries(hello_cxx OpenSHMEM::CXX_static -static-pie)\n"
                   "add_executable(pages pages.c)\ntarget_link_libraries(pages OpenSHMEM::dsm_static -static)\n"
                   "add_executable(mixed pages.c)\ntarget_link_libraries(mixed OpenSHMEM::dsm_static)\n")
        for prefix in self.prefixes():
            folder = tempfile.mkdtemp(prefix="out-", dir=self.work)
            self.command("cmake", "-G", "Ninja", "-S", ".", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}")
            self.command("cmake", "--build", folder)
            self.check_hello(f"{folder}/hello")
            self.check_hello(f"{folder}/hello_cxx")
            for program in ("pages", "mixed"):
                self.check_pages(f"{folder}/{program}")
            self.check_is_static(f"{folder}/pages")
            self.assertFalse([name for name in installed.dynamic(f"{folder}/mixed")[0] if re.match("lib(shmem|qdsm)", name)])

    @unittest.skipIf(installed.needs("meson", "pkg-config"), installed.needs("meson", "pkg-config"))
    def test_meson(self):
        self.write("pages.c", DSM_BYTES)
        self.write("meson.build", "project('t', 'c')\n"
                   "executable('pages', 'pages.c', dependencies: dependency('qdsm', static: true), link_args: '-static')\n")
        self.command("meson", "setup", "out", env={"PKG_CONFIG_PATH": self.find("qdsm.pc")})
        self.command("meson", "compile", "-C", "out")
        self.check_is_static("out/pages")
        self.check_pages("./out/pages")


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
