# SPDX-License-Identifier: BSD-3-Clause
"""Tools that replace malloc, or watch memory."""
import re

from rows import Row, library, planted, shell


class Valgrind(Row):
    NEEDS, PACKAGE = ("valgrind",), "valgrind"
    LIMIT_S = 400  # fifty times slower, on a loaded machine

    def summaries(self, result):
        return sorted(int(count) for count in re.findall(r"ERROR SUMMARY: (\d+) errors", result.err))


class Memcheck(Valgrind):
    """An overflow is an error at its line, and the only one: none in the library. Of a thread that runs until the process ends,
    as the library's that watches the launcher, Valgrind takes what glibc allocated for it as possibly lost."""
    WRAPPER = ("valgrind", "--leak-check=full", "--errors-for-leak-kinds=definite", "--error-exitcode=9")
    DEED, STATUS = "overflow", 9

    def check(self, result, pes):
        self.assertRegex(result.err, rf"Invalid write of size 1\n.*overflow \(work\.c:{planted('overflow')}\)")
        self.assertEqual(self.summaries(result), [0] * (pes - 1) + [1], result)


class MemcheckLeak(Memcheck):
    DEED, QUICK = "leak", None

    def check(self, result, pes):
        self.assertRegex(result.err, r"54,321 bytes in 1 blocks are definitely lost.*(\n.*)+?"
                                     rf"leak \(work\.c:{planted('leak')}\)")
        self.assertEqual(self.summaries(result), [0] * (pes - 1) + [1], result)


class Helgrind(Valgrind):
    WRAPPER = ("valgrind", "--tool=helgrind", "--error-exitcode=9")
    DEED, STATUS, QUICK = "race", 9, None

    def check(self, result, pes):
        self.assertRegex(result.err, rf"Possible data race during (\n|.)*race \(work\.c:{planted('race')}\)")
        self.assertEqual(self.summaries(result)[:pes - 1], [0] * (pes - 1), result)


class Massif(Valgrind):
    NEEDS = ("valgrind", "ms_print")
    WRAPPER = ("valgrind", "--tool=massif", "--threshold=0.1", "--massif-out-file={folder}/massif.%p")
    QUICK = None

    def check(self, result, pes):
        for file in self.files("massif.*", pes):
            self.assertRegex(self.text_of("ms_print", file), r"bytes_of \(work\.c:\d+\)")


class Tcmalloc(Row):
    QUICK = "tcp"
    PRELOADS, PACKAGE = ("libtcmalloc.so.4",), "google-perftools"
    ENVIRONMENT = {"MALLOCSTATS": "1"}

    def check(self, result, pes):
        self.assertRegex(result.err, r"MALLOC: +\d+ .*Bytes in use by application")


class HeapProfile(Row):
    QUICK = None
    NEEDS, PRELOADS, PACKAGE = ("google-pprof",), ("libtcmalloc.so.4",), "google-perftools"
    ENVIRONMENT = {"HEAPPROFILE": "{folder}/heap", "HEAPPROFILE_USE_PID": "1"}
    DEED = "leak"

    def check(self, result, pes):
        texts = [self.text_of("google-pprof", "--text", "--lines", self.program, file)
                 for file in self.files("heap_*.heap", pes) if self.is_of_program(file)]
        self.assertTrue(any(re.search(r"\d% leak .*work\.c:", text) for text in texts), texts)

    def is_of_program(self, file):
        with open(file) as profile:
            return self.program in profile.read()


class HeapCheck(Row):
    QUICK = None
    NEEDS, PRELOADS, PACKAGE = ("google-pprof",), ("libtcmalloc.so.4",), "google-perftools"
    ENVIRONMENT = {"HEAPCHECK": "normal", "PPROF_PATH": "/usr/bin/google-pprof"}
    DEED, STATUS = "leak", 1

    def check(self, result, pes):
        self.assertRegex(result.err, r"Leak of 54321 bytes in 1 objects")


class TcmallocDebug(Row):
    """It keeps guard words around each block."""
    QUICK = "pmi"
    PRELOADS, PACKAGE = ("libtcmalloc_debug.so.4",), "google-perftools"
    DEED, STATUS = "overflow", 134

    def check(self, result, pes):
        self.assertRegex(result.err, "memory allocation.*overwrite|Memory.*corrupt|has been written past|corrupt")


class CpuProfile(Row):
    QUICK = None
    NEEDS, PRELOADS, PACKAGE = ("google-pprof",), ("libprofiler.so.0",), "google-perftools"
    WRAPPER = shell('CPUPROFILE="{folder}/cpu.$$" exec "$@"')
    DEED = "busy"

    def check(self, result, pes):
        texts = [self.text_of("google-pprof", "--text", self.program, file) for file in self.files("cpu.*", pes)]
        self.assert_one_names(texts, r"\d%.* busy\n")


class Jemalloc(Row):
    QUICK = "ring"
    PRELOADS, PACKAGE = ("libjemalloc.so.2",), "libjemalloc2"
    ENVIRONMENT = {"MALLOC_CONF": "stats_print:true"}

    def check(self, result, pes):
        self.assertGreaterEqual(result.err.count("Begin jemalloc statistics"), pes, result)


class Mimalloc(Row):
    PRELOADS, PACKAGE = ("libmimalloc.so.2",), "libmimalloc2.0"
    ENVIRONMENT = {"MIMALLOC_SHOW_STATS": "1"}

    def check(self, result, pes):
        self.assertGreaterEqual(result.err.count("heap stats:"), pes, result)


class Memusage(Row):
    QUICK = None
    PRELOADS, PACKAGE = ("libmemusage.so",), "libc6"

    def check(self, result, pes):
        self.assertGreaterEqual(result.err.count("Memory usage summary:"), pes, result)


class Guard(Row):
    """As Electric Fence: a page without access behind each block. The message names the line."""
    PRELOADS = (library("guard"),)
    DEED, STATUS = "overflow", 139

    def check(self, result, pes):
        self.assertRegex(result.out + result.err, rf"overflow\(\) work\.c:{planted('overflow')}")


class Heaptrack(Row):
    NEEDS, PACKAGE = ("heaptrack", "heaptrack_print"), "heaptrack"
    WRAPPER = shell('exec heaptrack -o "{folder}/track.$$" "$@"')
    DEED = "leak"

    def check(self, result, pes):
        texts = [self.text_of("heaptrack_print", "-l", "1", file) for file in self.files("track.*", pes)]
        self.assert_one_names(texts, rf"work\.c:{planted('leak')}")


ROWS = [Memcheck, MemcheckLeak, Helgrind, Massif, Tcmalloc, HeapProfile, HeapCheck, TcmallocDebug, CpuProfile, Jemalloc,
        Mimalloc, Memusage, Guard, Heaptrack]
