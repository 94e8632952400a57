# SPDX-License-Identifier: BSD-3-Clause
"""A job on shared pages that is killed between two checkpoints continues from the last one, with the same or another
number of PEs, and gives the result of an uninterrupted job. Without the checkpoint's files it starts from the
beginning; a damaged checkpoint is reported.
Use: checkpoint_test.py OSHRUN PROGRAM"""
import glob
import os
import re
import subprocess
import sys
import tempfile

STEPS = 23


def run(oshrun, program, shape, protocol, path, *arguments):
    hosts, pes = shape
    environment = dict(os.environ, DSM_PROTOCOL=protocol, DSM_MEMORY="8M")
    done = subprocess.run([oshrun, "--hosts", str(hosts), "-n", str(pes), "--timeout", "240s", program, path, str(STEPS),
                           *map(str, arguments)], env=environment, text=True, capture_output=True, timeout=280, check=False)
    result = re.search(r"result \w+, variable \w+, \d+ steps, \d+ units", done.stdout)
    begun = re.search(r"begins at step (\d+)", done.stdout)
    return done, result.group(0) if result else None, int(begun.group(1)) if begun else None


def expect(is_right, what, done):
    if not is_right:
        sys.exit(f"checkpoint: {what}\n{done.stdout}{done.stderr}")


def main():
    oshrun, program = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        whole, expected, begun = run(oshrun, program, (1, 1), "newgendsm", os.path.join(folder, "whole"))
        expect(whole.returncode == 0 and begun == 0, "the job alone failed", whole)
        for number, (shape, again, protocol) in enumerate([((1, 3), (1, 3), "newgendsm"), ((1, 2), (1, 2), "direct"),
                                                           ((3, 3), (3, 3), "newgendsm"), ((1, 3), (1, 2), "async"),
                                                           ((1, 2), (1, 4), "newgendsm")]):
            path = os.path.join(folder, f"job{number}")
            killed, _, begun = run(oshrun, program, shape, protocol, path, 18)
            expect(killed.returncode != 0 and begun == 0, f"{shape} {protocol}: was not killed", killed)
            done, result, begun = run(oshrun, program, again, protocol, path)
            expect(begun == 15, f"{shape} {protocol}: began at {begun}, not at the checkpoint of step 15", done)
            expect(done.returncode == 0 and result == expected, f"{shape} {protocol}: {result}, not {expected}", done)
        for name in glob.glob(os.path.join(folder, "job0.0.*")):
            with open(name, "r+b") as file:
                file.truncate(100)
        done, _, _ = run(oshrun, program, (1, 3), "newgendsm", os.path.join(folder, "job0"))
        expect(done.returncode != 0 and "dsm_restart returned 5" in done.stderr, "a short file was taken", done)
        for path in ("/" * 3997, ""):
            done, _, _ = run(oshrun, program, (1, 1), "newgendsm", path)
            expect(done.returncode != 0 and f"path has {len(path)} bytes, but 1 to 3996 are needed" in done.stderr,
                   f"a path of {len(path)} bytes was taken", done)
    print("PASSED")


main()
