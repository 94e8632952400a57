#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The models of shared pages, of versions and notices, of copies updated in place and of exclusive mode, searched by spin.

Aim: in no order of events does a reader miss a write announced to it; and the protocol with one step omitted fails, by
an assertion and not by a deadlock. Method: the search of each model must complete without an error; each variant must
violate an assertion.

Use: check.py. Exit status: 0 all results as expected, 1 not, 77 spin is not installed."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {
    "pages.pml": ["NO_NOTICE", "NO_VERSION", "NO_FENCE", "PAGE_FIRST", "NO_CAUSALITY", "ONE_VERSION"],
    "update.pml": ["NO_UPDATE", "NO_VERSION", "PAGE_FIRST", "NO_OWN_VERSION", "WHOLE_PAGE", "KEEP_TWIN"],
    "exclusive.pml": ["NO_MARK", "FETCH_FIRST", "NO_FENCE", "COUNT_FIRST", "NO_LOG"],
}
SKIPPED = 77
DEPTH_MAX = 100000


def search(model, variant):
    """The verifier's output."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(HERE, model), folder)
        for command in (["spin", "-a", f"-D{variant}", model], ["gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c"]):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        done = subprocess.run(["./pan", f"-m{DEPTH_MAX}"], cwd=folder, capture_output=True, text=True, timeout=100)
        return done.stdout


def main():
    if not shutil.which("spin"):
        print("spin is not installed")
        return SKIPPED
    failed = 0
    for model, variant in [(model, variant) for model, variants in MODELS.items() for variant in ["AS_IT_IS", *variants]]:
        text = search(model, variant)
        errors = re.search(r"errors: (\d+)", text)
        is_whole = errors is not None and "Search not completed" not in text and "max search depth" not in text
        if variant == "AS_IT_IS":
            is_good = is_whole and errors[1] == "0"
        else:
            is_good = errors is not None and errors[1] != "0" and "assertion violated" in text
        states = re.search(r"(\d+) states, stored", text)
        print(f"{model:14} {variant:14} {states[1] if states else '?':>8} states, errors {errors[1] if errors else '?'}: "
              f"{'as it must be' if is_good else 'WRONG'}")
        failed += not is_good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
