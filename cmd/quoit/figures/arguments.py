# SPDX-License-Identifier: BSD-3-Clause
"""Command lines: an error is one line and status 2, as in the other subcommands of quoit."""
import argparse
import os
import sys


class Parser(argparse.ArgumentParser):
    def __init__(self, prog, **more):
        super().__init__(prog=prog, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **more)

    def error(self, message):
        sys.stderr.write(f"{self.prog}: {message} (see --help)\n")
        sys.exit(2)


def oshrun_of(quoit):
    """oshrun beside the program quoit; where another project has that name, as on Debian, ours has a suffix."""
    folder = os.path.dirname(quoit)
    named = os.path.join(folder, "oshrun.quoit")
    return named if os.access(named, os.X_OK) else os.path.join(folder, "oshrun")
