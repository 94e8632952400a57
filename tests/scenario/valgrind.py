# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a job under Valgrind's memcheck ends, and the library gives no error. Memory that mprotect makes accessible takes it
minutes, so ports map it; its leak check reads each page of the heaps, so they are small.
Method: PEs of one host, of a ring and of a network, in which memory of other hosts is mapped in other ways."""
import shutil
import unittest

import scenario

GREET = scenario.program("scenario_greet")
SMALL = "PE 0: under Valgrind the symmetric heap has at most 64 MiB; SHMEM_SYMMETRIC_SIZE sets another limit\n"


@unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
@unittest.skipIf(scenario.SANITIZE, "Valgrind and a sanitizer exclude each other")
class Valgrind(scenario.Case):
    def test_memcheck(self):
        for shape in (("-n", 2), ("--hosts", 3, "-n", 3), ("--network", "tcp", "--hosts", 2, "-n", 2)):
            with self.subTest(shape=shape):
                result = self.run_job(*shape, "valgrind", "-q", "--error-exitcode=9", GREET)
                self.assertEqual((result.status, result.err), (0, SMALL), result)
                self.assertEqual(sorted(result.out.splitlines()),
                                 [f"hello from PE {pe} of {shape[-1]}" for pe in range(shape[-1])])


if __name__ == "__main__":
    scenario.main()
