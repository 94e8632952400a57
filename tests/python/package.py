# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of the Python package: the interpreter that has numpy, and the environment in which it finds the
package."""
import os
import subprocess
import sys
import unittest

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))
import scenario  # noqa: E402  (its folder is known now)

PYTHON = os.environ.get("PACKAGE_PYTHON") or sys.executable
FOLDER = os.environ["PACKAGE_FOLDER"]
EXAMPLES = os.environ["PACKAGE_EXAMPLES"]
# The limits of links are those of a busy machine: they are not what is tested.
ENVIRONMENT = {"PYTHONPATH": FOLDER, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
               "QUOIT_LINK_TIMEOUT": "60s"}
SKIPPED = 77


class Case(scenario.Case):
    def run_python(self, *arguments, python=PYTHON, limit=scenario.LIMIT_S, **how):
        """A Python process, as a user's script is one."""
        return subprocess.run([python, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=limit, env=scenario.environment(self.mark, **ENVIRONMENT, **how.pop("env", {})), **how)


def main(needs=("numpy",), arguments=()):
    """Runs the tests; ends with the status that ctest takes for skipped where the interpreter lacks a package."""
    if not os.path.isdir(FOLDER):
        print("skipped: the package was not built: no Python.h (python3-dev)")
        sys.exit(SKIPPED)
    for name in needs:
        if subprocess.run([PYTHON, "-c", f"import {name}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            print(f"skipped: {PYTHON} has no {name} (python3-{name.lower()})")
            sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *(arguments or sys.argv[1:])])
