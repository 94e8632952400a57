# SPDX-License-Identifier: BSD-3-Clause
"""Aim: each notebook of examples/python/notebooks/ runs from its first cell to its last, computes what it should and ends with a
picture; it is stored without outputs. Method: headless.py runs the cells in IPython and compares with models; test_kernel runs them
in Jupyter's own kernel, and the picture must be in the last cell's output."""
import json
import os
import sys
import tempfile

import package

FOLDER = os.path.join(package.EXAMPLES, "notebooks")
NAMES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".ipynb"))
HEADLESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "headless.py")
KERNEL = """
import os, sys
import nbclient, nbformat
for path in sys.argv[1:]:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.path.dirname(path)}}).execute()
    assert any("image/png" in output.get("data", {}) for output in notebook.cells[-1].outputs), notebook.cells[-1].outputs
    print(os.path.basename(path), "right")
"""


class Notebooks(package.Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="quoit-python-")
        self.addCleanup(folder.cleanup)
        self.environment = {"IPYTHONDIR": folder.name, "MPLCONFIGDIR": folder.name, "JUPYTER_RUNTIME_DIR": folder.name,
                            "JUPYTER_CONFIG_DIR": folder.name}

    def run_all(self, *words):
        ended = self.run_python(*words, *(os.path.join(FOLDER, name) for name in NAMES), env=self.environment, limit=600)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        right = [line for line in ended.stdout.splitlines() if line.endswith(" right")]
        self.assertEqual(right, [f"{name} right" for name in NAMES])

    def test_results(self):
        self.run_all(HEADLESS)

    def test_kernel(self):
        self.run_all("-c", KERNEL)

    def test_stored(self):
        self.assertGreaterEqual(len(NAMES), 4)
        for name in NAMES:
            with self.subTest(notebook=name):
                with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                    text = file.read()
                notebook = json.loads(text)
                self.assertEqual((notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]), (4, "python3"))
                self.assertLess(len(text), 10000)
                self.assertEqual(text, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "as Jupyter writes it")
                code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
                self.assertGreaterEqual(len(notebook["cells"]) - len(code), 2, "text between the cells")
                for cell in code:
                    self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))


if __name__ == "__main__":
    kernel = "Notebooks.test_kernel" in sys.argv
    package.main(needs=("numpy", "IPython", "matplotlib", *(("nbclient", "ipykernel") if kernel else ())))
