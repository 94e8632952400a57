# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the variables of the program and of its libraries are symmetric whatever linker, alignment, code model or kind of
linking they come from, and however many objects there are; loading and unloading does no harm, and what is not symmetric
is named with its reason. Method: builds programs (objects.c says what they check) for pairs of these, and runs each on one
host and on two; opens and closes libraries and plugins around shmem_init."""
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
OSHCC = os.path.join(scenario.BIN, "oshcc")
LIBSHMEM = os.path.join(scenario.BIN, "..", "lib", "libshmem.so.1")
CC = os.environ.get("CC", "cc")
LINKERS = ("bfd", "gold", "lld", "mold")
ALIGNMENTS = (64, 4096, 8192, 65536, 2 << 20)
# Name: flags for the compiler, flags for the linker.
MODES = {
    "default": ("-fPIE", ""),
    "no-pie": ("-fno-pie", "-no-pie"),
    "medium": ("-mcmodel=medium -fno-pie", "-no-pie -mcmodel=medium"),
    "static": ("-fno-pie", "-static"),
    "static-pie": ("-fPIE", "-static-pie"),
}
OPTIONS = {
    "medium-pie": ("-mcmodel=medium -fPIE", "-mcmodel=medium"),
    "large": ("-mcmodel=large -fno-pie", "-no-pie -mcmodel=large"),
    "far": ("-fno-pie", "-no-pie -Wl,-Tdata=0x20000000"),
    "lto": ("-flto -fPIE", "-flto"),
    "now": ("-fPIE", "-Wl,-z,now"),
    "norelro": ("-fPIE", "-Wl,-z,norelro"),
    "separate-code": ("-fPIE", "-Wl,-z,separate-code"),
    "sections": ("-fPIE -fdata-sections -ffunction-sections", "-Wl,--gc-sections"),
    "as-needed": ("-fPIE", "-Wl,--as-needed"),
    "no-as-needed": ("-fPIE", "-Wl,--no-as-needed"),
    "one-segment": ("-fno-pie", "-static -Wl,-N"),  # code and variables in one segment
}
NORELRO = "-Wl,-z,norelro"
# What a linker does not have.
MISSING = {("gold", "static-pie"), ("gold", "separate-code"), ("lld", "lto"), ("bfd", "one-segment"), ("gold", "one-segment")}
LIBRARY_NAMES = ("-DGETTER=variables_of_library", "-Dlarge_data=library_data", "-Dlarge_bss=library_bss")


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=scenario.LIMIT_S)
    if done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def link(linker, *words):
    """mold 1.10 of Debian 12 never ends for a few sizes of sections; then the link gets what docs/troubleshoot.md tells its
    users. Each other linker has to end."""
    with subprocess.Popen([str(w) for w in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        try:
            out, _ = process.communicate(timeout=scenario.LIMIT_S / 4)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            if linker != "mold" or NORELRO in words:
                raise
            out = None
    if out is None:
        print(f"{linker} does not end; again with {NORELRO}: {words}", flush=True)
        link(linker, *words, NORELRO)
    elif process.returncode != 0:
        raise AssertionError(f"{words}: status {process.returncode}\n{out}")


def has_linker(linker):
    return shutil.which("ld." + linker) or shutil.which(linker)


def lacks_libc_archive():
    return run(CC, "-print-file-name=libc.a").strip() == "libc.a"


class Folder(scenario.Case):
    """With a folder of its own, and programs and libraries built into it once."""
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.built = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def build(self, compiler, source, *flags, kind="-c"):
        """An object, library or program, by its command; built before if the command is the same."""
        command = (compiler, kind, source, *flags)
        if command not in self.built:
            suffix = {"-c": ".o", "-shared": ".so"}.get(kind, "")
            self.built[command] = self.path(f"{len(self.built)}{suffix}")
            words = [kind] if kind else []
            run(compiler, "-O2", *words, *flags, source, "-o", self.built[command])
        return self.built[command]


class Layouts(Folder):
    def skip_reason(self, linker, name):
        if not has_linker(linker):
            return "no " + linker
        if scenario.SANITIZE and name not in ("default", "no-pie"):
            return "a sanitizer has its own ways to link and to lay out variables"
        if re.search("medium|large", name) and platform.machine() != "x86_64":
            return "a code model of x86-64"
        if name in ("static", "static-pie", "one-segment") and lacks_libc_archive():
            return "no libc.a"
        return ""

    def link(self, linker, alignment, name):
        """The program, and the folder of its library."""
        compile_flags, link_flags = {**MODES, **OPTIONS}[name]
        compile_flags = compile_flags.split()
        use = f"-fuse-ld={linker}"
        aligned = f"-DALIGNMENT={alignment}"
        variables = os.path.join(HERE, "variables.c")
        parts = [self.build(OSHCC, variables, aligned, "-DGETTER=variables_of_program", *compile_flags),
                 self.build(OSHCC, os.path.join(HERE, "objects.c"), *compile_flags)]
        if "-static" in link_flags:
            parts.append(self.build(OSHCC, variables, aligned, *LIBRARY_NAMES, *compile_flags))
        else:
            library = self.build(OSHCC, variables, aligned, *LIBRARY_NAMES, "-fPIC")
            shared = self.path(f"libobjects-{linker}-{alignment}.so")
            if not os.path.exists(shared):
                link(linker, CC, "-shared", use, library, "-o", shared, *self.sanitize())
            parts.append(shared)
        program = self.path("program")
        link(linker, OSHCC, use, *link_flags.split(), *parts, "-o", program)
        return program

    def sanitize(self):
        return [f"-fsanitize={scenario.SANITIZE}"] if scenario.SANITIZE else []

    def check(self, linker, alignment, name):
        if "thread" in scenario.SANITIZE:
            self.skipTest("the sanitizer's thread keeps libraries' variables private")
        if (linker, name) in MISSING:
            return 0
        reason = self.skip_reason(linker, name)
        if reason:
            print(f"left out: {linker}, {name}: {reason}", flush=True)
            return 0
        with self.subTest(linker=linker, alignment=alignment, name=name):
            program = self.link(linker, alignment, name)
            for shape in (["-n", 2], ["--hosts", 2, "-n", 3]):
                result = self.run_job(*shape, program)
                self.assertEqual(result.status, 0, result)
                self.assertRegex(result.out, "^14 variables, [0-9]+ holes\n$", result)
            os.unlink(program)
        return 1


class Pairs(Layouts):
    def test_each_pair(self):
        """Each linker with each alignment, each linker with each mode, and each mode with four of the alignments."""
        names = list(MODES)
        count = sum(self.check(linker, alignment, names[(i + j) % len(names)])
                    for i, linker in enumerate(LINKERS) for j, alignment in enumerate(ALIGNMENTS))
        self.assertGreater(count, 0)

    def test_each_option(self):
        """Each option of a linker once, by one that has it."""
        for i, name in enumerate(OPTIONS):
            having = [linker for linker in LINKERS if (linker, name) not in MISSING and has_linker(linker)]
            if having:
                self.check(having[i % len(having)], ALIGNMENTS[2 + i % 3], name)


class All(Layouts):
    def test_all(self):
        for linker in LINKERS:
            for alignment in ALIGNMENTS:
                for name in MODES:
                    self.check(linker, alignment, name)
            for i, name in enumerate(OPTIONS):
                self.check(linker, ALIGNMENTS[1 + i % 4], name)


class Loading(Folder):
    def library(self, *flags):
        return self.build(OSHCC, os.path.join(HERE, "loaded.c"), "-fPIC", *flags, kind="-shared")

    def program(self, name, compiler=OSHCC, *flags):
        return self.build(compiler, os.path.join(HERE, name), *flags, kind="")

    def test_many_libraries(self):
        """As many as there are: 100 copies of a library, opened before shmem_init and closed behind it."""
        if "thread" in scenario.SANITIZE:
            self.skipTest("the sanitizer's thread keeps libraries' variables private")
        for i in range(100):
            shutil.copy(self.library(), self.path(f"lib{i}.so"))
        for shape in (["-n", 2], ["--hosts", 2, "-n", 3], ["--check", "-n", 2]):
            result = self.run_job(*shape, self.program("load.c"), "many", self.folder.name, 100)
            self.assertEqual((result.status, result.out), (0, "100 libraries\n"), result)

    def test_plugin(self):
        """A plugin brings the library in, and is closed after shmem_finalize."""
        if scenario.SANITIZE:
            self.skipTest("a sanitizer comes with the program, not with a plugin")
        plugin = self.library("-DPLUGIN")
        host = self.program("host.c", CC)
        for words in ("local", "local close", "global close", "local close fork", "local close threads",
                      "global close fork threads"):
            for shape in (["-n", 2], ["--hosts", 2, "-n", 2]):
                result = self.run_job(*shape, host, plugin, *words.split())
                self.assertEqual((result.status, result.out, result.err), (0, "right\nright\n", ""), (words, result))

    def test_ctypes(self):
        """The same by an interpreter, which opens and closes the library itself."""
        if scenario.SANITIZE:
            self.skipTest("an interpreter is built without the sanitizer")
        text = ("import _ctypes, ctypes, os, sys\n"
                "shmem = ctypes.CDLL(sys.argv[1])\nlibrary = ctypes.CDLL(sys.argv[2])\n"
                "library.loaded_value.restype = ctypes.POINTER(ctypes.c_long)\nvalue = library.loaded_value()\n"
                "shmem.shmem_init()\nme, pes = shmem.shmem_my_pe(), shmem.shmem_n_pes()\n"
                "shmem.shmem_long_p(value, ctypes.c_long(me + 50), (me + 1) % pes)\nshmem.shmem_barrier_all()\n"
                "assert value[0] == 50 + (me + pes - 1) % pes, value[0]\nshmem.shmem_finalize()\n"
                "_ctypes.dlclose(library._handle)\n_ctypes.dlclose(shmem._handle)\n"
                "child = os.fork()\nif child == 0:\n    sys.exit(0)\nassert os.waitpid(child, 0)[1] == 0\n")
        for shape in (["-n", 2], ["--hosts", 2, "-n", 3]):
            result = self.run_job(*shape, sys.executable, "-c", text,
                                  LIBSHMEM, self.library())
            self.assertEqual((result.status, result.out, result.err), (0, "", ""), result)

    PYTHON = ("import ctypes, os, sys\nshmem = ctypes.CDLL(sys.argv[1])\nshmem.shmem_malloc.restype = ctypes.c_void_p\n"
              "shmem.shmem_init()\nblock = ctypes.c_void_p(shmem.shmem_malloc(100))\nshmem.shmem_free(block)\n")

    def python_mistake(self, program, *options):
        """The one report of a program that frees a block once more."""
        if scenario.SANITIZE:
            self.skipTest("an interpreter is built without the sanitizer")
        path = self.path("twice.py")
        with open(path, "w") as file:
            file.write(self.PYTHON + program)
        result = self.run_job(*options, "-n", 2, sys.executable, path, LIBSHMEM)
        self.assertEqual(result.status, 1, result)
        return result.err

    def test_places_of_an_interpreter(self):
        """A place in libffi is nobody's: a block that is freed twice has none. The call's is the line in Python."""
        self.assertRegex(self.python_mistake("def again():\n    shmem.shmem_free(block)\n\nagain()\n", "--check"),
                         "shmem_free: ptr is 0x[0-9a-f]+, a block of 100 bytes from shmem_malloc that shmem_free has freed already "
                         r"\(called at twice\.py:8\) \[Q0112\]")

    def test_package_of_an_interpreter(self):
        """The line is the program's, not that of a package between it and the library."""
        os.makedirs(self.path("site-packages"), exist_ok=True)
        with open(self.path("site-packages/between.py"), "w") as file:
            file.write("def free(shmem, block):\n    shmem.shmem_free(block)\n")
        self.assertRegex(self.python_mistake("sys.path.append(os.path.join(os.path.dirname(__file__), 'site-packages'))\n"
                                             "import between\n\nbetween.free(shmem, block)\n"),
                         r"no block now; freed twice\? \(called at twice\.py:10\) \[Q0112\]")

    def test_what_is_not_symmetric(self):
        """Named as in the library's file, with the only reason."""
        library = self.library()
        name = re.escape(os.path.basename(library))
        place = rf"shmem_long_p: dest {name}\+0x[0-9a-f]+ \((?:zeroed \+ 7992 bytes|constant|value)\) is not a symmetric address \("
        variable = f"a variable of the shared library {name}, "
        threads = place + variable + r"left out because the process had several threads at shmem_init, .*\) \[Q0102\]"
        texts = {
            "late": place + variable + r"which was loaded after shmem_init; load it before, or link with it\) \[Q0102\]",
            "threads": threads,
            "constant": place + rf"a constant or code of the shared library {name}\) \[Q0102\]",
            "own": r"shmem_long_p: dest 0x[0-9a-f]+ is not a symmetric address \(a thread-local variable; each thread of a "
                   r"PE has its own\) \[Q0102\]",
            "end": rf"shmem_putmem: dest {name}\+0x[0-9a-f]+ \(value\) with 1048576 bytes ends [0-9]+ bytes past the end of {name}'s global "
                   r"variables \[Q0102\]",
        }
        if "thread" in scenario.SANITIZE: # its thread
            del texts["end"]
            texts["late"] = threads
        for use, text in texts.items():
            result = self.run_job("-n", 2, self.program("load.c"), use, library)
            self.assertEqual(result.status, 1, result)
            self.assertRegex(result.err, text, use)


    def folded(self, code, *arguments):
        """The lines with this code, when they speak of several PEs: the end of a job does not wait for one that is held up."""
        result = scenario.until_good(lambda: self.run_job(*arguments), lambda r: re.search(r"PEs [^:]*: .*" + code, r.err))
        self.assertEqual(result.status, 1, result)
        return [line for line in result.err.splitlines() if code in line]

    def test_one_message_of_several_pes(self):
        """Also where it has an address that the kernel chose, or the number of the PE."""
        program = self.program("load.c")
        lines = self.folded("Q0102", "-n", 4, program, "mistake", "stack")
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^oshrun: PEs 0[-,0-9]*: shmem_long_p: dest 0x[0-9a-f]+ is not a symmetric address \(a stack")
        lines = self.folded("Q0113", "--check", "-n", 4, program, "mistake", "different")
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^oshrun: PEs [-,1-3]*: shmem_long_sum_reduce: dest is .* \(flag \+ 16 bytes\) on PE [1-3].*, but "
                                   r".* \(flag \+ 8 bytes\) on PE 0")

    def test_static_of_a_function(self):
        """Has the name that it has in the source, in which the compiler's number does not stand."""
        words = (r"PE 0 was waiting in shmem_long_wait_until.* for flag \+ 24 bytes == 7, which is 0",)
        for shape in (["-n", 2], ["--hosts", 2, "-n", 2]):
            self.run_out(2, words, *shape, self.program("load.c"), "mistake", "wait")


class Names(Folder):
    """Variables in messages have the names of the source."""
    SOURCE = os.path.join(HERE, "named.c")
    OSHCXX = os.path.join(scenario.BIN, "oshc++")
    MISTAKES = {
        "far": r"shmem_putmem: dest {at} \({name} \+ 8 bytes\) with 67108864 bytes ends \d+ bytes past the end of [\w.]+'s global "
               r"variables \[Q0102\]|shmem_putmem: dest {at} \({name} \+ 8 bytes\) with 67108864 bytes ends \d+ bytes past the end "
               r"of the program's global variables \[Q0102\]",
        "overlap": r"shmem_long_sum_reduce: dest {at} \({name} \+ 8 bytes\) with 16 bytes and source {at} \({name}\) with 16 bytes "
                   r"overlap, but must be the same or lie apart \[Q0119\]",
        "free": r"shmem_free: ptr is {at} \({name}\), which is a variable; shmem_malloc gives what can be freed \[Q0112\]",
    }
    PAST_ONE = (r"shmem_long_put: dest {at} \({name}\) with 40 bytes ends 8 bytes past the end of that variable, which has 32 bytes "
                r"\[Q0116\]")

    def check(self, program, at, names, mistakes=None, options=("-n", 2)):
        for variable, name in names.items():
            for kind, text in (mistakes or self.MISTAKES).items():
                result = self.run_job(*options, program, variable, kind)
                self.assertEqual(result.status, 1, (variable, kind, result))
                self.assertRegex(result.err, text.format(at=at, name=re.escape(name)), (variable, kind))

    def test_c(self):
        names = {"file": "of_file", "program": "of_program", "function": "of_function", "another": "of_function"}
        for flags in ((), ("-no-pie",), ("-flto",)):
            program = self.build(OSHCC, self.SOURCE, *flags, kind="")
            at = "0x[0-9a-f]+" if "-no-pie" in flags else re.escape(os.path.basename(program)) + r"\+0x[0-9a-f]+"
            self.check(program, at, names)
            self.check(program, at, names, {"one": self.PAST_ONE}, ("--check", "-n", 2))

    def test_cxx(self):
        """Also the function, which the linker's name of a variable of C++ has in it."""
        names = {"file": "of_file", "program": "of_program", "space": "space::of_space",
                 "function": "of_a_function()::of_function", "another": "of_another_function()::of_function"}
        program = self.build(self.OSHCXX, self.SOURCE, "-x", "c++", kind="")
        at = re.escape(os.path.basename(program)) + r"\+0x[0-9a-f]+"
        self.check(program, at, names)
        self.check(program, at, names, {"one": self.PAST_ONE}, ("--check", "-n", 2))

    def test_library(self):
        if "thread" in scenario.SANITIZE:
            self.skipTest("the sanitizer's thread keeps libraries' variables private")
        library = self.build(OSHCC, self.SOURCE, "-fPIC", "-DLIBRARY", kind="-shared")
        calls = self.path("calls.c")
        with open(calls, "w") as file:
            file.write("#include <shmem.h>\nvoid mistake(const char *name, const char *kind);\nint main(int c, char **v)\n{\n"
                       "    shmem_init();\n    mistake(v[1], v[2]);\n    return c;\n}\n")
        program = self.build(OSHCC, calls, "-Wl,--no-as-needed", library, "-Wl,-rpath," + self.folder.name, kind="")
        at = re.escape(os.path.basename(library)) + r"\+0x[0-9a-f]+"
        self.check(program, at, {"file": "of_file", "program": "of_program", "function": "of_function"})

    def test_stripped(self):
        """No name is better than a wrong one; what the dynamic linker must know has its name left."""
        program = self.build(OSHCC, self.SOURCE, "-rdynamic", kind="")
        run("strip", program)
        at = re.escape(os.path.basename(program)) + r"\+0x[0-9a-f]+"
        self.check(program, at, {"program": "of_program"})
        nameless = {kind: text.replace(r" \({name} \+ 8 bytes\)", "").replace(r" \({name}\)", "") for kind, text in self.MISTAKES.items()}
        self.check(program, at, {"file": "", "function": ""}, nameless)


if __name__ == "__main__":
    scenario.main()
