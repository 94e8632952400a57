# SPDX-License-Identifier: BSD-3-Clause
"""Aim: programs run right, and end with the right status, under the tools that users put around or into them; and the tools do
their work. Method: a table of tools (memory.py, watching.py, built.py, around.py) and of ways to run a job (rows.py); in each
way the program checks every byte against a model, one PE does what the tool is to find, and the tool's own report is read.

  tools.py --list         a line for each row: name, and the way that a newcomer runs or "long"
  tools.py ROW [WAY...]   one row, in all ways but srun's unless some are given
  tools.py slurm [ROW...] all rows, or some, under srun, in a Slurm of two nodes of its own

Status 77: everything was skipped."""
import os
import shutil
import subprocess
import sys
import unittest

import around
import built
import memory
import rows
import watching

ROWS = [row for table in (memory, watching, built, around) for row in table.ROWS]
SKIPPED = 77
LAUNCHERS = os.path.join(rows.HERE, "..", "launchers")


def run(cases):
    """Status of the process for tests, given by class and way."""
    suite = unittest.TestSuite(row(f"test_{way}") for row, way in cases)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    # A class that is skipped counts as one, whatever the number of its tests
    if not result.wasSuccessful():
        return 1
    return SKIPPED if result.testsRun == len(result.skipped) or result.testsRun == 0 else 0


def run_slurm(names):
    if rows.IN_SLURM:
        return run([(row, "srun") for row in ROWS if row.__name__ in names or not names])
    missing = [tool for tool in ("srun", "slurmctld", "slurmd", "munged", "ip") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} (slurm-wlm, munge, iproute2)")
        return SKIPPED
    apart = ["unshare", "-n", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child"]
    if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
        print("skipped: only root may make namespaces")
        return SKIPPED
    return subprocess.run([*apart, "bash", os.path.join(LAUNCHERS, "slurm.sh"), sys.executable, __file__, "slurm",
                           *names],
                          env={**os.environ, "TOOLS_IN_SLURM": "1"}, check=False).returncode


def main(words):
    if words == ["--list"]:
        for row in ROWS:
            print(row.__name__, row.QUICK or "long")
        return 0
    if words[:1] == ["slurm"]:
        return run_slurm(words[1:])
    chosen = [row for row in ROWS if words and row.__name__ == words[0]]
    ways = words[1:] or [way for way in rows.WAYS if way != "srun"]
    if not chosen or not set(ways) <= set(rows.WAYS):
        print(__doc__)
        return 2
    return run([(row, way) for row in chosen for way in ways])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
