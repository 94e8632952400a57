#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does a test fail on a busy machine that passes on a quiet one?

Aim: deadlines follow progress, so a slow machine delays a job and never ends it. Method: the tests of a build that a
regular expression selects run as ctest runs them (command, environment, time limit, what must and must not be printed),
two at a time, beside processes that load the machine:

  busy    16 processes that compute, in the session of the tests, so that each thread gets about a ninth of a processor
  memory  4 processes that map, touch and give back memory, a third of what is free in all

A test's time limit is for a quiet machine. Here it is multiplied by how much longer a computing process takes beside the
load, which each round measures before it begins: the limit bounds the processor time that a test is given. A test that
has limits of its own finds that factor, rounded up, in TEST_SLOWDOWN (tests/conformance/misuse.sh).

The load ends with this program, whichever way that ends. Status 0: every test passed in every round.
"""
import argparse
import concurrent.futures
import ctypes
import json
import math
import mmap
import os
import re
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PAGE = mmap.PAGESIZE
BUSY_PROCESSES, MEMORY_PROCESSES = 16, 4
MEASURED_S = 0.3  # processor time of the process that measures what the load takes
STANDING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standing.txt")
FREE_SHARE = 3  # the processes that take memory take one part of so many


class Selected:
    """A test as CMake describes it."""

    def __init__(self, test):
        self.name, self.command = test["name"], test.get("command", [])
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        self.environment = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []))
        self.folder = properties.get("WORKING_DIRECTORY", ".")
        self.limit_s = float(properties.get("TIMEOUT", 1500))
        self.patterns = {kind: properties.get(kind + "_REGULAR_EXPRESSION", []) for kind in ("PASS", "FAIL", "SKIP")}

    def matches(self, kind, text):
        return any(re.search(pattern, text) for pattern in self.patterns[kind])

    def run(self, slowdown):
        """(verdict, output): passed, skipped, or what is wrong."""
        started = time.monotonic()
        process = subprocess.Popen(self.command, cwd=self.folder, env={**os.environ, **self.environment, "TEST_SLOWDOWN": str(math.ceil(slowdown))},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=False, text=True, errors="replace")
        try:
            text, _ = process.communicate(timeout=self.limit_s * slowdown)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
            return f"not ended within {time.monotonic() - started:.0f} s", text
        if self.matches("SKIP", text):
            return "skipped", text
        if self.matches("FAIL", text):
            return "printed what it must not", text
        if self.patterns["PASS"]:
            return "passed" if self.matches("PASS", text) else "did not print what it must", text
        return "passed" if process.returncode == 0 else f"status {process.returncode}", text


def tests_of(build):
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return [Selected(test) for test in json.loads(listed.stdout)["tests"]]


def program_of(test):
    kind, _, rest = test.name.partition(".")
    return rest.split(".")[0] if kind == "conformance" else None


def standing(tests):
    """The tests of the standing suite; each line of it selects some, and each program of conformance is among them."""
    with open(STANDING, encoding="ascii") as file:
        patterns = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    unused = [pattern for pattern in patterns if not any(re.fullmatch(pattern, test.name) for test in tests)]
    if unused:
        sys.exit(f"load: {STANDING}: no test has the name {unused[0]}")
    chosen = [test for test in tests if any(re.fullmatch(pattern, test.name) for pattern in patterns)]
    missing = {program_of(test) for test in tests} - {program_of(test) for test in chosen} - {None}
    if missing:
        sys.exit(f"load: {STANDING}: no run of conformance.{min(missing)}")
    return chosen


def compute():
    while True:
        pass


def take_memory(share):
    while True:
        taken = mmap.mmap(-1, share)
        for at in range(0, share, PAGE):
            taken[at] = 1
        taken.close()


def free_bytes():
    with open("/proc/meminfo", encoding="ascii") as file:
        return 1024 * int(re.search(r"^MemAvailable: +(\d+) kB", file.read(), re.M).group(1))


def begin(kind):
    """The pids of the processes that load the machine; each dies with this one."""
    libc = ctypes.CDLL(None)
    count = BUSY_PROCESSES if kind == "busy" else MEMORY_PROCESSES
    share = free_bytes() // FREE_SHARE // count // PAGE * PAGE
    parent, pids = os.getpid(), []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == parent:
                compute() if kind == "busy" else take_memory(share)
            os._exit(0)
        pids.append(pid)
    return pids


def end(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def slowdown_of(jobs):
    """How many times as long as its processor time a process takes, of as many as there are tests at a time."""
    spent = f"import time\nwhile time.process_time() < {MEASURED_S}: pass"
    started = time.monotonic()
    computing = [subprocess.Popen([sys.executable, "-c", spent]) for _ in range(jobs)]
    for process in computing:
        process.wait()
    return max(1.0, (time.monotonic() - started) / MEASURED_S)


def round_of(tests, jobs, slowdown):
    """How often each verdict was given; prints those that are wrong as they come."""
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        # Those that may take longest begin first: one of them at the end would run alone.
        runs = {pool.submit(test.run, slowdown): test for test in sorted(tests, key=lambda test: -test.limit_s)}
        for number, done in enumerate(concurrent.futures.as_completed(runs), 1):
            verdict, text = done.result()
            counts[verdict if verdict in counts else "failed"] += 1
            if verdict not in counts:
                print(f"{runs[done].name}: {verdict}\n{text}", flush=True)
            if sys.stdout.isatty():
                print(f"\r{number} of {len(tests)}", end="", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a build")
    parser.add_argument("kind", choices=("busy", "memory"))
    parser.add_argument("--tests", metavar="REGEX", help="names of the tests, as for ctest -R; otherwise standing.txt")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time")
    options = parser.parse_args()
    every = tests_of(options.build)
    tests = [test for test in every if re.search(options.tests, test.name)] if options.tests else standing(every)
    if not tests:
        sys.exit(f"load: no test of {options.build} matches {options.tests}")
    failed = 0
    pids = begin(options.kind)
    try:
        for number in range(1, options.rounds + 1):
            started = time.monotonic()
            slowdown = slowdown_of(options.jobs)
            counts = round_of(tests, options.jobs, slowdown)
            failed += counts["failed"]
            print(f"round {number} of {options.rounds}, {options.kind}: {counts['passed']} passed, {counts['skipped']} skipped, "
                  f"{counts['failed']} failed in {time.monotonic() - started:.0f} s, limits multiplied by {slowdown:.1f}",
                  flush=True)
    finally:
        end(pids)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
