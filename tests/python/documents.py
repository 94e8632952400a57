# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the programs in docs/python.md run as they stand there. Method: each block marked python is a program of three PEs, or,
where it calls quoit.run, a script; what the page says that it prints is compared."""
import os
import re
import shutil
import subprocess
import tempfile

import package

PAGE = os.path.join(os.path.dirname(package.EXAMPLES), "..", "docs", "python.md")
ASK = """
import sys
print(".".join(map(str, sys.version_info[:3])), end=" ")
try:
    import numpy
    print(numpy.__version__)
except ImportError:
    print()
"""


class Documents(package.Case):
    def run_blocks(self, python):
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 6)
        printed = []
        with tempfile.TemporaryDirectory(prefix="quoit-python-") as folder:
            for number, block in enumerate(blocks):
                path = os.path.join(folder, f"block{number}.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(block)
                start = [] if "quoit.run(" in block else ["-m", "quoit.run", "-n", 3]
                ended = self.run_python(*start, path, python=python)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), block)
                printed += ended.stdout.splitlines()
        self.assertEqual(sum(line == "sum over the PEs: [3.  3.  1.5]" for line in printed), 3, printed)
        self.assertIn("PE 0 has [2. 2. 1.]", printed)
        self.assertIn("[0, 10, 20, 30]", printed)
        self.assertIn("[0, 10, 20]", printed)

    def test_blocks(self):
        self.run_blocks(package.PYTHON)

    def test_blocks_under_other_pythons(self):
        """One file of the extension serves every Python from 3.9, and every numpy: those of QUOIT_TEST_PYTHONS, paths with
        colons between them, or else each further python3.N of PATH."""
        named = os.environ.get("QUOIT_TEST_PYTHONS")
        paths = named.split(":") if named else [path for path in (shutil.which(f"python3.{minor}") for minor in range(9, 30))
                                                if path and os.path.realpath(path) != os.path.realpath(package.PYTHON)]
        tried, skipped = [], []
        for path in paths:
            asked = subprocess.run([path, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            version, _, numpy = asked.stdout.strip().partition(" ")
            if asked.returncode != 0 or not numpy:
                skipped.append(f"{path} has no numpy" if version else f"{path} does not start: {asked.stderr.strip().partition(chr(10))[0]}")
                continue
            with self.subTest(python=path, version=version, numpy=numpy):
                self.run_blocks(path)
                tried.append(f"{version} with numpy {numpy}")
        print("Pythons:", ", ".join(tried) or "none", *(f"\n  skipped: {reason}" for reason in skipped), flush=True)
        if named:
            self.assertEqual(skipped, [])
        if not tried:
            self.skipTest("no further python3.N of PATH has numpy")


if __name__ == "__main__":
    package.main()
