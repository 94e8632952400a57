# SPDX-License-Identifier: BSD-3-Clause
"""Aim: what the specification leaves open and programs do is survived, with one line for the job that names it; what it allows
is silent. Method: shmem_free of a pointer into a block, alignments that are no power of two, shmem_free(NULL) of one PE alone."""
import scenario

TOLERATED = scenario.program("scenario_tolerated")
SHAPES = (("-n", 3), ("--hosts", 2, "-n", 4))


class Tolerated(scenario.Case):
    def assert_warned(self, what, words):
        for shape in SHAPES:
            with self.subTest(what=what, shape=shape):
                result = self.run_job(*shape, TOLERATED, what)
                self.assertEqual(result.status, 0, result)
                self.assertRegex(result.err, words)
                self.assertEqual(result.err.count("[Q"), 1, result)

    def test_free_inside(self):
        self.assert_warned("free-inside", r"shmem_free: warning: ptr is 0x[0-9a-f]+, which is 1 bytes into a block of 1000 bytes; "
                                          r"its beginning is needed, so the block stays allocated \[Q0112\]\n(  at free_inside\(\) "
                                          r"tolerated.c:\d+\n)?$")

    def test_align(self):
        self.assert_warned("align", r"shmem_align: warning: alignment is 63, but a power of two is needed, so NULL is returned "
                                    r"\[Q0109\]\n(  at align\(\) tolerated.c:\d+\n)?$")

    def test_free_null(self):
        for shape in SHAPES:
            for check in ((), ("--check",)):
                with self.subTest(shape=shape, check=check):
                    result = self.run_job(*check, *shape, TOLERATED, "free-null")
                    self.assertEqual((result.status, result.out, result.err), (0, "", ""), result)

    def test_one_psync(self):
        """Of two first members, and of one. Which PE --check catches, and where, is chance."""
        for shape in SHAPES:
            with self.subTest(shape=shape):
                result = self.run_job(*shape, TOLERATED, "one-psync")
                self.assertEqual((result.status, result.out, result.err), (0, "", ""), result)
                result = scenario.until_good(lambda: self.run_job("--check", *shape, TOLERATED, "one-psync"),
                                             lambda result: "Q0120" in result.err)
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.err, r"shmem_barrier: pSync \S+ \(psync\) is still in use by PE \d in shmem_barrier.*\[Q0120\]")


if __name__ == "__main__":
    scenario.main()
