# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures, quoit predict, quoit report: python3 FOLDER COMMAND QUOIT [ARGUMENT...]. QUOIT is the program that simulates
and measures; cmd/quoit/figures.c gives its own path."""
import importlib
import os
import signal
import sys

COMMANDS = {"calibrate": "calibration", "figures": "figures", "predict": "prediction", "report": "page"}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # and what it runs, and wrote in /tmp
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))  # perf.py
    try:
        return importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2], sys.argv[3:])
    except KeyboardInterrupt:
        return 130


sys.exit(main())
