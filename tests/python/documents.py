# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the programs in docs/python.md run as they stand there. Method: each block marked python is a program of three PEs, or,
where it calls quoit.run, a script; what the page says that it prints is compared."""
import os
import re
import tempfile

import package

PAGE = os.path.join(os.path.dirname(package.EXAMPLES), "..", "docs", "python.md")


class Documents(package.Case):
    def test_blocks(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 4)
        printed = []
        with tempfile.TemporaryDirectory(prefix="quoit-python-") as folder:
            for number, block in enumerate(blocks):
                path = os.path.join(folder, f"block{number}.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(block)
                start = [] if "quoit.run(" in block else ["-m", "quoit.run", "-n", 3]
                ended = self.run_python(*start, path)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), block)
                printed += ended.stdout.splitlines()
        self.assertEqual(sum(line == "sum over the PEs: [3.  3.  1.5]" for line in printed), 3, printed)
        self.assertIn("PE 0 has [2. 2. 1.]", printed)
        self.assertIn("[0, 10, 20, 30]", printed)
        self.assertIn("[0, 10, 20]", printed)


if __name__ == "__main__":
    package.main()
