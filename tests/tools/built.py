# SPDX-License-Identifier: BSD-3-Clause
"""Tools that the compiler builds into the program."""
import os
import re

from rows import Row, planted

GCC, CLANG = ("gcc", "gcc"), ("clang", "clang, libclang-rt-dev")


def with_compilers(row):
    """The row once with each compiler, as NameGcc and NameClang."""
    return [type(row.__name__ + compiler.capitalize(), (row,),
                 {"COMPILER": compiler, "PACKAGE": package, "QUICK": row.QUICK if compiler == "gcc" else None,
                  "__doc__": row.__doc__, "__module__": __name__}) for compiler, package in (GCC, CLANG)]


def sanitizing(kind, *more):
    """The flags of a program with a sanitizer."""
    return ("-g", "-O1", f"-fsanitize={kind}", *more)


class Sanitizer(Row):
    """What is found ends the job with the status of the sanitizer, and is the only report."""
    REPORT = ""

    def check(self, result, pes):
        self.assertRegex(result.err, self.REPORT)
        self.assertEqual(len(re.findall(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:", result.err)), 1, result)


class Address(Sanitizer):
    FLAGS = sanitizing("address")
    DEED, STATUS = "overflow", 1
    REPORT = rf"AddressSanitizer: heap-buffer-overflow (\n|.)*WRITE of size 1 .*\n *#0 .* in overflow .*work\.c:{planted('overflow')}"


class AddressLeak(Address):
    DEED, QUICK = "leak", None
    REPORT = rf"Direct leak of 54321 byte.*\n.*\n *#1 .* in leak .*work\.c:{planted('leak')}"


class AddressStatic(Address):
    """The sanitizer's library and libshmem are linked statically."""
    FLAGS = sanitizing("address", "-static-libasan", "-Wl,-Bstatic", "-lshmem", "-Wl,-Bdynamic")
    QUICK = None


class Undefined(Sanitizer):
    QUICK = None
    FLAGS = sanitizing("undefined", "-fno-sanitize-recover=all")
    DEED, STATUS = "undefined", 1
    REPORT = rf"work\.c:{planted('undefined')}:.* runtime error: signed integer overflow"


class Leak(Sanitizer):
    QUICK = None
    FLAGS = sanitizing("leak")
    DEED, STATUS = "leak", 23
    REPORT = AddressLeak.REPORT.replace("#1", r"#\d")


class Thread(Sanitizer):
    QUICK = "tcp"
    FLAGS = sanitizing("thread")
    DEED, STATUS = "race", 66
    REPORT = rf"ThreadSanitizer: data race (\n|.)* race .*work\.c:{planted('race')}"


class Hardened(Row):
    """A check of the C library, which aborts and names what it found."""
    STATUS, FOUND = 134, ""

    def check(self, result, pes):
        self.assertIn(f"*** {self.FOUND} detected ***", result.err)


class Stack(Hardened):
    QUICK = None
    FLAGS = ("-g", "-O1", "-fstack-protector-all")
    DEED, FOUND = "stack", "stack smashing"


class Fortify(Hardened):
    FLAGS = ("-g", "-O2", "-D_FORTIFY_SOURCE=3")
    DEED, FOUND = "fortify", "buffer overflow"


class Coverage(Row):
    """All PEs add to one file, and the counts are the sum of all of them."""
    FLAGS = ("-g", "-O0", "--coverage")
    GCOV = ("gcov",)
    DEED = "leak"

    def check(self, result, pes):
        notes = self.notes()
        text = self.text_of(*self.GCOV, "-t", notes)
        self.assertRegex(text, rf"\n *{pes}\*?: *\d+: *shmem_finalize\(\);")
        self.assertRegex(text, rf"\n *1\*?: *{planted('leak')}:")
        os.unlink(notes[:-len("gcno")] + "gcda")

    def notes(self):
        return next(os.path.join(self.builds, name) for name in os.listdir(self.builds) if name.endswith(".gcno"))


class Gprof(Row):
    QUICK = None
    FLAGS = ("-g", "-O1", "-pg", "-no-pie")
    NEEDS, PACKAGE = ("gprof",), "binutils"
    ENVIRONMENT = {"GMON_OUT_PREFIX": "{folder}/gmon"}
    DEED = "busy"

    def check(self, result, pes):
        texts = [self.text_of("gprof", "-b", "-p", self.program, file) for file in self.files("gmon.*", pes)]
        self.assert_one_names(texts, r"[\d.]+ +0\.[1-9]\d* .* busy\n")


ROWS = [row for each in (Address, AddressLeak, AddressStatic, Undefined, Leak, Thread, Stack, Fortify, Coverage, Gprof)
        for row in with_compilers(each)]
for made in ROWS:
    if made.COMPILER == "clang":
        made.FLAGS = tuple("-static-libsan" if flag == "-static-libasan" else flag for flag in made.FLAGS)
        if issubclass(made, Coverage):
            made.GCOV = ("llvm-cov-14", "gcov")
