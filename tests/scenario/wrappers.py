# SPDX-License-Identifier: BSD-3-Clause
"""Aim: oshcc and oshc++ build programs that run, from the build tree and from an installed tree that was moved; so do
the packages (pkg-config, CMake); the manual documents every option. Method: install into a folder, move it, then build
and run a program with each of these."""
import os
import re
import shutil
import subprocess
import tempfile

import scenario

SOURCE = os.environ["SCENARIO_SOURCE"]
BUILD = os.environ["SCENARIO_BUILD"]
C_PROGRAM = os.path.join(SOURCE, "tests", "scenario", "greet.c")
CXX_TEXT = '#include <shmem.h>\n#include <iostream>\nint main() { shmem_init(); std::cout << "hello from PE " ' \
           '<< shmem_my_pe() << " of " << shmem_n_pes() << "\\n"; shmem_finalize(); }\n'
HELLO_2 = ["hello from PE 0 of 2", "hello from PE 1 of 2"]


class Wrappers(scenario.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        first = os.path.join(cls.folder.name, "first")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", first], check=True, stdout=subprocess.DEVNULL)
        cls.prefix = os.path.join(cls.folder.name, "moved")
        shutil.move(first, cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        super().setUp()
        self.work = tempfile.mkdtemp(dir=self.folder.name)

    def command(self, *words, env=None, status=0):
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=self.work,
                              timeout=scenario.LIMIT_S, env=scenario.environment(self.mark, **(env or {})))
        self.assertEqual(done.returncode, status, (words, done.stdout, done.stderr))
        self.assertEqual(done.stderr, "", words)
        return done.stdout

    def check_hello(self, bin_folder, program):
        out = self.command(os.path.join(bin_folder, "oshrun"), "-n", 2, program)
        self.assertEqual(sorted(out.splitlines()), HELLO_2)

    def test_build_and_run(self):
        for folder in (scenario.BIN, os.path.join(self.prefix, "bin")):
            with self.subTest(folder=folder):
                self.command(f"{folder}/oshcc", "-Wall", "-Wextra", "-O1", C_PROGRAM, "-o", "hello")
                self.check_hello(folder, "./hello")
                self.command(f"{folder}/oshcc", "-c", C_PROGRAM, "-o", "hello.o")
                self.command(f"{folder}/oshcc", "hello.o", "-o", "hello2")
                self.check_hello(folder, "./hello2")
                with open(os.path.join(self.work, "hello.cc"), "w") as file:
                    file.write(CXX_TEXT)
                self.command(f"{folder}/oshc++", "-Wall", "-Wextra", "hello.cc", "-o", "hello3")
                self.check_hello(folder, "./hello3")

    def test_lines_of_a_folder_with_a_space(self):
        if not shutil.which("addr2line") or scenario.SANITIZE:
            self.skipTest("no addr2line" if not scenario.SANITIZE else "a sanitizer takes the signal")
        folder = os.path.join(self.work, "a b")
        os.mkdir(folder)
        with open(os.path.join(folder, "fall over.c"), "w") as file:
            file.write("#include <shmem.h>\nint main(void)\n{\n    shmem_init();\n    *(volatile int *)0 = 1;\n}\n")
        self.command(os.path.join(self.prefix, "bin", "oshcc"), "-g", "a b/fall over.c", "-o", "a b/fall over")
        job = subprocess.run([os.path.join(self.prefix, "bin", "oshrun"), "./a b/fall over"], capture_output=True,
                             text=True, cwd=self.work, env=scenario.environment(self.mark), timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 139, job)
        self.assertIn("at main() fall over.c:5", job.stderr)

    def test_show(self):
        oshcc = os.path.join(self.prefix, "bin", "oshcc")
        shown = self.command(oshcc, "-show", "a.c", "-o", "x y").split()
        self.assertIn(f"-I{self.prefix}/include", shown)
        self.assertIn("-lshmem", shown)
        self.assertIn("a.c -o 'x y' -L", " ".join(shown))
        self.assertNotIn("-lshmem", self.command(oshcc, "-show", "-c", "a.c").split())
        compile_flags = self.command(oshcc, "--showme:compile").split()
        link_flags = self.command(oshcc, "--showme:link").split()
        self.assertEqual(compile_flags[0], f"-I{self.prefix}/include")
        self.assertEqual(link_flags[-2:], ["-lshmem", "-lm"])
        self.assertEqual(self.command(oshcc, "-show", "a.c", env={"OSHCC": "my cc"}).split()[:2], ["my", "cc"])
        self.assertEqual(self.command(oshcc, "-show", "a.c", env={"CC": "tcc"}).split()[0], "tcc")
        self.assertNotEqual(self.command(oshcc, "-show", "a.c", env={"CC": oshcc}).split()[0], oshcc)
        self.command("cc", *compile_flags, C_PROGRAM, "-o", "hello", *link_flags)
        self.check_hello(os.path.join(self.prefix, "bin"), "./hello")

    def test_mathematics(self):
        """A program that calls sqrt and names no libraries, as the specification's examples do."""
        with open(os.path.join(self.work, "root.c"), "w") as file:
            file.write("#include <math.h>\n#include <shmem.h>\nint main(int c, char **v)\n{\n    shmem_init();\n"
                       "    return sqrt(c + 3.0) != 2.0 || !v;\n}\n")
        for compiler in ("oshcc", "oshc++"):
            self.command(os.path.join(self.prefix, "bin", compiler), "-x", "c", "root.c", "-x", "none", "-o", "root")
            self.command(os.path.join(self.prefix, "bin", "oshrun"), "-n", 2, "./root")

    def test_static(self):
        """-static links the library and everything below it; such a program runs like others, on one host and on a
        ring."""
        if scenario.SANITIZE:
            self.skipTest("a sanitizer needs its shared library")
        if self.command("cc", "-print-file-name=libc.a").strip() == "libc.a":
            self.skipTest("no libc.a on this machine")
        for folder in (scenario.BIN, os.path.join(self.prefix, "bin")):
            self.command(f"{folder}/oshcc", "-static", C_PROGRAM, "-o", "hello")
            self.assertNotIn("libshmem", self.command("readelf", "-d", "hello"))
            self.check_hello(folder, "./hello")
            self.command(f"{folder}/oshcc", "-static-pie", C_PROGRAM, "-o", "hello")
            self.assertNotIn("RUNPATH", self.command("readelf", "-d", "hello"))  # glibc ends such a program before main
            self.check_hello(folder, "./hello")
        rma = os.path.join(SOURCE, "tests", "conformance")
        for program in ("rma", "coll", "memory", "p2p"):
            self.command(f"{folder}/oshcc", "-static", f"{rma}/{program}.c", "-o", program)
            self.command(f"{folder}/oshrun", "--hosts", 3, "-n", 5, f"./{program}")
        self.command(f"{folder}/oshrun", "--check", "-n", 3, "./rma")

    def test_old_library_name(self):
        oshcc = os.path.join(self.prefix, "bin", "oshcc")
        flags = self.command(oshcc, "--showme:compile").split()
        link = [f.replace("-lshmem", "-lsma") for f in self.command(oshcc, "--showme:link").split()]
        self.command("cc", *flags, C_PROGRAM, "-o", "hello", *link)
        self.check_hello(os.path.join(self.prefix, "bin"), "./hello")

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        found = [folder for folder, _, files in os.walk(self.prefix) if "openshmem.pc" in files]
        flags = self.command("pkg-config", "--cflags", "--libs", "openshmem", env={"PKG_CONFIG_PATH": found[0]}).split()
        self.assertTrue(any(f.startswith("-I") and os.path.exists(f[2:] + "/shmem.h") for f in flags), flags)
        static = self.command("pkg-config", "--define-variable=rpath=", "--static", "--libs", "openshmem",
                              env={"PKG_CONFIG_PATH": found[0]}).split()
        self.assertFalse(any("rpath" in flag for flag in static), static)
        if not scenario.SANITIZE:
            self.command("cc", C_PROGRAM, "-o", "hello", *flags)
            self.check_hello(os.path.join(self.prefix, "bin"), "./hello")

    def test_cmake_package(self):
        with open(os.path.join(self.work, "CMakeLists.txt"), "w") as file:
            file.write("cmake_minimum_required(VERSION 3.16)\nproject(t C)\nfind_package(OpenSHMEM 1.6 REQUIRED)\n"
                       f"add_executable(hello \"{C_PROGRAM}\")\ntarget_link_libraries(hello OpenSHMEM::C)\n")
            file.write("find_package(OpenSHMEM 1.6 REQUIRED COMPONENTS C CXX)\nif(NOT OpenSHMEM_C_FOUND OR NOT "
                       "OpenSHMEM_CXX_FOUND)\n  message(FATAL_ERROR \"components are not told\")\nendif()\n"
                       "enable_language(CXX)\nadd_executable(hello_cxx hello.cc)\n"
                       "target_link_libraries(hello_cxx OpenSHMEM::CXX)\n"
                       "find_package(OpenSHMEM 1.6 QUIET COMPONENTS Fortran)\n"
                       "if(OpenSHMEM_FOUND)\n  message(FATAL_ERROR \"there is no Fortran\")\nendif()\n")
        with open(os.path.join(self.work, "hello.cc"), "w") as file:
            file.write(CXX_TEXT)
        sanitize = [f"-DCMAKE_CXX_FLAGS=-fsanitize={scenario.SANITIZE}",
                    f"-DCMAKE_C_FLAGS=-fsanitize={scenario.SANITIZE}"] \
            if scenario.SANITIZE else []
        self.command("cmake", "-G", "Ninja", "-S", ".", "-B", "out", f"-DCMAKE_PREFIX_PATH={self.prefix}", *sanitize)
        self.command("cmake", "--build", "out")
        self.check_hello(os.path.join(self.prefix, "bin"), "out/hello")
        self.check_hello(os.path.join(self.prefix, "bin"), "out/hello_cxx")

    def complete(self, shell, script, *words):
        """The shell's completions of the last word."""
        path = os.path.join(self.prefix, "bin") + ":" + os.environ["PATH"]
        return self.command(shell, "-c", script, shell, *words, env={"PATH": path}).splitlines()

    def test_bash_completion(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        file = os.path.join(self.prefix, "share", "bash-completion", "completions", "oshrun")
        script = f'. "{file}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _oshrun; printf "%s\\n" "${{COMPREPLY[@]}}"'
        self.assertEqual(self.complete("bash", script, "oshrun", "--ho"), ["--hosts", "--host", "--hostfile"])
        self.assertEqual(self.complete("bash", script, "oshrun", "-n", "2", "--bind-to", "n"), ["none"])
        self.assertEqual(self.complete("bash", script, "oshrun", "-n", "2", "ls", ":", "--slo"), ["--slots"])

    def commands_of_quoit(self):
        lines = self.command(os.path.join(self.prefix, "bin", "quoit"), "--help").splitlines()
        return [line.split()[0] for line in lines if line.startswith("  ")]

    def options_of(self, name):
        shown = self.command(os.path.join(self.prefix, "bin", "quoit"), name, "--help")
        return re.findall("^  (--[a-z-]+)", shown, re.M)

    def test_bash_completion_of_quoit(self):
        if not shutil.which("bash"):
            self.skipTest("no bash")
        file = os.path.join(self.prefix, "share", "bash-completion", "completions", "quoit")
        script = f'. "{file}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quoit; printf "%s\\n" "${{COMPREPLY[@]}}"'

        def offered(*words):
            return self.complete("bash", script, "quoit", *words)
        self.assertEqual(offered(""), self.commands_of_quoit())
        for name in self.commands_of_quoit():
            options = offered(name, "--")
            self.assertLessEqual(set(self.options_of(name)), set(options), name)
            self.assertEqual("--link-limit" in options, name in ("info", "perf", "tune"), name)  # oshrun's
        self.assertEqual(offered("sim", "--workload", "hot"), ["hotspot"])
        self.assertEqual(offered("sim", "--canary", "credit"), ["credit"])
        self.assertEqual(offered("figures", "22/4"), ["22/4a", "22/4b"])
        self.assertEqual(offered("info", "p"), ["paths"])
        os.mkdir(os.path.join(self.work, "drawn"))
        self.assertEqual(offered("figures", "--out", "dra"), ["drawn"])

    def test_manual_of_quoit(self):
        """A page for each command, which documents each of its options and no other, and is listed on the first
        page."""
        folder = os.path.join(self.prefix, "share", "man", "man1")
        pages = {name for name in os.listdir(folder) if name.startswith("quoit-")}
        self.assertEqual(pages, {f"quoit-{name}.1" for name in self.commands_of_quoit()})
        with open(os.path.join(folder, "quoit.1")) as file:
            first = file.read()
        for name in self.commands_of_quoit():
            self.assertIn(f".BR quoit\\-{name} (1)", first)
            with open(os.path.join(folder, f"quoit-{name}.1")) as file:
                told = set(re.findall(r'^\.BI? "?(\\-\\-[a-z\\-]+)', file.read(), re.M))
            told = {option.replace("\\-", "-") for option in told}
            self.assertEqual(told | {"--help"}, set(self.options_of(name)) | {"--help"}, name)

    def test_zsh_completion(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        file = os.path.join(self.prefix, "share", "zsh", "site-functions", "_oshrun")
        script = 'setopt extendedglob; _call_program() { shift; eval "$*" }; _arguments() { print -rl -- "$@" }; ' \
                 f'words=("$@"); CURRENT=$#; . "{file}"; print -r -- "now $CURRENT $words"'
        offered = self.complete("zsh", script, "oshrun", "-n", "2", "ls", ":", "--slo")
        self.assertIn("*--hosts[number of hosts, emulated on this machine and joined into a ring]:H: ", offered)
        self.assertIn("*--lanes[lanes of each link\\: 1, 2, 4 or 8]:N: ", offered)
        self.assertIn("*--bind-to[bind each PE to one core, or to none]:value:(core none)", offered)
        self.assertIn("*--tag[prefix each line of output with its PE and host]", offered)
        self.assertEqual(offered[-1], "now 2 oshrun --slo")

    def test_manual(self):
        names = [line.split()[0] for line in self.command(scenario.OSHRUN, "--options").splitlines()[1:]]
        with open(os.path.join(self.prefix, "share", "man", "man1", "oshrun.1")) as file:
            manual = file.read()
        for name in names:
            self.assertIn(name.replace("-", "\\-"), manual)
        self.assertNotIn("@", manual)
        for page in ("oshcc.1", "oshc++.1"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, "share", "man", "man1", page)))


if __name__ == "__main__":
    scenario.main()
