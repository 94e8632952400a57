# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the core file of a crashed PE holds what a debugger needs, its variables and the used part of its heap, and
neither the memory of other PEs nor untouched pages, which the kernel would allocate in order to write zeros. Method:
the file is searched for marks left in memory."""
import os
import resource
import subprocess
import tempfile

import scenario

CORE = scenario.program("scenario_core")
MIB = 1 << 20


class Core(scenario.Case):
    def setUp(self):
        super().setUp()
        with open("/proc/sys/kernel/core_pattern") as file:
            pattern = file.read().strip()
        if "/" in pattern or "|" in pattern:
            self.skipTest(f"core files do not go to the working directory here: core_pattern is {pattern}")
        if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            self.skipTest("the hard limit of core files is too small")
        if scenario.SANITIZE:
            self.skipTest("a sanitizer takes the signal")

    def core_of(self, *arguments):
        """Bytes of a job's core file, and bytes it occupies on disk."""
        with tempfile.TemporaryDirectory() as folder:
            def prepare():
                resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            done = subprocess.run([*map(str, arguments), CORE], cwd=folder, capture_output=True, preexec_fn=prepare,
                                  env=scenario.environment(self.mark, SHMEM_SYMMETRIC_SIZE="1G"),
                                  timeout=scenario.LIMIT_S)
            self.assertIn(done.returncode, (139, -11), done.stderr)
            names = os.listdir(folder)
            self.assertEqual(len(names), 1, (names, done.stderr))
            path = os.path.join(folder, names[0])
            with open(path, "rb") as file:
                return file.read(), os.stat(path).st_blocks * 512

    def check(self, core, pe, has_heap, others):
        content, disk_bytes = core
        self.assertIn(b"in a variable of PE %d\0" % pe, content)
        self.assertEqual(b"in the heap of PE %d\0" % pe in content, has_heap)
        for other in others:
            self.assertNotIn(b"in the heap of PE %d\0" % other, content)
            self.assertNotIn(b"in a variable of PE %d\0" % other, content)
        self.assertLess(disk_bytes, 16 * MIB)
        self.assertLess(len(content), 16 * MIB)

    def test_on_one_host(self):
        self.check(self.core_of(scenario.OSHRUN, "-n", 2), 1, True, [0])

    def test_on_a_ring(self):
        self.check(self.core_of(scenario.OSHRUN, "--hosts", 3, "-n", 6), 5, True, range(5))

    def test_alone(self):
        self.check(self.core_of(), 0, True, [])

    def test_without_heap(self):
        self.check(self.core_of(scenario.OSHRUN, "--core", "none", "-n", 2), 1, False, [0])


if __name__ == "__main__":
    scenario.main()
