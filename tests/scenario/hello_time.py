# SPDX-License-Identifier: BSD-3-Clause
"""The time of the smallest job from the first instruction of oshrun to its end. A measurement, not a test.
Usage: hello_time.py BIN_FOLDER PROGRAM [REPETITIONS]"""
import statistics
import subprocess
import sys
import time

SHAPES = (["-n", "1"], ["-n", "2"], ["-n", "16"], ["--hosts", "2"], ["--hosts", "5"], ["--hosts", "8", "-n", "16"])


def main():
    folder, program = sys.argv[1:3]
    repetitions = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    print(f"{'job':<20} {'best':>8} {'median':>8} {'worst':>8}  ms")
    for shape in SHAPES:
        times = []
        for _ in range(repetitions):
            begin = time.perf_counter()
            subprocess.run([folder + "/oshrun", *shape, program], check=True, stdout=subprocess.DEVNULL)
            times.append((time.perf_counter() - begin) * 1000)
        print(f"{' '.join(shape):<20} {min(times):8.1f} {statistics.median(times):8.1f} {max(times):8.1f}", flush=True)


if __name__ == "__main__":
    main()
